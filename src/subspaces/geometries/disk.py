"""Hyperbolic disk embeddings (Suzuki et al. 2019): energy d(x_p, x_c) − r_p + r_c, at most 0 when the parent's ball holds the child's.

Centres are points of the Poincaré ball of dimension dim − 1, the last column is the radius, which may be negative: so dim numbers per node.
As in the authors' code the centres come from a Poincaré embedding: the phase "start".
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move
from subspaces.geometries.cones import SHRINK
from subspaces.geometries.poincare import (
    Ball,
    ball_distance,
    ball_energy,
    ball_follow,
    ball_go,
    ball_unit,
    ball_unit_at,
)
from subspaces.training.riemannian import ConformalDescent


class DiskGeometry(VectorGeometry):
    name = "disk"

    class Settings(GeometrySettings):
        geometry: Literal["disk"]
        dim: int = Field(ge=2, description="counts the radius")

    def __init__(self, settings: Settings, nodes: int, *, optimiser=None, **training: Any):
        super().__init__(settings, nodes, optimiser=optimiser, **training)
        self.optimiser = ConformalDescent(self.table, self._unit, self._move, optimiser)
        self.begin_phase("main")

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.table[:, -1] = 0.0
        self.optimiser.reset()

    def begin_phase(self, phase: str) -> None:
        self.phase = phase

    def enter_main(self) -> None:
        self.table[:, :-1] *= SHRINK
        self.optimiser.reset()

    def _unit(self, points: Tensor) -> Tensor:
        unit = torch.ones_like(points)
        unit[:, :-1] = ball_unit(points[:, :-1])
        return unit

    def _move(self, points: Tensor, direction: Tensor) -> Tensor:
        return torch.cat([ball_follow(points[:, :-1], direction[:, :-1]), points[:, -1:] + direction[:, -1:]], dim=1)

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        closeness = -ball_distance(child[..., :-1], parent[..., :-1])
        return closeness if self.phase == "start" else closeness + parent[..., -1] - child[..., -1]

    def space(self) -> Ball | Disks:
        return Ball(self.dim - 1, 1.0) if self.phase == "start" else Disks(self.dim - 1)

    def generality(self) -> Tensor:
        return self.table[:, -1]


# --- compiled -------------------------------------------------------------------------------------------------------------


class Disks(NamedTuple):
    """Centres are the first `dim` columns, the next is the radius."""

    dim: int


@for_space(energy_and_gradient, Disks)
def _energy(space, child, parent, dchild, dparent):
    dchild[space.dim], dparent[space.dim] = 1.0, -1.0
    distance = ball_energy(space.dim, child, parent, dchild, dparent)
    return distance - parent[space.dim] + child[space.dim]


@for_space(move, Disks)
def _move(space, point, gradient, rate):
    unit = ball_unit_at(space.dim, point)
    length = 0.0
    for i in range(space.dim):
        length += gradient[i] * gradient[i]
    length = rate * math.sqrt(unit * unit * length + gradient[space.dim] ** 2)
    factor = -rate / max(length, 1.0)
    point[space.dim] += factor * gradient[space.dim]
    for i in range(space.dim):
        gradient[i] *= factor * unit * unit
    ball_go(space.dim, point, gradient)
