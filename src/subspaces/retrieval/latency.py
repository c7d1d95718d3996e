"""Top-10 latency per query in batches, with recall and bytes beside it (paper §4.5, Table 8; the paper reports no recall).

All rows are measured in turns in one run. The time of a brute-force search does not depend on what the numbers are, so the points of
the Poincaré ball and the subspaces of d = 64 are random ones; recall is measured on the real index of d = 128.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subspaces.algebra import half_vector, unhalf_vector
from subspaces.files import read_json, write_json
from subspaces.retrieval.compressed import Spectra
from subspaces.retrieval.index import SubspaceIndex
from subspaces.retrieval.kinds.base import Answer, best_of_blocks
from subspaces.training.loop import set_threads

FORMS = ("plain", "conjunction", "negation")
_BLOCK = 8192
_COMPARED = 8192  # documents on which half-vectors are compared with full d² vectors
_TRUNCATED = 2048  # documents whose spectra are cut for the storage figure
_TAUS = (0.1, 0.3, 0.5)


def query_matrices(projectors: Tensor, form: str) -> Tensor:
    """Queries (B, d, d) made of B + 1 texts: each by itself, with the next one, and with the next one negated; symmetric."""
    first, second = projectors[:-1], projectors[1:]
    if form == "plain":
        return first
    other = second if form == "conjunction" else torch.eye(first.shape[-1]) - second
    product = first @ other
    return (product + product.mT) / 2


def recall(found: Tensor, exact: Tensor) -> float:
    """Share of the exact best that are found."""
    return float((found.unsqueeze(2) == exact.unsqueeze(1)).any(2).float().sum(1).div(exact.shape[1]).mean())


class PoincareBrute:
    """Brute force in the ball: arcosh grows with its argument, so ‖u−v‖²/((1−‖u‖²)(1−‖v‖²)) ranks; one product, no full sort."""

    def __init__(self, points: Tensor):
        self.points = points
        self.squares = points.square().sum(1)
        self.rest = 1.0 / (1.0 - self.squares)

    def search(self, queries: Tensor, top: int) -> Answer:
        squares = queries.square().sum(1, keepdim=True)

        def blocks():
            for start in range(0, len(self.points), _BLOCK):
                rows = slice(start, start + _BLOCK)
                near = torch.addmm(self.squares[rows].unsqueeze(0), queries, self.points[rows].T, alpha=-2.0).add_(squares)
                yield start, near.mul_(self.rest[rows]).neg_()  # the query's own factor changes no order

        return best_of_blocks(blocks(), top)


class InnerBrute:
    """Brute force by inner product, vectors in memory."""

    def __init__(self, vectors: Tensor):
        self.vectors = vectors

    def search(self, queries: Tensor, top: int) -> Answer:
        starts = range(0, len(self.vectors), _BLOCK)
        return best_of_blocks(((start, queries @ self.vectors[start : start + _BLOCK].T) for start in starts), top)


def in_turns(actions: dict[str, Callable[[], Any]], queries: int, repeats: int) -> dict[str, float]:
    """Median milliseconds per query of each action; the first turn warms up."""
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(repeats + 1):
        for name, action in actions.items():
            began = time.perf_counter()
            action()
            if turn:
                spent[name].append(1e3 * (time.perf_counter() - began) / queries)
    return {name: statistics.median(times) for name, times in spent.items()}


def _batched(search: Callable[[Tensor, int], Answer], queries: Tensor, batch: int, top: int) -> Callable[[], None]:
    def run() -> None:
        for some in queries.split(batch):
            search(some, top)

    return run


def measure_latency(
    settings: dict[str, Any],
    indexes: dict[str, SubspaceIndex],
    sizes: dict[str, float],
    captions: Path,
    outputs: dict[str, tuple[Path, str]],
    threads: int,
    scale: str,
) -> dict[str, Any]:
    """Measure every kind and every row of Table 8; one file with all, one for each row. The first index is exact."""
    set_threads(threads)
    batch, top, repeats = settings["batch"], settings["top"], settings["repeats"]
    exact = next(iter(indexes.values()))
    count, dim, generator = len(exact), exact.dim, torch.Generator().manual_seed(settings["seed"])
    top = min(top, count)
    rows = torch.randperm(count, generator=generator)[: settings["queries"] + 1].tolist()
    projectors = exact.encoder.encode([exact.texts[row] for row in rows]).projector
    asked = {form: query_matrices(projectors, form) for form in FORMS}
    number = len(asked["plain"])

    actions: dict[str, Callable[[], Any]] = {}
    for kind, index in indexes.items():
        actions[kind] = _batched(index.search_matrices, asked["negation"], batch, top)
    ball = torch.randn(count + number, 10, generator=generator)
    ball = 0.9 * ball / (1.0 + ball.norm(dim=1, keepdim=True))
    actions["poincare-10"] = _batched(PoincareBrute(ball[:count]).search, ball[count:], batch, top)
    small = torch.randn(count + number, 64 * 65 // 2, generator=generator)
    actions["subspace-64"] = _batched(InnerBrute(small[:count]).search, small[count:], batch, top)
    times = in_turns(actions, number, repeats)
    del small
    ratio = half_against_full(exact, asked["negation"], batch, top, repeats)

    truth = {form: _rows(exact, asked[form], batch, top) for form in FORMS}
    recalls = {
        kind: {form: recall(_rows(index, asked[form], batch, top), truth[form]) for form in FORMS} for kind, index in indexes.items()
    }
    kinds = {kind: {"latency": times[kind], "recall": recalls[kind], "bytes_per_document": sizes[kind]} for kind in indexes}
    best = min((kind for kind in indexes if min(recalls[kind].values()) >= 0.95), key=times.get)
    record = read_json(captions.with_suffix(".json"))
    text = f"{count:,} captions, {threads} thread{'s' * (threads > 1)} of another processor than the paper's"
    shared = {
        "scale": scale,
        "settings": {"model": {"dim": dim}, "training": None, "seed": settings["seed"], **settings},
        "data": {name: record[name] for name in ("sample", "origin", "sha256", "captions")},
        "weights_sha256": exact.manifest.encoder,
        "extent": {"comparable": False, "text": text + (" (a sample)" if record["sample"] else "")},
        "machine": {"processor": platform.machine(), "threads": threads, "torch": torch.__version__, "device": "cpu"},
    }
    latencies = {
        "poincare-10-exact": times["poincare-10"],
        "subspace-64-exact": times["subspace-64"],
        "subspace-128-exact": times[next(iter(indexes))],
        "subspace-128-faiss": times.get("ivfpq", times[best]),
    }
    content = {
        **shared,
        "metrics": latencies,
        "kinds": kinds,
        "best": best,
        "speedup_over_poincare": {kind: times["poincare-10"] / times[kind] for kind in indexes},
        "half_over_full": ratio,
        "model": exact.manifest.encoder,
        "documents": count,
        "sample": record["sample"],
        "points": storage_points(exact, kinds, asked, truth, top),
    }
    path, key = outputs["all"]
    write_json(path, {"key": key, **content})
    for row, value in latencies.items():
        path, key = outputs[row]
        kind = {"subspace-128-exact": next(iter(indexes)), "subspace-128-faiss": "ivfpq"}.get(row)
        write_json(path, {"key": key, "row": row, **shared, "metrics": {"latency": value}, "recall": recalls.get(kind)})
    return content


def _rows(index: SubspaceIndex, queries: Tensor, batch: int, top: int) -> Tensor:
    return torch.cat([index.search_matrices(some, top)[1] for some in queries.split(batch)])


def half_against_full(exact: SubspaceIndex, queries: Tensor, batch: int, top: int, repeats: int) -> float:
    """Time of exact search with half-vectors over that with all d² entries, both in memory, on some of the documents."""
    count = min(_COMPARED, len(exact))
    half = exact.searcher.store.nis(slice(0, count))
    full = torch.cat([unhalf_vector(some).flatten(1) for some in half.split(1024)])
    searches = {
        "half": _batched(InnerBrute(half).search, half_vector(queries), batch, min(top, count)),
        "full": _batched(InnerBrute(full).search, queries.flatten(1), batch, min(top, count)),
    }
    times = in_turns(searches, len(queries), repeats)
    return times["half"] / times["full"]


def storage_points(
    exact: SubspaceIndex, kinds: dict[str, Any], asked: dict[str, Tensor], truth: dict[str, Tensor], top: int
) -> list[dict[str, Any]]:
    """Bytes per document against recall: every kind, full vectors, and factors of rank k, whose recall is measured on some documents."""
    width, dim = exact.manifest.width, exact.dim
    whole = dict.fromkeys(FORMS, 1.0)
    points = [
        {"form": "full d² fp32", "bytes": 4 * dim * dim, "recall": whole},
        {"form": "half-vector fp32", "bytes": 4 * width, "recall": whole},
    ]
    points += [{"form": kind, "bytes": one["bytes_per_document"], "recall": one["recall"]} for kind, one in kinds.items()]
    some = exact.searcher.store.nis(slice(0, min(_TRUNCATED, len(exact))))
    projectors = unhalf_vector(some)
    traces = projectors.diagonal(dim1=-2, dim2=-1).sum(-1)
    scale = exact.searcher.store.trace[: len(some)]
    spectra = Spectra(projectors * (scale / traces)[:, None, None])
    halves = {form: half_vector(queries) for form, queries in asked.items()}
    best = {form: InnerBrute(some).search(queries, min(top, len(some)))[1] for form, queries in halves.items()}
    for tau in _TAUS:
        cut = spectra.truncated(tau)
        vectors = half_vector(cut) / cut.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min(1e-9).unsqueeze(1)
        found = {form: recall(InnerBrute(vectors).search(queries, min(top, len(some)))[1], best[form]) for form, queries in halves.items()}
        size = spectra.rank(tau) * 2 * (dim + 1)
        points.append({"form": f"rank-k fp16, τ = {tau:g}", "bytes": size, "recall": found})
    return points
