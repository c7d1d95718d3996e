"""Optimisers on manifolds (geoopt), for touched rows only."""

from __future__ import annotations

import geoopt
import torch
from torch import Tensor


class RiemannianSGD:
    """Stochastic gradient descent on a manifold of geoopt: Riemannian gradient, then the exponential map, on touched rows.

    `max_step` bounds the length of a step; geoopt measures tangent vectors by themselves on the hyperboloid, which is where it is used.
    """

    def __init__(self, weights: Tensor, manifold: geoopt.Manifold, max_step: float | None = None):
        self.weights, self.manifold, self.max_step = weights, manifold, max_step

    def state(self) -> dict[str, Tensor]:
        return {}

    @torch.no_grad()
    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        points = self.weights[rows]
        direction = self.manifold.egrad2rgrad(points, gradient).mul_(-lr)
        if self.max_step is not None:
            length = self.manifold.norm(direction, keepdim=True).clamp_min(1e-15)
            direction = direction * (self.max_step / length).clamp_max(1.0)
        self.weights[rows] = self.manifold.projx(self.manifold.expmap(points, direction))
