"""Where the vectors of an index live: in files here (`embedded`, the default), or in a Milvus server or its in-process form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from subspaces.errors import UserError
from subspaces.retrieval.kinds import kind_named
from subspaces.retrieval.kinds.base import Searcher
from subspaces.retrieval.manifest import Manifest
from subspaces.retrieval.store import Store

ENGINES = ("embedded", "milvus")


def check_engine(engine: str, uri: str | None, kind: str) -> dict[str, str]:
    """Refuse what an engine cannot do, before any work; returns what the manifest keeps about the place."""
    if engine not in ENGINES:
        raise UserError(f"unknown engine {engine!r}: choose {' or '.join(ENGINES)}.")
    if engine == "embedded":
        if uri is not None:
            raise UserError("--uri belongs to the engine milvus; the embedded engine keeps its files in the index folder.")
        return {}
    from subspaces.retrieval.engines.milvus import check_uri

    if kind != "exact-fp32":
        raise UserError(f"the engine milvus searches exactly, in 32 bits: use the kind exact-fp32 instead of {kind}.")
    return {"uri": check_uri(uri)}


def fill_engine(wanted: Manifest, store: Store, say: Callable[[str], None]) -> None:
    from subspaces.retrieval.engines.milvus import fill

    fill(wanted.place["uri"], wanted.request, store, say)


def open_searcher(folder: Path, manifest: Manifest, uri: str | None = None) -> Searcher:
    if manifest.engine == "embedded":
        return kind_named(manifest.kind).open(folder, manifest.width, manifest.settings)
    from subspaces.retrieval.engines.milvus import MilvusSearcher

    return MilvusSearcher(uri or manifest.place["uri"], manifest.request, manifest.count)
