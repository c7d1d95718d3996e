"""Umbral shadow cones of the half-space (Yu et al. 2024): light falls straight down, and a child lies in its parent's shadow.

Points are (x, h), x ∈ R^{dim−1} and h > 0 the height; every node is a ball of radius r. The energy is how far the child's ball must move to
be in the shadow of its parent's: arsinh(t/h_c) + r with t = ‖x_p − x_c‖ − sinh(r)·h_p, or, above the shadow, the distance to its apex, the
parent. It is at most 0 inside, that is where ‖x_p − x_c‖ ≤ sinh(r)·(h_p − h_c).
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.wordnet.entailment.base import VectorEntailment
from subspaces.wordnet.entailment.poincare import Descent

_LOWEST, _HIGHEST = 1e-12, 1e12


def follow(points: Tensor, tangent: Tensor) -> Tensor:
    """Exponential map of the half-space: from (x, h) along the half circle, or the vertical line, of the tangent vector."""
    height, speed = points[:, -1:], tangent.norm(dim=-1, keepdim=True)
    length = speed / height
    direction = tangent / speed.clamp_min(1e-300)
    below = torch.cosh(length) - direction[:, -1:] * torch.sinh(length)
    place = points[:, :-1] + direction[:, :-1] * (height * torch.sinh(length) / below)
    return torch.cat([place, (height / below).clamp_(_LOWEST, _HIGHEST)], dim=1)


def half_space_distance(one: Tensor, other: Tensor) -> Tensor:
    """arcosh(1 + ‖u−v‖²/(2 h_u h_v))."""
    x = (one - other).square().sum(-1) / (2 * one[..., -1] * other[..., -1])
    return torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))


class UmbralEntailment(VectorEntailment):
    name = "umbral"
    options = frozenset({"start", "radius", "optimiser"})

    def __init__(
        self, nodes: int, dim: int, start: float = 1e-5, radius: float = 0.05, optimiser: str = "sgd", device: torch.device | str = "cpu"
    ):
        super().__init__(nodes, dim, device=device)
        if dim < 2:
            raise UserError(f"the half-space needs a place and a height: dim must be at least 2, not {dim}.")
        if not 0 < radius < float("inf"):
            raise UserError(f"radius (r of the umbral cones) must be above 0, not {radius}.")
        self.start, self.radius = start, radius
        self.tuned = {"radius": tuple(factor * radius for factor in (1.0, 0.2, 0.5, 1.2, 1.5, 2.0))}
        self.optimiser = Descent(self.table, lambda points: points[:, -1:], follow, optimiser)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.table[:, -1] += 1.0
        self.optimiser.reset()

    def energy(self, child: Tensor, parent: Tensor, radius: float) -> Tensor:
        top, low = parent[..., -1], child[..., -1]
        aside = torch.sqrt((parent[..., :-1] - child[..., :-1]).square().sum(-1) + 1e-24)
        beside = aside - math.sinh(radius) * top
        above = beside.square() + low.square() > (math.cosh(radius) * top).square()
        return torch.where(above, half_space_distance(child, parent), torch.asinh(beside / low) + radius)

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -self.energy(child, parent, self.radius)

    def decide(self, child: Tensor, parent: Tensor, radius: float | None = None) -> Tensor:
        return -self.energy(child, parent, self.radius if radius is None else radius)

    def generality(self) -> Tensor:
        return self.table[:, -1]
