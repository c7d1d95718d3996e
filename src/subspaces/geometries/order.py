"""Order embeddings (Vendrov et al. 2016): energy ‖max(0, parent − child)‖² over coordinates ≥ 0; the general end is near the origin."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move
from subspaces.training.adam import LazyAdam
from subspaces.training.riemannian import FlatDescent


class PositiveAdam(LazyAdam):
    """Lazy Adam, then back to the coordinates ≥ 0."""

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        super().step(rows, gradient, lr)
        self.weights.index_copy_(0, rows, self.weights.index_select(0, rows).clamp_min_(0))


class OrderGeometry(VectorGeometry):
    name = "order"
    default_start = 0.1

    class Settings(GeometrySettings):
        geometry: Literal["order"]

    def __init__(self, settings: GeometrySettings, nodes: int, **training: Any):
        super().__init__(settings, nodes, **training)
        sgd = training.get("optimiser") == "sgd"
        self.optimiser = (
            FlatDescent(self.table, lambda points: points.clamp_min(0)) if sgd else PositiveAdam(self.table)
        )

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -(parent - child).clamp_min(0).square().sum(-1)

    def space(self) -> Orthant:
        return Orthant(self.dim)

    def generality(self) -> Tensor:
        return -self.table.sum(-1)


# --- compiled -------------------------------------------------------------------------------------------------------------


class Orthant(NamedTuple):
    dim: int


@for_space(energy_and_gradient, Orthant)
def _energy(space, child, parent, dchild, dparent):
    total = 0.0
    for i in range(space.dim):
        over = parent[i] - child[i]
        over = 0.0 if over < 0 else over  # NaN stays
        total += over * over
        dparent[i] = 2 * over
        dchild[i] = -2 * over
    return total


@for_space(move, Orthant)
def _move(space, point, gradient, rate):
    for i in range(space.dim):
        moved = point[i] - rate * gradient[i]
        point[i] = 0.0 if moved < 0 else moved  # NaN stays
