"""Judge one trained model of the link prediction table on test, once, by the threshold that validation froze."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json
from subspaces.training.loop import set_threads
from subspaces.wordnet.entailment.base import Entailment
from subspaces.wordnet.link_fit import entailment_of
from subspaces.wordnet.link_prediction import decision_scores
from subspaces.wordnet.splits import Split
from subspaces.wordnet.thresholds import average_precision, judge


def load_entailment(folder: Path, nodes: int, device: str = "cpu") -> tuple[dict[str, Any], Entailment]:
    """(settings, geometry with its weights) of a trained model; damaged weights are refused."""
    settings = read_json(folder / "settings.json")
    weights = folder / "weights.safetensors"
    if not weights.exists() or sha256_file(weights) != settings["weights_sha256"]:
        raise UserError(f"{weights} is damaged or missing: delete {folder} and train again (same command).")
    geometry = entailment_of(settings, nodes, device)
    with safe_open(weights, framework="pt") as content:
        for name, tensor in geometry.weights().items():
            tensor.copy_(content.get_tensor(name))
    geometry.begin_phase("main")
    return settings, geometry


def judge_split(geometry: Entailment, split: Split, decision: dict[str, Any] | None) -> dict[str, float]:
    """F1 at the frozen threshold and average precision; and both against the test edges turned round, which only direction tells apart."""
    if decision is None:
        raise UserError("this model was trained without validation edges, so no threshold was frozen: train it on a split that has some.")
    positive, negative = decision_scores(geometry, split.test, split.test_negatives, **decision["tuned"])
    metrics = judge(positive, negative, decision["threshold"]) | {"auprc": average_precision(positive, negative)}
    turned = np.ascontiguousarray(split.test[:, ::-1])[:, None]
    _, reversed_scores = decision_scores(geometry, split.test, turned, **decision["tuned"])
    reverse = judge(positive, reversed_scores, decision["threshold"])
    metrics |= {f"{name}_reversed": value for name, value in reverse.items()}
    return metrics | {"auprc_reversed": average_precision(positive, reversed_scores)}


def evaluate_link_prediction(
    folder: Path, split_path: Path, out: Path, key: str, threads: int, extra: dict[str, Any], device: str = "cpu"
) -> dict[str, Any]:
    """All metrics of one model on test, with all that is needed to trace them."""
    set_threads(threads)
    split = Split.load(split_path)
    settings, geometry = load_entailment(folder, len(split.names), device)
    began = time.monotonic()
    metrics = judge_split(geometry, split, settings["decision"])
    timing = read_json(folder / "timing.json")
    named = ("model", "training", "subtree", "threshold", "seed", "split", "steps", "best_epoch", "decision")
    result = {
        "key": key,
        **extra,
        "metrics": metrics,
        "settings": {name: settings[name] for name in named},
        "model_key": settings["key"],
        "weights_sha256": settings["weights_sha256"],
        "data": settings["data"],
        "timing": {"train_seconds": timing["seconds"], "evaluate_seconds": round(time.monotonic() - began, 1)},
        "machine": {
            "processor": platform.machine(),
            "threads": threads,
            "train_threads": timing["threads"],
            "torch": torch.__version__,
            "device": device,
            "train_device": timing["device"],
        },
    }
    write_json(out, result)
    return result
