"""The hyperboloid (Nickel & Kiela 2018): −arcosh(−⟨u,v⟩_L), exponential map with bounded steps; manifold from geoopt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import geoopt
import torch
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move, nearness
from subspaces.geometries.euclidean import ALPHAS
from subspaces.settings import Positive
from subspaces.training.riemannian import RiemannianSGD


class LorentzGeometry(VectorGeometry):
    name = "lorentz"
    default_start = 1e-3
    tuned: Mapping[str, tuple[float, ...]] = {"alpha": ALPHAS}

    class Settings(GeometrySettings):
        geometry: Literal["lorentz"]
        max_step: Positive = 1.0

    def __init__(self, settings: Settings, nodes: int, **training: Any):
        super().__init__(settings, nodes, width=settings.dim + 1, **training)
        self.manifold = geoopt.Lorentz(k=1.0).to(self.device)
        self.optimiser = RiemannianSGD(self.table, self.manifold, max_step=settings.max_step)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.table.copy_(self.manifold.projx(self.table))

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        inner = one[..., 1:] @ other[..., 1:].mT - one[..., :1] @ other[..., :1].mT
        x = (-inner - 1).clamp_min(0)
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        """−⟨u,v⟩_L − 1 as half the squared Lorentz length of u − v: exact where the two are near."""
        square = (child - parent).square()
        x = ((square[..., 1:].sum(-1) - square[..., 0]) / 2).clamp_min(0)
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of the Poincaré ball, with the norms that the two points have there."""
        out, low = (x[..., 1:].norm(dim=-1) / (1 + x[..., 0]) for x in (parent, child))
        return self.directed(child, parent) * (1.0 + alpha * (out - low))

    def space(self) -> Hyperboloid:
        assert isinstance(self.settings, self.Settings)
        return Hyperboloid(self.dim, self.settings.max_step)

    def generality(self) -> Tensor:
        return -self.table[:, 0]


# --- compiled -------------------------------------------------------------------------------------------------------------


class Hyperboloid(NamedTuple):
    """Points have a first column besides the `dim` others."""

    dim: int
    longest: float


@for_space(energy_and_gradient, Hyperboloid)
def _energy(space, child, parent, dchild, dparent):
    squared = -((child[0] - parent[0]) ** 2)
    for i in range(1, space.dim + 1):
        squared += (child[i] - parent[i]) ** 2
    x = max(squared / 2, 0.0)
    root = math.sqrt(x * (x + 2) + 1e-15)
    steep = 1 / root if squared >= 0 else 0.0
    for i in range(space.dim + 1):
        dchild[i] = steep * (child[i] - parent[i])
    dchild[0] = -dchild[0]
    for i in range(space.dim + 1):
        dparent[i] = -dchild[i]
    return math.log1p(x + root)


@for_space(move, Hyperboloid)
def _move(space, point, gradient, rate):
    width = space.dim + 1
    gradient[0] = -gradient[0]
    inner = -point[0] * gradient[0]
    for i in range(1, width):
        inner += point[i] * gradient[i]
    length = 0.0
    for i in range(width):
        gradient[i] = -rate * (gradient[i] + inner * point[i])
        length += gradient[i] * gradient[i]
    length = math.sqrt(max(length - 2 * gradient[0] * gradient[0], 1e-30))
    reach = min(length, space.longest)
    stay, go = math.cosh(reach), math.sinh(reach) / length
    squared = 0.0
    for i in range(1, width):
        point[i] = stay * point[i] + go * gradient[i]
        squared += point[i] * point[i]
    point[0] = math.sqrt(1 + squared)


@for_space(nearness, Hyperboloid)
def _nearness(space, point, columns, out):
    """The squared Lorentz length of u − v, some nodes at a time, so that they stay in the cache."""
    for start in range(0, columns.shape[1], 512):
        count = min(512, columns.shape[1] - start)
        near = out[start : start + count]
        near[:] = 0.0
        for i in range(space.dim + 1):
            at, sign, column = point[i], 1.0 if i else -1.0, columns[i, start : start + count]
            for j in range(count):
                near[j] += sign * (column[j] - at) ** 2
