"""Subspaces: trained and judged by how much of the child lies in the parent, NIS = Tr(P_c P_p)/Tr(P_c) (paper §4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.projector import gradient
from subspaces.training.adam import slice_width
from subspaces.wordnet.entailment.base import Entailment
from subspaces.wordnet.subspace_table import SubspaceTable

_EMPTY = 1e-6  # traces below this are rounding: the zero subspace lies in everything, and in nothing
_SOME = 256  # pairs whose half-vectors are gathered together


@dataclass
class _Opened:
    rows: Tensor
    K: Tensor  # (M, d, d) complements
    half: Tensor  # (M, d(d+1)/2) upper triangles of the projectors
    trace: Tensor  # (M,)
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


class SubspaceEntailment(SubspaceTable, Entailment):
    name = "subspace"

    def open(self, rows: Tensor) -> _Opened:
        K, half = self.open_halves(rows)
        return _Opened(rows, K, half, (half @ self._identity).clamp_min(_EMPTY))

    def scores(self, opened: _Opened, children: Tensor, parents: Tensor) -> Tensor:
        opened.pairs = pairs = _Pairs(len(opened.rows), children, parents)
        weighted, traces = opened.half * self._weight, opened.half.new_empty(len(children))
        traces[pairs.with_hub] = (weighted[pairs.hubs] @ opened.half.T).view(-1)[pairs.cells]
        for some in pairs.others.split(_SOME):
            traces[some] = torch.linalg.vecdot(weighted[children[some]], opened.half[parents[some]])
        opened.nis = traces / opened.trace[children]
        return opened.nis

    def update(self, opened: _Opened, upstream: Tensor, lr: float) -> None:
        """∂NIS/∂P_p = P_c/Tr P_c and ∂NIS/∂P_c = (P_p − NIS·I)/Tr P_c, then the closed form of the projector."""
        count, width, pairs = len(opened.rows), slice_width(self.X), opened.pairs
        share = upstream * (2.0 / self.lam) / opened.trace[pairs.children]
        identity = share.new_zeros(count).index_add_(0, pairs.children, share * opened.nis, alpha=-1)
        met = share.new_zeros(len(pairs.hubs) * count).index_add_(0, pairs.cells, share[pairs.with_hub]).view(-1, count)
        summed = met.T @ opened.half[pairs.hubs]
        summed.index_add_(0, pairs.hubs, met @ opened.half)
        for some in pairs.others.split(_SOME):
            child, parent, part = pairs.children[some], pairs.parents[some], share[some, None]
            summed.index_add_(0, parent, opened.half[child] * part)
            summed.index_add_(0, child, opened.half[parent] * part)
        sums = summed.split(width)

        def gradients() -> Iterator[tuple[Tensor, Tensor]]:
            for some, K, part, diagonal in zip(opened.rows.split(width), opened.K.split(width), sums, identity.split(width), strict=True):
                G = part.index_select(1, self._full).view(-1, self.dim, self.dim)
                G.diagonal(dim1=-2, dim2=-1).add_(diagonal[:, None])
                yield some, gradient(K, K @ self.X.index_select(0, some), G)

        self.optimiser.step_in_parts(gradients(), lr)

    def halves(self, rows: Tensor, block: int = 2048) -> Tensor:
        """Half-vectors (m, d(d+1)/2) with √2 off the diagonal, whose inner products are traces (PROTOCOL §1)."""
        out = self.X.new_empty(len(rows), len(self._upper))
        root = self._weight.sqrt()
        for some, into in zip(rows.split(block), out.split(block), strict=True):
            torch.index_select(self.projectors(some).flatten(1), 1, self._upper, out=into).mul_(root)
        return out

    @torch.no_grad()
    def score_pairs(self, children: Tensor, parents: Tensor, block: int = 4096) -> Tensor:
        """Every node that occurs is opened once; pairs go by child, so that a block of them reads few rows."""
        rows, places = torch.unique(torch.cat([children, parents]), return_inverse=True)
        half = self.halves(rows)
        trace = (half @ self._identity).clamp_min(_EMPTY)
        one, other = places.view(2, len(children))
        result = half.new_empty(len(children))
        for some in torch.argsort(one, stable=True).split(block):
            result[some] = (half[one[some]] * half[other[some]]).sum(-1) / trace[one[some]]
        return result
