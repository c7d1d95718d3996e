"""The Poincaré ball (Nickel & Kiela 2017): trained by −d, decided by −(1+α(‖parent‖−‖child‖))·d. Cones and disks share what is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.euclidean import ALPHAS
from subspaces.training.riemannian import ConformalDescent

EDGE = 1e-5  # points keep this distance from the rim, as in the authors' code


def ball_distance(one: Tensor, other: Tensor) -> Tensor:
    """d = arcosh(1 + 2‖u−v‖²/((1−‖u‖²)(1−‖v‖²))) of (…, w) and (…, w); its gradient is 0 where the two coincide."""
    room = (1 - one.square().sum(-1)).clamp_min(EDGE) * (1 - other.square().sum(-1)).clamp_min(EDGE)
    x = 2 * (one - other).square().sum(-1) / room
    return torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))


def ball_follow(points: Tensor, tangent: Tensor) -> Tensor:
    """Exponential map of the ball: points ⊕ tanh(‖v‖/(1−‖x‖²))·v/‖v‖, kept inside. Equal to geoopt's (tested), in half the time."""
    size = tangent.norm(dim=-1, keepdim=True).clamp_min(1e-15)
    room = 1 - points.square().sum(-1, keepdim=True)
    reach = torch.tanh(size / room)
    step = tangent * (reach / size)
    inner, reach = (points * step).sum(-1, keepdim=True), reach.square_()
    moved = points * (1 + 2 * inner + reach) + step * room
    moved /= (1 + 2 * inner + (1 - room) * reach).clamp_min_(1e-15)
    return moved.mul_(((1 - EDGE) / moved.norm(dim=-1, keepdim=True).clamp_min_(1e-15)).clamp_max_(1.0))


def ball_unit(points: Tensor) -> Tensor:
    """(M, 1): the metric of the ball is 4/(1−‖x‖²)² times the Euclidean one."""
    return (1 - points.square().sum(-1, keepdim=True)) / 2


class PoincareGeometry(VectorGeometry):
    name = "poincare"
    tuned: Mapping[str, tuple[float, ...]] = {"alpha": ALPHAS}

    class Settings(GeometrySettings):
        geometry: Literal["poincare"]

    def __init__(self, settings: GeometrySettings, nodes: int, *, optimiser="sgd", ranking=False, **training: Any):
        super().__init__(settings, nodes, optimiser=optimiser, ranking=ranking, **training)
        self.optimiser = ConformalDescent(
            self.table, ball_unit, ball_follow, optimiser, longest=None if ranking else 1.0
        )

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.optimiser.reset()

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        left, right = one.square().sum(-1), other.square().sum(-1)
        squared = (left[..., :, None] + right[..., None, :] - 2 * (one @ other.mT)).clamp_min(0)
        room = (1 - left).clamp_min(EDGE)[..., :, None] * (1 - right).clamp_min(EDGE)[..., None, :]
        x = 2 * squared / room
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -ball_distance(child, parent)

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of Nickel & Kiela (2017, §4.3): a parent farther out than its child is held against the pair."""
        return self.directed(child, parent) * (1.0 + alpha * (parent.norm(dim=-1) - child.norm(dim=-1)))

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)
