"""Ranking of every node against every node, against a loop over nodes with a full sort."""

from __future__ import annotations

import time

import numpy as np
import torch

from benchmarks.baseline import rank_node
from benchmarks.graphs import trained_like
from benchmarks.steps import LAM
from benchmarks.timing import Row, Skipped, require_agreement
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.ranking import evaluate_ranking
from subspaces.training.loop import set_threads


def evaluation(graph: Taxonomy, dim: int, sample: int = 200, limit: int = 0) -> Row:
    """Ours runs whole, features included; the loop ranks a few of its `sample` nodes after each of our blocks and is extrapolated.

    The loop's table of projectors is made beforehand and not counted, which flatters the loop. With `limit`, ours too ranks only so
    many source nodes and its blocks, not its features, are extrapolated.
    """
    name = f"evaluation, d = {dim}, {graph.nodes:,} nodes"
    geometry = make_geometry("subspace", graph.nodes, dim, lam=LAM)
    geometry.X = trained_like(graph, dim)
    blocks = [geometry.projectors(slice(start, start + 2048)).flatten(1) for start in range(0, graph.nodes, 2048)]
    projectors = torch.cat(blocks)
    del blocks
    sources = np.flatnonzero(np.diff(graph.offsets) > 0)
    sample = min(sample, len(sources))
    chosen = np.random.default_rng(0).choice(sources, sample, replace=False)
    some = np.random.default_rng(1).choice(sources, min(limit, len(sources)), replace=False) if limit else sources
    done: list[tuple[np.ndarray, float]] = []
    ticks: list[float] = []
    looped = 0.0

    def in_between(finished: int, total: int) -> None:
        nonlocal looped
        ticks.append(time.perf_counter() - started - looped)
        began = time.perf_counter()
        torch.use_deterministic_algorithms(False)
        while len(done) < sample * finished / total:
            done.append(rank_node(int(chosen[len(done)]), projectors, graph))
        set_threads(torch.get_num_threads())
        looped += time.perf_counter() - began

    set_threads(torch.get_num_threads())
    rank_node(int(chosen[0]), projectors, graph)  # warm up
    started = time.perf_counter()
    everything = evaluate_ranking(geometry, graph, sources=some, tick=in_between)
    ours = time.perf_counter() - started - looped
    if len(some) < len(sources):  # the first block comes with the features
        first_block = len(some) / len(ticks)
        ours = ticks[0] + (ours - ticks[0]) / (len(some) - first_block) * (len(sources) - first_block)
    theirs = looped / sample * len(sources)
    same = evaluate_ranking(geometry, graph, sources=chosen)
    mr, mean_precision = (
        np.concatenate([ranks for ranks, _ in done]).mean(),
        100 * np.mean([precision for _, precision in done]),
    )
    agreement = {"mr": abs(same["mr"] - mr) / mr, "map": abs(same["map"] - mean_precision) / mean_precision}
    if mr > 2:
        raise Skipped(
            f"the constructed model ranks badly here (MR {mr:.1f}): run it on the nouns, data/wordnet/nouns.npz"
        )
    require_agreement(name, agreement, {"mr": 1e-3, "map": 1e-3})
    settings = {
        "dim": dim, "nodes": graph.nodes, "sources": len(sources), "sources_timed": len(some),
        "baseline": f"timed on {sample} nodes, extrapolated to all",
        "weights": "constructed to rank like a trained model", "mr": everything["mr"], "map": everything["map"],
    }  # fmt: skip
    return Row(
        name, 1e3 * ours, 1e3 * theirs, theirs / ours, at_least=20.0, aim=50.0, agreement=agreement, settings=settings
    )
