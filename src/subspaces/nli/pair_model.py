"""What every model of the SNLI table shares: a text becomes a representation, and two representations become scores of the classes.

One file each in `encoders`, registered by name, so that a row of the table is a name plus settings, never an `if`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.nli.backbone import Backbone
from subspaces.nli.texts import Tokens

ENCODERS = ("subspace", "vector", "box", "gru_order", "gru_hyperbolic")
CLASSES = {2: ("entailment", "other"), 3: ("entailment", "neutral", "contradiction")}


class PairModel(nn.Module):
    """Encoder and head of one row. `ways` is 2 (entailment or not) or 3; classes are in the order of `CLASSES`."""

    ways: int

    def encode(self, tokens: Tokens) -> Tensor:
        """Representations (B, …), each text by itself: premises and hypotheses meet only in the head."""
        raise NotImplementedError

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        """`encode` of several batches, each padded to its own length, one after the other in one tensor."""
        return torch.cat([self.encode(tokens) for tokens in batches])

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """Scores (B, ways) of representations; the largest is the decision, their softmax the probabilities."""
        raise NotImplementedError

    def loss(self, premise: Tensor, hypothesis: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        """Mean loss of a batch."""
        return F.cross_entropy(self.logits(premise, hypothesis), labels, label_smoothing=smoothing)

    def inclusion(self, premise: Tensor, hypothesis: Tensor) -> Tensor | None:
        """How much of the premise lies in the hypothesis (B,), for the geometries that have such a score; None for the others."""
        return None

    def optimisers(self, lr: float) -> list[torch.optim.Optimizer]:
        """Adam on everything that is trained, unless a baseline's authors did otherwise."""
        return [torch.optim.Adam([one for one in self.parameters() if one.requires_grad], lr=lr, fused=True)]

    def settle(self) -> None:
        """Called after each step, under no_grad: bring constrained parameters back to where they may be."""

    def calibrate(self, logits: Tensor, labels: Tensor) -> bool:
        """Called with validation pairs before they are judged: fit a threshold, if the decision needs one; true if it moved."""
        return False


def make_model(spec: Mapping[str, Any], ways: int, backbone: Backbone | None, words: int = 0) -> PairModel:
    """The model of a row from its settings: `encoder` names the file, the rest are its options. `words` is the size of the vocabulary of
    those without a backbone."""
    name = spec["encoder"]
    if name not in ENCODERS:
        raise UserError(f"unknown encoder {name!r}: choose one of {', '.join(ENCODERS)}.")
    module = importlib.import_module(f"subspaces.nli.encoders.{name}")
    options = {key: value for key, value in spec.items() if key not in ("encoder", "backbone")}
    return module.build(ways=ways, backbone=backbone, words=words, **options)
