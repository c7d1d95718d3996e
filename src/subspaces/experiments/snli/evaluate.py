"""Judge one trained model on SNLI's test pairs: accuracy, what is needed for the histograms, and where it all came from."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.experiments.metrics import JudgedPairs, snli
from subspaces.experiments.pairs import LABELS, load_pairs, subset
from subspaces.experiments.shared import extent_of
from subspaces.experiments.snli.fit import tokenise
from subspaces.experiments.snli.settings import SnliJob
from subspaces.experiments.snli.task import judge
from subspaces.text.load import TextModel, load_text_model
from subspaces.text.pair_model import accuracy
from subspaces.training.loop import set_threads
from subspaces.training.record import Evaluation

_BINS = 50
# From a specific description to a general one (paper, figure of effective ranks); the first is in the paper's text.
CHAINS: tuple[tuple[str, ...], ...] = (
    ("A red car drives down the street.", "A vehicle is on the road.", "A vehicle."),
    (
        "Two young girls in yellow raincoats are jumping in a muddy puddle.",
        "Two girls are jumping in a puddle.",
        "Children are playing outside.",
        "People are outside.",
        "People.",
    ),
    (
        "An old man with a grey beard is playing the violin in a crowded subway station.",
        "A man is playing the violin in a station.",
        "A man is playing an instrument.",
        "A person is making music.",
        "A person.",
    ),
)


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
    if not text_model.spec.model.makes_subspaces:
        return None
    found = []
    for chain in CHAINS:
        ranks = text_model.projectors(chain).diagonal(dim1=-2, dim2=-1).sum(-1).tolist()
        rises = [after > before for before, after in pairwise(ranks)]
        found.append({"sentences": list(chain), "ranks": ranks, "rises": rises})
    return found


def _history(path: Path) -> list[dict[str, float | None]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return [
            {name: float(value) if value else None for name, value in row.items()} for row in csv.DictReader(handle)
        ]


def evaluate_entailment(
    folder: Path,
    data: Path,
    sources: Path,
    out: Path,
    key: str,
    threads: int,
    extra: dict[str, Any],
    device: str = "cpu",
    ways: int | None = None,
) -> dict[str, Any]:
    """Test accuracy of one model, once; its decision was frozen in training. `ways` 3 chooses the second head of a model with both."""
    set_threads(threads)
    text_model = load_text_model(folder, sources, device, ways)
    settings = text_model.settings
    pairs = subset(load_pairs(data, "test"), settings["test_pairs"], settings["subset_seed"])
    evaluation = Evaluation(folder, settings, threads, device)
    ways = text_model.model.ways
    job = SnliJob.model_validate({name: settings[name] for name in SnliJob.model_fields})
    texts = tokenise(pairs, text_model.tokeniser, job, device)
    logits, scores = judge(text_model.model, texts, pairs)
    decided, labels = logits.argmax(1).numpy(), pairs.labels(ways)
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
        metrics={
            "accuracy": accuracy(logits, labels),
            "validation": settings["validation"],
            "test_pairs": len(pairs),
            **snli.compute(JudgedPairs(logits, labels)),
        },
        confusion=confusion.tolist(),
        inclusion=None if scores is None else inclusion_histogram(scores.double().numpy(), pairs.label),
        chains=chain_ranks(text_model),
        history=_history(folder / "history.csv"),
        extent=extent_of(settings, len(pairs)),
    )
