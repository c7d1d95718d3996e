"""A relation as text: pairs of columns (TAB or comma), or paths `A > B > C`. Every complaint names the file and the line."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from subspaces.errors import UserError

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_LOOK = 200  # lines that decide how a file is laid out
_STEP = re.compile(r"\s+>\s+")  # between two names of a path
# words of a header, in the order in which they are preferred
_WORDS = {
    "child": ("child", "child_id", "hyponym", "narrower", "subclass", "id", "node", "name"),
    "parent": ("parent", "parent_id", "hypernym", "broader", "superclass"),
    "label": ("label", "entailed", "holds", "valid"),
}


def normalise(name: str) -> str:
    """One name for one text: Unicode in its composed form (NFC), without spaces around it."""
    return unicodedata.normalize("NFC", name).strip()


def read_pairs(path: str | Path, parent_first: bool = False) -> Iterator[tuple[int, str, str]]:
    """(line number, child, parent) of each line, streamed; `-` is standard input.

    Plain or gzip, told apart by content. Columns are separated by TAB or, where no line holds one, by commas (semicolons); lines
    `A > B > C` are paths from the root, and a node is named by its whole path. Left out: blank lines, lines that begin with #, a first
    line that names the columns (`child` and `parent`, in any order, among others), and below such a line rows without a parent, which
    are roots.
    """
    for number, (child, parent) in read_rows(path, ("child", "parent"), parent_first):
        yield number, child, parent


def read_rows(
    path: str | Path, columns: Sequence[str], parent_first: bool = False
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line number, the fields of `columns`): found by their names in a header, else by their positions."""
    shown = "standard input" if str(path) == "-" else str(path)
    lines = _text_lines(path, shown)
    first = list(islice(lines, _LOOK))
    separator = _separator(str(path), [line for _, line in first])
    if separator == ">":
        if tuple(columns) != ("child", "parent"):
            raise UserError(f"{shown} holds paths (A > B): this needs the columns {', '.join(columns)}.")
        yield from _path_edges(chain(first, lines), shown)
        return
    places: list[int] | None = None
    for position, (number, line) in enumerate(chain(first, lines)):
        where = f"{shown}, line {number}"
        fields = [field.strip() for field in _split(line, separator)]
        if position == 0:
            places = _header(fields, columns)
            if places is not None and parent_first:
                raise UserError(f"{where} names the columns: omit --parent-first (parent_first).")
            if places is not None:
                continue
        if places is None:
            if len(fields) != len(columns):
                raise UserError(_wrong_fields(where, line, fields, columns, separator))
            chosen = fields
            if parent_first:
                chosen = [fields[1], fields[0], *fields[2:]]
        else:
            if len(fields) <= max(places):
                raise UserError(_wrong_fields(where, line, fields, columns, separator))
            chosen = [fields[place] for place in places]
            if chosen[0] and not chosen[1]:
                continue  # a root
        for name, field in zip(columns, chosen, strict=True):
            if not field:
                raise UserError(f"{where}: the {name}'s name is empty. Fill it in or delete the line.")
        yield number, tuple(chosen)


def _separator(path: str, lines: list[str]) -> str:
    if any("\t" in line for line in lines):
        return "\t"
    table = path.removesuffix(".gz").endswith(".csv")
    if not table and any(_STEP.search(line) for line in lines):
        return ">"
    if table or any("," in line or ";" in line for line in lines[:1]):
        return ";" if ";" in lines[0] and "," not in lines[0] else ","
    return "\t"


def _split(line: str, separator: str) -> list[str]:
    return (
        line.split("\t") if separator == "\t" else next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    )


def _header(fields: list[str], columns: Sequence[str]) -> list[int] | None:
    """Where the columns are, if this line names them."""
    words = [field.lower().lstrip("#").strip() for field in fields]
    places = []
    for column in columns:
        found = [words.index(word) for word in _WORDS[column] if word in words]
        if not found:
            return None
        places.append(found[0])
    return places if len(set(places)) == len(places) else None


def _wrong_fields(where: str, line: str, fields: list[str], columns: Sequence[str], separator: str) -> str:
    kind = {"\t": "TAB", ",": "comma", ";": "semicolon"}[separator]
    count = f"{len(fields)} field{'s' * (len(fields) != 1)}"
    hint = ""
    if separator == "\t" and len(fields) == 1 and "," in line:
        hint = " Is this file comma-separated? Then give all its lines commas, or its name the ending .csv."
    elif len(fields) == 1 and len(line.split()) == len(columns):
        hint = " Separate the names by TAB, not by spaces."
    elif len(fields) > len(columns):
        hint = f" With more columns, a first line must name {' and '.join(columns)}."
    return f"{where}: expected {f' {kind} '.join(columns)}, found {count}.{hint}"


def _path_edges(lines: Iterator[tuple[int, str]], shown: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    for number, line in lines:
        names = _STEP.split(line.strip())
        if not all(names) or line.strip().startswith(">") or line.strip().endswith(">"):
            raise UserError(f"{shown}, line {number}: a name of the path is empty. Write it as A > B > C.")
        for depth in range(1, len(names)):
            yield number, (" > ".join(names[: depth + 1]), " > ".join(names[:depth]))


def _text_lines(path: str | Path, shown: str) -> Iterator[tuple[int, str]]:
    """Lines that count, decoded and normalised."""
    for number, raw in _lines(path, shown):
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{shown}, line {number}: not UTF-8 (byte {error.start + 1} of the line). Save the file as UTF-8."
            ) from error
        if line.strip() and not line.startswith("#"):
            yield number, unicodedata.normalize("NFC", line)


def _lines(path: str | Path, shown: str) -> Iterator[tuple[int, bytes]]:
    try:
        piped = io.BufferedReader(io.BytesIO(sys.stdin.buffer.read())) if str(path) == "-" else None
        with piped or open(path, "rb") as handle:
            packed = handle.peek(2)[:2] == _GZIP
            for number, raw in enumerate(gzip.GzipFile(fileobj=handle) if packed else handle, start=1):
                yield number, raw.removeprefix(_BOM) if number == 1 else raw
    except FileNotFoundError as error:
        raise UserError(
            f"{shown} does not exist: give the path of a file with one child TAB parent per line."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{shown} is a damaged gzip file ({error}): copy or compress it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {shown}: {error.strerror}.") from error
