"""What every kind of index is: made once from the stored half-vectors, opened from its folder, asked with half-vectors of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.retrieval.store import Store

Answer = tuple[Tensor, Tensor]  # scores (B, top) float32, best first, and rows (B, top) int64


class Searcher(Protocol):
    """An opened index."""

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        """The best `top` documents for half-vectors of queries (B, d(d+1)/2), by NIS(query | document).

        A kind that does not look at every document looks at `effort` times as many as it was built to.
        """
        ...


class Kind(Protocol):
    """A way to keep and search half-vectors."""

    name: str
    precision: str  # of the stored half-vectors from which it is made
    keeps_vectors: bool  # are they part of the index, or deleted when it is made?
    files: tuple[str, ...]  # that it makes itself
    smallest: int  # documents that it needs at least

    def make(self, store: Store, folder: Path, settings: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        """Write what this kind needs into `folder`; returns the settings that were used, for the manifest."""
        ...

    def open(self, folder: Path, width: int, settings: dict[str, Any]) -> Searcher: ...


def with_defaults(kind: str, defaults: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(settings) - set(defaults))
    if unknown:
        has = f"it has {', '.join(defaults)}" if defaults else "it has none"
        raise UserError(f"the kind {kind} knows no setting {', '.join(unknown)}: {has}.")
    return defaults | settings


def best_of_blocks(blocks: Iterable[tuple[int, Tensor]], top: int) -> Answer:
    """The best of scores that come block by block (first row, (B, n)): never more than one block of scores at a time, never a sort of all.

    Of equal scores the one with the smaller row stays.
    """
    best: Answer | None = None
    for start, scores in blocks:
        values, rows = _first_best(scores, min(top, scores.shape[1]))
        rows = rows + start
        if best is not None:
            values, rows = torch.cat([best[0], values], dim=1), torch.cat([best[1], rows], dim=1)
        best = keep_best(values, rows, top)
    if best is None:
        raise ValueError("there is nothing to search")
    return best


def _first_best(scores: Tensor, top: int) -> Answer:
    """As `topk`, which takes any of equal scores at the border, but with those of the smallest rows."""
    values, rows = scores.topk(top, dim=1)
    border = values[:, -1:]
    unfair = (scores == border).sum(1) > (values == border).sum(1)
    for query in torch.nonzero(unfair).flatten().tolist():
        candidates = torch.nonzero(scores[query] >= border[query]).flatten()
        best = scores[query, candidates].argsort(descending=True, stable=True)[:top]
        values[query], rows[query] = scores[query, candidates[best]], candidates[best]
    rows, order = rows.sort(dim=1)  # for the stable sort that follows
    return values.gather(1, order), rows


def keep_best(values: Tensor, rows: Tensor, top: int) -> Answer:
    """Sort a few candidates (B, n) and keep the first `top`; equal scores keep their order."""
    order = values.argsort(dim=1, descending=True, stable=True)[:, :top]
    return values.gather(1, order), rows.gather(1, order)
