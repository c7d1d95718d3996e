"""An artefact: one output, what decides its content, and how it is made.

Its key is a digest of its settings, of the version integers of its computations (workflow/versions.yaml) and of the keys of its inputs.
Every output carries its key, in a JSON field, a comment or the metadata of the file. An output is current when it carries the key that
params.yaml, versions.yaml and the sources give now. Clocks and code play no part: a fresh clone, a `dvc pull`, a reformatted module or
another Python version makes nothing stale; an edited parameter or a raised version makes exactly its dependents stale.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from subspaces.files import digest, write_text

_OLD = 1  # a modification time before every output, in seconds since 1970


@dataclass(frozen=True)
class Machine:
    """Where a job runs. Nothing here decides what is computed, so no key depends on it."""

    threads: int = 1
    device: str | None = None  # None: as params.yaml says


@dataclass(frozen=True)
class Artefact:
    output: str  # the file that carries the key, relative to the working folder
    versions: Mapping[str, int]  # computation -> version
    settings: Mapping[str, Any]  # everything else that decides the content, as JSON
    inputs: tuple[Artefact, ...] = ()
    make: Callable[[Artefact, Machine], None] | None = field(default=None, repr=False, compare=False)
    beside: tuple[str, ...] = ()  # further files that the same job writes

    @cached_property
    def key(self) -> str:
        inputs = [artefact.key for artefact in self.inputs]
        return digest({"settings": self.settings, "versions": dict(self.versions), "inputs": inputs})

    @property
    def path(self) -> Path:
        return Path(self.output)

    def is_built(self, folder: Path = Path()) -> bool:
        """The output exists and is current."""
        return carries(folder / self.output, self.key)

    def is_stale(self, folder: Path = Path()) -> bool:
        """The output exists, but was made from something else."""
        return (folder / self.output).exists() and not self.is_built(folder)


def carries(path: Path, key: str) -> bool:
    """Does the file contain `key`? Read in pieces; a key has 64 hex digits, so a chance match is practically impossible."""
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
    """Date files from the future (a clock that was set back, or another machine's) to now: Snakemake deletes an output that is older
    than an input, and takes a stale output that is newer than its stamp for current."""
    now = time.time()
    for top in ("data", "models", "results", "figures", ".keys"):
        for path in (folder / top).rglob("*"):
            with suppress(OSError):  # deleted meanwhile, or owned by another user
                if path.is_file() and path.stat().st_mtime > now:
                    os.utime(path, (now, now))


def stamp(artefact: Artefact, folder: Path = Path()) -> None:
    """Write .keys/OUTPUT, the one input whose time Snakemake compares: new when the output is stale, else old.

    An absent output needs no new stamp. Snakemake sees that it is absent, and makes it if something else needs it.
    """
    path, output = folder / ".keys" / artefact.output, folder / artefact.output
    text = path.read_text() if path.exists() else ""
    if artefact.is_stale(folder):
        if not text.startswith(f"{artefact.key} wanted") or path.stat().st_mtime_ns <= output.stat().st_mtime_ns:
            write_text(path, f"{artefact.key} wanted since {time.time_ns()}\n")
    else:
        if text != artefact.key + "\n":
            write_text(path, artefact.key + "\n")
        if path.stat().st_mtime != _OLD:
            os.utime(path, (_OLD, _OLD))
