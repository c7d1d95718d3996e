"""Every document is scored: one product of matrices, block by block, from a mapped file in 32 or 16 bits (16 are widened block-wise)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from subspaces.retrieval.kinds.base import Answer, Searcher, best_of_blocks, with_defaults
from subspaces.retrieval.store import Store

_ROWS = 1024  # 34 MB of widened half-vectors at d = 128: they stay in the cache for the product


class Exact:
    keeps_vectors = True
    files = ()
    smallest = 1

    def __init__(self, name: str, precision: str):
        self.name, self.precision = name, precision

    def make(self, store: Store, folder: Path, settings: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        return with_defaults(self.name, {}, settings)

    def open(self, folder: Path, width: int, settings: dict[str, Any]) -> Searcher:
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
