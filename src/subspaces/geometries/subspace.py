"""Subspaces: each node is X ∈ R^{d×n} with soft projector P (paper §3.2).

Ranking scores Tr(P_u P_v) (paper §4.1), directed pairs NIS = Tr(P_c P_p)/Tr(P_c), how much of the child lies in the parent (§4.2).
Gradients are closed forms, see `subspaces.projector.gradient`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.geometries.base import Geometry, GeometrySettings
from subspaces.projector import complement, gradient, projector_of
from subspaces.settings import Positive
from subspaces.training.adam import LazyAdam, slice_width

_WIDE = 4  # slices of the optimiser that are inverted together: the many small products of an inverse want more matrices than that
_CHUNK = 1 << 28  # random numbers drawn at a time
_FEW = 4  # anchors whose candidates are gathered together: they stay in the cache
_EMPTY = 1e-6  # traces below this are rounding: the zero subspace lies in everything, and in nothing
_SOME = 256  # pairs whose half-vectors are gathered together
_PAIRS = 4096  # pairs that are decided together


@dataclass
class _Opened:
    rows: Tensor
    K: Tensor  # (M, d, d) complements
    half: Tensor  # (M, d(d+1)/2) upper triangles of the projectors
    trace: Tensor | None = None  # (M,); this and the rest are for directed pairs
    pairs: _Pairs | None = None
    nis: Tensor | None = None


class _Pairs:
    """The pairs of a step: those with a hub, a node that meets at least half of the others (the shared pool), and the few others.

    Hubs times everyone is one product; the others are taken one by one. It is only a way to compute: any pairs give the same result.
    """

    def __init__(self, count: int, children: Tensor, parents: Tensor):
        self.children, self.parents = children, parents
        met = torch.zeros(count, dtype=torch.int64, device=children.device)
        met.index_add_(0, torch.cat([children, parents]), torch.ones_like(children).repeat(2))
        self.hubs = (2 * met >= count).nonzero()[:, 0]
        place = torch.full_like(met, -1)
        place[self.hubs] = torch.arange(len(self.hubs), device=place.device)
        above, below = place[parents], place[children]
        self.with_hub = ((above >= 0) | (below >= 0)).nonzero()[:, 0]
        self.others = ((above < 0) & (below < 0)).nonzero()[:, 0]
        hub = torch.where(above >= 0, above, below)[self.with_hub]
        met_by = torch.where(above >= 0, children, parents)[self.with_hub]
        self.cells = hub * count + met_by  # where such a pair stands in the matrix hubs × everyone


class SubspaceGeometry(Geometry):
    name = "subspace"

    class Settings(GeometrySettings):
        geometry: Literal["subspace"]
        vectors: int = Field(0, ge=0, description="columns of X; 0: as many as dim")
        lam: Positive = Field(0.2, description="λ of the soft projector; a row without it has that of its table")

    def __init__(self, settings: Settings, nodes: int, **training: Any):
        super().__init__(settings, nodes, **training)
        self.vectors, self.lam, dim = settings.vectors or settings.dim, settings.lam, settings.dim
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

    def open(self, rows: Tensor) -> _Opened:
        """Complements K (M, d, d) of some nodes and the upper triangles (M, d(d+1)/2) of their projectors P = I − K."""
        width = _WIDE * slice_width(self.X)
        K, half = self.X.new_empty(len(rows), self.dim, self.dim), self.X.new_empty(len(rows), len(self._upper))
        for some, into, out in zip(rows.split(width), K.split(width), half.split(width), strict=True):
            complement(self.X.index_select(0, some), self.lam, out=into)
            torch.index_select(into.flatten(1), 1, self._upper, out=out)
            torch.sub(self._identity, out, out=out)
        return _Opened(rows, K, half)

    def projectors(self, rows: slice | Tensor) -> Tensor:
        """(m, d, d) soft projectors of some nodes."""
        return projector_of(complement(self.X[rows], self.lam))

    def generality(self, block: int = 4096) -> Tensor:
        """The trace, which is the effective rank."""
        starts = range(0, self.nodes, block)
        return torch.cat([self.projectors(slice(s, s + block)).diagonal(dim1=-2, dim2=-1).sum(-1) for s in starts])

    def _step(self, opened: _Opened, sums: Iterator[Tensor], identity: Tensor, lr: float) -> None:
        """One optimiser step; ∂L/∂P of each slice of rows is `sums` (a matrix each) plus `identity` on the diagonal."""
        width = slice_width(self.X)

        def gradients() -> Iterator[tuple[Tensor, Tensor]]:
            for some, K, part, diagonal in zip(
                opened.rows.split(width), opened.K.split(width), sums, identity.split(width), strict=True
            ):
                G = part.view(-1, self.dim, self.dim)
                G.diagonal(dim1=-2, dim2=-1).add_(diagonal[:, None])
                yield some, gradient(K, K @ self.X.index_select(0, some), G)

        assert self.optimiser is not None  # `state` makes it
        self.optimiser.step_in_parts(gradients(), lr)

    # --- one node against many -------------------------------------------------------------------------------------------

    def scores(self, opened: _Opened, anchors: Tensor, candidates: Tensor | None) -> Tensor:
        left = opened.half.index_select(0, anchors).mul_(self._weight)
        if candidates is None:
            return left @ opened.half.T
        parts = zip(candidates.split(_FEW), left.split(_FEW), strict=True)
        return torch.cat([(opened.half[some] @ one[:, :, None])[:, :, 0] for some, one in parts])

    def update(
        self, opened: _Opened, anchors: Tensor, candidates: Tensor | None, upstream: Tensor, lr: float, pull: float
    ) -> None:
        count, width, scale = len(opened.rows), slice_width(self.X), 2.0 / self.lam
        # A loss that sees scores only has ∂L/∂P_m = Σ_k (C + Cᵀ)_{mk} P_k with C the upstream gradient laid out over all pairs.
        # Few pairs: summed over the full matrices, as Σ_k c_k I − Σ_k c_k K_k. All pairs: over the half-vectors, which are half the work.
        if candidates is None:
            pairs = upstream.new_zeros(count, count).index_add_(0, anchors, upstream, alpha=scale)
            halves = ((pairs + pairs.T) @ opened.half).split(width)
            sums = (half.index_select(1, self._full) for half in halves)
            identity = upstream.new_zeros(count)
        else:
            one = anchors[:, None].expand_as(candidates).reshape(-1)
            other, value = candidates.reshape(-1), upstream.reshape(-1) * -scale
            index = torch.stack([torch.cat([one, other]), torch.cat([other, one])])
            pairs = torch.sparse_coo_tensor(
                index, torch.cat([value, value]), (count, count), check_invariants=False
            ).coalesce()
            flat = opened.K.flatten(1)
            sums = (part @ flat for part in _slices(pairs, width))
            identity = upstream.new_zeros(count).index_add_(0, index[0], torch.cat([value, value]), alpha=-1)
        # the mean trace of the anchors, the specific ends of the edges, is part of the loss
        identity.index_add_(0, anchors, upstream.new_ones(len(anchors)), alpha=scale * pull / len(anchors))
        self._step(opened, sums, identity, lr)

    def features(self, rows: slice) -> Tensor:
        """Half-vectors (m, d(d+1)/2), √2 off the diagonal: the same inner products from half the numbers."""
        P = self.projectors(rows)
        above = torch.triu_indices(self.dim, self.dim, 1, device=self.device)
        half = P[:, above[0], above[1]].mul_(2**0.5)
        return torch.cat([P.diagonal(dim1=-2, dim2=-1), half], dim=1)

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.T

    # --- directed pairs ---------------------------------------------------------------------------------------------------

    def pair_scores(self, opened: _Opened, children: Tensor, parents: Tensor) -> Tensor:
        opened.trace = (opened.half @ self._identity).clamp_min(_EMPTY)
        opened.pairs = pairs = _Pairs(len(opened.rows), children, parents)
        weighted, traces = opened.half * self._weight, opened.half.new_empty(len(children))
        traces[pairs.with_hub] = (weighted[pairs.hubs] @ opened.half.T).view(-1)[pairs.cells]
        for some in pairs.others.split(_SOME):
            traces[some] = torch.linalg.vecdot(weighted[children[some]], opened.half[parents[some]])
        opened.nis = traces / opened.trace[children]
        return opened.nis

    def update_pairs(self, opened: _Opened, upstream: Tensor, lr: float) -> None:
        """∂NIS/∂P_p = P_c/Tr P_c and ∂NIS/∂P_c = (P_p − NIS·I)/Tr P_c, then the closed form of the projector."""
        count, width, pairs = len(opened.rows), slice_width(self.X), opened.pairs
        assert pairs is not None and opened.nis is not None and opened.trace is not None  # left by `pair_scores`
        share = upstream * (2.0 / self.lam) / opened.trace[pairs.children]
        identity = share.new_zeros(count).index_add_(0, pairs.children, share * opened.nis, alpha=-1)
        met = share.new_zeros(len(pairs.hubs) * count).index_add_(0, pairs.cells, share[pairs.with_hub]).view(-1, count)
        summed = met.T @ opened.half[pairs.hubs]
        summed.index_add_(0, pairs.hubs, met @ opened.half)
        for some in pairs.others.split(_SOME):
            child, parent, part = pairs.children[some], pairs.parents[some], share[some, None]
            summed.index_add_(0, parent, opened.half[child] * part)
            summed.index_add_(0, child, opened.half[parent] * part)
        sums = (part.index_select(1, self._full) for part in summed.split(width))
        self._step(opened, sums, identity, lr)

    def halves(self, rows: Tensor, block: int = 2048) -> Tensor:
        """Half-vectors (m, d(d+1)/2) with √2 off the diagonal, whose inner products are traces."""
        out = self.X.new_empty(len(rows), len(self._upper))
        root = self._weight.sqrt()
        for some, into in zip(rows.split(block), out.split(block), strict=True):
            torch.index_select(self.projectors(some).flatten(1), 1, self._upper, out=into).mul_(root)
        return out

    @torch.no_grad()
    def score_pairs(self, children: Tensor, parents: Tensor, **tuned: float) -> Tensor:
        """Every node that occurs is opened once; pairs go by child, so that a block of them reads few rows."""
        rows, places = torch.unique(torch.cat([children, parents]), return_inverse=True)
        half = self.halves(rows)
        trace = (half @ self._identity).clamp_min(_EMPTY)
        one, other = places.view(2, len(children))
        result = half.new_empty(len(children))
        for some in torch.argsort(one, stable=True).split(_PAIRS):
            result[some] = (half[one[some]] * half[other[some]]).sum(-1) / trace[one[some]]
        return result


def _slices(pairs: Tensor, width: int) -> Iterator[Tensor]:
    """Some rows at a time of a coalesced sparse matrix (M, M), as CSR."""
    (line, column), value, count = pairs.indices(), pairs.values(), len(pairs)
    starts = torch.searchsorted(line, torch.arange(count + 1, device=line.device))
    for first in range(0, count, width):
        bounds = starts[first : first + width + 1]
        begin, end = int(bounds[0]), int(bounds[-1])
        size = (len(bounds) - 1, count)
        yield torch.sparse_csr_tensor(bounds - begin, column[begin:end], value[begin:end], size, check_invariants=False)
