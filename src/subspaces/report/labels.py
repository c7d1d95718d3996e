"""LaTeX labels of rows, as the paper names them."""

from __future__ import annotations

_POINTS = {"euclidean": r"\mathbb{R}", "poincare": r"\mathcal{P}", "lorentz": r"\mathcal{H}"}
_NAMED = {"subspace": "SE", "order": "OE", "cones": "Cones", "disk": "Disk", "umbral": "UHS", "gaussian": "DOE-A"}

NLI_LABELS = {
    "gru-order": "OE (GRU)",
    "gru-hyperbolic": "HNN (GRU)",
    "minilm-mlp": r"MiniLM MLP$(p,h)$",
    "minilm-mlp-diff": r"MiniLM MLP$(p,h,p-h)$",
    "minilm-subspace-64": "MiniLM SPH (SE$^{64}$)",
    "minilm-subspace-128": "MiniLM SPH (SE$^{128}$)",
    "minilm-adapters-64": "subspaces-minilm-64 (SE$^{64}$, shipped)",
    "mpnet-mlp": r"MPNet MLP$(p,h)$",
    "mpnet-mlp-diff": r"MPNet MLP$(p,h,p-h)$",
    "mpnet-box-64": "MPNet Box$^{64}$",
    "mpnet-box-128": "MPNet Box$^{128}$",
    "mpnet-subspace-64": "MPNet SPH (SE$^{64}$)",
    "mpnet-subspace-128": "MPNet SPH (SE$^{128}$)",
}

EFFICIENCY_LABELS = {
    "poincare-10-exact": r"$\mathcal{P}^{10}$ (brute force)",
    "subspace-64-exact": "SE$^{64}$ (brute force)",
    "subspace-128-exact": "SE$^{128}$ (brute force)",
    "subspace-128-faiss": "SE$^{128}$ (FAISS)",
    "mpnet": "mpnet-base-v2",
    "mpnet-subspace-128": "mpnet-base-v2 + SPH (SE$^{128}$)",
}


def geometry_label(row: str) -> str:
    """LaTeX label of a row `geometry-dimension`; a geometry that the paper does not have keeps its name."""
    name, _, dim = row.rpartition("-")
    return f"${_POINTS[name]}^{{{dim}}}$" if name in _POINTS else f"{_NAMED.get(name, name.capitalize())}$^{{{dim}}}$"
