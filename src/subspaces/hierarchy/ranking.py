"""How well scores rank a node's ancestors: MR, mAP, edge-MRR, and ρ of generality against place in the taxonomy.

One blocked product gives all scores of some nodes. Only entries that reach the weakest ancestor of a node can come before one of its
ancestors, so one comparison per entry finds the few that matter; nothing is sorted but those.

A negative that ties with a positive counts as ranked before it: a model that scores everything alike gets the worst rank, not the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from subspaces.errors import UserError
from subspaces.geometries.base import Geometry
from subspaces.geometries.compiled import entry, has, nearness, run
from subspaces.hierarchy.graph import Taxonomy

_NOT_FINITE = "the model gives scores that are NaN or infinite, which would rank everything first: train it again."
_LINES = 64  # sources whose rivals are looked for together: bounds the memory when a poor model has millions of them


def rank_block(
    scores: Tensor, sources: np.ndarray, graph: Taxonomy, below: tuple[np.ndarray, np.ndarray]
) -> dict[str, np.ndarray]:
    """Ranks for some source nodes, all with ancestors, from their scores (b, N) against all nodes. Changes `scores`.

    `below` are all descendants as (offsets, nodes), as `descendant_lists` gives them.

    Returns per edge `rank` (1 + negatives at or above it; descendants are negatives) and `rank_filtered` (descendants left out too),
    and per source its `precision` (average precision).
    """
    b = len(scores)
    scores[torch.arange(b), torch.from_numpy(sources)] = float("-inf")  # the node itself is left out
    sizes, line, parent = _lists(graph.offsets, graph.ancestors, sources)
    line_t, parent_t = torch.from_numpy(line), torch.from_numpy(parent)
    positive = scores[line_t, parent_t]
    weakest = torch.full((b,), float("inf"), dtype=scores.dtype).scatter_reduce_(0, line_t, positive, "amin")
    scores[line_t, parent_t] = float("-inf")  # positives never count against each other

    value = positive.double().numpy()
    order = np.lexsort((value, line))  # weakest first within each source
    keys = _key(line, value[order])  # `line` is grouped, so it is sorted already
    rivals = np.zeros(len(keys) + 1)
    for first in range(0, b, _LINES):
        part = scores[first : first + _LINES]
        found = part >= weakest[first : first + _LINES, None]
        rivals += _places(keys, found.nonzero()[:, 0].numpy() + first, part[found].double().numpy())
    _, below_line, below_node = _lists(*below, sources)
    below_value = scores[torch.from_numpy(below_line), torch.from_numpy(below_node)]
    near = (below_value >= weakest[torch.from_numpy(below_line)]).numpy()
    descendants = _places(keys, below_line[near], below_value.double().numpy()[near])

    ends = np.cumsum(sizes)[line]
    above, above_filtered = np.empty(len(line)), np.empty(len(line))
    above[order] = _beyond(rivals, ends)
    above_filtered[order] = _beyond(rivals - descendants, ends)
    place_in_list = np.empty(len(line))
    place_in_list[order] = ends - np.arange(len(line))  # 1 for the strongest
    precision = place_in_list / (place_in_list + above)
    return {
        "rank": 1.0 + above,
        "rank_filtered": 1.0 + above_filtered,
        "precision": np.bincount(line, precision, minlength=b) / sizes,
    }


def descendant_lists(graph: Taxonomy) -> tuple[np.ndarray, np.ndarray]:
    """(offsets (N+1,), nodes): the closure the other way round."""
    order = np.argsort(graph.ancestors, kind="stable")
    return np.concatenate([[0], np.cumsum(graph.descendants)]), graph.closure[order, 0]


def _lists(offsets: np.ndarray, members: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sizes, line, member): the lists of some nodes one after the other, with the line that each member belongs to."""
    sizes = (offsets[nodes + 1] - offsets[nodes]).astype(np.int64)
    line = np.repeat(np.arange(len(nodes)), sizes)
    within = np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return sizes, line, members[offsets[nodes][line] + within].astype(np.int64)


def _key(line: np.ndarray, value: np.ndarray) -> np.ndarray:
    """(line, value) as one number that sorts by line, then value: numpy orders complex numbers so, without loss."""
    key = np.empty(len(line), dtype=np.complex128)
    key.real, key.imag = line, value
    return key


def _places(keys: np.ndarray, line: np.ndarray, value: np.ndarray) -> np.ndarray:
    """How many of these rivals, each at or above its line's weakest positive, come right after each of the sorted positives."""
    return np.bincount(np.searchsorted(keys, _key(line, value), side="right"), minlength=len(keys) + 1)


def _beyond(places: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For each of the sorted positives: how many rivals of its line are at or above it."""
    total = np.cumsum(places)
    return total[ends] - total[:-1]


class Ranked(Protocol):
    """What ranking asks of a model: see `Geometry`."""

    def all_features(self) -> Tensor: ...

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor: ...


def _torch_blocks(
    geometry: Ranked, graph: Taxonomy, below: tuple[np.ndarray, np.ndarray], sources: np.ndarray, block: int
) -> Iterator[dict[str, np.ndarray]]:
    everyone = geometry.all_features()
    for start in range(0, len(sources), block):
        some = sources[start : start + block]
        scores = geometry.score_block(everyone[torch.from_numpy(some).to(everyone.device)], everyone).cpu()
        if not bool(torch.isfinite(scores).all()):
            raise UserError(_NOT_FINITE)
        yield rank_block(scores, some, graph, below)


def _compiled_blocks(
    geometry: Geometry, graph: Taxonomy, below: tuple[np.ndarray, np.ndarray], sources: np.ndarray, block: int = 256
) -> Iterator[dict[str, np.ndarray]]:
    """The same by `_rank`, on as many threads as torch has: it holds no lock of Python's."""
    (table,) = geometry.weights().values()
    columns = np.ascontiguousarray(table.numpy().T)
    if not np.isfinite(columns).all():
        raise UserError(_NOT_FINITE)
    offsets, ancestors = graph.offsets.astype(np.int64), graph.ancestors.astype(np.int64)
    under, nodes = below[0].astype(np.int64), below[1].astype(np.int64)

    def ranked(some: np.ndarray) -> dict[str, np.ndarray]:
        found = run(_rank, geometry.space(), columns, some, offsets, ancestors, under, nodes)
        return dict(zip(("rank", "rank_filtered", "precision"), found, strict=True))

    parts = [sources[start : start + block].astype(np.int64) for start in range(0, len(sources), block)]
    if parts:
        ranked(parts[0][:1])  # compiled, or read from the cache, once
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        yield from pool.map(ranked, parts)


@entry
def _rank(space, columns, sources, offsets, ancestors, under, nodes):
    """What `rank_block` gives, from the table (w, N): one pass over all nodes for each source."""
    edges = 0
    for source in sources:
        edges += offsets[source + 1] - offsets[source]
    rank, filtered, precision = np.empty(edges), np.empty(edges), np.empty(len(sources))
    near, point, place = np.empty(columns.shape[1]), np.empty(columns.shape[0]), 0
    for line in range(len(sources)):
        source = sources[line]
        point[:] = columns[:, source]
        nearness(space, point, columns, near)
        positives = ancestors[offsets[source] : offsets[source + 1]]
        value = near[positives]
        near[positives] = np.inf  # positives never count against each other
        near[source] = np.inf
        order = np.argsort(value)
        value = value[order]
        weakest, count = value[-1], len(value)
        rivals, descendants = np.zeros(count), np.zeros(count)
        for node in range(len(near)):
            if near[node] <= weakest:
                rivals[np.searchsorted(value, near[node])] += 1
        for node in nodes[under[source] : under[source + 1]]:
            if near[node] <= weakest:
                descendants[np.searchsorted(value, near[node])] += 1
        above, below, total = 0.0, 0.0, 0.0
        for k in range(count):
            above += rivals[k]
            below += descendants[k]
            rank[place + order[k]] = 1 + above
            filtered[place + order[k]] = 1 + above - below
            total += (k + 1) / (k + 1 + above)
        precision[line] = total / count
        place += count
    return rank, filtered, precision


def evaluate_ranking(
    geometry: Ranked,
    graph: Taxonomy,
    block: int = 1024,
    sources: np.ndarray | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, float]:
    """MR, mAP (%) and edge-MRR over all nodes with ancestors, or over some of them."""
    has_ancestors = np.flatnonzero(np.diff(graph.offsets) > 0)
    sources = has_ancestors if sources is None else np.asarray(sources)
    below = descendant_lists(graph)
    if isinstance(geometry, Geometry) and has(nearness, geometry.space()) and geometry.device.type == "cpu":
        blocks = _compiled_blocks(geometry, graph, below, sources)
    else:
        blocks = _torch_blocks(geometry, graph, below, sources, block)
    ranks, filtered, precisions, done = [], [], [], 0
    for result in blocks:
        ranks.append(result["rank"])
        filtered.append(result["rank_filtered"])
        precisions.append(result["precision"])
        done += len(result["precision"])
        tick(done, len(sources))
    rank, rank_filtered = np.concatenate(ranks), np.concatenate(filtered)
    return {
        "mr": float(rank.mean()),
        "map": float(100 * np.concatenate(precisions).mean()),
        "edge_mrr": float(100 * (1 / rank_filtered).mean()),
        "sources": len(sources),
        "edges": len(rank),
    }


def evaluate_generality(generality: np.ndarray, graph: Taxonomy) -> dict[str, Any]:
    """Spearman's ρ ×100 of generality with place in the taxonomy, each variant signed so that "general is large" is positive.

    `rho` is the paper's: taxonomy rank sp/(sp+lp) of Nickel & Kiela (2018), 0 at a root and 1 at a leaf, over nodes with an edge.
    """
    shortest, longest = graph.depths
    use = graph.connected
    sp, lp = shortest[use].astype(float), longest[use].astype(float)
    value = generality[use]
    inner = lp > 0
    return {
        "rho": -100 * spearman(value, sp / (sp + lp)),
        "rho_depth": -100 * spearman(value, sp),
        "rho_descendants": 100 * spearman(value, graph.descendants[use]),
        "rho_inner_nodes": -100 * spearman(value[inner], (sp / (sp + lp))[inner]),
        "rho_nodes": int(use.sum()),
    }


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Rank correlation; 0 where it is not defined: a constant says nothing about the order."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(spearmanr(one, other).statistic)
