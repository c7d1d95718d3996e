"""A tiny random backbone and pairs whose label can be read off their words."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from subspaces.experiments.pairs import Pairs
from subspaces.experiments.snli.settings import NliTraining
from subspaces.experiments.snli.task import EntailmentTask
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import PairModel, Texts, make_model, read_encoder
from subspaces.text.texts import TokenTable, Words

CONFIG = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 64,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}
NAMES = ("dog", "cat", "child", "woman", "man", "bird")
ACTS = ("runs", "sleeps", "eats", "sings")
TRAINING = {
    "epochs": 2,
    "batch": 12,
    "micro": 5,
    "lr": 0.003,
    "lr_decay": 0.9,
    "lr_final": 1.0,
    "warmup": 0.0,
    "smoothing": 0.1,
    "dropout": 0.0,
    "validate_steps": 0,
    "by_length": True,
    "pad_to_longest": True,
    "share_premises": True,
    "autocast": False,
}


def toy_pairs(count: int = 30) -> Pairs:
    """A premise says who does what where; hypotheses keep it, add to it, or change the act."""
    rows = []
    for number in range(count):
        who, act = NAMES[number % 6], ACTS[number // 6 % 4]
        premise = f"a {who} {act} near a big tree" if number % 2 else f"a {who} {act} outside"
        other = ACTS[(number + 1) % 4] if ACTS[(number + 1) % 4] != act else ACTS[(number + 2) % 4]
        rows += [
            (premise, f"a {who} {act}", 0),
            (premise, f"a {who} {act} for fun today", 1),
            (premise, f"a {who} {other}", 2),
        ]
    texts = sorted({text for row in rows for text in row[:2]})
    place = {text: row for row, text in enumerate(texts)}
    columns = ([place[row[0]] for row in rows], [place[row[1]] for row in rows], [row[2] for row in rows])
    return Pairs(texts, np.array(columns[0]), np.array(columns[1]), np.array(columns[2], dtype=np.int8))


def tiny_backbone(kind: str = "bert", generator: torch.Generator | None = None, **options: Any) -> Backbone:
    """A random backbone of any architecture of the library; norms and biases are random too when `generator` is given."""
    backbone = Backbone.from_config(CONFIG | {"model_type": kind}, **options)
    with torch.no_grad():
        for name, parameter in backbone.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0.0, 0.05, generator=generator or torch.Generator().manual_seed(0))
            elif "norm" not in name.lower():
                parameter.zero_()
    return backbone


def toy_model(
    encoder: str = "subspace", ways: int = 2, seed: int = 0, dropout: float = 0.0, **options: Any
) -> PairModel:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if encoder.startswith("gru"):
            return make_model(read_encoder({"encoder": encoder, **options}), ways, None, 64)
        backbone = tiny_backbone(generator=generator, dropout=dropout)
        return make_model(read_encoder({"encoder": encoder, "backbone": "tiny", **options}), ways, backbone)


def toy_task(model: PairModel, best=None, pairs: Pairs | None = None, **training: Any) -> EntailmentTask:
    pairs = pairs or toy_pairs()
    words = Words.of(toy_pairs().texts)
    texts = Texts(TokenTable.of(pairs.texts, words, 35), width=None if training.get("pad_to_longest", True) else 35)
    return EntailmentTask(model, pairs, pairs, (texts, texts), NliTraining(**(TRAINING | training)), best)
