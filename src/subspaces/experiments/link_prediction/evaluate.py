"""Judge one trained model of the link prediction table on test, once, by the threshold that validation froze."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from subspaces.errors import UserError
from subspaces.experiments.metrics import JudgedEdges, link_prediction
from subspaces.geometries.base import Geometry
from subspaces.hierarchy.link_prediction import decision_scores, load_link_prediction
from subspaces.hierarchy.splits import Split
from subspaces.hierarchy.thresholds import average_precision, judge
from subspaces.training.loop import set_threads
from subspaces.training.record import Evaluation


def judge_split(geometry: Geometry, split: Split, decision: dict[str, Any] | None) -> dict[str, float]:
    """F1 at the frozen threshold and average precision; and both against the reversed test edges, which differ in direction only."""
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
