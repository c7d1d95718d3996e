"""Points of R^d, scored by the negative distance, or for ranking also by the inner product (params.yaml: score)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move
from subspaces.training.adam import LazyAdam
from subspaces.training.riemannian import FlatDescent

ALPHAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)


class EuclideanGeometry(VectorGeometry):
    name = "euclidean"
    default_start = 1e-2
    tuned: Mapping[str, tuple[float, ...]] = {"alpha": ALPHAS}

    class Settings(GeometrySettings):
        geometry: Literal["euclidean"]

    class RankingSettings(Settings):
        score: Literal["distance", "inner"] = "distance"

    def __init__(self, settings: GeometrySettings, nodes: int, *, ranking: bool = False, **training: Any):
        if ranking:
            self.dtype = torch.float32  # enough to rank by, and tables of 128 dimensions take half the time
        super().__init__(settings, nodes, ranking=ranking, **training)
        self.score = getattr(settings, "score", "distance")
        sgd = training.get("optimiser") == "sgd"
        self.optimiser = FlatDescent(self.table) if sgd else LazyAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().normal_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        inner = one @ other.mT
        if self.score == "inner":
            return inner
        squared = one.square().sum(-1)[..., :, None] + other.square().sum(-1)[..., None, :] - 2 * inner
        return -torch.sqrt(squared.clamp_min(1e-12))

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -torch.sqrt((child - parent).square().sum(-1) + 1e-12)

    def decide(self, child: Tensor, parent: Tensor, alpha: float = 0.0) -> Tensor:
        """The is-a score of Nickel & Kiela (2017, §4.3), u = child: a parent farther out than its child is held against the pair."""
        return self.directed(child, parent) * (1.0 + alpha * (parent.norm(dim=-1) - child.norm(dim=-1)))

    def space(self) -> Points:
        return Points(self.table.shape[1], self.score == "inner")

    def generality(self) -> Tensor:
        """By distance general nodes lie in the middle; by inner product they are the long ones, which score high with many."""
        norm = self.table.norm(dim=-1)
        return norm if self.score == "inner" else -norm


# --- compiled -------------------------------------------------------------------------------------------------------------


class Points(NamedTuple):
    dim: int
    inner: bool


@for_space(energy_and_gradient, Points)
def _energy(space, child, parent, dchild, dparent):
    total = 0.0
    if space.inner:
        for i in range(space.dim):
            total += child[i] * parent[i]
            dchild[i], dparent[i] = -parent[i], -child[i]
        return -total
    for i in range(space.dim):
        total += (child[i] - parent[i]) ** 2
    distance = math.sqrt(total + 1e-12)
    for i in range(space.dim):
        dchild[i] = (child[i] - parent[i]) / distance
        dparent[i] = -dchild[i]
    return distance


@for_space(move, Points)
def _move(space, point, gradient, rate):
    for i in range(space.dim):
        point[i] -= rate * gradient[i]
