"""Vector baselines: mean of the last hidden states, then an MLP on both sentences (paper §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from subspaces.text.backbone import Backbone
from subspaces.text.heads import PairMLP
from subspaces.text.pair_model import EncoderSettings, PairModel
from subspaces.text.texts import Tokens


class VectorModel(PairModel):
    """A sentence is one vector (h,). `masked` leaves padding out of the mean; the released code does not."""

    def __init__(self, ways: int, backbone: Backbone, difference: bool = False, masked: bool = True):
        super().__init__()
        self.ways, self.masked = ways, masked
        self.backbone = backbone
        self.head = PairMLP(backbone.size, ways, difference)

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        states = self.backbone.together(batches)
        return torch.cat(
            [mean_pool(one, tokens.mask, self.masked) for one, tokens in zip(states, batches, strict=True)]
        )

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self.head(premise, hypothesis)


def mean_pool(states: Tensor, mask: Tensor, masked: bool = True) -> Tensor:
    """Mean (B, h) of hidden states (B, m, h), over the tokens only if `masked`, else over the padding too."""
    if not masked:
        return states.mean(dim=1)
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


class Settings(EncoderSettings):
    encoder: Literal["vector"] = "vector"
    backbone: str = Field(min_length=1)
    difference: bool = Field(False, description="the net sees p − h too")
    masked: bool = Field(True, description="false: padding counts, as in the released code")

    def build(self, ways: int, backbone: Backbone | None, words: int = 0) -> VectorModel:
        return VectorModel(ways, self.required(backbone), self.difference, self.masked)
