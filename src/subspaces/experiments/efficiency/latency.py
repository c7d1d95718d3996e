"""One run that measures every row of Table 8 and our own kinds of index, and the points of the storage figure (paper
§4.5).

The time of a brute-force search does not depend on what the numbers are, so the subspaces of d = 64 are random ones;
recall is measured on the real index of d = 128.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subspaces.algebra import half_vector, unhalf_vector
from subspaces.errors import UserError
from subspaces.experiments.efficiency.compression import factor_points, full_bytes
from subspaces.experiments.efficiency.settings import LatencySettings
from subspaces.experiments.efficiency.timing import (
    FORMS,
    TimedSearch,
    as_json,
    full_candidate,
    index_candidate,
    measure,
    poincare_candidates,
    query_forms,
)
from subspaces.files import read_json, write_json
from subspaces.search.index import SubspaceIndex
from subspaces.search.kinds.base import Answer, ExactSearcher, best_of_blocks
from subspaces.search.storage import Store
from subspaces.training.loop import set_threads

_ROWS = 512
_COMPARED = 8192  # documents on which half-vectors are compared with full d² vectors, both in memory
_TRUNCATED = 2048  # documents whose spectra are cut for the storage figure
_TAUS = (0.05, 0.1, 0.3, 0.5)
_ENOUGH = 0.95


def plain_candidate(vectors: Tensor, queries: Tensor, note: str) -> TimedSearch:
    """Brute force by inner product, vectors in memory."""

    def search(some: Tensor, top: int) -> Answer:
        return best_of_blocks(((a, some @ vectors[a : a + _ROWS].T) for a in range(0, len(vectors), _ROWS)), top)

    return TimedSearch(search, queries, len(vectors), 4 * vectors.shape[1], note=note)


def _store(exact: SubspaceIndex) -> Store:
    """The half-vectors of an exact index."""
    assert isinstance(exact.searcher, ExactSearcher)
    return exact.searcher.store


def measure_latency(
    settings: LatencySettings,
    indexes: dict[str, SubspaceIndex],
    captions: Path,
    out: Path,
    key: str,
    threads: int,
    scale: str,
) -> dict[str, Any]:
    """Measure every row of the table and every kind of index, and write them to `out`; the first of `indexes` is exact."""
    if "ivfpq" not in indexes:
        raise UserError(
            "the row SE-128 (FAISS) of Table 8 needs the kind ivfpq: add it to retrieval.kinds in params.yaml."
        )
    set_threads(threads)
    first, exact = next(iter(indexes.items()))
    count, dim, generator = len(exact), exact.dim, torch.Generator().manual_seed(settings.seed)
    top, number = min(settings.top, count), min(settings.queries, count // 2)
    rows = torch.randperm(count, generator=generator)[: 2 * number].tolist()
    encoder, store = exact.encoder, _store(exact)
    assert encoder is not None
    forms = query_forms(encoder.encode([exact.texts[row] for row in rows]).projector)
    some = store.nis(slice(0, min(_COMPARED, count)))
    small = torch.randn(count + number, 64 * 65 // 2, generator=generator)
    candidates = {kind: index_candidate(index, forms, exact) for kind, index in indexes.items()}
    candidates |= {
        **poincare_candidates(count, number, generator),
        "subspace-64": plain_candidate(small[:count], small[count:], "random vectors: the speed is the same"),
        "half": plain_candidate(some, half_vector(forms["plain"]), "half-vectors, float32, in memory"),
        "full": full_candidate(store, forms, _COMPARED),
    }
    batch = min(settings.batch, number)
    found = {
        row["name"]: row
        for row in as_json(measure(candidates, rounds=settings.repeats, batch=batch, top=top, threads=threads))
    }
    times = {name: row["latency_ms"] for name, row in found.items()}
    good = [kind for kind in indexes if min(found[kind]["recall"].values()) >= _ENOUGH]
    record = read_json(captions.with_suffix(".json"))
    text = f"{count:,} captions, {threads} thread{'s' * (threads > 1)} of another processor than the paper's"
    shared = {
        "scale": scale,
        "settings": {"model": {"dim": dim}, "training": None, **settings.model_dump()},
        "data": {name: record[name] for name in ("sample", "origin", "sha256", "captions")},
        "weights_sha256": exact.manifest.encoder,
        "extent": {"comparable": False, "text": text + ("; captions of a small sample" if record["sample"] else "")},
        "machine": {"processor": platform.machine(), "threads": threads, "torch": torch.__version__, "device": "cpu"},
    }
    latencies = {
        "poincare-10-exact": times["poincare-10"],
        "subspace-64-exact": times["subspace-64"],
        "subspace-128-exact": times[first],
        "subspace-128-faiss": times["ivfpq"],
    }
    content = {
        **shared,
        "metrics": latencies,
        "rows": found,
        "best": min(good, key=times.__getitem__),
        "speedup_over_poincare": {kind: times["poincare-10"] / times[kind] for kind in indexes},
        "speedup_over_obvious_poincare": {kind: times["poincare-10-obvious"] / times[kind] for kind in indexes},
        "half_over_full": times["half"] / times["full"],
        "model": exact.manifest.encoder,
        "documents": count,
        "sample": record["sample"],
        "points": storage_points(exact, {kind: found[kind] for kind in indexes}, forms, top),
    }
    write_json(out, {"key": key, **content})
    return content


def storage_points(
    exact: SubspaceIndex, kinds: dict[str, Any], forms: dict[str, Tensor], top: int
) -> list[dict[str, Any]]:
    """Bytes per document against recall: every kind of index, full vectors, and factors of rank k on some of the
    documents."""
    points = [{"form": "full d² fp32", "bytes": full_bytes(exact.dim), "recall": dict.fromkeys(FORMS, 1.0)}]
    points += [
        {"form": kind, "bytes": row["bytes_per_document"], "recall": row["recall"]} for kind, row in kinds.items()
    ]
    store, count = _store(exact), min(_TRUNCATED, len(exact))
    projectors = unhalf_vector(store.half[:count].float())
    return points + factor_points(projectors, forms, _TAUS, min(top, count))
