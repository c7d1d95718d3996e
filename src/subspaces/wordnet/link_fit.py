"""Train one model of the link prediction table: weights of the best epoch, history, then the settings with the frozen decision."""

from __future__ import annotations

import csv
import math
import shutil
from itertools import product
from pathlib import Path
from typing import Any

from subspaces.files import atomic_file
from subspaces.training.loop import Outcome
from subspaces.training.run import Run
from subspaces.wordnet.entailment.base import Entailment, entailment_options, make_entailment
from subspaces.wordnet.link_prediction import LinkPrediction, decision_scores
from subspaces.wordnet.splits import Split
from subspaces.wordnet.thresholds import average_precision, best_threshold, judge


def entailment_of(job: dict[str, Any], nodes: int, device: str = "cpu") -> Entailment:
    options, training = dict(job["model"]), job["training"]
    name, dim = options.pop("geometry"), options.pop("dim")
    if "optimiser" in entailment_options(name):
        options["optimiser"] = training.get("optimiser", "sgd")
    return make_entailment(name, nodes, dim, device, start=training["start"], **options)


def decide(geometry: Entailment, split: Split, scan: str) -> dict[str, Any]:
    """What validation decides after training: settings of the score by average precision, then the threshold by F1."""
    names = list(geometry.tuned)
    tried = []
    for values in product(*geometry.tuned.values()):
        tuned = dict(zip(names, values, strict=True))
        positive, negative = decision_scores(geometry, split.valid, split.valid_negatives, **tuned)
        tried.append((average_precision(positive, negative), tuned, positive, negative))
    auprc, tuned, positive, negative = max(tried, key=lambda one: one[0])
    threshold = best_threshold(positive, negative, scan)
    valid = {"auprc": auprc, **judge(positive, negative, threshold)}
    return {"threshold": threshold, "scan": scan, "tuned": tuned, "validation": valid}


def fit_link_prediction(job: dict[str, Any], split: Split, run: Run) -> dict[str, Any]:
    """Train to the end, resuming where a killed run was; returns what went into settings.json.

    A split without validation edges keeps the last epoch and freezes no decision.
    """
    run.begin()
    geometry = entailment_of(job, len(split.names), run.device)
    best = run.best if len(split.valid) else None
    task = LinkPrediction(split, geometry, job["training"], best)
    outcome = run.train(task, job["training"]["epochs"])
    task.validate(job["training"]["epochs"] - 1)
    chosen = task.take_best()
    geometry.begin_phase("main")
    sha256 = run.write_weights(geometry.weights())
    _write_history(run.out / "history.csv", outcome, task)
    more = {
        "split": split.counts() | {"coverage": split.coverage, "train_origin": split.train_origin},
        "best_epoch": chosen,
        "decision": decide(geometry, split, job["threshold"]) if best is not None else None,
        "weights_sha256": sha256,
    }
    settings = run.finish(job, outcome, more)
    if best is not None:
        shutil.rmtree(best, ignore_errors=True)
    return settings


def _write_history(path: Path, outcome: Outcome, task: LinkPrediction) -> None:
    with atomic_file(path, "w") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["epoch", "loss", "validation_auprc"])
        for entry, value in zip(outcome.history, task.curve.tolist(), strict=True):
            writer.writerow([entry["epoch"], entry["loss"], "" if math.isnan(value) else value])
