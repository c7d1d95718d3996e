"""Order embeddings (Vendrov et al. 2016): energy ‖max(0, parent − child)‖² over coordinates ≥ 0; the general end is near the origin."""

from __future__ import annotations

from typing import Any, Literal

from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.training.adam import LazyAdam


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
        self.optimiser = PositiveAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -(parent - child).clamp_min(0).square().sum(-1)

    def generality(self) -> Tensor:
        return -self.table.sum(-1)
