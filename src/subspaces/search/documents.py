"""The texts of an index: one per line, read as a stream, stored beside the vectors so that a hit can be shown.

A file is read once before any work: empty lines, lines that are not UTF-8 and lines that are too long are reported
then, with numbers.
"""

from __future__ import annotations

import gzip
import hashlib
import mmap
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from subspaces.errors import UserError

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_SHOWN = 5
LONGEST = 100_000  # characters of one document: about 5,000 windows of a sentence model


@dataclass(frozen=True)
class Documents:
    """A checked source of texts. `sha256` is that of the texts, each followed by a newline: file, gzip and list
    agree."""

    source: Path | tuple[str, ...]
    count: int
    sha256: str

    @classmethod
    def check(cls, source: str | Path | Iterable[str]) -> Documents:
        """Read a file (plain or gzip) or a sequence of texts once; all bad lines are reported together."""
        kept = Path(source) if isinstance(source, str | Path) else tuple(source)
        title = str(kept) if isinstance(kept, Path) else "the documents"
        hasher, count, empty, wrong, long = hashlib.sha256(), 0, [], [], []
        for count, raw in enumerate(_raw(kept), start=1):
            if b"\0" in raw:
                raise UserError(
                    f"{title} is a binary file (line {count:,} has a zero byte): one text per line is expected."
                )
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                wrong.append(count)
                continue
            if not text.strip():
                empty.append(count)
            elif "\n" in text or "\r" in text:
                wrong.append(count)
            elif len(text) > LONGEST:
                long.append(count)
            hasher.update(raw + b"\n")
        if empty or wrong or long:
            found = [
                f"{what} in {_lines(lines)}"
                for what, lines in (
                    ("no text", empty),
                    ("not one line of UTF-8", wrong),
                    (f"more than {LONGEST:,} characters", long),
                )
                if lines
            ]
            raise UserError(
                f"{title}: {'; '.join(found)}. Every line must be one document: correct, split or delete these lines."
            )
        if not count:
            raise UserError(f"{title} holds no documents: one text per line is expected.")
        return cls(kept, count, hasher.hexdigest())

    def texts(self, start: int = 0, stop: int | None = None) -> Iterator[str]:
        """The texts of rows start … stop − 1, streamed."""
        for place, raw in enumerate(_raw(self.source)):
            if stop is not None and place >= stop:
                return
            if place >= start:
                yield raw.decode("utf-8")


def _raw(source: Path | tuple[str, ...]) -> Iterator[bytes]:
    """Lines without their ends."""
    if isinstance(source, tuple):
        yield from (text.encode("utf-8", "surrogatepass") for text in source)
        return
    with _opened(source) as handle:
        for number, line in enumerate(handle):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            yield line.removeprefix(_BOM) if number == 0 else line


@contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    try:
        with open(path, "rb") as handle:
            packed = handle.peek(2)[:2] == _GZIP
            yield gzip.GzipFile(fileobj=handle) if packed else handle
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist: give a file with one document per line.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}): copy or compress it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(f"{number:,}" for number in numbers[:_SHOWN])
    if len(numbers) == 1:
        return f"line {shown}"
    return f"{len(numbers):,} lines ({shown}{', …' if len(numbers) > _SHOWN else ''})"


class StoredTexts:
    """documents.txt and the offset of each line (lines.u64), both memory-mapped: any row is read in one step."""

    NAMES = ("documents.txt", "lines.u64")

    def __init__(self, folder: Path):
        self._begins = np.memmap(folder / self.NAMES[1], dtype="<u8", mode="r")
        with open(folder / self.NAMES[0], "rb") as handle:
            self._bytes = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._begins) - 1

    def __getitem__(self, row: int) -> str:
        return self._bytes[int(self._begins[row]) : int(self._begins[row + 1]) - 1].decode("utf-8")

    @classmethod
    def write(cls, folder: Path, texts: Iterable[str]) -> str:
        """Write both files; returns the sha256 of the texts, as `Documents` counts it."""
        position, hasher = 0, hashlib.sha256()
        with open(folder / cls.NAMES[0], "wb") as documents, open(folder / cls.NAMES[1], "wb") as lines:
            lines.write(position.to_bytes(8, "little"))
            for text in texts:
                line = text.encode("utf-8") + b"\n"
                hasher.update(line)
                position += documents.write(line)
                lines.write(position.to_bytes(8, "little"))
        return hasher.hexdigest()
