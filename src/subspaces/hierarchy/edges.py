"""A relation as text: one `child TAB parent` per line. Every complaint names the file and the line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from subspaces.errors import UserError
from subspaces.wordnet.graph import Hierarchy, build_hierarchy

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def read_pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line number, child, parent) of each line, streamed. Plain or gzip, told apart by content; blank lines, lines that begin with #
    and a first line `child TAB parent` are left out. Spaces inside a name count, those around it do not."""
    first = True
    for number, raw in _lines(path):
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line). Save the file as UTF-8.") from error
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 2:
            raise UserError(f"{path}, line {number}: expected child TAB parent, found {len(fields)} field{'s' * (len(fields) > 1)}.")
        if not all(fields):
            raise UserError(
                f"{path}, line {number}: the {'parent' if fields[0] else 'child'}'s name is empty. Fill it in or delete the line."
            )
        header, first = first and [field.lower() for field in fields] == ["child", "parent"], False
        if not header:
            yield number, fields[0], fields[1]


def read_hierarchy(path: Path) -> Hierarchy:
    """The closed relation of a file. Nodes are numbered in the order of their names, so the order of the lines does not matter."""
    pairs = []
    for number, child, parent in read_pairs(path):
        if child == parent:
            raise UserError(f"{path}, line {number}: {child!r} is its own parent. Delete the line.")
        pairs.append((child, parent))
    if not pairs:
        raise UserError(f"{path} has no edges: it needs lines of the form child TAB parent.")
    names = sorted({name for pair in pairs for name in pair})
    place = {name: index for index, name in enumerate(names)}
    edges = np.fromiter((place[name] for pair in pairs for name in pair), dtype=np.int64, count=2 * len(pairs))
    try:
        return build_hierarchy(names, edges.reshape(-1, 2))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open(path, "rb") as handle:
            packed = handle.peek(2)[:2] == _GZIP
            for number, raw in enumerate(gzip.GzipFile(fileobj=handle) if packed else handle, start=1):
                yield number, raw.removeprefix(_BOM) if number == 1 else raw
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist: give the path of a file with one child TAB parent per line.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}): copy or compress it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
