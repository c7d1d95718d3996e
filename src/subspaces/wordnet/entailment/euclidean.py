"""Points of R^d: trained by −‖u−v‖, and judged by −(1+α(‖parent‖−‖child‖))·‖u−v‖, where the general end is nearer to the origin."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor

from subspaces.training.adam import LazyAdam
from subspaces.wordnet.entailment.base import VectorEntailment


class EuclideanEntailment(VectorEntailment):
    name = "euclidean"
    options = frozenset({"start"})
    tuned: ClassVar = {"alpha": (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)}

    def __init__(self, nodes: int, dim: int, start: float = 1e-2, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device=device)
        self.start = start
        self.optimiser = LazyAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().normal_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -torch.sqrt((child - parent).square().sum(-1) + 1e-12)

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of Nickel & Kiela (2017, §4.3), u = child: a parent farther out than its child is held against the pair."""
        return self.directed(child, parent) * (1.0 + alpha * (parent.norm(dim=-1) - child.norm(dim=-1)))

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)
