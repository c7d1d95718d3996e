"""Few coordinates that keep the scores: the best low-rank approximation of what queries say about documents.

Principal components of the documents keep documents, not scores. Here a sample of documents X (n, D), centred, meets a
sample of queries Y (k, D): documents too, as queries come from the same encoder and lie in the same space, composed or
not. The best rank-m approximation of all scores S = Y Xᵀ = U Σ Vᵀ (Eckart and Young) gives both maps:

    document  v ↦ z = (v − μ)·YᵀU_m Σ_m⁻¹     which is a row of V_m for a document of the sample
    query     q ↦ w = q·XᵀV_m                 least squares: ⟨z, w⟩ is as close to ⟨v − μ, q⟩ over the sample as any w
    comes

Coordinates come in the order of their weight, so the first few are the best few. Both are scaled to unit variance of z.

That is best for all documents, and a search looks for the nearest. Those are like the query in what the coordinates
leave out, too, and the more so, the more they are like it in the last of them. So every coordinate gets a factor β,
fitted to the true scores of the nearest documents of some queries: ⟨z, β·w⟩ tells them from the others with half the
coordinates, or a third of the candidates. It ranks; the score of a document is ⟨z, w⟩.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.search.storage import Store

DOCUMENTS, QUERIES = (
    12_000,
    3_000,
)  # sample sizes: a few seconds at d = 128, and twice as many change no recall in the third digit
NEAR_QUERIES, NEAREST = 256, 32  # for the factors: that many queries, and as many documents of each
_RIDGE = 1e-3  # towards a factor of 1
_LEAST, _MOST = 0.25, 16.0
_ROUNDING = 1e-6  # of the largest squared singular value: below it single precision knows nothing


@dataclass(frozen=True)
class Reduction:
    """What a search needs: `mean` (D,), `queries` (D, m)."""

    mean: Tensor
    queries: Tensor

    @property
    def dims(self) -> int:
        return self.queries.shape[1]

    def restore(self, z: Tensor) -> Tensor:
        """The part of v − μ that z stands for, (N, D): its inner product with any q is ⟨z, w⟩."""
        return z @ self.queries.T

    def ask(self, queries: Tensor) -> Tensor:
        """Half-vectors of queries (B, D) → w (B, m)."""
        return queries @ self.queries

    def shared(self, queries: Tensor) -> Tensor:
        """The part of the scores that all documents share, ⟨μ, q⟩ (B,)."""
        return queries @ self.mean


@dataclass(frozen=True)
class DocumentReduction(Reduction):
    """And what a build needs: `documents` (D, m)."""

    documents: Tensor

    def reduce(self, vectors: Tensor) -> Tensor:
        """NIS vectors of documents (N, D) → z (N, m)."""
        return (vectors - self.mean) @ self.documents


def learn_reduction(store: Store, dims: int, constant: Tensor, seed: int) -> DocumentReduction:
    """From stored documents. `constant` is the half-vector of the identity: what it adds to a score is the same for
    all, so it is left out of the queries, as in a search."""
    vectors = store.sample(DOCUMENTS, seed)
    mean = vectors.mean(0)
    X = vectors - mean
    Y = without(constant, store.sample(QUERIES, seed + 1))
    S = Y @ X.T
    squares, U = torch.linalg.eigh((S @ S.T).double())
    squares, U = squares.flip(0)[:dims], U.flip(1)[:, :dims]
    known = int((squares > _ROUNDING * squares[0]).sum().clamp_min(1))
    documents = (Y.T.double() @ U[:, :known] / squares[:known].clamp_min(1e-300).sqrt()).float() * len(X) ** 0.5
    return DocumentReduction(mean, X.T @ (X @ documents) / len(X), documents)


@dataclass(frozen=True)
class Near:
    """Queries and their nearest documents, the true scores among them: `w` (K, m), `z` (K, n, m), `scores` (K, n)."""

    w: Tensor
    z: Tensor
    scores: Tensor

    def emphasis(self, dims: int) -> Tensor:
        """β (dims,), for a search by the first `dims` coordinates. One factor for each group of them; only differences
        between documents of the same query count."""
        sizes = _groups(dims)
        parts = (self.w[:, :dims].unsqueeze(1) * self.z[..., :dims]).double().split(sizes, dim=2)
        said = torch.stack([part.sum(2) for part in parts], dim=2)
        said = (said - said.mean(1, keepdim=True)).flatten(0, 1)
        true = (self.scores - self.scores.mean(1, keepdim=True)).double().flatten()
        squares = said.T @ said
        ridge = torch.diag(_RIDGE * squares.diagonal() + torch.finfo(torch.float64).tiny)
        factor = 1 + torch.linalg.solve(squares + ridge, said.T @ (true - said.sum(1)))
        return factor.clamp_(_LEAST, _MOST).float().repeat_interleave(torch.tensor(sizes))


def _groups(dims: int) -> list[int]:
    """Sizes of groups of coordinates: each half as large as all before it, and the last takes what would be too few for
    another."""
    sizes, total = [], 0
    while total < dims:
        size = max(4, total // 2)
        sizes.append(size if total + 3 * size // 2 < dims else dims - total)
        total += sizes[-1]
    return sizes


def learn_near(store: Store, reduction: DocumentReduction, constant: Tensor, seed: int) -> Near:
    """Some documents of a sample as queries for all of it. A query's own document is among the nearest: in the whole
    store the best ones are nearer than the nearest of a sample."""
    vectors = store.sample(DOCUMENTS, seed)
    asked = without(constant, vectors[:: -(-len(vectors) // NEAR_QUERIES)])
    scores, rows = (asked @ (vectors - reduction.mean).T).topk(min(NEAREST, len(vectors)), dim=1)
    z = reduction.reduce(vectors)
    return Near(reduction.ask(asked), z[rows], scores)


def without(constant: Tensor, vectors: Tensor) -> Tensor:
    """Vectors (N, D) less their part along one vector (D,)."""
    return vectors - (vectors @ constant / constant.square().sum()).unsqueeze(1) * constant
