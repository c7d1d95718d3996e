"""What truncation costs (paper §4.6, compression figure): drop eigenvalues below τ, then measure rank, bytes and
quality.

Quality is the mAP of WordNet reconstruction, the 2-way accuracy on SNLI, or the recall of a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.experiments.efficiency.settings import CompressionSettings
from subspaces.experiments.efficiency.timing import TOP, recall
from subspaces.experiments.pairs import load_pairs, subset
from subspaces.files import write_json
from subspaces.geometries.subspace import SubspaceGeometry
from subspaces.hierarchy.ranking import evaluate_ranking
from subspaces.hierarchy.reconstruction import load_reconstruction
from subspaces.text.load import load_text_model
from subspaces.text.pair_model import Texts, accuracy
from subspaces.text.texts import TokenTable
from subspaces.training.loop import set_threads

_BLOCK = 512
_NODES = 2048


class Spectra:
    """Eigenvalues (N, d) and eigenvectors (N, d, d) of symmetric projectors (N, d, d): made once, cut at any τ."""

    def __init__(self, projectors: Tensor):
        if projectors.ndim != 3 or projectors.shape[1] != projectors.shape[2] or not len(projectors):
            raise UserError(f"projectors must have shape (N, d, d) with N ≥ 1, got {tuple(projectors.shape)}.")
        self.values, self.vectors = projectors.new_empty(projectors.shape[:2]), torch.empty_like(projectors)
        for some in _blocks(len(projectors)):
            self.values[some], self.vectors[some] = torch.linalg.eigh((projectors[some] + projectors[some].mT) / 2)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        return self.values.shape[1]

    def ranks(self, tau: float) -> Tensor:
        """How many eigenvalues are kept, (N,)."""
        return (self.values >= tau).sum(1)

    def truncated(self, tau: float, out: Tensor | None = None) -> Tensor:
        """The projectors rebuilt from eigenvalues ≥ τ, (N, d, d), in a new tensor or in `out`."""
        out = torch.empty_like(self.vectors) if out is None else out
        for some in _blocks(len(self)):
            kept = torch.where(self.values[some] >= tau, self.values[some], 0.0)
            torch.matmul(self.vectors[some] * kept.unsqueeze(1), self.vectors[some].mT, out=out[some])
        return out


def compression_curve(
    projectors: Tensor,
    taus: Sequence[float],
    metric: Callable[[Tensor], float],
    name: str,
    *,
    measure_full: bool = False,
) -> dict[str, Any]:
    """For each τ: mean rank, mean bytes of rank-k factors in 16 bits, and `metric(truncated projectors)` under `name`.

    Lists of equal length beside `taus`, and `full_rank` = d; with `measure_full` also the metric of what came in, under
    `name`_full.
    """
    grid = [float(tau) for tau in taus]
    if not grid or any(not 0 <= tau <= 1 for tau in grid):
        raise UserError(f"thresholds τ must lie between 0 and 1, and there must be one at least; got {grid}.")
    spectra = Spectra(projectors)
    rows: dict[str, Any] = {"taus": grid, "rank": [], "bytes": [], name: [], "full_rank": spectra.dim}
    if measure_full:
        rows[f"{name}_full"] = float(metric(projectors))
    room = torch.empty_like(projectors)
    for tau in grid:
        rank = float(spectra.ranks(tau).double().mean())
        rows["rank"].append(rank)
        rows["bytes"].append(factor_bytes(spectra.dim, rank))
        rows[name].append(float(metric(spectra.truncated(tau, room))))
    return rows


def factor_bytes(dim: int, rank: float) -> float:
    """Rank-k factors in 16 bits: k columns √λ·u of d entries."""
    return 2.0 * dim * rank


def half_vector_bytes(dim: int) -> float:
    """The half-vector in 16 bits."""
    return float(dim * (dim + 1))


def pq_bytes(sub_quantisers: int = 64, bits: int = 8) -> float:
    """A product-quantised code, without its share of the codebooks."""
    return sub_quantisers * bits / 8


def full_bytes(dim: int) -> float:
    """All d² entries in 32 bits."""
    return 4.0 * dim * dim


def factor_points(
    projectors: Tensor, forms: Mapping[str, Tensor], taus: Sequence[float], top: int = TOP
) -> list[dict[str, Any]]:
    """Recall against bytes for rank-k factors: `form`, `bytes`, `recall` by form of query, for each τ.

    A document's score is Tr(P_τ Q)/Tr(P): its trace is stored, it does not shrink with the rank.
    """
    trace = projectors.diagonal(dim1=1, dim2=2).sum(1)
    half = {form: half_vector(some) for form, some in forms.items()}
    true = {form: _scores(projectors, some, trace).topk(top, dim=1).indices for form, some in half.items()}
    spectra, room, points = Spectra(projectors), torch.empty_like(projectors), []
    for tau in taus:
        cut = spectra.truncated(tau, room)
        found = {
            form: recall(_scores(cut, some, trace).topk(top, dim=1).indices, true[form]) for form, some in half.items()
        }
        size = factor_bytes(spectra.dim, float(spectra.ranks(tau).double().mean()))
        points.append({"form": f"rank-k factors, τ = {tau:g}", "bytes": size, "recall": found})
    return points


def _scores(projectors: Tensor, queries: Tensor, trace: Tensor) -> Tensor:
    parts = [queries @ half_vector(projectors[some]).T for some in _blocks(len(projectors))]
    return torch.cat(parts, dim=1) / trace


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK))


class _FixedProjectors:
    """Projectors (N, d, d) with the methods of a geometry that the ranking uses."""

    def __init__(self, projectors: Tensor):
        self.projectors = projectors

    def space(self) -> None:
        return None

    def all_features(self) -> Tensor:
        return torch.cat([half_vector(some) for some in self.projectors.split(_NODES)])

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.mT


@torch.no_grad()
def compress_wordnet(folder: Path, graph_path: Path, taus: list[float], nodes: int | None, seed: int) -> dict[str, Any]:
    """mAP (%) and mean rank of a reconstruction model at each τ, on all sources or on some drawn with the seed."""
    _, graph, geometry = load_reconstruction(folder, graph_path)
    assert isinstance(geometry, SubspaceGeometry)
    projectors = torch.cat(
        [geometry.projectors(slice(start, start + _NODES)) for start in range(0, graph.nodes, _NODES)]
    )
    sources = np.flatnonzero(np.diff(graph.offsets))
    if nodes is not None:
        sources = np.sort(np.random.default_rng(seed).permutation(sources)[:nodes])
    found = compression_curve(
        projectors, taus, lambda cut: evaluate_ranking(_FixedProjectors(cut), graph, sources=sources)["map"], "map"
    )
    return found | {"sources": len(sources)}


@torch.no_grad()
def compress_snli(
    folder: Path, data: Path, sources: Path, taus: list[float], pairs: int | None, seed: int
) -> dict[str, Any]:
    """2-way accuracy (%) on test pairs and mean rank of a text model at each τ; its decision is the one that training
    froze."""
    text_model = load_text_model(folder, sources)
    test = subset(load_pairs(data, "test"), pairs, seed)
    texts = Texts(TokenTable.of(test.texts, text_model.tokeniser, text_model.limit), "cpu")
    projectors = texts.encode_all(text_model.model, np.arange(len(test.texts)))
    premise, hypothesis = torch.from_numpy(test.premise), torch.from_numpy(test.hypothesis)

    def judged(cut: Tensor) -> float:
        parts = zip(premise.split(512), hypothesis.split(512), strict=True)
        return accuracy(torch.cat([text_model.model.logits(cut[p], cut[h]) for p, h in parts]), test.labels(2))

    return compression_curve(projectors, taus, judged, "accuracy") | {"pairs": len(test)}


def write_compression(
    part: str,
    model: Path,
    settings: CompressionSettings,
    sources: Path,
    out: Path,
    key: str,
    threads: int,
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Measure one half of the figure, `wordnet` or `snli`: each has a model of its own."""
    set_threads(threads)
    if part == "wordnet":
        found = compress_wordnet(model, Path("data/wordnet/nouns.npz"), settings.taus, settings.nodes, settings.seed)
    else:
        found = compress_snli(model, Path("data/snli.parquet"), sources, settings.taus, settings.pairs, settings.seed)
    content = {"key": key, **extra, "settings": settings.model_dump(exclude_none=True), part: found}
    write_json(out, content)
    return content
