"""Box baseline: a sentence is an axis-aligned box, entailment the share of the premise's volume that the hypothesis covers (§4.3, App. D).

A box is (2, d): its lower corner, then its sides. The volume is soft, Σ log softplus(side), so that boxes that do not meet, whose
intersection has negative sides, still have a small volume and a gradient that draws them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.text.backbone import Backbone
from subspaces.text.encoders.vector import mean_pool
from subspaces.text.heads import BetaHead
from subspaces.text.pair_model import EncoderSettings, PairModel
from subspaces.text.texts import Tokens


class BoxModel(PairModel):
    """Mean-pooled states, two layers with LeakyReLU, a box in R^d; Beta head on the covered share. 2-way only.

    `masked` leaves padding out of the mean, and the share may be `squared` (the released code does the second, not the first).
    """

    def __init__(self, backbone: Backbone, dim: int, masked: bool = True, squared: bool = False):
        super().__init__()
        self.ways, self.dim, self.masked, self.squared = 2, dim, masked, squared
        self.backbone = backbone
        self.layers = nn.Sequential(
            nn.Linear(backbone.size, backbone.size), nn.LeakyReLU(), nn.Linear(backbone.size, 2 * dim)
        )
        self.beta = BetaHead()

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        """Boxes (B, 2, d)."""
        states = self.backbone.together(batches)
        means = torch.cat(
            [mean_pool(one, tokens.mask, self.masked) for one, tokens in zip(states, batches, strict=True)]
        )
        corner, side = self.layers(means).float().chunk(2, dim=-1)
        return torch.stack([corner, F.softplus(side)], dim=1)

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self.beta.from_log(log_share(premise, hypothesis) * (2 if self.squared else 1))

    def inclusion(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return log_share(premise, hypothesis).exp()

    def settle(self) -> None:
        self.beta.settle()


def intersection(a: Tensor, b: Tensor) -> Tensor:
    """The box (…, 2, d) that two boxes share; its sides are negative where they do not meet."""
    lower = torch.maximum(a[..., 0, :], b[..., 0, :])
    upper = torch.minimum(a.sum(dim=-2), b.sum(dim=-2))
    return torch.stack([lower, upper - lower], dim=-2)


def log_volume(box: Tensor) -> Tensor:
    """Σ log softplus(side), shape (…), of boxes (…, 2, d)."""
    side = box[..., 1, :]
    # log softplus(x) → x far below zero, where softplus itself underflows
    return torch.where(side < -15, side, F.softplus(side.clamp(min=-15)).log()).sum(dim=-1)


def log_share(premise: Tensor, hypothesis: Tensor) -> Tensor:
    """log vol(p ∩ h)/vol(p) ≤ 0, shape (…): the volumetric analogue of the NIS."""
    return (log_volume(intersection(premise, hypothesis)) - log_volume(premise)).clamp(max=0.0)


class Settings(EncoderSettings):
    encoder: Literal["box"] = "box"
    backbone: str = Field(min_length=1)
    dim: int = Field(64, ge=1)
    masked: bool = Field(True, description="false: padding counts, as in the released code")
    squared: bool = Field(False, description="square the share, as the released code does")

    def build(self, ways: int, backbone: Backbone | None, words: int = 0) -> BoxModel:
        if ways != 2:
            raise UserError(
                "boxes are a 2-way model (paper §4.3: the complement of a box is no box): choose ways 2, or another encoder."
            )
        return BoxModel(self.required(backbone), self.dim, self.masked, self.squared)
