"""The Poincaré ball (Nickel & Kiela 2017): −arcosh(1 + 2‖u−v‖²/((1−‖u‖²)(1−‖v‖²))), Riemannian SGD; manifold from geoopt."""

from __future__ import annotations

import geoopt
import torch
from torch import Generator, Tensor

from subspaces.training.riemannian import RiemannianSGD
from subspaces.wordnet.geometries.base import VectorGeometry

_EDGE = 1e-5  # points stay this far inside the ball, as in the authors' code


class PoincareGeometry(VectorGeometry):
    name = "poincare"
    options = frozenset({"start"})
    dtype = torch.float64

    def __init__(self, nodes: int, dim: int, start: float = 1e-4, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device=device)
        self.start = start
        self.optimiser = RiemannianSGD(self.table, geoopt.PoincareBall(c=1.0).to(self.device))

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        left, right = one.square().sum(-1), other.square().sum(-1)
        squared = (left[..., :, None] + right[..., None, :] - 2 * (one @ other.mT)).clamp_min(0)
        room = (1 - left).clamp_min(_EDGE)[..., :, None] * (1 - right).clamp_min(_EDGE)[..., None, :]
        x = 2 * squared / room
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)
