"""The kinds of index, by name."""

from __future__ import annotations

from subspaces.errors import UserError
from subspaces.retrieval.kinds.base import Kind
from subspaces.retrieval.kinds.exact import Exact
from subspaces.retrieval.kinds.ivfpq import IvfPq
from subspaces.retrieval.kinds.reduced import COMPACT, REDUCED, Cascade

_ALL: tuple[Kind, ...] = (
    Exact("exact-fp32", "float32"),
    Exact("exact-fp16", "float16"),
    Cascade("reduced", REDUCED, keeps_vectors=True),
    Cascade("compact", COMPACT, keeps_vectors=False),
    IvfPq(),
)
KINDS = {kind.name: kind for kind in _ALL}


def kind_named(name: str) -> Kind:
    if name not in KINDS:
        raise UserError(f"unknown kind of index {name!r}: choose {', '.join(KINDS)}.")
    return KINDS[name]
