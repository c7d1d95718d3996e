"""Order embeddings (Vendrov et al. 2016): energy ‖max(0, parent − child)‖² over coordinates ≥ 0; the general end is near the origin."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from subspaces.training.adam import LazyAdam
from subspaces.wordnet.entailment.base import VectorEntailment


class PositiveAdam(LazyAdam):
    """Lazy Adam, then back to the coordinates ≥ 0."""

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        super().step(rows, gradient, lr)
        self.weights.index_copy_(0, rows, self.weights.index_select(0, rows).clamp_min_(0))


class OrderEntailment(VectorEntailment):
    name = "order"
    options = frozenset({"start"})

    def __init__(self, nodes: int, dim: int, start: float = 0.1, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device=device)
        self.start = start
        self.optimiser = PositiveAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -(parent - child).clamp_min(0).square().sum(-1)

    def generality(self) -> Tensor:
        return -self.table.sum(-1)
