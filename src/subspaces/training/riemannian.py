"""Gradient descent on manifolds, for touched rows only."""

from __future__ import annotations

from collections.abc import Callable

import geoopt
import torch
from torch import Tensor


class ConformalDescent:
    """Riemannian SGD or Adam on touched rows of a space whose metric is a multiple of the Euclidean one at each point.

    `unit(points)` is the coordinate length of a vector of length 1 there, so that gradient × unit has the gradient's true length; `move`
    follows a tangent vector. Adam keeps its second moment by node, not by coordinate: turning the space turns the step. No step is longer
    than `longest` (None: any length), because some energies have no bounded gradient where points meet.
    """

    def __init__(
        self,
        weights: Tensor,
        unit: Callable[[Tensor], Tensor],
        move: Callable[[Tensor, Tensor], Tensor],
        optimiser: str | None,
        betas: tuple[float, float] = (0.9, 0.999),
        longest: float | None = 1.0,
    ):
        self.weights, self.unit, self.move, self.betas, self.longest = weights, unit, move, betas, longest
        self.adam = optimiser == "adam"
        if self.adam:
            self.mean = torch.zeros_like(weights)
            self.square = weights.new_zeros(len(weights), 1)
            self.count = torch.zeros(1, dtype=torch.int64)

    def reset(self) -> None:
        for tensor in self.state().values():
            tensor.zero_()

    def state(self) -> dict[str, Tensor]:
        return {"adam.mean": self.mean, "adam.square": self.square, "adam.count": self.count} if self.adam else {}

    @torch.no_grad()
    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        points = self.weights.index_select(0, rows)
        unit = self.unit(points)
        direction = gradient * unit
        if self.adam:
            direction = self._smoothed(rows, direction)
        direction *= -lr
        if self.longest is not None:
            direction *= (self.longest / direction.norm(dim=-1, keepdim=True).clamp_min(1e-15)).clamp_max(1.0)
        self.weights.index_copy_(0, rows, self.move(points, direction.mul_(unit)))

    def _smoothed(self, rows: Tensor, direction: Tensor) -> Tensor:
        beta1, beta2 = self.betas
        self.count += 1
        mean = self.mean.index_select(0, rows).lerp_(direction, 1 - beta1)
        self.mean.index_copy_(0, rows, mean)
        square = self.square.index_select(0, rows).lerp_(direction.square().sum(-1, keepdim=True), 1 - beta2)
        self.square.index_copy_(0, rows, square)
        scale = (1 - beta2 ** int(self.count)) ** 0.5 / (1 - beta1 ** int(self.count))
        return mean.div_(square.sqrt_().add_(1e-12)).mul_(scale)


class FlatDescent(ConformalDescent):
    """Plain SGD in R^d, and then `back` to where points may be."""

    def __init__(self, weights: Tensor, back: Callable[[Tensor], Tensor] = lambda points: points):
        super().__init__(weights, torch.ones_like, lambda points, step: back(points + step), "sgd", longest=None)


class RiemannianSGD:
    """Stochastic gradient descent on any manifold of geoopt: Riemannian gradient, then the exponential map, on touched rows.

    `max_step` bounds the length of a step; geoopt measures tangent vectors by themselves on the hyperboloid, which is where it is used.
    """

    def __init__(self, weights: Tensor, manifold: geoopt.Manifold, max_step: float | None = None):
        self.weights, self.manifold, self.max_step = weights, manifold, max_step

    def reset(self) -> None:
        """It has no memory."""

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
