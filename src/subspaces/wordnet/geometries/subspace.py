"""Subspaces: each node is X ∈ R^{d×n}, scored by Tr(P_u P_v) of soft projectors (paper §4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.projector import gradient
from subspaces.training.adam import slice_width
from subspaces.wordnet.geometries.base import Geometry
from subspaces.wordnet.subspace_table import SubspaceTable

_FEW = 4  # anchors whose candidates are gathered together: they stay in the cache


@dataclass
class _Opened:
    rows: Tensor
    K: Tensor  # (M, d, d) complements
    half: Tensor  # (M, d(d+1)/2) upper triangles of the projectors


class SubspaceGeometry(SubspaceTable, Geometry):
    name = "subspace"

    def open(self, rows: Tensor) -> _Opened:
        return _Opened(rows, *self.open_halves(rows))

    def scores(self, opened: _Opened, anchors: Tensor, candidates: Tensor | None) -> Tensor:
        left = opened.half.index_select(0, anchors).mul_(self._weight)
        if candidates is None:
            return left @ opened.half.T
        parts = zip(candidates.split(_FEW), left.split(_FEW), strict=True)
        return torch.cat([(opened.half[some] @ one[:, :, None])[:, :, 0] for some, one in parts])

    def update(self, opened: _Opened, anchors: Tensor, candidates: Tensor | None, upstream: Tensor, lr: float, pull: float) -> None:
        count, width, scale = len(opened.rows), slice_width(self.X), 2.0 / self.lam
        # A loss that sees scores only has ∂L/∂P_m = Σ_k (C + Cᵀ)_{mk} P_k with C the upstream gradient laid out over all pairs.
        # Few pairs: summed over the full matrices, as Σ_k c_k I − Σ_k c_k K_k. All pairs: over the half-vectors, which are half the work.
        if candidates is None:
            pairs = upstream.new_zeros(count, count).index_add_(0, anchors, upstream, alpha=scale)
            sums = ((pairs + pairs.T) @ opened.half).split(width)
            parts = (half.index_select(1, self._full) for half in sums)
            identity = upstream.new_zeros(count)
        else:
            one = anchors[:, None].expand_as(candidates).reshape(-1)
            other, value = candidates.reshape(-1), upstream.reshape(-1) * -scale
            index = torch.stack([torch.cat([one, other]), torch.cat([other, one])])
            pairs = torch.sparse_coo_tensor(index, torch.cat([value, value]), (count, count), check_invariants=False).coalesce()
            flat = opened.K.flatten(1)
            parts = (part @ flat for part in _slices(pairs, width))
            identity = upstream.new_zeros(count).index_add_(0, index[0], torch.cat([value, value]), alpha=-1)

        # the mean trace of the anchors, the specific ends of the edges, is part of the loss
        identity.index_add_(0, anchors, upstream.new_ones(len(anchors)), alpha=scale * pull / len(anchors))

        def gradients() -> Iterator[tuple[Tensor, Tensor]]:
            for some, K, part, diagonal in zip(opened.rows.split(width), opened.K.split(width), parts, identity.split(width), strict=True):
                G = part.view(-1, self.dim, self.dim)
                G.diagonal(dim1=-2, dim2=-1).add_(diagonal[:, None])
                yield some, gradient(K, K @ self.X.index_select(0, some), G)

        self.optimiser.step_in_parts(gradients(), lr)

    def features(self, rows: slice) -> Tensor:
        """Half-vectors (m, d(d+1)/2), √2 off the diagonal: the same inner products from half the numbers (PROTOCOL §1)."""
        P = self.projectors(rows)
        above = torch.triu_indices(self.dim, self.dim, 1, device=self.device)
        half = P[:, above[0], above[1]].mul_(2**0.5)
        return torch.cat([P.diagonal(dim1=-2, dim2=-1), half], dim=1)

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.T


def _slices(pairs: Tensor, width: int) -> Iterator[Tensor]:
    """Some rows at a time of a coalesced sparse matrix (M, M), as CSR."""
    (line, column), value, count = pairs.indices(), pairs.values(), len(pairs)
    starts = torch.searchsorted(line, torch.arange(count + 1, device=line.device))
    for first in range(0, count, width):
        bounds = starts[first : first + width + 1]
        begin, end = int(bounds[0]), int(bounds[-1])
        size = (len(bounds) - 1, count)
        yield torch.sparse_csr_tensor(bounds - begin, column[begin:end], value[begin:end], size, check_invariants=False)
