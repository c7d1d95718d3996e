"""The Poincaré ball (Nickel & Kiela 2017): trained by −d, judged by −(1+α(‖parent‖−‖child‖))·d. Cones and disks share what is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.wordnet.entailment.base import VectorEntailment

OPTIMISERS = ("adam", "sgd")
_EDGE = 1e-5  # points keep this distance from the rim, as geoopt's of float64 do


def ball_distance(one: Tensor, other: Tensor) -> Tensor:
    """d = arcosh(1 + 2‖u−v‖²/((1−‖u‖²)(1−‖v‖²))) of (…, w) and (…, w); its gradient is 0 where the two coincide."""
    room = (1 - one.square().sum(-1)).clamp_min(_EDGE) * (1 - other.square().sum(-1)).clamp_min(_EDGE)
    x = 2 * (one - other).square().sum(-1) / room
    return torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))


def ball_follow(points: Tensor, tangent: Tensor) -> Tensor:
    """Exponential map of the ball: points ⊕ tanh(‖v‖/(1−‖x‖²))·v/‖v‖, kept inside. Equal to geoopt's (tested), in half the time."""
    size = tangent.norm(dim=-1, keepdim=True).clamp_min(1e-15)
    room = 1 - points.square().sum(-1, keepdim=True)
    reach = torch.tanh(size / room)
    step = tangent * (reach / size)
    inner, reach = (points * step).sum(-1, keepdim=True), reach.square_()
    moved = points * (1 + 2 * inner + reach) + step * room
    moved /= (1 + 2 * inner + (1 - room) * reach).clamp_min_(1e-15)
    return moved.mul_(((1 - _EDGE) / moved.norm(dim=-1, keepdim=True).clamp_min_(1e-15)).clamp_max_(1.0))


class Descent:
    """Riemannian SGD or Adam on touched rows of a space whose metric is a multiple of the Euclidean one at each point.

    `unit(points)` is the coordinate length of a vector of length 1 there, so that gradient × unit has the gradient's true length; `move`
    follows a tangent vector. Adam keeps its second moment by node, not by coordinate: turning the space turns the step. No step is longer
    than `longest`, because some energies have no bounded gradient where points meet.
    """

    def __init__(
        self,
        weights: Tensor,
        unit: Callable[[Tensor], Tensor],
        move: Callable[[Tensor, Tensor], Tensor],
        optimiser: str,
        betas: tuple[float, float] = (0.9, 0.999),
        longest: float = 1.0,
    ):
        if optimiser not in OPTIMISERS:
            raise UserError(f"unknown optimiser {optimiser!r}: use {' or '.join(OPTIMISERS)}.")
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


def ball_unit(points: Tensor) -> Tensor:
    """(M, 1): the metric of the ball is 4/(1−‖x‖²)² times the Euclidean one."""
    return (1 - points.square().sum(-1, keepdim=True)) / 2


class PoincareEntailment(VectorEntailment):
    name = "poincare"
    options = frozenset({"start", "optimiser"})
    tuned: ClassVar = {"alpha": (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)}

    def __init__(self, nodes: int, dim: int, start: float = 1e-4, optimiser: str = "sgd", device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device=device)
        self.start = start
        self.optimiser = Descent(self.table, ball_unit, ball_follow, optimiser)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.optimiser.reset()

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -ball_distance(child, parent)

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of Nickel & Kiela (2017, §4.3): a parent farther out than its child is held against the pair."""
        return self.directed(child, parent) * (1.0 + alpha * (parent.norm(dim=-1) - child.norm(dim=-1)))

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)
