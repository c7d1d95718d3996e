"""Hyperbolic entailment cones (Ganea et al. 2018): energy max(0, Ξ(parent, child) − ψ(parent)) in the Poincaré ball.

ψ = arcsin(K(1−‖u‖²)/‖u‖) is half the opening of the cone at u, Ξ the angle at u between its axis, which points away from the origin, and
the geodesic to the child. Cones are learnt from points that a Poincaré embedding has spread out: the phase "start".
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.poincare import ball_distance, ball_follow, ball_unit
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

    def __init__(self, settings: Settings, nodes: int, *, optimiser="sgd", **training: Any):
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

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)
