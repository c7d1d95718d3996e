"""How good is a fitted hierarchy? Precision, recall and F1 over all ordered pairs, the threshold, and the worst general nodes.

Random negatives flatter: a taxonomy has thousands of times more non-edges than edges, and a general node that contains everything is
seen only on the few nodes outside it. Up to 6,000 nodes all ordered pairs are judged. In larger hierarchies the edges and every pair
with one of the 200 most general nodes as the parent are judged exactly, the other parents on the same 2,000 random children, each of
which counts for nodes/2,000 children.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.hierarchy.features import Features
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.learning import Lists
from subspaces.hierarchy.thresholds import best_threshold, judge
from subspaces.training.loop import generator_for

EXACT = 6_000
_CHILDREN = 2_000
_GENERAL = 200
_REPORTED = 20
_BINS = 10_000  # scores are counted in bins of 0.0001: 36 million of them are never sorted
_BLOCK = 500


def judge_pairs(
    features: Features, graph: Taxonomy, seed: int, closed: bool = True, threshold: float | None = None
) -> dict[str, Any]:
    """The figures at `threshold`, or at the threshold with the best F1. `closed=False`: the given edges are the positive pairs, and
    pairs that only follow from them are left out."""
    edges = torch.from_numpy(graph.closure if closed else graph.edges.astype(np.int64))
    positive = _bins(features.inclusion(edges[:, 0], edges[:, 1]))
    general = np.argsort(-graph.descendants, kind="stable")[: min(_GENERAL, graph.nodes)].copy()
    columns, outside = _general_scores(features, graph, general)
    counts, pairs = _count_non_edges(features, graph, seed, columns, outside, torch.from_numpy(general))
    hits = torch.bincount(positive, minlength=_BINS + 1).double()
    at = _best_bin(hits, counts) if threshold is None else int(np.ceil(threshold * _BINS - 1e-9))
    true, false = float(hits[at:].sum()), float(counts[at:].sum())
    return {
        "threshold": at / _BINS if threshold is None else threshold,
        "precision": 100 * true / max(true + false, 1e-9),
        "recall": 100 * true / len(edges),
        "f1": 200 * true / (true + false + len(edges)),
        "edges": len(edges),
        "non_edges": pairs,
        "all_pairs": graph.nodes <= EXACT,
        "general": _general_figures(graph, general, edges, positive, columns, outside, at),
    }


def choose_threshold(features: Features, children: Tensor, parents: Tensor, entailed: np.ndarray) -> dict[str, float]:
    """The threshold with the best F1 on labelled pairs of the user, and its figures on them."""
    if entailed.all() or not entailed.any():
        raise UserError("the validation pairs need both labels: pairs that hold (1) and pairs that do not (0).")
    score = features.inclusion(children, parents).numpy()
    positive, negative = score[entailed], score[~entailed]
    highest = best_threshold(positive, negative)
    lower = np.concatenate([positive[positive < highest], negative[negative < highest]])
    threshold = float((highest + lower.max()) / 2) if len(lower) else highest  # half way to the next score
    return {"threshold": threshold, "pairs": len(score), **judge(positive, negative, threshold)}


def _bins(score: Tensor) -> Tensor:
    return score.clamp(0.0, 1.0).mul(_BINS).long()


def _best_bin(hits: Tensor, false: Tensor) -> int:
    """The first bin that counts as entailed, for the largest F1; of equally good ones the middle."""
    true, wrong = hits.flip(0).cumsum(0).flip(0), false.flip(0).cumsum(0).flip(0)
    f1 = 2 * true / (true + wrong + hits.sum())
    best = torch.nonzero(f1 >= f1.max() - 1e-12)[:, 0]
    return int(best[len(best) // 2])


def _general_scores(features: Features, graph: Taxonomy, general: np.ndarray) -> tuple[Tensor, Tensor]:
    """(N, G) bins of NIS(P_g | P_c), and whether c is neither g nor below g."""
    half = features.half[torch.from_numpy(general)].float()
    shared = torch.cat([part.float() @ half.T for part in features.half.split(8192)])
    bins = _bins(shared / features.trace[:, None].clamp_min(1e-30))
    column = np.full(graph.nodes, -1)
    column[general] = np.arange(len(general))
    outside = torch.ones(bins.shape, dtype=torch.bool)
    outside[torch.from_numpy(general), torch.arange(len(general))] = False
    below = column[graph.ancestors] >= 0
    outside[torch.from_numpy(graph.closure[below, 0]), torch.from_numpy(column[graph.ancestors[below]])] = False
    return bins, outside


def _count_non_edges(
    features: Features, graph: Taxonomy, seed: int, columns: Tensor, outside: Tensor, general: Tensor
) -> tuple[Tensor, int]:
    """(scores of non-edges in each bin, how many pairs were looked at)."""
    exact = graph.nodes <= EXACT
    counts = torch.zeros(_BINS + 1, dtype=torch.float64)
    if exact:
        children = torch.arange(graph.nodes)
    else:
        children = torch.randperm(graph.nodes, generator=generator_for(seed, 3))[:_CHILDREN].sort().values
        counts += torch.bincount(columns[outside], minlength=_BINS + 1)
    pairs = 0 if exact else int(outside.sum())
    ancestors = Lists.ancestors(graph)
    for some in children.split(_BLOCK):
        score = features.score_block(features.half[some], features.half)
        bins = _bins(score / features.trace[some, None].clamp_min(1e-30))
        counted = torch.ones(bins.shape, dtype=torch.bool)
        counted[torch.arange(len(some)), some] = False
        counted[ancestors.of(some)] = False
        if not exact:
            counted[:, general] = False
        chosen = bins[counted]
        pairs += len(chosen)
        counts += torch.bincount(chosen, minlength=_BINS + 1) * (graph.nodes / len(children))
    return counts, pairs


def _general_figures(
    graph: Taxonomy, general: np.ndarray, edges: Tensor, positive: Tensor, columns: Tensor, outside: Tensor, at: int
) -> list[dict[str, Any]]:
    """Precision and recall of the twenty nodes with the most descendants, each against all nodes; the worst first."""
    figures = []
    for place, node in enumerate(general[:_REPORTED].tolist()):
        reached = positive[edges[:, 1] == node] >= at
        true, false = int(reached.sum()), int((columns[outside[:, place], place] >= at).sum())
        figures.append(
            {
                "name": graph.names[node],
                "descendants": int(graph.descendants[node]),
                "precision": 100 * true / (true + false) if true + false else 100.0,
                "recall": 100 * true / len(reached) if len(reached) else 100.0,
            }
        )
    return sorted(figures, key=lambda figure: min(figure["precision"], figure["recall"]))
