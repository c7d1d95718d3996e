"""Points of R^d, scored by the negative distance or by the inner product (params.yaml: score)."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.training.adam import LazyAdam
from subspaces.wordnet.geometries.base import VectorGeometry


class EuclideanGeometry(VectorGeometry):
    name = "euclidean"
    options = frozenset({"start", "score"})

    def __init__(self, nodes: int, dim: int, start: float = 1e-2, score: str = "distance", device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device=device)
        if score not in ("distance", "inner"):
            raise UserError(f"unknown Euclidean score {score!r}: use distance or inner.")
        self.start, self.score = start, score
        self.optimiser = LazyAdam(self.table)

    def initialise(self, generator: Generator) -> None:
        self.table.copy_(self.blank().normal_(0.0, self.start, generator=generator))
        self.optimiser.reset()

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        inner = one @ other.mT
        if self.score == "inner":
            return inner
        squared = one.square().sum(-1)[..., :, None] + other.square().sum(-1)[..., None, :] - 2 * inner
        return -torch.sqrt(squared.clamp_min(1e-12))

    def generality(self) -> Tensor:
        """By distance general nodes lie in the middle; by inner product they are the long ones, which score high with many."""
        norm = self.table.norm(dim=-1)
        return norm if self.score == "inner" else -norm
