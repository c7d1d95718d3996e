"""The kinds of index, by name."""

from __future__ import annotations

from subspaces.errors import UserError
from subspaces.search.kinds.base import Exact, Kind
from subspaces.search.kinds.cascade import COMPACT, REDUCED, Cascade
from subspaces.search.kinds.ivfpq import IvfPq

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
