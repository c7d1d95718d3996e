"""Timing of searches: latency, processor time, recall, bytes per document (paper §4.5, Table 8; the paper reports no
recall).

All searches are timed in turn, several rounds in one run, and the median counts: a busy machine slows all of them
alike. The processor time is reported beside the wall time, because other programs disturb it less.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.experiments.efficiency.poincare import ObviousPoincareSearcher, PoincareSearcher, any_points
from subspaces.search.index import SubspaceIndex
from subspaces.search.kinds.base import Answer, best_of_blocks
from subspaces.search.storage import WINDOWS, Store

BATCH, TOP = 128, 10
FORMS = ("plain", "conjunction", "negation")
_FULL_ROWS = 512


@dataclass(frozen=True)
class TimedSearch:
    """Something that can be timed: `search` takes a batch of `queries` and a number of answers."""

    search: Callable[[Tensor, int], Answer]
    queries: Tensor  # (B, …), what `search` takes
    documents: int
    bytes_per_document: float
    recall: dict[str, float] = field(default_factory=dict)  # by form of query; empty where nothing is approximate
    note: str = ""


@dataclass(frozen=True)
class LatencyRow:
    """One row of the table. Times are per query, of whole batches."""

    name: str
    latency_ms: float
    cpu_ms: float
    rounds_ms: list[float]
    documents: int
    bytes_per_document: float
    recall: dict[str, float]
    batch: int
    top: int
    threads: int
    note: str


def measure(
    candidates: Mapping[str, TimedSearch], *, rounds: int = 7, batch: int = BATCH, top: int = TOP, threads: int = 1
) -> list[LatencyRow]:
    """Time every candidate `rounds` times, in turn, on all its whole batches; the first round warms up and is not
    counted."""
    if rounds < 1:
        raise UserError(f"{rounds} rounds measure nothing: use at least 1.")
    for name, one in candidates.items():
        if len(one.queries) < batch:
            raise UserError(
                f"{name} has {len(one.queries)} queries, a batch has {batch}: give more queries, or a smaller batch."
            )
    wall: dict[str, list[float]] = {name: [] for name in candidates}
    processor: dict[str, list[float]] = {name: [] for name in candidates}
    with using_threads(threads):
        for number in range(rounds + 1):
            for name, one in candidates.items():
                whole = [some for some in one.queries.split(batch) if len(some) == batch]
                began, spent = time.perf_counter(), time.process_time()
                for some in whole:
                    one.search(some, top)
                if number:
                    asked = batch * len(whole)
                    wall[name].append(1000 * (time.perf_counter() - began) / asked)
                    processor[name].append(1000 * (time.process_time() - spent) / asked)
    return [
        LatencyRow(
            name,
            statistics.median(wall[name]),
            statistics.median(processor[name]),
            wall[name],
            one.documents,
            one.bytes_per_document,
            one.recall,
            batch,
            top,
            threads,
            one.note,
        )
        for name, one in candidates.items()
    ]


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def query_forms(projectors: Tensor) -> dict[str, Tensor]:
    """From projectors of 2n texts (2n, d, d): n matrices of each form, plain P_a, conjunction P_a P_b and negation P_a
    (I − P_b)."""
    if not len(projectors) or len(projectors) % 2:
        raise UserError(f"an even number of texts is needed to make pairs, got {len(projectors)}.")
    a, b = projectors.chunk(2)
    products = a @ b
    both = (products + products.mT) / 2
    return {"plain": a, "conjunction": both, "negation": a - both}


def recall(found: Tensor, true: Tensor) -> float:
    """recall@k: the share of the true best k (B, k) that is among the found (B, k)."""
    return float((found.unsqueeze(1) == true.unsqueeze(2)).any(2).float().mean())


def recalls(
    index: SubspaceIndex, exact: SubspaceIndex, forms: Mapping[str, Tensor], top: int = TOP
) -> dict[str, float]:
    """recall@10 of an index against an exact one of the same documents, for each form of query."""
    if index.manifest.documents != exact.manifest.documents or index.manifest.encoder != exact.manifest.encoder:
        raise UserError(f"{index.folder} and {exact.folder} hold different documents or models: recall needs the same.")
    found = {
        form: (index.search_matrices(some, top)[1], exact.search_matrices(some, top)[1]) for form, some in forms.items()
    }
    return {form: recall(*rows) for form, rows in found.items()}


def index_candidate(
    index: SubspaceIndex, forms: Mapping[str, Tensor], exact: SubspaceIndex | None = None
) -> TimedSearch:
    """An index, timed on plain queries: a query costs the same in every form. The texts are not counted among its
    bytes."""
    texts = sum(index.manifest.files[name].bytes for name in (*index.texts.NAMES, WINDOWS))
    size = (index.manifest.bytes - texts) / len(index)
    found = recalls(index, exact, forms) if exact is not None else {}
    return TimedSearch(index.search_matrices, forms["plain"], len(index), size, found, index.manifest.kind)


def poincare_candidates(count: int, queries: int, generator: torch.Generator, dims: int = 10) -> dict[str, TimedSearch]:
    """Brute force in the Poincaré ball as one product of matrices, and the obvious way."""
    points = any_points(count + queries, dims, generator)
    note = "random points in the ball: the time does not depend on them"
    product, obvious = PoincareSearcher(points[:count]), ObviousPoincareSearcher(points[:count])
    return {
        "poincare-10": TimedSearch(product.search, points[count:], count, 4 * (dims + 2), note=note),
        "poincare-10-obvious": TimedSearch(obvious.search, points[count:], count, 4 * dims, note=f"all arcosh; {note}"),
    }


def full_candidate(store: Store, forms: Mapping[str, Tensor], limit: int) -> TimedSearch:
    """Vectors of all d² entries in 32 bits, as vec(P) is written in the paper: twice the entries for the same scores.
    At most `limit` documents, as they are held in memory; the row says how many."""
    from subspaces.algebra import unhalf_vector

    count = min(limit, len(store))
    vectors = torch.cat(
        [unhalf_vector(store.nis(slice(a, min(a + _FULL_ROWS, count)))).flatten(1) for a in range(0, count, _FULL_ROWS)]
    )

    def search(queries: Tensor, top: int) -> Answer:
        flat = queries.flatten(1)
        return best_of_blocks(((a, flat @ vectors[a : a + _FULL_ROWS].T) for a in range(0, count, _FULL_ROWS)), top)

    return TimedSearch(search, forms["plain"], count, 4 * vectors.shape[1], note="all d² entries, float32, in memory")


def as_json(rows: list[LatencyRow]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
