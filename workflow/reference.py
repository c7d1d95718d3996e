"""The API reference: a page for each module of the library, from its docstrings. `python workflow/reference.py FOLDER`"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pdoc
import pdoc.render

LIBRARY = (
    "algebra",
    "projector",
    "bounds",
    "geometries",
    "hierarchy",
    "text",
    "search",
    "training",
    "sources",
    "serve",
)


def modules() -> Iterator[str]:
    """The library. pdoc goes into packages by itself, but not into those that name what they export."""
    yield "subspaces"
    for name in LIBRARY:
        home = import_module(f"subspaces.{name}")
        yield home.__name__
        if hasattr(home, "__path__") and hasattr(home, "__all__"):
            yield from (f"{home.__name__}.{module.name}" for module in iter_modules(home.__path__))


def write_reference(out: Path) -> None:
    """A name or an annotation that pdoc cannot resolve is an error."""
    names = list(modules())
    for module in map(import_module, names):
        for name in getattr(module, "__all__", ()):  # some are loaded when first asked for, and pdoc does not ask
            setattr(module, name, getattr(module, name))
    pdoc.render.configure(show_source=False)  # it is in the repository; pages are half as large without it
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pdoc.pdoc(*names, output_directory=out)


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
