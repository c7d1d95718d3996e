"""Train one model of the SNLI table: weights of the best validation, history, the tokeniser beside them, and the settings last."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subspaces.errors import UserError
from subspaces.experiments.pairs import Pairs, load_pairs, subset
from subspaces.experiments.snli.settings import SnliJob
from subspaces.experiments.snli.task import EntailmentTask
from subspaces.files import atomic_file, write_json, write_text
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import PairModel, Texts, make_model
from subspaces.text.texts import TokenTable, WordPieces, Words, backbone_tokeniser
from subspaces.training.run import Run


def model_of(job: SnliJob, seed: int, words: int, sources: Path) -> PairModel:
    """The untrained model of a job: pretrained backbone, heads from the seed."""
    backbone = None
    if use := job.backbone:
        backbone = Backbone.from_folder(sources / use.name, use.layers, use.frozen, use.dropout)
        if job.limit > backbone.longest:
            raise UserError(
                f"{use.name} reads at most {backbone.longest} tokens: set limit to that or less (it is {job.limit})."
            )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_model(job.model, job.ways, backbone, words)


def tokeniser_of(job: SnliJob, texts: Sequence[str], sources: Path) -> WordPieces | Words:
    """The tokeniser to train with: that of the backbone, or the words of the training texts."""
    return Words.of(texts, at_least=2) if job.backbone is None else backbone_tokeniser(sources / job.backbone.name)


def tokenise(pairs: Pairs, tokeniser: WordPieces | Words, job: SnliJob, device: str) -> Texts:
    table = TokenTable.of(pairs.texts, tokeniser, job.limit)
    width = None if job.training.pad_to_longest else job.limit
    return Texts(table, device, device == "cuda" and job.training.autocast, width)


def fit_entailment(job: SnliJob, data: Path, sources: Path, run: Run) -> dict[str, Any]:
    """Train to the end, resuming where a killed run was; returns what went into settings.json."""
    run.begin()
    pairs = subset(load_pairs(data, "train"), job.pairs, job.subset_seed)
    dev = subset(load_pairs(data, "dev"), job.dev_pairs, job.subset_seed)
    tokeniser = tokeniser_of(job, pairs.texts, sources)
    texts, dev_texts = tokenise(pairs, tokeniser, job, run.device), tokenise(dev, tokeniser, job, run.device)
    model = model_of(job, run.seed, tokeniser.size if job.backbone is None else 0, sources).to(run.device)
    run.progress.say(
        f"{len(pairs):,} training pairs of {len(pairs.texts):,} sentences, {len(dev):,} for validation; "
        f"{texts.table.truncated:,} sentences cut at {job.limit} tokens"
    )
    task = EntailmentTask(model, pairs, dev, (texts, dev_texts), job.training, run.best)
    outcome = run.train(task, job.training.epochs)
    task.validate(len(task.curve) - 1)
    chosen = task.take_best()
    sha256 = run.write_weights({name: value.contiguous() for name, value in task.weights().items()})
    if isinstance(tokeniser, WordPieces):
        write_text(run.out / "tokenizer.json", tokeniser.text)
    else:
        write_json(run.out / "tokenizer.json", {"words": tokeniser.words})
    _write_history(run.out / "history.csv", task)
    more = {
        "backbone_sample": job.backbone is not None and (sources / job.backbone.name / "tiny-backbone.json").exists(),
        "config": None if job.backbone is None else model.backbone.config,
        "trained_on": {
            "pairs": len(pairs),
            "sentences": len(pairs.texts),
            "truncated": texts.table.truncated,
            "dev_pairs": len(dev),
        },
        "parameters": sum(one.numel() for one in model.parameters() if one.requires_grad),
        "best_step": chosen,
        "validation": float(np.nanmax(task.curve.numpy())),
        "weights_sha256": sha256,
    }
    settings = run.finish(job.model_dump(), outcome, more)
    shutil.rmtree(run.best, ignore_errors=True)
    return settings


def _write_history(path: Path, task: EntailmentTask) -> None:
    """Mean loss between two validations, and the accuracy at the second."""
    with atomic_file(path, "w") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["step", "pairs", "loss", "validation_accuracy"])
        for place, value in enumerate(task.curve.tolist()):
            first, last = place * task.every, min((place + 1) * task.every, task.total)
            seen = min(last * task.batch, task.settings.epochs * len(task.train))
            writer.writerow([last, seen, float(task.losses[first:last].mean()), "" if math.isnan(value) else value])
