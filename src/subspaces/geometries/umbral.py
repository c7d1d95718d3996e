"""Umbral shadow cones of the half-space (Yu et al. 2024): light falls straight down, and a child lies in its parent's shadow.

Points are (x, h), x ∈ R^{dim−1} and h > 0 the height; every node is a ball of radius r. The energy is how far the child's ball must move to
be in the shadow of its parent's: arsinh(t/h_c) + r with t = ‖x_p − x_c‖ − sinh(r)·h_p, or, above the shadow, the distance to its apex, the
parent. It is at most 0 inside, that is where ‖x_p − x_c‖ ≤ sinh(r)·(h_p − h_c).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move
from subspaces.geometries.poincare import bounded
from subspaces.settings import Positive
from subspaces.training.riemannian import ConformalDescent

LOWEST, HIGHEST = 1e-12, 1e12


def follow(points: Tensor, tangent: Tensor) -> Tensor:
    """Exponential map of the half-space: from (x, h) along the half circle, or the vertical line, of the tangent vector."""
    height, speed = points[:, -1:], tangent.norm(dim=-1, keepdim=True)
    length = speed / height
    direction = tangent / speed.clamp_min(1e-300)
    below = torch.cosh(length) - direction[:, -1:] * torch.sinh(length)
    place = points[:, :-1] + direction[:, :-1] * (height * torch.sinh(length) / below)
    return torch.cat([place, (height / below).clamp_(LOWEST, HIGHEST)], dim=1)


def half_space_distance(one: Tensor, other: Tensor) -> Tensor:
    """arcosh(1 + ‖u−v‖²/(2 h_u h_v))."""
    x = (one - other).square().sum(-1) / (2 * one[..., -1] * other[..., -1])
    return torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))


class UmbralGeometry(VectorGeometry):
    name = "umbral"
    default_start = 1e-5
    losses = ("margin", "softmax", "shadow")

    class Settings(GeometrySettings):
        geometry: Literal["umbral"]
        dim: int = Field(ge=2)
        radius: Positive = Field(0.05, description="hyperbolic radius of an object that throws a shadow")

    def __init__(self, settings: Settings, nodes: int, *, optimiser=None, **training: Any):
        super().__init__(settings, nodes, optimiser=optimiser, **training)
        self.radius = settings.radius
        self.tuned = {"radius": tuple(factor * self.radius for factor in (1.0, 0.2, 0.5, 1.2, 1.5, 2.0))}
        self.optimiser = ConformalDescent(self.table, lambda points: points[:, -1:], follow, optimiser)

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

    def space(self) -> HalfSpace:
        return HalfSpace(self.dim, math.sinh(self.radius), math.cosh(self.radius), self.radius)

    def generality(self) -> Tensor:
        return self.table[:, -1]


# --- compiled -------------------------------------------------------------------------------------------------------------


class HalfSpace(NamedTuple):
    """Points have dim − 1 coordinates and their height; sinh, cosh and the radius itself."""

    dim: int
    sinh: float
    cosh: float
    radius: float


@for_space(energy_and_gradient, HalfSpace)
def _energy(space, child, parent, dchild, dparent):
    last = space.dim - 1
    top, low = parent[last], child[last]
    squared = 0.0
    for i in range(last):
        squared += (parent[i] - child[i]) ** 2
    aside = math.sqrt(squared + 1e-24)
    beside = aside - space.sinh * top
    if beside * beside + low * low > (space.cosh * top) ** 2:  # above the shadow: the distance to its apex
        x = (squared + (top - low) ** 2) / (2 * top * low)
        root = math.sqrt(x * (x + 2) + 1e-15)
        apart = 1 / (top * low * root)
        for i in range(last):
            dchild[i] = apart * (child[i] - parent[i])
            dparent[i] = -dchild[i]
        dchild[last] = apart * (low - top) - x / (low * root)
        dparent[last] = apart * (top - low) - x / (top * root)
        return math.log1p(x + root)
    ratio = beside / low
    steep = 1 / (low * math.sqrt(1 + ratio * ratio))
    for i in range(last):
        dchild[i] = steep * (child[i] - parent[i]) / aside
        dparent[i] = -dchild[i]
    dchild[last] = -steep * ratio
    dparent[last] = -steep * space.sinh
    return math.asinh(ratio) + space.radius


@for_space(move, HalfSpace)
def _move(space, point, gradient, rate):
    """`follow`, in place."""
    last = space.dim - 1
    height = point[last]
    factor = bounded(rate, gradient, height, 1.0)
    speed = 0.0
    for i in range(space.dim):
        gradient[i] *= factor
        speed += gradient[i] * gradient[i]
    speed = max(math.sqrt(speed), 1e-300)
    length = speed / height
    along = math.sinh(length)
    below = math.cosh(length) - gradient[last] / speed * along
    for i in range(last):
        point[i] += gradient[i] / speed * (height * along / below)
    moved = height / below
    point[last] = LOWEST if moved < LOWEST else HIGHEST if moved > HIGHEST else moved  # NaN stays
