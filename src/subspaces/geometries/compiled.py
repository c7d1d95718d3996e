"""What compiled training asks of a geometry, and the compiler: numba, with its cache in the working folder.

A geometry with a compiled form has a *space*: a named tuple of its settings, whose type chooses the code. Its file registers two
functions for that type, `energy_and_gradient` and `move`, and where Adam needs it a third, `tangent`. A driver
(`subspaces.hierarchy.descent`) calls them with a space as their first argument, so that it is compiled once for every space and found
in the cache by the next process. Functions passed as arguments, or closed over, would be compiled again in each process.
"""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
# exact up to the order of sums; NaN and infinity keep their meaning, because they stop a training
FAST = {"reassoc", "contract", "nsz", "arcp"}


def _cache_folder() -> Path:
    """A folder for this code: numba looks at the driver's file only, so that after a change elsewhere it would run old code."""
    digest = sha256()
    for path in sorted(
        [*PACKAGE.glob("geometries/*.py"), PACKAGE / "hierarchy/descent.py", PACKAGE / "hierarchy/ranking.py"]
    ):
        digest.update(path.read_bytes())
    return Path.cwd() / ".cache" / "numba" / digest.hexdigest()[:16]


try:
    os.environ.setdefault("NUMBA_CACHE_DIR", str(_cache_folder()))
    import numba
    from numba.extending import overload, register_jitable
except Exception as error:  # a platform without numba, or one whose LLVM does not load: any reason will do
    numba, _UNAVAILABLE = None, f"{type(error).__name__}: {error}"  # type: ignore[assignment]
    _warned = False


def energy_and_gradient(space: Any, child: Any, parent: Any, dchild: Any, dparent: Any) -> float:
    """Energy, which is the training score with a minus, of a child below a parent; writes its gradients into dchild and dparent."""
    raise NotImplementedError


def move(space: Any, point: Any, gradient: Any, rate: float) -> None:
    """One step of gradient descent, on the manifold, in place. May change `gradient`."""
    raise NotImplementedError


def tangent(space: Any, point: Any, gradient: Any) -> None:
    """Take from a gradient what a step cannot follow, before Adam remembers it. Nothing, where a space does not say otherwise."""
    raise NotImplementedError


def nearness(space: Any, point: Any, columns: Any, out: Any) -> None:
    """For a symmetric energy, write for all nodes what orders them as their energies with `point` do; `columns` is the table (w, N)."""
    raise NotImplementedError


_REGISTERED: dict[Callable, set[type]] = {energy_and_gradient: set(), move: set(), tangent: set(), nearness: set()}


def for_space(operation: Callable, space: type, exact: bool = False) -> Callable:
    """Register the decorated function as this operation of a space; its arguments have the names of the operation's.

    `exact`: every operation is rounded as written, for differences of numbers that are nearly the same.
    """

    def register(function: Callable) -> Callable:
        _REGISTERED[operation].add(space)
        if numba is not None:
            _overload(operation, lambda kind: function if kind is space else None, exact)
        return function

    return register


def _overload(operation: Callable, chosen: Callable[[type], Callable | None], exact: bool = False) -> None:
    def kind(space: Any) -> type:
        return getattr(space, "instance_class", type(None))

    def of_energy(space, child, parent, dchild, dparent):
        return chosen(kind(space))

    def of_move(space, point, gradient, rate):
        return chosen(kind(space))

    def of_tangent(space, point, gradient):
        return chosen(kind(space))

    def of_nearness(space, point, columns, out):
        return chosen(kind(space))

    typing: Any = {energy_and_gradient: of_energy, move: of_move, tangent: of_tangent, nearness: of_nearness}[operation]
    options: Any = {"fastmath": False if exact else FAST, "error_model": "numpy", "forceinline": True}
    overload(operation, jit_options=options)(typing)


def part(function: Callable) -> Callable:
    """Mark a function that compiled functions call."""
    return (
        function if numba is None else register_jitable(fastmath=FAST, error_model="numpy", forceinline=True)(function)
    )


def entry(function: Callable) -> Callable:
    """Mark a function that Python calls; its machine code is kept in the cache where a folder can be written."""
    if numba is None:
        return function
    options: Any = {"fastmath": FAST, "error_model": "numpy", "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for a cache
        return numba.njit(**options)(function)


def run(function: Callable, *arguments: Any) -> Any:
    """Call an entry. A damaged file of the cache is deleted, and what it held compiled again."""
    try:
        return function(*arguments)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, ImportError):
        stats = getattr(function, "stats", None)
        if stats is None or stats.cache_path is None or not Path(stats.cache_path).is_dir():
            raise
        shutil.rmtree(stats.cache_path, ignore_errors=True)
        return function(*arguments)


def has(operation: Callable, space: Any) -> bool:
    """Whether a space has this operation, and there is a compiler."""
    return numba is not None and type(space) in _REGISTERED[operation]


def available() -> bool:
    """Whether there is a compiler; says once, as a warning, when there is none."""
    global _warned
    if numba is not None:
        return True
    if not _warned:
        _warned = True
        warnings.warn(
            f"numba is unavailable ({_UNAVAILABLE}): training uses the torch energy, which gives the same model many times slower.",
            stacklevel=2,
        )
    return False


if numba is not None:

    def _nothing(space, point, gradient):
        pass

    _overload(tangent, lambda kind: None if kind in _REGISTERED[tangent] else _nothing)

    # the operations themselves, for whoever wants one of them at a time
    @entry
    def pair(space, child, parent, dchild, dparent):
        return energy_and_gradient(space, child, parent, dchild, dparent)

    @entry
    def step(space, point, gradient, rate):
        move(space, point, gradient, rate)
