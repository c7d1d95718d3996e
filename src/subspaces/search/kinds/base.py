"""What every kind of index is, the exact kinds, and what kinds share: the best of many scores, settings, faiss files.

A kind is made once from the stored half-vectors, opened from its folder, and asked with half-vectors of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import ValidationError
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import atomic_file
from subspaces.search.storage import Store
from subspaces.settings import Strict

_ROWS = 1024  # 34 MB of widened half-vectors at d = 128: they stay in the cache for the product
Answer = tuple[Tensor, Tensor]  # scores (B, top) float32, best first, and rows (B, top) int64


class Searcher(Protocol):
    """An opened index."""

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        """The best `top` documents for half-vectors of queries (B, d(d+1)/2), by NIS(query | document).

        An approximate kind scores `effort` times the candidates that it was built for.
        """
        ...

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        """The scores (B, R) of some rows (R,), as precise as the index stores them."""
        ...


class Kind(Protocol):
    """A way to store and search half-vectors."""

    name: str
    precision: str  # of the stored half-vectors from which it is made
    keeps_vectors: bool  # false: the half-vectors are deleted when the kind is made
    smallest: int  # number of documents that it needs at least

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it makes itself."""
        ...

    @property
    def settings(self) -> Strict:
        """The default values."""
        ...

    def make(self, store: Store, folder: Path, settings: Any, say: Callable[[str], None]) -> Strict:
        """Write the files of this kind into `folder`; returns the settings that were used, for the manifest."""
        ...

    def open(self, folder: Path, width: int, settings: Any) -> Searcher: ...


def read_settings(kind: Kind, values: dict[str, Any]) -> Any:
    """The settings of a kind from plain values, checked; a missing value is the default."""
    known = type(kind.settings).model_fields
    unknown = sorted(set(values) - set(known))
    if unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise UserError(f"the kind {kind.name} knows no setting {', '.join(unknown)}: {has}.")
    try:
        return type(kind.settings).model_validate(kind.settings.model_dump() | values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"the setting {first['loc'][0]} of the kind {kind.name} is wrong: {first['msg']}.") from error


def best_of_blocks(blocks: Iterable[tuple[int, Tensor]], top: int) -> Answer:
    """The best `top` of scores that come block by block (first row, (B, n)); of equal scores the smaller row wins."""
    best: Answer | None = None
    for start, scores in blocks:
        values, rows = _first_best(scores, min(top, scores.shape[1]))
        rows = rows + start
        if best is not None:
            values, rows = torch.cat([best[0], values], dim=1), torch.cat([best[1], rows], dim=1)
        best = keep_best(values, rows, top)
    if best is None:
        raise ValueError("no block of scores was given")
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
    """Sort candidates (B, n) and keep the first `top`; equal scores keep their order."""
    order = values.argsort(dim=1, descending=True, stable=True)[:, :top]
    return values.gather(1, order), rows.gather(1, order)


class ExactSettings(Strict):
    """An exact kind has no settings."""


class Exact:
    """Every document is scored: a product of matrices per block of rows of a memory-mapped file; 16 bits are widened
    block-wise."""

    keeps_vectors = True
    files = ()
    smallest = 1
    settings = ExactSettings()

    def __init__(self, name: str, precision: str):
        self.name, self.precision = name, precision

    def make(self, store: Store, folder: Path, settings: ExactSettings, say: Callable[[str], None]) -> ExactSettings:
        return settings

    def open(self, folder: Path, width: int, settings: ExactSettings) -> Searcher:
        return ExactSearcher(Store(folder, self.precision, width))


class ExactSearcher:
    def __init__(self, store: Store):
        self.store = store

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        def blocks():
            for start in range(0, len(self.store), _ROWS):
                rows = slice(start, start + _ROWS)
                shared = queries @ self.store.half[rows].float().T
                yield start, shared.div_(self.store.trace[rows])

        return best_of_blocks(blocks(), top)

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        parts = [queries @ self.store.nis(some).T for some in rows.split(_ROWS)]
        return torch.cat(parts, dim=1) if parts else torch.empty(len(queries), 0)

    def score_all(self, queries: Tensor) -> Tensor:
        """The scores (B, N) of all rows."""
        return torch.cat([queries @ block.T for _, block in self.store.blocks(_ROWS)], dim=1)


def write_faiss(index: Any, path: Path) -> None:
    """A faiss index as a file that is complete or absent."""
    import faiss

    with atomic_file(path) as handle:
        writer = faiss.PyCallbackIOWriter(handle.write)  # type: ignore[attr-defined]  # not in the stubs
        faiss.write_index(index, writer)


def read_faiss(path: Path) -> Any:
    import faiss

    try:
        return faiss.read_index(str(path))
    except RuntimeError as error:
        raise UserError(f"{path} is damaged or missing: delete the index and build it again.") from error


def same_threads() -> None:
    """faiss uses as many threads as torch."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
