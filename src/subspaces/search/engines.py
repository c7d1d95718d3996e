"""Where the vectors of an index are stored: in files of the index folder (`embedded`, the default), or in Milvus (the
extra `milvus`).

Milvus is a server (http://host:19530), or Milvus Lite in this process (./captions.db). Each index has one collection,
named after the request; its rows are (row number, NIS vector), its index is FLAT with inner products, so both engines
return the same answers. A token for a server is read from the environment variable MILVUS_TOKEN and never stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.search.kinds import kind_named
from subspaces.search.kinds.base import Answer, Searcher, read_settings
from subspaces.search.storage import Manifest, Store

ENGINES = ("embedded", "milvus")


def check_engine(engine: str, uri: str | None, kind: str) -> str | None:
    """Refuse what an engine cannot do, before any work; returns the address that the manifest stores."""
    if engine not in ENGINES:
        raise UserError(f"unknown engine {engine!r}: choose {' or '.join(ENGINES)}.")
    if engine == "embedded":
        if uri is not None:
            raise UserError(
                "--uri belongs to the engine milvus; the embedded engine keeps its files in the index folder."
            )
        return None
    if kind != "exact-fp32":
        raise UserError(f"the engine milvus searches exactly, in 32 bits: use the kind exact-fp32 instead of {kind}.")
    return check_uri(uri)


def fill_engine(wanted: Manifest, store: Store, say: Callable[[str], None]) -> None:
    fill(wanted.uri or "", wanted.request, store, say)


def open_searcher(folder: Path, manifest: Manifest, uri: str | None = None) -> Searcher:
    if manifest.engine == "embedded":
        kind = kind_named(manifest.kind)
        return kind.open(folder, manifest.width, read_settings(kind, manifest.settings))
    return MilvusSearcher(uri or manifest.uri or "", manifest.request, manifest.rows)


WIDEST = 32_768  # entries of a Milvus vector
_INSERT = 16 << 20  # bytes sent together; a server refuses messages of 64 MB
_FIELD = "nis"


def check_uri(uri: str | None) -> str:
    if not uri:
        raise UserError(
            "the engine milvus needs --uri: ./name.db for Milvus Lite in this process, or http://host:19530 for a server."
        )
    parts = urlsplit(uri)
    if parts.username or parts.password:
        raise UserError(
            "leave user and password out of --uri, it is written into the manifest: put user:password into MILVUS_TOKEN."
        )
    if not parts.scheme and not uri.endswith(".db"):
        raise UserError(
            f"--uri {uri} is neither a server (http://host:19530) nor a Milvus Lite file (its name must end in .db)."
        )
    return uri


def connect(uri: str) -> Any:
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise UserError("the engine milvus needs its extra: pip install 'subspaces[milvus]'.") from error
    with _plain_errors(uri):
        return MilvusClient(uri=uri, token=os.environ.get("MILVUS_TOKEN", ""))


def collection_name(request: str) -> str:
    return f"subspaces_{request[:24]}"


def fill(uri: str, request: str, store: Store, say: Callable[[str], None]) -> None:
    """Put all documents into a new collection. One that a killed build left there is replaced."""
    if store.width > WIDEST:
        raise UserError(
            f"Milvus holds vectors of at most {WIDEST:,} entries, these have {store.width:,}: use the embedded engine."
        )
    client, name = connect(uri), collection_name(request)
    with _plain_errors(uri):
        from pymilvus import DataType

        if client.has_collection(name):
            client.drop_collection(name)
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field(_FIELD, DataType.FLOAT_VECTOR, dim=store.width)
        index = client.prepare_index_params()
        index.add_index(_FIELD, index_type="FLAT", metric_type="IP")
        client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")
        for start, block in store.blocks(max(1, _INSERT // (4 * store.width))):
            client.insert(name, [{"row": start + place, _FIELD: vector} for place, vector in enumerate(block.numpy())])
        client.flush(name)
        say(f"{len(store):,} documents in {uri}, collection {name}")
    client.close()


class MilvusSearcher:
    def __init__(self, uri: str, request: str, count: int):
        self.uri, self.name = uri, collection_name(request)
        self.client = connect(uri)
        with _plain_errors(uri):
            if not self.client.has_collection(self.name):
                raise UserError(
                    f"{uri} has no collection {self.name}: give the address where it was built with --uri, or build again."
                )
            self.client.load_collection(self.name)
            found = int(self.client.get_collection_stats(self.name)["row_count"])
        if found != count:
            raise UserError(
                f"the collection {self.name} in {uri} has {found:,} rows instead of {count:,}: build the index again."
            )

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        with _plain_errors(self.uri):
            found = self.client.search(
                self.name, list(queries.numpy()), anns_field=_FIELD, limit=top, search_params={"metric_type": "IP"}
            )
        scores = torch.tensor([[hit["distance"] for hit in hits] for hits in found], dtype=torch.float32)
        return scores, torch.tensor([[hit["row"] for hit in hits] for hits in found], dtype=torch.int64)

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        with _plain_errors(self.uri):
            found = self.client.get(self.name, ids=rows.tolist(), output_fields=["row", _FIELD])
        vectors = {hit["row"]: hit[_FIELD] for hit in found}
        return queries @ torch.tensor([vectors[row] for row in rows.tolist()], dtype=torch.float32).T


@contextmanager
def _plain_errors(uri: str) -> Iterator[None]:
    """What Milvus complains about, in one line, without the message it was sent."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        raise UserError(
            f"Milvus at {uri}: {str(error.message).splitlines()[0][:300]}. Is the server up, and is MILVUS_TOKEN right?"
        ) from error
