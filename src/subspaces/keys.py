"""What decides an artefact, as one digest: its settings, the code that makes it, and the keys of what it is made from.

Every output carries its key (in a JSON field, a comment, or the file's metadata). An output is current when it carries the key that
params.yaml, the package and the sources give now; clocks play no part. So a fresh clone, a `dvc pull` or a touched file never
starts a rerun by itself, and an edit of a parameter or a module reruns exactly what depends on it.
"""

from __future__ import annotations

import ast
import hashlib
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from subspaces.files import digest, write_text

PACKAGE = Path(__file__).resolve().parent
_OLD = 1  # a time before every output, in seconds since 1970


@cache
def module_file(module: str) -> Path | None:
    """The file of a module of this package, or None for anything else."""
    parts = module.split(".")
    if parts[0] != PACKAGE.name:
        return None
    base = PACKAGE.joinpath(*parts[1:])
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Modules of this package that `module` imports, anywhere in its body; packages on the way count too."""
    found: set[str] = set()
    path = module_file(module)
    assert path is not None
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []  # for type checkers only: never runs
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found.update(name for name in names if module_file(name))
    return tuple(sorted(found))


@cache
def modules_of(*roots: str) -> tuple[str, ...]:
    """`roots` and every module of this package that they import, directly or not, with the packages that hold them."""
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        module = todo.pop()
        if module in seen:
            continue
        if module_file(module) is None:
            raise ValueError(f"{module} is not a module of this package")
        seen.add(module)
        todo += _imports(module)
        if "." in module:
            todo.append(module.rsplit(".", 1)[0])
    return tuple(sorted(seen))


@cache
def _code_digest(module: str) -> str:
    """Digest of what a module does: its syntax tree without docstrings, so comments, layout and prose do not count."""
    tree = ast.parse(module_file(module).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def code_of(*roots: str) -> dict[str, str]:
    """Digest per module that `roots` need."""
    return {module: _code_digest(module) for module in modules_of(*roots)}


@dataclass(frozen=True)
class Recipe:
    """One artefact: where it goes, what settings and code make it, and from which other artefacts."""

    output: str  # the file that carries the key
    settings: dict[str, Any]
    code: tuple[str, ...] = ()
    inputs: tuple[Recipe, ...] = ()

    @cached_property
    def key(self) -> str:
        return digest({"settings": self.settings, "code": code_of(*self.code), "inputs": [one.key for one in self.inputs]})

    @property
    def code_digest(self) -> str:
        return digest(code_of(*self.code))

    def is_built(self, folder: Path = Path()) -> bool:
        """The output is there and current."""
        return carries(folder / self.output, self.key)

    def is_stale(self, folder: Path = Path()) -> bool:
        """The output is there, but made from something else."""
        return (folder / self.output).exists() and not self.is_built(folder)

    def will_change(self, folder: Path = Path()) -> bool:
        """The output, or something it is made from, is stale. What is merely absent (the models of a fresh clone) changes nothing."""
        return self.is_stale(folder) or any(one.will_change(folder) for one in self.inputs)


def carries(path: Path, key: str) -> bool:
    """Does the file hold `key`? Read in pieces; keys are 64 hex digits, so a chance hit is out of the question."""
    needle, tail = key.encode(), b""
    try:
        with open(path, "rb") as handle:
            while piece := handle.read(1 << 20):
                if needle in tail + piece:
                    return True
                tail = piece[-len(needle) :]
    except OSError:
        return False
    return False


def no_later_than_now(folder: Path = Path()) -> None:
    """Date files of the future (the clock was moved back, or another machine's is ahead) to now: Snakemake throws away an output that is
    older than an input, and would take a stale output that is newer than its stamp for current."""
    now = time.time()
    for top in ("data", "models", "results", "figures", ".keys"):
        for path in (folder / top).rglob("*"):
            with suppress(OSError):  # gone meanwhile, or somebody else's
                if path.is_file() and path.stat().st_mtime > now:
                    os.utime(path, (now, now))


def stamp(recipe: Recipe, folder: Path = Path()) -> str:
    """A small file for Snakemake to look at: new when the output is stale, else old. Returns its path.

    An absent output needs no new stamp: Snakemake sees that it is absent, and makes it if something else needs it.
    """
    path = folder / ".keys" / recipe.output
    text = path.read_text() if path.exists() else ""
    if recipe.is_stale(folder):
        if not text.startswith(f"{recipe.key} wanted") or path.stat().st_mtime_ns <= (folder / recipe.output).stat().st_mtime_ns:
            write_text(path, f"{recipe.key} wanted since {time.time_ns()}\n")
    else:
        if text != recipe.key + "\n":
            write_text(path, recipe.key + "\n")
        if path.stat().st_mtime != _OLD:
            os.utime(path, (_OLD, _OLD))
    return str(Path(".keys") / recipe.output)
