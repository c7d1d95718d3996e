"""How good is a fitted hierarchy? Precision, recall and F1 over all ordered pairs, the threshold, and the worst general nodes.

Random negatives flatter: a taxonomy has thousands of times more non-edges than edges, and a general node that contains everything is
seen only on the few nodes outside it. Up to 6,000 nodes all ordered pairs are judged. In larger hierarchies the edges and every pair
with one of the 200 most general nodes as the parent are judged exactly, the other parents on the same 2,000 random children, each of
which counts for nodes/2,000 children.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.learning import Lists
from subspaces.hierarchy.thresholds import best_threshold, judge
from subspaces.training.loop import generator_for

EXACT = 6_000
_CHILDREN = 2_000
_GENERAL = 200
_REPORTED = 20
_BINS = 10_000  # scores are counted in bins: 36 million of them are never sorted
_BLOCK = 500


class PairScores(Protocol):
    """What is judged: a score of directed pairs, the larger the more surely an edge. `bounded`: an inclusion, from 0 to 1."""

    bounded: bool

    def inclusion(self, child: Tensor, parent: Tensor) -> Tensor:
        """Of pairs (m,): (m,)."""
        ...

    def block(self, children: Tensor, parents: Tensor) -> Tensor:
        """Of every child with every parent: (children, parents)."""
        ...


@dataclass(frozen=True)
class Bins:
    """Scores by number. Inclusions have bins of 0.0001; other scores are cut at quantiles of the true edges' scores, which is where
    the best threshold lies."""

    levels: Tensor | None

    @classmethod
    def of(cls, edges: Tensor, bounded: bool) -> Bins:
        if bounded:
            return cls(None)
        places = torch.linspace(0, len(edges) - 1, min(_BINS, len(edges))).long()
        return cls(torch.unique(edges.sort().values[places]))

    def __call__(self, score: Tensor) -> Tensor:
        if self.levels is None:
            return score.clamp(0.0, 1.0).mul(_BINS).long()
        return torch.searchsorted(self.levels, score.to(self.levels.dtype), right=True)

    def first(self, threshold: float) -> int:
        """The first bin whose scores reach the threshold."""
        if self.levels is None:
            return int(np.ceil(threshold * _BINS - 1e-9))
        return int((self.levels < threshold).sum()) + 1

    def threshold(self, at: int) -> float:
        return at / _BINS if self.levels is None else float(self.levels[max(at, 1) - 1])

    def count(self, numbers: Tensor) -> Tensor:
        size = _BINS if self.levels is None else len(self.levels)
        return torch.bincount(numbers, minlength=size + 1).double()


def judge_pairs(
    scores: PairScores,
    graph: Taxonomy,
    seed: int,
    closed: bool = True,
    threshold: float | None = None,
    sample: int | None = None,
) -> dict[str, Any]:
    """The figures at `threshold`, or at the threshold with the best F1. `closed=False`: the given edges are the positive pairs, and
    pairs that only follow from them are left out. `sample`: this many random children stand for all, whatever the size."""
    edges = torch.from_numpy(graph.closure if closed else graph.edges.astype(np.int64))
    score = scores.inclusion(edges[:, 0], edges[:, 1])
    bins = Bins.of(score, scores.bounded)
    positive = bins(score)
    general = np.argsort(-graph.descendants, kind="stable")[: min(_GENERAL, graph.nodes)].copy()
    columns, outside = _general_scores(scores, bins, graph, general)
    children = _children(graph.nodes, seed, sample)
    counts, pairs = _count_non_edges(scores, bins, graph, children, columns, outside, torch.from_numpy(general))
    hits = bins.count(positive)
    at = _best_bin(hits, counts) if threshold is None else bins.first(threshold)
    true, false = float(hits[at:].sum()), float(counts[at:].sum())
    return {
        "threshold": bins.threshold(at) if threshold is None else threshold,
        "precision": 100 * true / max(true + false, 1e-9),
        "recall": 100 * true / len(edges),
        "f1": 200 * true / (true + false + len(edges)),
        "edges": len(edges),
        "non_edges": pairs,
        "all_pairs": len(children) == graph.nodes,
        "general": _general_figures(graph, general, edges, positive, columns, outside, at),
    }


def choose_threshold(scores: PairScores, children: Tensor, parents: Tensor, entailed: np.ndarray) -> dict[str, float]:
    """The threshold with the best F1 on labelled pairs of the user, and its figures on them."""
    if entailed.all() or not entailed.any():
        raise UserError("the validation pairs need both labels: pairs that hold (1) and pairs that do not (0).")
    score = scores.inclusion(children, parents).numpy()
    positive, negative = score[entailed], score[~entailed]
    highest = best_threshold(positive, negative)
    lower = np.concatenate([positive[positive < highest], negative[negative < highest]])
    threshold = float((highest + lower.max()) / 2) if len(lower) else highest  # half way to the next score
    return {"threshold": threshold, "pairs": len(score), **judge(positive, negative, threshold)}


def _best_bin(hits: Tensor, false: Tensor) -> int:
    """The first bin that counts as entailed, for the largest F1; of equally good ones the middle."""
    true, wrong = hits.flip(0).cumsum(0).flip(0), false.flip(0).cumsum(0).flip(0)
    f1 = 2 * true / (true + wrong + hits.sum())
    best = torch.nonzero(f1 >= f1.max() - 1e-12)[:, 0]
    return int(best[len(best) // 2])


def _children(nodes: int, seed: int, sample: int | None) -> Tensor:
    """All of them, or in large hierarchies a sample."""
    wanted = sample or (nodes if nodes <= EXACT else _CHILDREN)
    if wanted >= nodes:
        return torch.arange(nodes)
    return torch.randperm(nodes, generator=generator_for(seed, 3))[:wanted].sort().values


def _general_scores(scores: PairScores, bins: Bins, graph: Taxonomy, general: np.ndarray) -> tuple[Tensor, Tensor]:
    """(N, G) bins of the scores of every node below g, and whether it is neither g nor below g."""
    parents = torch.from_numpy(general)
    columns = torch.cat([bins(scores.block(some, parents)) for some in torch.arange(graph.nodes).split(8192)])
    column = np.full(graph.nodes, -1)
    column[general] = np.arange(len(general))
    outside = torch.ones(columns.shape, dtype=torch.bool)
    outside[parents, torch.arange(len(general))] = False
    below = column[graph.ancestors] >= 0
    outside[torch.from_numpy(graph.closure[below, 0]), torch.from_numpy(column[graph.ancestors[below]])] = False
    return columns, outside


def _count_non_edges(
    scores: PairScores, bins: Bins, graph: Taxonomy, children: Tensor, columns: Tensor, outside: Tensor, general: Tensor
) -> tuple[Tensor, int]:
    """(scores of non-edges in each bin, how many pairs were looked at)."""
    exact = len(children) == graph.nodes
    counts = bins.count(torch.zeros(0, dtype=torch.int64) if exact else columns[outside])
    pairs = 0 if exact else int(outside.sum())
    ancestors, everyone = Lists.ancestors(graph), torch.arange(graph.nodes)
    for some in children.split(_BLOCK):
        found = bins(scores.block(some, everyone))
        counted = torch.ones(found.shape, dtype=torch.bool)
        counted[torch.arange(len(some)), some] = False
        counted[ancestors.of(some)] = False
        if not exact:
            counted[:, general] = False
        chosen = found[counted]
        pairs += len(chosen)
        counts += bins.count(chosen) * (graph.nodes / len(children))
    return counts, pairs


def _general_figures(
    graph: Taxonomy, general: np.ndarray, edges: Tensor, positive: Tensor, columns: Tensor, outside: Tensor, at: int
) -> list[dict[str, Any]]:
    """Precision and recall of the twenty nodes with the most descendants, each against all nodes; the worst first.

    Precision is 0 where a node with descendants is said to contain nothing.
    """
    figures = []
    for place, node in enumerate(general[:_REPORTED].tolist()):
        reached = positive[edges[:, 1] == node] >= at
        true, false = int(reached.sum()), int((columns[outside[:, place], place] >= at).sum())
        figures.append(
            {
                "name": graph.names[node],
                "descendants": int(graph.descendants[node]),
                "precision": 100 * true / (true + false) if true + false else 0.0 if len(reached) else 100.0,
                "recall": 100 * true / len(reached) if len(reached) else 100.0,
            }
        )
    return sorted(figures, key=lambda figure: min(figure["precision"], figure["recall"]))
