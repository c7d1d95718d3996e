"""The first look at all documents: reduced coordinates in codes of 4 bits, two coordinates to a code, 32 bytes for 128 of them.

faiss keeps the 16 values that a code can add to a score in a register and looks up 32 documents at once, several times faster than a
product of matrices over the same coordinates (`IndexPQFastScan`). Sixteen points are few for two coordinates, so they are spent where
scores gain most: coordinates are weighed by what queries say of them before the points are chosen, and the one with the most weight shares
its code with the one with the least, which takes what the other leaves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer
from subspaces.retrieval.kinds.faissfile import read_faiss, same_threads, write_faiss

_BITS = 4
_TINY = 1e-12


class Codes:
    """`weight` (m,): how much queries vary in each coordinate of theirs; `index`: codes of z·weight, asked with w/weight."""

    def __init__(self, index: Any, weight: Tensor):
        self.index, self.weight = index, weight
        self._order = partners(len(weight) + len(weight) % 2)

    @classmethod
    def learn(cls, z: Tensor, w: Tensor) -> Codes:
        """From coordinates of some documents (N, ≥ m) and of some queries (K, m). No document is kept yet."""
        import faiss

        codes = -(-w.shape[1] // 2)
        index = faiss.IndexPQFastScan(2 * codes, codes, _BITS, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.min_points_per_centroid = 1  # faiss would print warnings for small indexes
        learned = cls(index, w.square().mean(0).sqrt_().clamp_min_(_TINY))
        same_threads()
        index.train(learned._in_pairs(z, learned.weight))
        return learned

    @classmethod
    def read(cls, path: Path, weight: Tensor) -> Codes:
        return cls(read_faiss(path), weight)

    def write(self, path: Path) -> None:
        write_faiss(self.index, path)

    def __len__(self) -> int:
        return self.index.ntotal

    def add(self, z: Tensor) -> None:
        same_threads()
        self.index.add(self._in_pairs(z, self.weight))

    def best(self, w: Tensor, top: int) -> Answer:
        """About the best `top` documents by the coordinates of queries (B, ≥ m), in no promised order; top ≤ documents.

        Scores are rough, and the lowest there is for documents that were not compared.
        """
        same_threads()
        scores, rows = (torch.from_numpy(part) for part in self.index.search(self._in_pairs(w, 1 / self.weight), top))
        for query in torch.nonzero((rows < 0).any(1)).flatten().tolist():
            missing = rows[query] < 0  # faiss leaves out the very worst, which matters where nearly all are asked for
            absent = torch.ones(len(self), dtype=torch.bool)
            absent[rows[query, ~missing]] = False
            rows[query, missing] = torch.nonzero(absent).flatten()[: int(missing.sum())]
        return scores, rows

    def _in_pairs(self, coordinates: Tensor, weight: Tensor) -> Any:
        """The first coordinates (N, ≥ m), weighed, partners side by side; an odd one has a zero for a partner."""
        weighed = coordinates[:, : len(weight)] * weight
        return torch.nn.functional.pad(weighed, (0, len(weight) % 2))[:, self._order].contiguous().numpy()


def partners(width: int) -> Tensor:
    """The order of `width` coordinates in which the first stands beside the last, the second beside the last but one, and so on."""
    half = torch.arange(width // 2)
    return torch.stack([half, width - 1 - half], dim=1).flatten()
