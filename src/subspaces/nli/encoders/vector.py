"""Vector baselines: mean of the last hidden states, then an MLP on both sentences (paper §4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.nli.backbone import Backbone
from subspaces.nli.heads import PairMLP
from subspaces.nli.pair_model import PairModel
from subspaces.nli.texts import Tokens


class VectorModel(PairModel):
    """A sentence is one vector (h,). `masked` leaves padding out of the mean; the released code does not."""

    def __init__(self, ways: int, backbone: Backbone, difference: bool = False, masked: bool = True):
        super().__init__()
        self.ways, self.masked = ways, masked
        self.backbone = backbone
        self.head = PairMLP(backbone.size, ways, difference)

    def encode(self, tokens: Tokens) -> Tensor:
        return self.encode_together([tokens])

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        states = self.backbone.together(batches)
        return torch.cat([mean_pool(one, tokens.mask, self.masked) for one, tokens in zip(states, batches, strict=True)])

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self.head(premise, hypothesis)


def mean_pool(states: Tensor, mask: Tensor, masked: bool = True) -> Tensor:
    """Mean (B, h) of hidden states (B, m, h), over the tokens only if `masked`, else over the padding too."""
    if not masked:
        return states.mean(dim=1)
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def needed(backbone: Backbone | None, encoder: str) -> Backbone:
    if backbone is None:
        raise UserError(f"the encoder {encoder!r} stands on a pretrained backbone: name one in its settings, such as all-MiniLM-L6-v2.")
    return backbone


def build(ways: int, backbone: Backbone | None, words: int = 0, difference: bool = False, masked: bool = True) -> VectorModel:
    return VectorModel(ways, needed(backbone, "vector"), difference, masked)
