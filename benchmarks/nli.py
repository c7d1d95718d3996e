"""SNLI: training pairs per second against the straightforward way, and what the projection head adds to encoding."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import Row, in_turns, require_agreement
from subspaces.experiments.pairs import Pairs, load_pairs, subset
from subspaces.experiments.snli.settings import NliTraining
from subspaces.experiments.snli.task import EntailmentTask, Texts
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import make_model, read_encoder
from subspaces.text.texts import Tokens, TokenTable, WordPieces, Words
from subspaces.training.loop import generator_for, set_threads

LAM, LIMIT, SEED = 0.05, 35, 0
ALLOWED = {"loss": 1e-4, "gradient": 2e-2}
TRAINING = {
    "epochs": 1, "lr": 1e-4, "lr_decay": 1.0, "lr_final": 1.0, "warmup": 0.0, "smoothing": 0.1, "validate_steps": 0, "by_length": True,
    "pad_to_longest": True, "share_premises": True, "autocast": False, "dropout": 0.0,
}  # fmt: skip
PLAIN = {"by_length": False, "pad_to_longest": False, "share_premises": False}
TINY = {
    "model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "layer_norm_eps": 1e-12, "vocab_size": 300, "max_position_embeddings": 40, "hidden_dropout_prob": 0.0,
}  # fmt: skip


def solved_projector(X: Tensor, lam: float) -> Tensor:
    """P as it is written: autograd goes through the solve."""
    gram = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
    return X @ torch.linalg.solve(gram, X.mT)


def material(root: Path) -> tuple[Backbone, Any, Pairs, str]:
    """MiniLM and real pairs where they are; else a tiny random backbone and made-up sentences."""
    folder, data = root / "data/sources/all-MiniLM-L6-v2", root / "data/snli.parquet"
    if (folder / "model.safetensors").exists() and data.exists():
        backbone = Backbone.from_folder(folder, dropout=0.0)
        return (
            backbone,
            WordPieces(folder / "tokenizer.json"),
            subset(load_pairs(data, "train"), 4096, SEED),
            "all-MiniLM-L6-v2, SNLI",
        )
    draw = np.random.default_rng(SEED)
    words = [f"w{number}" for number in range(200)]
    texts = sorted({" ".join(draw.choice(words, draw.integers(4, 20))) for _ in range(240)})
    premise = np.repeat(np.arange(60), 3)
    pairs = Pairs(texts, premise, 60 + np.arange(180) % (len(texts) - 60), (np.arange(180) % 3).astype(np.int8))
    backbone = Backbone.from_config(TINY, dropout=0.0)
    return backbone, Words(words), pairs, "tiny random backbone, made-up sentences"


class NliWorkload:
    """The same optimiser step on the same pairs, in our way and in the straightforward one."""

    def __init__(self, root: Path, dim: int, batch: int, micro: int):
        backbone, tokeniser, pairs, self.kind = material(root)
        torch.manual_seed(SEED)
        model = make_model(
            read_encoder({"encoder": "subspace", "backbone": "tiny", "dim": dim, "lam": LAM}), 2, backbone
        )
        plain = copy.deepcopy(model)
        plain.encode_together = lambda batches: torch.cat(
            [solved_projector(plain.vectors(one), LAM) for one in batches]
        )
        table = TokenTable.of(pairs.texts, tokeniser, LIMIT)
        settings = NliTraining(**TRAINING, batch=batch, micro=micro)
        self.task = EntailmentTask(model, pairs, pairs, (Texts(table),) * 2, settings)
        self.plain = EntailmentTask(
            plain, pairs, pairs, (Texts(table, width=LIMIT),) * 2, settings.model_copy(update=PLAIN)
        )
        for task in (self.task, self.plain):
            task.begin_epoch(0, generator_for(SEED, 1))

    def ours(self, i: int) -> float:
        set_threads(torch.get_num_threads())
        return self.task.step(0, i % (self.task.steps_per_epoch - 1), generator_for(SEED, 2, i))["loss"]

    def theirs(self, i: int) -> float:
        torch.use_deterministic_algorithms(False)
        return self.plain.step(0, i % (self.plain.steps_per_epoch - 1), generator_for(SEED, 2, i))["loss"]

    def agreement(self) -> dict[str, float]:
        """Relative differences of loss and gradients on the first batch."""
        found = []
        for task in (self.task, self.plain):
            task.model.zero_grad()
            rows, loss = task.order[: task.batch], 0.0
            task.model.train()
            for micro in task.micro_batches(rows):
                part = task.loss(micro) * (len(micro) / len(rows))
                part.backward()
                loss += float(part.detach())
            found.append(
                (loss, torch.cat([one.grad.flatten() for one in task.model.parameters() if one.grad is not None]))
            )
            task.model.zero_grad()
        (ours, one), (theirs, other) = found
        return {"loss": abs(ours - theirs) / abs(theirs), "gradient": float((one - other).norm() / other.norm())}


def nli(root: Path, dim: int = 128, batch: int = 64, micro: int = 64, rounds: int = 5) -> Row:
    """Milliseconds of one optimiser step of `batch` pairs."""
    name = f"SNLI training pairs per second, d = {dim}"
    work = NliWorkload(root, dim, batch, micro)
    agreement = work.agreement()
    require_agreement(name, agreement, ALLOWED)
    ours, theirs = in_turns(work.ours, work.theirs, rounds)
    settings = {
        "dim": dim, "batch": batch, "micro": micro, "rounds": rounds, "material": work.kind,
        "baseline": f"padding to {LIMIT}, no order by length, each pair's sentences encoded, autograd through torch.linalg.solve",
        "ours_pairs_per_second": round(1e3 * batch / ours, 1), "baseline_pairs_per_second": round(1e3 * batch / theirs, 1),
    }  # fmt: skip
    return Row(name, ours, theirs, theirs / ours, at_least=2.5, aim=4.0, agreement=agreement, settings=settings)


def head(root: Path, dim: int = 128, batch: int = 128, rounds: int = 7) -> Row:
    """Milliseconds per sentence with the head and without it; the ratio is what the head adds."""
    backbone, tokeniser, pairs, kind = material(root)
    model = make_model(
        read_encoder({"encoder": "subspace", "backbone": "tiny", "dim": dim, "lam": LAM}), 2, backbone
    ).eval()
    rows = np.random.default_rng(SEED).choice(len(pairs.texts), min(batch, len(pairs.texts)), replace=False)
    tokens: Tokens = TokenTable.of(pairs.texts, tokeniser, LIMIT).batch(np.sort(rows))

    @torch.no_grad()
    def whole(_: int) -> None:
        model.encode(tokens)

    @torch.no_grad()
    def bare(_: int) -> None:
        backbone(tokens)

    ours, theirs = (value / len(rows) for value in in_turns(whole, bare, rounds))
    settings = {
        "dim": dim,
        "batch": len(rows),
        "rounds": rounds,
        "material": kind,
        "unit": "ms per sentence",
        "added_ms": ours - theirs,
    }
    name = f"encoding with the head, d = {dim} (over bare)"
    return Row(name, ours, theirs, ours / theirs, at_least=2.0, aim=1.3, smaller_is_better=True, settings=settings)
