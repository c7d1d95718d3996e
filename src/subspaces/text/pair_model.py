"""What every sentence model of the SNLI tables shares: a text becomes a representation, two representations become class scores.

An encoder is one file in `encoders`: its name is the file name, its `Settings` class declares its options and builds the model.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.settings import Strict
from subspaces.text.backbone import Backbone
from subspaces.text.texts import Tokens, TokenTable

CLASSES = {2: ("entailment", "other"), 3: ("entailment", "neutral", "contradiction")}


class BackboneSettings(Strict):
    """Which pretrained backbone a model stands on, and what is used of it."""

    name: str = Field(min_length=1, description="a source of the registry, or a folder beside the sources")
    wanted: str = Field(description="the backbone of the published model; another name: a smaller one stands in for it")
    layers: int | None = Field(None, ge=1, description="only the first layers; null: all")
    frozen: int = Field(0, ge=0, description="the embeddings and this number of layers are not trained")
    dropout: float | None = Field(None, ge=0, lt=1)


class EncoderSettings(Strict):
    """Options of one encoder. A subclass adds `encoder: Literal[<file name>]`, and `backbone: str` where it stands on one."""

    encoder: str

    def build(self, ways: int, backbone: Backbone | None, words: int) -> PairModel:
        """The untrained model. `words` is the size of the vocabulary of an encoder without a backbone."""
        raise NotImplementedError

    def for_ways(self, ways: int) -> EncoderSettings:
        """The same settings without what a 2-way or 3-way model does not read."""
        return self

    def required(self, backbone: Backbone | None) -> Backbone:
        """The backbone of an encoder that stands on one."""
        if backbone is None:
            raise UserError(f"the encoder {self.encoder!r} needs a pretrained backbone, such as all-MiniLM-L6-v2.")
        return backbone

    @property
    def backbone_name(self) -> str | None:
        return getattr(self, "backbone", None)

    @property
    def makes_subspaces(self) -> bool:
        """Representations are projectors (N, d, d)."""
        return False

    def memory_mb(self, weights_mb: float, pairs: int) -> float:
        """Memory of one training step beyond the program itself: weights, gradients and Adam's moments, and states of `pairs` pairs.

        5 MB per pair bounds the states of MiniLM (87 MB of weights) at 35 tokens; they grow with the backbone.
        """
        return 5 * weights_mb + pairs * 5 * max(1.0, weights_mb / 87)


class PairModel(nn.Module):
    """Encoder and head of one row. `ways` is 2 (entailment or not) or 3; classes are in the order of `CLASSES`."""

    ways: int
    backbone: Backbone  # of an encoder that stands on one

    @property
    def label_ways(self) -> int:
        """Number of classes of the labels that `loss` reads."""
        return self.ways

    def encode(self, tokens: Tokens) -> Tensor:
        """Representations (B, …). Each text is encoded by itself: premises and hypotheses meet only in the head."""
        return self.encode_together([tokens])

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        """`encode` of several batches, each padded to its own length, concatenated."""
        raise NotImplementedError

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """Scores (B, ways) of representations; the largest is the decision, their softmax the probabilities."""
        raise NotImplementedError

    def loss(
        self, premise: Tensor, hypothesis: Tensor, labels: Tensor, smoothing: float, premise_ids: Tensor | None = None
    ) -> Tensor:
        """Mean loss of a batch. Pairs with different `premise_ids` (B,) are unrelated, which some losses use."""
        return F.cross_entropy(self.logits(premise, hypothesis), labels, label_smoothing=smoothing)

    def inclusion(self, premise: Tensor, hypothesis: Tensor) -> Tensor | None:
        """How much of the premise lies in the hypothesis (B,), for the geometries that have such a score; None for the others."""
        return None

    def optimisers(self, lr: float) -> list[torch.optim.Optimizer]:
        """Adam on everything that is trained, unless the authors of a baseline did otherwise."""
        return [torch.optim.Adam([part for part in self.parameters() if part.requires_grad], lr=lr, fused=True)]

    def settle(self) -> None:
        """Called after each step, under no_grad: move constrained parameters back into their range."""

    def calibrate(self, logits: Tensor, labels: Tensor) -> bool:
        """Called with validation pairs before accuracy is computed: fit a threshold, if the decision needs one; true if it moved."""
        return False


@cache
def encoder_settings() -> dict[str, type[EncoderSettings]]:
    """The settings class of each encoder, by file name."""
    from subspaces.text import encoders

    names = sorted(module.name for module in pkgutil.iter_modules(encoders.__path__))
    return {name: importlib.import_module(f"{encoders.__name__}.{name}").Settings for name in names}


def read_encoder(options: dict[str, Any]) -> EncoderSettings:
    """Encoder settings from a plain mapping, such as that of settings.json."""
    known = encoder_settings()
    name = options.get("encoder")
    if name not in known:
        raise UserError(f"unknown encoder {name!r}: choose one of {', '.join(known)}.")
    return known[name].model_validate(options)


def make_model(settings: EncoderSettings, ways: int, backbone: Backbone | None, words: int = 0) -> PairModel:
    """The untrained model of a row."""
    return settings.build(ways, backbone, words)


class Texts:
    """Encodes the sentences of a table, each once, in batches of similar length."""

    def __init__(self, table: TokenTable, device: str = "cpu", autocast: bool = False, width: int | None = None):
        self.table, self.device, self.autocast, self.width = table, device, autocast, width

    def encode(self, model: PairModel, *pieces: np.ndarray) -> Tensor:
        """Representations of some rows of the table, each piece as one padded batch, concatenated."""
        batches = [self.table.batch(rows, self.width).to(self.device) for rows in pieces]
        if not self.autocast:
            return model.encode_together(batches)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            return model.encode_together(batches).float()

    @torch.no_grad()
    def encode_all(self, model: PairModel, rows: np.ndarray, batch: int = 128) -> Tensor:
        """Representations of many rows, for evaluation: in order of length, returned in the order of `rows`."""
        order = np.argsort(self.table.lengths[rows], kind="stable")
        result: Tensor | None = None
        for start in range(0, len(rows), batch):
            places = order[start : start + batch]
            encoded = self.encode(model, rows[places])
            if result is None:
                result = encoded.new_empty(len(rows), *encoded.shape[1:])
            result[torch.from_numpy(places).to(self.device)] = encoded
        assert result is not None
        return result


def accuracy(logits: Tensor, labels: np.ndarray) -> float:
    """Share of right decisions, in per cent."""
    return 100.0 * float((logits.argmax(1) == torch.from_numpy(labels)).double().mean())
