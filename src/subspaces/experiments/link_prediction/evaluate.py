"""Judge one trained model of the link prediction table on test, once, by the threshold that validation froze."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from subspaces.errors import UserError
from subspaces.experiments.metrics import JudgedEdges, link_prediction
from subspaces.geometries.base import Geometry
from subspaces.hierarchy.graph import build_hierarchy
from subspaces.hierarchy.link_prediction import decision_scores, load_link_prediction
from subspaces.hierarchy.splits import Split
from subspaces.hierarchy.thresholds import average_precision, judge
from subspaces.training.loop import set_threads
from subspaces.training.record import Evaluation

_OUTSIDE = 10  # as many as the benchmark has


def outside_parents(split: Split) -> np.ndarray:
    """(pairs, 2): for every test edge ten random nodes with its parent, none of which is the parent or below it.

    The benchmark replaces a child by any node, which nearly always lies below a very general parent in truth, or shares nothing with a
    specific one. Here each parent is tested against what is outside it, in proportion to its test edges. Train has all basic edges, so
    its closure is that of the whole hierarchy.
    """
    graph = build_hierarchy(split.names, split.train)
    closure = graph.closure[np.argsort(graph.ancestors, kind="stable")]
    first = np.searchsorted(closure[:, 1], np.arange(graph.nodes + 1))
    draw = np.random.default_rng(0)
    drawn = []
    for parent, edges in zip(*np.unique(split.test[:, 1], return_counts=True), strict=True):
        outside = np.ones(graph.nodes, dtype=bool)
        outside[closure[first[parent] : first[parent + 1], 0]] = outside[parent] = False
        if outside.any():
            children = draw.choice(np.flatnonzero(outside), _OUTSIDE * edges)
            drawn.append(np.stack([children, np.full_like(children, parent)], axis=1))
    return np.concatenate(drawn) if drawn else np.zeros((0, 2), dtype=np.int64)


def judge_split(geometry: Geometry, split: Split, decision: dict[str, Any] | None) -> dict[str, float]:
    """F1 at the frozen threshold and average precision; both against the reversed test edges, which differ in direction only; and F1
    against nodes outside the parents."""
    if decision is None:
        raise UserError(
            "this model was trained without validation edges, so no threshold was frozen: train it on a split that has some."
        )
    positive, negative = decision_scores(geometry, split.test, split.test_negatives, **decision["tuned"])
    metrics = judge(positive, negative, decision["threshold"]) | {"auprc": average_precision(positive, negative)}
    turned = np.ascontiguousarray(split.test[:, ::-1])[:, None]
    _, reversed_scores = decision_scores(geometry, split.test, turned, **decision["tuned"])
    reverse = judge(positive, reversed_scores, decision["threshold"])
    metrics |= {f"{name}_reversed": value for name, value in reverse.items()}
    metrics["auprc_reversed"] = average_precision(positive, reversed_scores)
    if len(outside := outside_parents(split)):
        _, scores = decision_scores(geometry, split.test, outside[None], **decision["tuned"])
        by_parent = judge(positive, scores, decision["threshold"])
        metrics |= {f"{name}_by_parent": by_parent[name] for name in ("f1", "precision")}
    judged = JudgedEdges(positive, negative, decision["threshold"], geometry, split)
    return metrics | link_prediction.compute(judged)


def evaluate_link_prediction(
    folder: Path, split_path: Path, out: Path, key: str, threads: int, extra: dict[str, Any], device: str = "cpu"
) -> dict[str, Any]:
    """All metrics of one model on test, with all that is needed to trace them."""
    set_threads(threads)
    split = Split.load(split_path)
    settings, geometry = load_link_prediction(folder, len(split.names), device)
    evaluation = Evaluation(folder, settings, threads, device)
    metrics = judge_split(geometry, split, settings["decision"])
    kept = ("model", "training", "subtree", "threshold", "seed", "split", "steps", "best_epoch", "decision")
    return evaluation.write(out, key, extra, kept, metrics=metrics)
