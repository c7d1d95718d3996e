"""A subspace for every node: X (N, d, n), its start, its optimiser, and the half-vectors of soft projectors (paper §3.2).

The two tasks score pairs differently, and each has its gradient; what they share is here.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from subspaces.projector import complement, projector_of
from subspaces.training.adam import LazyAdam, slice_width

_WIDE = 4  # slices of the optimiser that are inverted together: the many small products of an inverse want more matrices than that
_CHUNK = 1 << 28  # random numbers drawn at a time


class SubspaceTable:
    """Comes before `Geometry` or `Entailment` among the bases of a class."""

    options = frozenset({"vectors", "lam", "start"})

    def __init__(self, nodes: int, dim: int, vectors: int = 0, lam: float = 0.2, start: float = 1e-4, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device)
        self.vectors, self.lam, self.start = vectors or dim, lam, start
        self.X = torch.zeros(nodes, dim, self.vectors, device=self.device)
        self.optimiser: LazyAdam | None = None
        above = torch.triu_indices(dim, dim, device=self.device)
        self._upper = above[0] * dim + above[1]  # from a flat matrix to its half-vector, and back by _full
        self._identity = (above[0] == above[1]).to(self.X.dtype)  # as a half-vector
        self._weight = 2.0 - self._identity
        place = torch.empty(dim, dim, dtype=torch.int64, device=self.device)
        place[above[0], above[1]] = place[above[1], above[0]] = torch.arange(len(self._upper), device=self.device)
        self._full = place.flatten()

    def initialise(self, generator: Generator) -> None:
        for some in self.X.split(max(1, _CHUNK // self.X[0].numel())):
            some.copy_(torch.empty(some.shape).normal_(0.0, self.start, generator=generator))
        if self.optimiser is not None:
            self.optimiser.reset()

    def state(self) -> dict[str, Tensor]:
        if self.optimiser is None:  # an evaluation never needs the moments, which are twice the weights
            self.optimiser = LazyAdam(self.X)
        return super().state()

    def weights(self) -> dict[str, Tensor]:
        return {"X": self.X}

    def open_halves(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Complements K (M, d, d) of some nodes and the upper triangles (M, d(d+1)/2) of their projectors P = I − K."""
        width = _WIDE * slice_width(self.X)
        K, half = self.X.new_empty(len(rows), self.dim, self.dim), self.X.new_empty(len(rows), len(self._upper))
        for some, into, out in zip(rows.split(width), K.split(width), half.split(width), strict=True):
            complement(self.X.index_select(0, some), self.lam, out=into)
            torch.index_select(into.flatten(1), 1, self._upper, out=out)
            torch.sub(self._identity, out, out=out)
        return K, half

    def projectors(self, rows: slice | Tensor) -> Tensor:
        """(m, d, d) soft projectors of some nodes."""
        return projector_of(complement(self.X[rows], self.lam))

    def generality(self, block: int = 4096) -> Tensor:
        """The trace, which is the effective rank."""
        starts = range(0, self.nodes, block)
        return torch.cat([self.projectors(slice(s, s + block)).diagonal(dim1=-2, dim2=-1).sum(-1) for s in starts])
