"""Hyperbolic entailment cones (Ganea et al. 2018): energy max(0, Ξ(parent, child) − ψ(parent)) in the Poincaré ball.

ψ = arcsin(K(1−‖u‖²)/‖u‖) is half the opening of the cone at u, Ξ the angle at u between its axis, which points away from the origin, and
the geodesic to the child. Cones are learnt from points that a Poincaré embedding has spread out: the phase "start".
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move
from subspaces.geometries.poincare import Ball, ball_distance, ball_follow, ball_go, ball_unit, ball_unit_at, bounded
from subspaces.settings import Positive
from subspaces.training.riemannian import ConformalDescent

SHRINK = 0.7  # of the points of the start, as in the authors' code
_MARGIN = 1e-5  # points keep this distance from the ball without cones


class ConesGeometry(VectorGeometry):
    name = "cones"

    class Settings(GeometrySettings):
        geometry: Literal["cones"]
        dim: int = Field(ge=2)
        opening: Positive = Field(0.1, description="K, which sets the width of the cones")

    def __init__(self, settings: Settings, nodes: int, *, optimiser=None, **training: Any):
        super().__init__(settings, nodes, optimiser=optimiser, **training)
        self.opening = settings.opening
        self.inner = 2 * self.opening / (1 + (1 + 4 * self.opening**2) ** 0.5) + _MARGIN
        self.optimiser = ConformalDescent(self.table, ball_unit, self._move, optimiser)
        self.begin_phase("main")

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.optimiser.reset()

    def begin_phase(self, phase: str) -> None:
        self.phase = phase

    def enter_main(self) -> None:
        """From the points of the start to points with cones: nearer to the origin, but not so near that there is no cone."""
        self.table.copy_(self._pushed_out(self.table * SHRINK))
        self.optimiser.reset()

    def _move(self, points: Tensor, direction: Tensor) -> Tensor:
        moved = ball_follow(points, direction)
        return moved if self.phase == "start" else self._pushed_out(moved)

    def _pushed_out(self, points: Tensor) -> Tensor:
        norm = points.norm(dim=-1, keepdim=True)
        pushed = points * (self.inner / norm.clamp_min(1e-15)).clamp_min(1.0)
        lost = norm <= 1e-15  # the origin has no direction of its own: any will do
        if bool(lost.any()):
            pushed = torch.where(
                lost, torch.eye(1, points.shape[-1], dtype=points.dtype, device=points.device) * self.inner, pushed
            )
        return pushed

    def outside(self, child: Tensor, parent: Tensor) -> Tensor:
        """Ξ − ψ (…): how far, as an angle at the parent, the child lies outside the cone; negative inside.

        Ξ by its sine and cosine up to the same factor: exact for small angles, where an arccos is not, and finite where points coincide.
        """
        U, V, inner = parent.square().sum(-1), child.square().sum(-1), (parent * child).sum(-1)
        sine = (1 - U) * torch.sqrt((U * V - inner.square()).clamp_min(0) + 1e-30)
        angle = torch.atan2(sine, inner * (1 + U) - U * (1 + V))
        norm = torch.sqrt(U.clamp_min(1e-30))
        return angle - torch.asin((self.opening * (1 - U) / norm).clamp_max(1 - 1e-6))

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        if self.phase == "start":
            return -ball_distance(child, parent)
        return -self.outside(child, parent).clamp_min(0)

    def decide(self, child: Tensor, parent: Tensor) -> Tensor:
        """ψ − Ξ: also tells pairs apart that are all inside, where the energy is 0."""
        return -self.outside(child, parent)

    def space(self) -> Ball | Cones:
        return Ball(self.dim, 1.0) if self.phase == "start" else Cones(self.dim, self.opening, self.inner)

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)


# --- compiled -------------------------------------------------------------------------------------------------------------


class Cones(NamedTuple):
    dim: int
    opening: float
    inner: float


@for_space(energy_and_gradient, Cones, exact=True)
def _energy(space, child, parent, dchild, dparent):
    U, V, inner = 0.0, 0.0, 0.0
    for i in range(space.dim):
        U += parent[i] * parent[i]
        V += child[i] * child[i]
        inner += parent[i] * child[i]
    area = U * V - inner * inner
    root = math.sqrt(max(area, 0.0) + 1e-30)
    sine, cosine = (1 - U) * root, inner * (1 + U) - U * (1 + V)
    norm = math.sqrt(max(U, 1e-30))
    opening = space.opening * (1 - U) / norm
    energy = math.atan2(sine, cosine) - math.asin(min(opening, 1 - 1e-6))
    if energy < 0:
        for i in range(space.dim):
            dchild[i] = dparent[i] = 0.0
        return 0.0
    square = sine * sine + cosine * cosine
    by_sine, by_cosine = cosine / square, -sine / square
    by_root = by_sine * (1 - U) / root if area >= 0 else 0.0
    by_U = by_root * V / 2 - by_sine * root + by_cosine * (inner - 1 - V)
    by_V = by_root * U / 2 - by_cosine * U
    by_inner = by_cosine * (1 + U) - by_root * inner
    if opening <= 1 - 1e-6:
        by_U += (space.opening / norm + opening / (2 * max(U, 1e-30))) / math.sqrt(1 - opening * opening)
    for i in range(space.dim):
        dparent[i] = 2 * by_U * parent[i] + by_inner * child[i]
        dchild[i] = 2 * by_V * child[i] + by_inner * parent[i]
    return energy


@for_space(move, Cones)
def _move(space, point, gradient, rate):
    factor = bounded(rate, gradient, ball_unit_at(space.dim, point), 1.0)
    for i in range(space.dim):
        gradient[i] *= factor
    ball_go(space.dim, point, gradient)
    norm = 0.0
    for i in range(space.dim):
        norm += point[i] * point[i]
    norm = math.sqrt(norm)
    if norm <= 1e-15:
        point[:] = 0.0
        point[0] = space.inner
    elif norm < space.inner:
        for i in range(space.dim):
            point[i] *= space.inner / norm
