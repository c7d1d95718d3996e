"""The Poincaré ball (Nickel & Kiela 2017): trained by −d, decided by −(1+α(‖parent‖−‖child‖))·d. Cones and disks use these functions too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move, nearness, part
from subspaces.geometries.euclidean import ALPHAS
from subspaces.training.riemannian import ConformalDescent

EDGE = 1e-5  # points keep this distance from the rim, as in the authors' code


def ball_distance(one: Tensor, other: Tensor) -> Tensor:
    """d = arcosh(1 + 2‖u−v‖²/((1−‖u‖²)(1−‖v‖²))) of (…, w) and (…, w); its gradient is 0 where the two coincide."""
    room = (1 - one.square().sum(-1)).clamp_min(EDGE) * (1 - other.square().sum(-1)).clamp_min(EDGE)
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
    return moved.mul_(((1 - EDGE) / moved.norm(dim=-1, keepdim=True).clamp_min_(1e-15)).clamp_max_(1.0))


def ball_unit(points: Tensor) -> Tensor:
    """(M, 1): the metric of the ball is 4/(1−‖x‖²)² times the Euclidean one."""
    return (1 - points.square().sum(-1, keepdim=True)) / 2


class PoincareGeometry(VectorGeometry):
    name = "poincare"
    tuned: Mapping[str, tuple[float, ...]] = {"alpha": ALPHAS}

    class Settings(GeometrySettings):
        geometry: Literal["poincare"]

    def __init__(self, settings: GeometrySettings, nodes: int, *, optimiser=None, ranking=False, **training: Any):
        super().__init__(settings, nodes, optimiser=optimiser, ranking=ranking, **training)
        self.longest = None if ranking else 1.0
        self.optimiser = ConformalDescent(self.table, ball_unit, ball_follow, optimiser, longest=self.longest)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().uniform_(-self.start, self.start, generator=generator))
        self.optimiser.reset()

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        left, right = one.square().sum(-1), other.square().sum(-1)
        squared = (left[..., :, None] + right[..., None, :] - 2 * (one @ other.mT)).clamp_min(0)
        room = (1 - left).clamp_min(EDGE)[..., :, None] * (1 - right).clamp_min(EDGE)[..., None, :]
        x = 2 * squared / room
        return -torch.log1p(x + torch.sqrt(x * (x + 2) + 1e-15))

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -ball_distance(child, parent)

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of Nickel & Kiela (2017, §4.3): a parent farther out than its child is held against the pair."""
        return self.directed(child, parent) * (1.0 + alpha * (parent.norm(dim=-1) - child.norm(dim=-1)))

    def space(self) -> Ball:
        return Ball(self.dim, math.inf if self.longest is None else self.longest)

    def generality(self) -> Tensor:
        return -self.table.norm(dim=-1)


# --- compiled -------------------------------------------------------------------------------------------------------------


class Ball(NamedTuple):
    """Points are the first `dim` columns; no step is longer than `longest`."""

    dim: int
    longest: float


@part
def ball_energy(dim, child, parent, dchild, dparent):
    """`ball_distance` and its gradients."""
    U, V, squared = 0.0, 0.0, 0.0
    for i in range(dim):
        U += child[i] * child[i]
        V += parent[i] * parent[i]
        squared += (child[i] - parent[i]) ** 2
    left, right = max(1 - U, EDGE), max(1 - V, EDGE)
    x = 2 * squared / (left * right)
    root = math.sqrt(x * (x + 2) + 1e-15)  # 1/root is the derivative of the distance by x
    apart = 4 / (left * right * root)
    low = 2 * x / (left * root) if left > EDGE else 0.0
    high = 2 * x / (right * root) if right > EDGE else 0.0
    for i in range(dim):
        between = apart * (child[i] - parent[i])
        dchild[i] = between + low * child[i]
        dparent[i] = high * parent[i] - between
    return math.log1p(x + root)


@part
def ball_unit_at(dim, point):
    U = 0.0
    for i in range(dim):
        U += point[i] * point[i]
    return (1 - U) / 2


@part
def ball_go(dim, point, tangent):
    """`ball_follow`, in place."""
    U, size, inner = 0.0, 0.0, 0.0
    for i in range(dim):
        U += point[i] * point[i]
        size += tangent[i] * tangent[i]
        inner += point[i] * tangent[i]
    size = max(math.sqrt(size), 1e-15)
    reach = math.tanh(size / (1 - U))
    inner *= reach / size
    below = max(1 + 2 * inner + U * reach * reach, 1e-15)
    stay, go = (1 + 2 * inner + reach * reach) / below, (1 - U) * reach / (size * below)
    norm = 0.0
    for i in range(dim):
        point[i] = point[i] * stay + tangent[i] * go
        norm += point[i] * point[i]
    norm = math.sqrt(norm)
    if norm > 1 - EDGE:
        for i in range(dim):
            point[i] *= (1 - EDGE) / norm


@part
def bounded(rate, gradient, unit, longest):
    """The factor that makes of a gradient, whose true length is `unit` times its own, a tangent vector of `longest` at most."""
    length = 0.0
    for value in gradient:
        length += value * value
    length = rate * unit * math.sqrt(length)
    return -rate * unit * unit * (longest / length if length > longest else 1.0)


@for_space(energy_and_gradient, Ball)
def _energy(space, child, parent, dchild, dparent):
    return ball_energy(space.dim, child, parent, dchild, dparent)


@for_space(move, Ball)
def _move(space, point, gradient, rate):
    factor = bounded(rate, gradient[: space.dim], ball_unit_at(space.dim, point), space.longest)
    for i in range(space.dim):
        gradient[i] *= factor
    ball_go(space.dim, point, gradient)


@for_space(nearness, Ball)
def _nearness(space, point, columns, out):
    """‖u − v‖²/(1 − ‖v‖²), some nodes at a time, so that they stay in the cache."""
    room = np.empty(512)
    for start in range(0, columns.shape[1], 512):
        count = min(512, columns.shape[1] - start)
        near = out[start : start + count]
        near[:] = 0.0
        room[:] = 1.0
        for i in range(space.dim):
            at, column = point[i], columns[i, start : start + count]
            for j in range(count):
                near[j] += (column[j] - at) ** 2
                room[j] -= column[j] * column[j]
        for j in range(count):
            near[j] /= max(room[j], EDGE)
