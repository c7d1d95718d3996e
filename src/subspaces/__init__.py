"""Concepts as linear subspaces: generality is dimension, hierarchy is inclusion, AND / OR / NOT are intersection, span and complement.

>>> import torch
>>> from subspaces import Subspace
>>> boat = Subspace.from_vectors(torch.eye(3)[:, [0, 1]], lam=0.01)
>>> fishing = Subspace.from_vectors(torch.eye(3)[:, [0, 2]], lam=0.01)
>>> round(float((boat & fishing).rank))
1
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subspaces.algebra import Subspace
    from subspaces.hierarchy.model import Hierarchy
    from subspaces.projector import soft_projector
    from subspaces.search.index import SubspaceIndex
    from subspaces.text.subspace_encoder import SubspaceEncoder

__all__ = ["Hierarchy", "Subspace", "SubspaceEncoder", "SubspaceIndex", "__version__", "soft_projector"]

# loaded when first asked for: torch takes a second to import, and commands that only read files should not wait for it
_HOMES = {
    "Hierarchy": "subspaces.hierarchy.model",
    "Subspace": "subspaces.algebra",
    "SubspaceEncoder": "subspaces.text.subspace_encoder",
    "SubspaceIndex": "subspaces.search.index",
    "soft_projector": "subspaces.projector",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        try:
            return version("subspaces")
        except PackageNotFoundError:  # the source folder, not installed
            return "unknown"
    if name not in _HOMES:
        raise AttributeError(f"module 'subspaces' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
