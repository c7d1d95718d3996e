"""How well scores rank a node's ancestors (PROTOCOL §2): MR, mAP, edge-MRR, and ρ of generality against place in the taxonomy.

One blocked product gives all scores of some nodes. Only entries that reach the weakest ancestor of a node can come before one of its
ancestors, so one comparison per entry finds the few that matter; nothing is sorted but those.

A negative that ties with a positive counts as ranked before it: a model that scores everything alike gets the worst rank, not the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from subspaces.errors import UserError
from subspaces.wordnet.geometries.base import Geometry
from subspaces.wordnet.graph import Hierarchy


def rank_block(scores: Tensor, sources: np.ndarray, graph: Hierarchy, keys: np.ndarray) -> dict[str, np.ndarray]:
    """Ranks for some source nodes, all with ancestors, from their scores (b, N) against all nodes. Changes `scores`.

    `keys` are the closure's pairs, node·N + ancestor, sorted.

    Returns per edge `rank` (1 + negatives at or above it; descendants are negatives) and `rank_filtered` (descendants left out too),
    and per source its `precision` (average precision).
    """
    b, nodes = scores.shape
    lines = torch.arange(b)
    scores[lines, torch.from_numpy(sources)] = float("-inf")  # the node itself is left out
    sizes = (graph.offsets[sources + 1] - graph.offsets[sources]).astype(np.int64)
    line = np.repeat(np.arange(b), sizes)
    within = np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parent = graph.ancestors[graph.offsets[sources][line] + within].astype(np.int64)
    line_t, parent_t = torch.from_numpy(line), torch.from_numpy(parent)
    positive = scores[line_t, parent_t]
    weakest = torch.full((b,), float("inf"), dtype=scores.dtype).scatter_reduce_(0, line_t, positive, "amin")
    scores[line_t, parent_t] = float("-inf")  # positives never count against each other
    rival_line, rival_node = (scores >= weakest[:, None]).nonzero(as_tuple=True)
    rival = scores[rival_line, rival_node].double().numpy()
    rival_line, rival_node = rival_line.numpy(), rival_node.numpy()

    value = positive.double().numpy()
    above = _count_at_or_above(rival_line, rival, line, value, b)
    # descendants among the rivals: is (rival, source) in the closure?
    key = rival_node.astype(np.int64) * nodes + sources[rival_line]
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    is_below = keys[place] == key
    above_filtered = _count_at_or_above(rival_line[~is_below], rival[~is_below], line, value, b)

    order = np.lexsort((above, line))  # best first within each source
    place_in_list = np.empty(len(line))
    place_in_list[order] = within + 1  # `line` is grouped, so the sorted groups have the same layout
    precision = place_in_list / (place_in_list + above)
    return {
        "rank": 1.0 + above,
        "rank_filtered": 1.0 + above_filtered,
        "precision": np.bincount(line, precision, minlength=b) / sizes,
    }


def _count_at_or_above(rival_line: np.ndarray, rival: np.ndarray, line: np.ndarray, value: np.ndarray, lines: int) -> np.ndarray:
    """For each (line, value): how many rivals of the same line are ≥ value."""
    if not len(rival):
        return np.zeros(len(line))
    # one sorted array for all lines: sort by (line, −value), then count with a merged ordering
    all_line = np.concatenate([rival_line, line])
    all_value = np.concatenate([rival, value])
    is_query = np.concatenate([np.zeros(len(rival), dtype=np.int8), np.ones(len(line), dtype=np.int8)])
    order = np.lexsort((is_query, -all_value, all_line))
    seen = np.cumsum(1 - is_query[order])
    totals = np.concatenate([[0], np.cumsum(np.bincount(rival_line, minlength=lines))])
    result = np.empty(len(all_line))
    result[order] = seen
    return result[len(rival) :] - totals[line]


def evaluate_ranking(
    geometry: Geometry,
    graph: Hierarchy,
    block: int = 1024,
    sources: np.ndarray | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, float]:
    """MR, mAP (%) and edge-MRR over all nodes with ancestors, or over some of them."""
    has_ancestors = np.flatnonzero(np.diff(graph.offsets) > 0)
    sources = has_ancestors if sources is None else np.asarray(sources)
    keys = np.unique(graph.closure[:, 0] * graph.nodes + graph.closure[:, 1])
    everyone = geometry.all_features()
    if not bool(torch.isfinite(everyone).all()):
        raise UserError("the model holds NaN or infinity, and comparisons with those would rank everything first: train it again.")
    ranks, filtered, precisions = [], [], []
    for start in range(0, len(sources), block):
        some = sources[start : start + block]
        scores = geometry.score_block(everyone[torch.from_numpy(some)], everyone)
        result = rank_block(scores, some, graph, keys)
        ranks.append(result["rank"])
        filtered.append(result["rank_filtered"])
        precisions.append(result["precision"])
        tick(min(start + block, len(sources)), len(sources))
    rank, rank_filtered = np.concatenate(ranks), np.concatenate(filtered)
    return {
        "mr": float(rank.mean()),
        "map": float(100 * np.concatenate(precisions).mean()),
        "edge_mrr": float(100 * (1 / rank_filtered).mean()),
        "sources": len(sources),
        "edges": len(rank),
    }


def evaluate_generality(generality: np.ndarray, graph: Hierarchy) -> dict[str, Any]:
    """Spearman's ρ ×100 of generality with place in the taxonomy, each variant signed so that "general is large" is positive.

    `rho` is the paper's: taxonomy rank sp/(sp+lp) of Nickel & Kiela (2018), 0 at a root and 1 at a leaf, over nodes with an edge.
    """
    shortest, longest = graph.depths
    use = graph.connected
    sp, lp = shortest[use].astype(float), longest[use].astype(float)
    value = generality[use]
    inner = lp > 0
    return {
        "rho": -100 * _spearman(value, sp / (sp + lp)),
        "rho_depth": -100 * _spearman(value, sp),
        "rho_descendants": 100 * _spearman(value, graph.descendants[use]),
        "rho_inner_nodes": -100 * _spearman(value[inner], (sp / (sp + lp))[inner]),
        "rho_nodes": int(use.sum()),
    }


def _spearman(one: np.ndarray, other: np.ndarray) -> float:
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(spearmanr(one, other).statistic)
