"""The first look at all documents: reduced coordinates in codes of 4 bits, about two coordinates to a code, 28 bytes
for 96 of them.

faiss keeps the 16 values that a code can add to a score in a register and looks up 32 documents at once, several times
faster than a product of matrices over the same coordinates (`IndexPQFastScan`). Sixteen points are few for two
coordinates, so they are spent where scores gain most. Coordinates are weighed by what queries say of them before points
are chosen; the one with the most weight shares its code with the one with the least, which takes what the other leaves;
and the first few, in which nearly all of the error would be, have a code of their own for their coarse value, while the
small difference to it stands among the other coordinates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subspaces.search.kinds.base import Answer, read_faiss, same_threads, write_faiss

_BITS, _POINTS = 4, 16
_TINY = 1e-12
_ROUNDS = 30  # of Lloyd's: coarse values hardly move after ten


class Codes:
    """`weight` (m,): how much queries vary in each coordinate of theirs. Documents are kept as codes of z·weight and
    asked with w·emphasis/weight, where `emphasis` (m,) is what makes near documents stand out (see `reduction`).

    `coarse` (f, 16): the coarse values of the first f coordinates of z·weight. `order`: of the others and the f
    differences, partners side by side.
    """

    def __init__(self, index: Any, weight: Tensor, emphasis: Tensor, coarse: Tensor, order: Tensor):
        self.index, self.weight, self.emphasis, self.coarse, self.order = index, weight, emphasis, coarse, order
        self._asks = emphasis / weight

    @classmethod
    def learn(cls, z: Tensor, w: Tensor, emphasis: Tensor, fine: int = 0) -> Codes:
        """From coordinates of some documents (N, ≥ m) and of some queries (K, ≥ m), and factors (m,); the first `fine`
        get two codes each. No document is kept yet."""
        import faiss

        weight = (w[:, : len(emphasis)] * emphasis).square().mean(0).sqrt_().clamp_min_(_TINY)
        weighed = z[:, : len(weight)] * weight
        coarse = coarse_values(weighed[:, :fine])
        others = _difference(weighed, coarse)[1]
        order = partners(others.std(0).argsort(descending=True, stable=True))
        count = len(coarse) + len(order) // 2
        index = faiss.IndexPQFastScan(2 * count, count, _BITS, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.min_points_per_centroid = 1  # faiss would print warnings for small indexes
        learned = cls(index, weight, emphasis, coarse, order)
        same_threads()
        index.train(learned._documents(z))
        points = torch.from_numpy(faiss.vector_to_array(index.pq.centroids)).view(count, _POINTS, 2)
        points[: len(coarse)] = torch.stack(
            [coarse, torch.zeros_like(coarse)], dim=2
        )  # so that differences are what they stand for
        faiss.copy_array_to_vector(points.flatten().numpy(), index.pq.centroids)
        return learned

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All but the documents."""
        return {"weight": self.weight, "emphasis": self.emphasis, "coarse": self.coarse, "order": self.order}

    @classmethod
    def read(cls, path: Path, tensors: dict[str, Tensor]) -> Codes:
        return cls(read_faiss(path), tensors["weight"], tensors["emphasis"], tensors["coarse"], tensors["order"])

    def write(self, path: Path) -> None:
        write_faiss(self.index, path)

    def __len__(self) -> int:
        return self.index.ntotal

    def add(self, z: Tensor) -> None:
        same_threads()
        self.index.add(self._documents(z))

    def best(self, w: Tensor, top: int) -> Answer:
        """About the best `top` documents by the coordinates of queries (B, ≥ m), in no promised order; top ≤ documents.

        Scores are rough, and the lowest there is for documents that were not compared.
        """
        same_threads()
        asked = w[:, : len(self._asks)] * self._asks
        first = asked[:, : len(self.coarse)]
        found = self.index.search(
            self._side_by_side(first, torch.cat([asked[:, len(self.coarse) :], first], dim=1)), top
        )
        scores, rows = (torch.from_numpy(part) for part in found)
        for query in torch.nonzero((rows < 0).any(1)).flatten().tolist():
            missing = rows[query] < 0  # faiss leaves out the very worst, which matters where nearly all are asked for
            absent = torch.ones(len(self), dtype=torch.bool)
            absent[rows[query, ~missing]] = False
            rows[query, missing] = torch.nonzero(absent).flatten()[: int(missing.sum())]
        return scores, rows

    def _documents(self, z: Tensor) -> Any:
        return self._side_by_side(*_difference(z[:, : len(self.weight)] * self.weight, self.coarse))

    def _side_by_side(self, coarse: Tensor, others: Tensor) -> Any:
        """Two numbers for each code: a coarse value and nothing, or two partners; an odd one has a zero for a
        partner."""
        alone = torch.stack([coarse, torch.zeros_like(coarse)], dim=2).flatten(1)
        others = torch.nn.functional.pad(others, (0, len(self.order) - others.shape[1]))
        return torch.cat([alone, others[:, self.order]], dim=1).contiguous().numpy()


def partners(order: Tensor) -> Tensor:
    """The first beside the last, the second beside the last but one, and so on; an odd one out stands beside a place
    that is new."""
    if len(order) % 2:
        order = torch.cat([order, order.new_tensor([len(order)])])
    half = len(order) // 2
    return torch.stack([order[:half], order.flip(0)[:half]], dim=1).flatten()


def coarse_values(values: Tensor) -> Tensor:
    """The 16 points for each column of (N, f) with about the least squared error, in order (f, 16)."""
    if not values.shape[1]:
        return values.new_empty(0, _POINTS)
    columns = values.T.contiguous()
    points = columns.quantile((torch.arange(_POINTS) + 0.5) / _POINTS, dim=1).T.contiguous()
    for _ in range(_ROUNDS):
        nearest = _nearest(columns, points)
        sums = torch.zeros_like(points).scatter_add_(1, nearest, columns)
        counts = torch.zeros_like(points).scatter_add_(1, nearest, torch.ones_like(columns))
        points = torch.where(counts > 0, sums / counts.clamp_min(1), points).sort(dim=1).values
    return points


def _nearest(columns: Tensor, points: Tensor) -> Tensor:
    """(f, N): which of the points (f, 16) is nearest to each value (f, N)."""
    return torch.searchsorted((points[:, 1:] + points[:, :-1]) / 2, columns)


def _difference(weighed: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest coarse values of the first coordinates (N, f), and the other coordinates followed by the differences
    to them (N, m)."""
    first = weighed[:, : len(coarse)]
    values = coarse.gather(1, _nearest(first.T.contiguous(), coarse)).T
    return values, torch.cat([weighed[:, len(coarse) :], first - values], dim=1)
