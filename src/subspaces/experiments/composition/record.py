"""The record of an elicitation: one JSON object per line, each on disk before anything is done with it.

The first line says what was asked (model, prompt, temperature, seed). Every other line is one attempt: its request number, its outcome
(answer, refused, failed), the raw text, time and token counts. Lines are only ever added. A process that dies in the middle of a line
leaves half of one at the end: the next run moves it to a file beside (`.damaged`) and goes on.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subspaces.errors import UserError

FORMAT = "subspaces elicitation 1"
OUTCOMES = ("answer", "refused", "failed")


@dataclass
class Record:
    """An open record. `set_aside` names the file that got a half-written line, if there was one."""

    path: Path
    descriptor: int
    entries: list[dict[str, Any]]
    set_aside: Path | None = None

    def append(self, entry: dict[str, Any]) -> None:
        _append(self.path, self.descriptor, entry)
        self.entries.append(entry)


@contextmanager
def open_record(path: Path, asked: dict[str, Any]) -> Iterator[Record]:
    """Open or begin the record of what is `asked`, for one process at a time. A record of something else is refused."""
    header = {"format": FORMAT, **asked}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}. Choose another file.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"another elicitation is writing {path}: wait for it, or stop it; it resumes.") from error
        except OSError:
            pass  # a file system without locks
        content = path.read_bytes()
        whole, half = _whole_lines(content)
        if not whole and half and not _line(header).startswith(half):
            raise UserError(f"{path} is not the record of an elicitation: choose another file.")
        aside = _set_aside(path, descriptor, half, len(whole)) if half else None
        if whole and not whole.endswith(b"\n"):
            os.write(descriptor, b"\n")
        if not whole:
            _append(path, descriptor, header)
            entries: list[dict[str, Any]] = []
        else:
            found, entries = _read(path, whole)
            if changed := [name for name in header if found.get(name) != header[name]]:
                differences = ", ".join(
                    f"{name}: {_short(found.get(name))} → {_short(header[name])}" for name in changed
                )
                raise UserError(
                    f"{path} records other questions ({differences}). Choose another file, or the settings of that one."
                )
        yield Record(path, descriptor, entries, aside)
    finally:
        os.close(descriptor)


def read_record(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was asked, and all attempts; half a line at the end counts as nothing."""
    try:
        content = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(
            f"{path} does not exist, or is a folder: make a record with `subspaces composition elicit`."
        ) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
    whole, _ = _whole_lines(content)
    if not whole:
        raise UserError(f"{path} is empty: make a record with `subspaces composition elicit`.")
    return _read(path, whole)


def _whole_lines(content: bytes) -> tuple[bytes, bytes]:
    """The lines that are whole, and what follows. A last line that only lacks its end is whole: half an object is no object."""
    cut = content.rfind(b"\n") + 1
    tail = content[cut:]
    try:
        complete = isinstance(json.loads(tail), dict)
    except ValueError:
        complete = False
    return (content, b"") if complete else (content[:cut], tail)


def _set_aside(path: Path, descriptor: int, half: bytes, length: int) -> Path:
    aside = path.with_name(path.name + ".damaged")
    with aside.open("ab") as handle:
        handle.write(half + b"\n")
        handle.flush()
        os.fsync(handle.fileno())
    os.truncate(descriptor, length)
    os.fsync(descriptor)
    return aside


def _read(path: Path, content: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    entries = []
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if number == 1:
            if not isinstance(entry, dict) or entry.get("format") != FORMAT:
                raise UserError(
                    f"{path} is not the record of an elicitation: its first line is not `{FORMAT}`. Choose another file."
                )
            header = entry
        elif not _is_entry(entry):
            raise UserError(
                f"{path}, line {number}: damaged. Restore the file from a copy, or delete the line: its request is asked again."
            )
        else:
            entries.append(entry)
    return header, entries


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("request"), int)
        and entry.get("outcome") in OUTCOMES
        and isinstance(entry.get("text", ""), str)
    )


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _append(path: Path, descriptor: int, entry: dict[str, Any]) -> None:
    line = _line(entry)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. What it holds is kept; free some space and run again."
        ) from error


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
