"""Any hierarchy, not only WordNet: from an edge list to subspaces that can be asked (paper §3.1, §4.1).

>>> from subspaces.hierarchy import Hierarchy  # doctest: +SKIP
>>> h = Hierarchy.load("fitted")  # doctest: +SKIP
>>> h.inclusion("dog", "animal")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subspaces.hierarchy.fit import fit_hierarchy
    from subspaces.hierarchy.model import Hierarchy, Relative

__all__ = ["Hierarchy", "Relative", "fit_hierarchy"]


def __getattr__(name: str):
    """Loaded when first asked for: torch takes a second to import, and `--help` should not wait for it."""
    if name == "fit_hierarchy":
        from subspaces.hierarchy.fit import fit_hierarchy

        return fit_hierarchy
    if name in __all__:
        from subspaces.hierarchy import model

        return getattr(model, name)
    raise AttributeError(f"module 'subspaces.hierarchy' has no attribute {name!r}")
