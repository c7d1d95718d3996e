"""Subspaces: each node is X ∈ R^{d×n}, scored by Tr(P_u P_v) of soft projectors (paper §4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from subspaces.projector import complement, gradient, projector_of
from subspaces.training.adam import LazyAdam
from subspaces.wordnet.geometries.base import Geometry


@dataclass
class _Opened:
    rows: Tensor
    X: Tensor
    K: Tensor
    flat: Tensor  # projectors as vectors (M, d²): traces of products are inner products


class SubspaceGeometry(Geometry):
    name = "subspace"
    options = frozenset({"vectors", "lam", "start"})

    def __init__(self, nodes: int, dim: int, vectors: int = 0, lam: float = 0.2, start: float = 1e-4):
        super().__init__(nodes, dim)
        self.vectors, self.lam, self.start = vectors or dim, lam, start
        self.X = torch.zeros(nodes, dim, self.vectors)
        self.optimiser: LazyAdam | None = None

    def initialise(self, generator: Generator) -> None:
        self.X.normal_(0.0, self.start, generator=generator)

    def state(self) -> dict[str, Tensor]:
        if self.optimiser is None:  # an evaluation never needs the moments, which are twice the weights
            self.optimiser = LazyAdam(self.X)
        return super().state()

    def weights(self) -> dict[str, Tensor]:
        return {"X": self.X}

    def open(self, rows: Tensor) -> _Opened:
        X = self.X[rows]
        K = complement(X, self.lam)
        return _Opened(rows, X, K, projector_of(K).flatten(1))

    def scores(self, opened: _Opened, anchors: Tensor, candidates: Tensor | None) -> Tensor:
        left = opened.flat[anchors]
        if candidates is None:
            return left @ opened.flat.T
        return torch.bmm(opened.flat[candidates], left[:, :, None])[:, :, 0]

    def update(self, opened: _Opened, anchors: Tensor, candidates: Tensor | None, upstream: Tensor, lr: float, pull: float) -> None:
        count = len(opened.rows)
        # A loss that sees scores only has ∂L/∂P_m = Σ_k (C + Cᵀ)_{mk} P_k with C the upstream gradient laid out over all pairs.
        if candidates is None:
            pairs = upstream.new_zeros(count, count).index_add_(0, anchors, upstream)
            G = (pairs + pairs.T) @ opened.flat
        else:
            one = anchors[:, None].expand_as(candidates).reshape(-1)
            other, value = candidates.reshape(-1), upstream.reshape(-1)
            index = torch.stack([torch.cat([one, other]), torch.cat([other, one])])
            pairs = torch.sparse_coo_tensor(index, torch.cat([value, value]), (count, count)).coalesce().to_sparse_csr()
            G = pairs @ opened.flat
        G = G.view(count, self.dim, self.dim)
        if pull:  # the mean trace of the anchors, the specific ends of the edges, is part of the loss
            share = torch.bincount(anchors, minlength=count).to(G.dtype).mul_(pull / len(anchors))
            G.diagonal(dim1=-2, dim2=-1).add_(share[:, None])
        KX = opened.K @ opened.X
        self.optimiser.step(opened.rows, gradient(opened.K, KX, G, self.lam), lr)

    def projectors(self, rows: slice | Tensor) -> Tensor:
        """(m, d, d) soft projectors of some nodes."""
        return projector_of(complement(self.X[rows], self.lam))

    def features(self, rows: slice) -> Tensor:
        """Half-vectors (m, d(d+1)/2), √2 off the diagonal: the same inner products from half the numbers (PROTOCOL §1)."""
        P = self.projectors(rows)
        above = torch.triu_indices(self.dim, self.dim, 1)
        half = P[:, above[0], above[1]].mul_(2**0.5)
        return torch.cat([P.diagonal(dim1=-2, dim2=-1), half], dim=1)

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.T

    def generality(self, block: int = 4096) -> Tensor:
        starts = range(0, self.nodes, block)
        return torch.cat([self.projectors(slice(s, s + block)).diagonal(dim1=-2, dim2=-1).sum(-1) for s in starts])
