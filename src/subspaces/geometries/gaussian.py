"""Density order embeddings (Athiwaratkun & Wilson 2018, DOE-A): a node is a diagonal Gaussian, a child's lies within its parent's.

Energy max(0, 2KL(child‖parent) + dim − τ), used with a margin loss. A row of the table holds the mean, of norm 1, and the logarithms of the
variances.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Generator, Tensor
from torch.nn.functional import normalize

from subspaces.errors import UserError
from subspaces.geometries.base import GeometrySettings, VectorGeometry
from subspaces.geometries.compiled import energy_and_gradient, for_space, move, tangent
from subspaces.training.adam import LazyAdam

BOUNDS = (1e-8, 10.0)  # of a variance


class GaussianAdam(LazyAdam):
    """Lazy Adam along the sphere of the means, then back to it, and variances back to their bounds."""

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        mean = self.weights.index_select(0, rows).chunk(2, dim=1)[0]
        steep, wide = gradient.chunk(2, dim=1)
        steep = steep - (steep * mean).sum(-1, keepdim=True) * mean
        super().step(rows, torch.cat([steep, wide], dim=1), lr)
        mean, logs = self.weights.index_select(0, rows).chunk(2, dim=1)
        low, high = (math.log(bound) for bound in BOUNDS)
        self.weights.index_copy_(0, rows, torch.cat([normalize(mean, dim=-1), logs.clamp(low, high)], dim=1))


class GaussianGeometry(VectorGeometry):
    name = "gaussian"
    default_start = 5e-5
    dtype = torch.float32

    class Settings(GeometrySettings):
        geometry: Literal["gaussian"]
        tau: float = Field(500.0, description="divergence up to which a child counts as encapsulated")

    def __init__(self, settings: Settings, nodes: int, **training: Any):
        super().__init__(settings, nodes, width=2 * settings.dim, **training)
        if not BOUNDS[0] <= self.start <= BOUNDS[1]:
            raise UserError(
                f"start (the first variance) must be from {BOUNDS[0]:g} to {BOUNDS[1]:g}, not {self.start}."
            )
        self.tau = settings.tau
        self.optimiser = GaussianAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        means = torch.empty(self.nodes, self.dim, dtype=self.dtype).normal_(generator=generator)
        self.table[:, : self.dim] = normalize(means, dim=-1).to(self.device)
        self.table[:, self.dim :] = math.log(self.start)
        self.optimiser.reset()

    @property
    def means(self) -> Tensor:
        """(N, dim), of norm 1."""
        return self.table[:, : self.dim]

    @property
    def variances(self) -> Tensor:
        """(N, dim), above 0."""
        return self.table[:, self.dim :].exp()

    def _divergence(self, child: Tensor, parent: Tensor) -> Tensor:
        """2KL(child‖parent) + dim = Σ [(Δμ² + σ_c²)/σ_p² + log σ_p² − log σ_c²]."""
        mean, logs = child.chunk(2, dim=-1)
        over, wide = parent.chunk(2, dim=-1)
        lost = wide - logs
        return ((mean - over).square() * torch.exp(-wide) + torch.exp(-lost) + lost).sum(-1)

    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        return -(self._divergence(child, parent) - self.tau).clamp_min(0)

    def decide(self, child: Tensor, parent: Tensor) -> Tensor:
        """−KL(child‖parent): also tells pairs apart below the threshold τ of the training."""
        return (self.dim - self._divergence(child, parent)) / 2

    def space(self) -> Gaussians:
        return Gaussians(self.dim, self.tau, *(math.log(bound) for bound in BOUNDS))

    def generality(self) -> Tensor:
        """Logarithm of the volume."""
        return self.table[:, self.dim :].sum(-1) / 2


# --- compiled -------------------------------------------------------------------------------------------------------------


class Gaussians(NamedTuple):
    """The first `dim` columns are means, the others logarithms of variances, which stay within `low` and `high`."""

    dim: int
    tau: float
    low: float
    high: float


@for_space(energy_and_gradient, Gaussians)
def _energy(space, child, parent, dchild, dparent):
    total = -space.tau
    for i in range(space.dim):
        j = i + space.dim
        apart = child[i] - parent[i]
        narrow, lost = math.exp(-parent[j]), parent[j] - child[j]
        ratio = math.exp(-lost)
        total += apart * apart * narrow + ratio + lost
        dchild[i] = 2 * apart * narrow
        dparent[i] = -dchild[i]
        dchild[j] = ratio - 1
        dparent[j] = 1 - ratio - apart * apart * narrow
    if total < 0:
        dchild[:] = 0.0
        dparent[:] = 0.0
        return 0.0
    return total


@for_space(tangent, Gaussians)
def _tangent(space, point, gradient):
    inner = 0.0
    for i in range(space.dim):
        inner += point[i] * gradient[i]
    for i in range(space.dim):
        gradient[i] -= inner * point[i]


@for_space(move, Gaussians)
def _move(space, point, gradient, rate):
    norm = 0.0
    for i in range(space.dim):
        point[i] -= rate * gradient[i]
        norm += point[i] * point[i]
        j = i + space.dim
        wide = point[j] - rate * gradient[j]
        point[j] = space.low if wide < space.low else space.high if wide > space.high else wide  # NaN stays
    norm = max(math.sqrt(norm), 1e-12)
    for i in range(space.dim):
        point[i] /= norm
