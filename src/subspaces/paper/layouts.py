"""How the paper lays out its tables: labels of rows and columns, and how many digits. Values are not here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    caption: str
    number: str  # the table's number in the paper
    rows: dict[str, str]  # row id → LaTeX label
    columns: dict[str, str]
    digits: dict[str, int]  # column id (or its last word) → decimals

    def decimals(self, column: str) -> int:
        return self.digits.get(column, self.digits.get(column.split("-")[-1], self.digits.get("", 2)))


_NLI = {
    "gru-order": "OE (GRU)",
    "gru-hyperbolic": "HNN (GRU)",
    "minilm-mlp": r"MiniLM MLP$(p,h)$",
    "minilm-mlp-diff": r"MiniLM MLP$(p,h,p-h)$",
    "minilm-subspace-64": "MiniLM SPH (SE$^{64}$)",
    "minilm-subspace-128": "MiniLM SPH (SE$^{128}$)",
    "mpnet-mlp": r"MPNet MLP$(p,h)$",
    "mpnet-mlp-diff": r"MPNet MLP$(p,h,p-h)$",
    "mpnet-box-64": "MPNet Box$^{64}$",
    "mpnet-box-128": "MPNet Box$^{128}$",
    "mpnet-subspace-64": "MPNet SPH (SE$^{64}$)",
    "mpnet-subspace-128": "MPNet SPH (SE$^{128}$)",
}
_POINTS = {"euclidean": r"\mathbb{R}", "poincare": r"\mathcal{P}", "lorentz": r"\mathcal{H}"}
_NAMED = {"subspace": "SE", "order": "OE", "cones": "Cones", "disk": "Disk", "umbral": "UHS", "gaussian": "DOE-A"}


def _label(row: str) -> str:
    name, _, dim = row.rpartition("-")
    return f"${_POINTS[name]}^{{{dim}}}$" if name in _POINTS else f"{_NAMED[name]}$^{{{dim}}}$"


def _labels(*rows: str) -> dict[str, str]:
    return {row: _label(row) for row in rows}


LAYOUTS = {
    "reconstruction": Layout(
        "WordNet reconstruction: mean average precision (%), mean rank, Spearman's ρ (×100) of generality with taxonomy rank",
        "2",
        _labels("euclidean-128", "poincare-10", "lorentz-10", "subspace-64", "subspace-128"),
        {
            "nouns-map": "Nouns mAP ↑",
            "nouns-mr": "Nouns MR ↓",
            "nouns-rho": "Nouns ρ ↑",
            "verbs-map": "Verbs mAP ↑",
            "verbs-mr": "Verbs MR ↓",
            "verbs-rho": "Verbs ρ ↑",
        },
        {"map": 1, "mr": 2, "rho": 1},
    ),
    "hyperlex": Layout(
        "HyperLex nouns: Spearman's correlation with human scores",
        "3",
        _labels("euclidean-5", "poincare-5", "gaussian-50", "subspace-128"),
        {"spearman": "Spearman ↑"},
        {"": 3},
    ),
    "link_prediction": Layout(
        "WordNet noun link prediction: F1 (%) by share of non-basic edges seen in training",
        "4",
        _labels("euclidean-10", "order-10", "poincare-10", "cones-10", "disk-10", "umbral-10", "subspace-64", "subspace-128"),
        {"f1-0": "0 % ↑", "f1-10": "10 % ↑", "f1-25": "25 % ↑", "f1-50": "50 % ↑"},
        {"": 1},
    ),
    "snli": Layout("SNLI test accuracy (%)", "5", _NLI, {"accuracy-2way": "2-way ↑", "accuracy-3way": "3-way ↑"}, {"": 2}),
    "composition": Layout(
        "Compositional entailment: AUC (%)",
        "6",
        {row: label for row, label in _NLI.items() if not row.startswith("gru")},
        {"auc-conjunction": "Conjunction ↑", "auc-negation": "Negation ↑"},
        {"": 2},
    ),
    "encoding_time": Layout(
        "Encoding time (ms per query) by batch size",
        "7",
        {"mpnet": "mpnet-base-v2", "mpnet-subspace-128": "mpnet-base-v2 + SPH (SE$^{128}$)"},
        {f"batch-{size}": f"{size} ↓" for size in (1, 4, 16, 64, 128)},
        {"": 2},
    ),
    "retrieval_latency": Layout(
        "Top-10 retrieval latency on Flickr30k captions (ms per query)",
        "8",
        {
            "poincare-10-exact": r"$\mathcal{P}^{10}$ (brute force)",
            "subspace-64-exact": "SE$^{64}$ (brute force)",
            "subspace-128-exact": "SE$^{128}$ (brute force)",
            "subspace-128-faiss": "SE$^{128}$ (FAISS)",
        },
        {"latency": "Latency ↓"},
        {"": 1},
    ),
    "lambda_sensitivity": Layout(
        "SNLI accuracy (%) by λ",
        "9",
        {f"lambda-{value}": rf"$\lambda={value}$" for value in ("0.01", "0.05", "0.1", "0.2")},
        {"accuracy-2way": "2-way ↑", "accuracy-3way": "3-way ↑"},
        {"": 2},
    ),
}
