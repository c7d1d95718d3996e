"""Few coordinates that keep the scores: the best low-rank approximation of what queries say about documents.

Principal components of the documents keep documents, not scores. Here a sample of documents X (n, D), centred, meets a sample of queries
Y (k, D): documents too, as queries come from the same encoder and lie in the same space, composed or not. The best rank-m approximation
of all scores S = Y Xᵀ = U Σ Vᵀ (Eckart and Young) gives both maps:

    document  v ↦ z = (v − μ)·YᵀU_m Σ_m⁻¹     which is a row of V_m for a document of the sample
    query     q ↦ w = q·XᵀV_m                 least squares: ⟨z, w⟩ is as close to ⟨v − μ, q⟩ over the sample as any w comes

Coordinates come in the order of their weight, so the first few are the best few. Both are scaled to unit variance of z.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.retrieval.store import Store

DOCUMENTS, QUERIES = 12_000, 3_000  # sample sizes: a few seconds at d = 128, and twice as many change no recall in the third digit
_ROUNDING = 1e-6  # of the largest squared singular value: below it single precision knows nothing


@dataclass(frozen=True)
class Reduction:
    """`mean` (D,), `documents` (D, m), `queries` (D, m)."""

    mean: Tensor
    documents: Tensor
    queries: Tensor

    @property
    def dims(self) -> int:
        return self.documents.shape[1]

    def reduce(self, vectors: Tensor) -> Tensor:
        """NIS vectors of documents (N, D) → z (N, m)."""
        return (vectors - self.mean) @ self.documents

    def restore(self, z: Tensor) -> Tensor:
        """The part of v − μ that z stands for, (N, D): its inner product with any q is ⟨z, w⟩."""
        return z @ self.queries.T

    def ask(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Half-vectors of queries (B, D) → w (B, m), and what all documents share, ⟨μ, q⟩ (B,)."""
        return queries @ self.queries, queries @ self.mean


def learn_reduction(store: Store, dims: int, constant: Tensor, seed: int) -> Reduction:
    """From stored documents. `constant` is the half-vector of the identity: what it adds to a score is the same for all, so it is left
    out of the queries, as in a search."""
    vectors = store.sample(DOCUMENTS, seed)
    mean = vectors.mean(0)
    X = vectors - mean
    Y = without(constant, store.sample(QUERIES, seed + 1))
    S = Y @ X.T
    squares, U = torch.linalg.eigh((S @ S.T).double())
    squares, U = squares.flip(0)[:dims], U.flip(1)[:, :dims]
    known = int((squares > _ROUNDING * squares[0]).sum().clamp_min(1))
    documents = (Y.T.double() @ U[:, :known] / squares[:known].clamp_min(1e-300).sqrt()).float() * len(X) ** 0.5
    return Reduction(mean, documents, X.T @ (X @ documents) / len(X))


def without(constant: Tensor, vectors: Tensor) -> Tensor:
    """Vectors (N, D) less their part along one vector (D,)."""
    return vectors - (vectors @ constant / constant.square().sum()).unsqueeze(1) * constant
