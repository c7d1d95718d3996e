"""Judge one trained model on SNLI's test pairs: accuracy, what is needed for the histograms, and where it all came from."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.nli.chains import CHAINS
from subspaces.nli.data import LABELS, load_pairs, subset
from subspaces.nli.fit import tokenise
from subspaces.nli.load import TextModel, load_text_model
from subspaces.nli.task import accuracy, judge
from subspaces.training.loop import set_threads
from subspaces.training.record import Evaluation

_BINS = 50


def inclusion_histogram(scores: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Counts of the inclusion score per gold label in equal bins of [0, 1], and its mean."""
    result: dict[str, Any] = {"bins": _BINS, "classes": {}}
    for place, name in enumerate(LABELS):
        chosen = scores[labels == place]
        counts, _ = np.histogram(chosen, _BINS, (0.0, 1.0))
        result["classes"][name] = {"counts": counts.tolist(), "mean": float(chosen.mean()) if len(chosen) else None}
    return result


def chain_ranks(text_model: TextModel) -> list[dict[str, Any]] | None:
    """Effective rank Tr(P) of each sentence of the chains, and whether it rises from each to the next, more general one."""
    if text_model.settings["model"]["encoder"] != "subspace":
        return None
    found = []
    for chain in CHAINS:
        ranks = text_model.projectors(chain).diagonal(dim1=-2, dim2=-1).sum(-1).tolist()
        rises = [after > before for before, after in pairwise(ranks)]
        found.append({"sentences": list(chain), "ranks": ranks, "rises": rises})
    return found


def _history(path: Path) -> list[dict[str, float | None]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return [{name: float(value) if value else None for name, value in row.items()} for row in csv.DictReader(handle)]


def extent_of(settings: dict[str, Any], test_pairs: int) -> dict[str, Any]:
    """In words: what was trained on, with what; and whether the number may stand beside the paper's."""
    backbone, trained, counts = settings["backbone"], settings["trained_on"], settings["data"]["counts"]
    budget = f"{trained['pairs']:,} training pairs × {settings['training']['epochs']}"
    if settings["data"]["sample"]:
        return {"comparable": False, "text": f"made from a small sample that stands in for SNLI; {budget}"}
    if test_pairs < counts["test"]:
        budget += f", judged on {test_pairs:,} of {counts['test']:,} test pairs"
    if backbone is None:
        return {"comparable": test_pairs == counts["test"], "text": budget}
    whole = backbone["name"] == backbone["wanted"] and backbone["layers"] is None and not settings["backbone_sample"]
    budget += f", {backbone['name']}"
    if settings["backbone_sample"]:
        budget += " replaced by a tiny random stand-in"
    if backbone["layers"] is not None:
        budget += f", its first {backbone['layers']} layers"
    if backbone["name"] != backbone["wanted"]:
        budget += f" in place of {backbone['wanted']}"
    if backbone["frozen"]:
        budget += f", {backbone['frozen']} layers frozen"
    return {"comparable": whole and test_pairs == counts["test"], "text": budget}


def evaluate_entailment(
    folder: Path, data: Path, sources: Path, out: Path, key: str, threads: int, extra: dict[str, Any], device: str = "cpu"
) -> dict[str, Any]:
    """Test accuracy of one model, once; its decision was frozen in training."""
    set_threads(threads)
    text_model = load_text_model(folder, sources, device)
    settings = text_model.settings
    pairs = subset(load_pairs(data, "test"), settings["test_pairs"], settings["subset_seed"])
    evaluation = Evaluation(folder, settings, threads, device)
    texts = tokenise(pairs, text_model.tokeniser, settings, device)
    logits, scores = judge(text_model.model, texts, pairs)
    decided, labels = logits.argmax(1).numpy(), pairs.labels(settings["ways"])
    ways = settings["ways"]
    confusion = np.bincount(labels * ways + decided, minlength=ways * ways).reshape(ways, ways)
    kept = (
        "model",
        "backbone",
        "ways",
        "training",
        "pairs",
        "dev_pairs",
        "test_pairs",
        "subset_seed",
        "seed",
        "trained_on",
        "steps",
        "parameters",
    )
    return evaluation.write(
        out,
        key,
        extra,
        kept,
        metrics={"accuracy": accuracy(logits, labels), "validation": settings["validation"], "test_pairs": len(pairs)},
        confusion=confusion.tolist(),
        inclusion=None if scores is None else inclusion_histogram(scores.double().numpy(), pairs.label),
        chains=chain_ranks(text_model),
        history=_history(folder / "history.csv"),
        extent=extent_of(settings, len(pairs)),
    )
