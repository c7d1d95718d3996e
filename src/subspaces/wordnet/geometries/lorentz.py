"""The hyperboloid (Nickel & Kiela 2018): −arcosh(−⟨u,v⟩_L), exponential map with bounded steps; manifold from geoopt."""

from __future__ import annotations

import geoopt
import torch
from torch import Generator, Tensor

from subspaces.training.riemannian import RiemannianSGD
from subspaces.wordnet.geometries.base import VectorGeometry


class LorentzGeometry(VectorGeometry):
    name = "lorentz"
    options = frozenset({"start", "max_step"})
    dtype = torch.float64

    def __init__(self, nodes: int, dim: int, start: float = 1e-3, max_step: float = 1.0, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, width=dim + 1, device=device)
        self.start = start
        self.manifold = geoopt.Lorentz(k=1.0).to(self.device)
        self.optimiser = RiemannianSGD(self.table, self.manifold, max_step=max_step)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.table.copy_(self.manifold.projx(self.table))

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        inner = one[..., 1:] @ other[..., 1:].mT - one[..., :1] @ other[..., :1].mT
        x = (-inner - 1).clamp_min(0)
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def generality(self) -> Tensor:
        return -self.table[:, 0]
