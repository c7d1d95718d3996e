"""The files of an index folder: half-vectors and traces as flat files, and manifest.json, which is written last.

Half-vectors are written as a stream and memory-mapped when read. The half-vector is stored and not its NIS form:
divided by the trace, its small entries would leave the range in which 16-bit floats are precise. A document has one
row, or one row per window if it is longer than the model's limit; `windows.u32` holds the number of rows of each
document. The manifest holds a sha256 of every block of every file. They are checked when a folder is opened for the
first time, and again when a file has another size or time of change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, DTypeLike
from pydantic import Field, ValidationError
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import digest, read_json, write_json
from subspaces.settings import Strict

MANIFEST = "manifest.json"
FORMAT = 2
DIGEST_BLOCK = 1 << 24  # bytes
_TYPES = {"float16": ("half.f16", np.float16), "float32": ("half.f32", np.float32)}
_TRACE = "trace.f32"
WINDOWS = "windows.u32"


class StaleIndex(UserError):
    """The folder is an index that does not answer this request: of another format, damaged, or of other documents,
    model or settings."""


class Slice(Strict):
    """Documents start … stop − 1 of `total` documents whose texts hash to `of`."""

    start: int
    stop: int
    total: int
    of: str


class StoredFile(Strict):
    bytes: int
    sha256: list[str]  # of each block of DIGEST_BLOCK bytes

    @classmethod
    def of(cls, path: Path) -> StoredFile:
        return cls(bytes=path.stat().st_size, sha256=list(_block_digests(path)))


class Manifest(Strict):
    kind: str
    encoder: str  # fingerprint of the model
    dim: int
    count: int  # documents
    rows: int = 0  # windows of documents; more than `count` where documents are longer than the model's limit
    documents: Slice
    asked: dict[str, Any]  # settings that were given, as opposed to those that were used
    settings: dict[str, Any] = Field(default_factory=dict)
    engine: str = "embedded"
    uri: str | None = None  # of an engine that stores the vectors elsewhere
    columns: dict[str, int] = Field(
        default_factory=dict
    )  # values per row in further files, for the calibration of terms
    files: dict[str, StoredFile] = Field(default_factory=dict)
    bytes: int = 0
    format: int = FORMAT

    @property
    def width(self) -> int:
        return self.dim * (self.dim + 1) // 2

    @property
    def request(self) -> str:
        """Identifies what was asked for: the same request is the same index."""
        parts = [self.kind, self.engine, self.uri, self.encoder, self.dim, self.documents.model_dump(), self.asked]
        return digest([FORMAT, *parts, *([self.columns] if self.columns else [])])

    def finished(self, folder: Path, names: list[str], rows: int, settings: Strict | None) -> Manifest:
        """The manifest of a complete folder, with the digests of its files."""
        files = {name: StoredFile.of(folder / name) for name in sorted(names)}
        size = sum(file.bytes for file in files.values())
        used = settings.model_dump() if settings is not None else {}
        return self.model_copy(update={"files": files, "bytes": size, "rows": rows, "settings": used})

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, self.model_dump())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        path = folder / MANIFEST
        if not path.is_file():
            raise UserError(f"{folder} is not an index (it has no {MANIFEST}): make one with `subspaces index`.")
        content = read_json(path)
        version = content.get("format") if isinstance(content, dict) else None
        if isinstance(version, int) and version != FORMAT:
            age = "an older" if version < FORMAT else "a newer"
            raise StaleIndex(
                f"{folder} is an index of {age} format ({version}; this version reads {FORMAT}): "
                "delete it and build it again with `subspaces index`."
            )
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            fields = ", ".join(str(one["loc"][0]) for one in error.errors()[:3] if one["loc"]) or "no fields"
            raise StaleIndex(f"{path} is damaged ({fields}): delete {folder} and build the index again.") from error

    def check_files(self, folder: Path, verify: bool = False) -> None:
        """Compare sizes; compare the digests of all blocks if `verify`, or if these files were not compared before."""
        stamp = {}
        for name, expected in self.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != expected.bytes:
                raise _damaged(path, "is missing or has another size")
            stamp[name] = [expected.bytes, path.stat().st_mtime_ns, digest(expected.sha256)]
        note = cache_folder() / "verified" / f"{digest(str(folder.resolve()))[:32]}.json"
        if not verify and _noted(note) == stamp:
            return
        for name, expected in self.files.items():
            for number, (now, before) in enumerate(zip(_block_digests(folder / name), expected.sha256, strict=True)):
                if now != before:
                    raise _damaged(folder / name, f"has changed in block {number} of {DIGEST_BLOCK >> 20} MiB")
        try:
            write_json(note, stamp)
        except UserError:
            return  # without a writable cache folder, every open compares the digests

    def check_encoder(self, folder: Path, fingerprint: str, dim: int) -> None:
        if (fingerprint, dim) != (self.encoder, self.dim):
            raise UserError(
                f"{folder} was built with the model {self.encoder} (d = {self.dim}), and this is the model {fingerprint} "
                f"(d = {dim}): their subspaces are not comparable. Load the first model, or build an index with the second."
            )


def cache_folder() -> Path:
    """Where files go that can be made again: SUBSPACES_CACHE, or `subspaces` in the user's cache folder."""
    own = os.environ.get("SUBSPACES_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "subspaces"


def _noted(note: Path) -> Any:
    try:
        return read_json(note) if note.exists() else None
    except (UserError, OSError):
        return None


def _damaged(path: Path, what: str) -> StaleIndex:
    return StaleIndex(f"{path} is damaged: it {what}. Copy the folder again, or delete it and build the index again.")


def _block_digests(path: Path) -> Iterator[str]:
    with open(path, "rb") as handle:
        while block := handle.read(DIGEST_BLOCK):
            yield hashlib.sha256(block).hexdigest()


class Store:
    """`half` (N, d(d+1)/2) in 16 or 32 bits and `trace` (N,), memory-mapped from a folder."""

    def __init__(self, folder: Path, precision: str, width: int):
        name, dtype = _TYPES[precision]
        self.precision, self.width = precision, width
        self.trace = torch.from_numpy(np.fromfile(folder / _TRACE, dtype=np.float32))
        # torch accepts writable arrays only: mode "c" is writable in memory and never changes the file
        mapped = np.memmap(folder / name, dtype=dtype, mode="c", shape=(len(self.trace), width))
        self.half = torch.from_numpy(mapped)

    def __len__(self) -> int:
        return len(self.trace)

    def nis(self, rows: slice | Tensor) -> Tensor:
        """hvec(P)/Tr(P) of the rows, float32."""
        return self.half[rows].to(torch.float32, copy=True).div_(self.trace[rows].unsqueeze(1))

    def blocks(self, size: int) -> Iterator[tuple[int, Tensor]]:
        """(first row, NIS vectors) of consecutive blocks."""
        for start in range(0, len(self), size):
            yield start, self.nis(slice(start, start + size))

    def sample(self, size: int, seed: int) -> Tensor:
        """NIS vectors of at most `size` rows, drawn without repetition."""
        if size >= len(self):
            return self.nis(slice(None))
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(len(self), generator=generator)[:size].sort().values
        return torch.cat([self.nis(part) for part in rows.split(4096)])


def store_files(precision: str) -> tuple[str, str]:
    """The names of the files of half-vectors and traces."""
    return _TYPES[precision][0], _TRACE


def column_type(name: str) -> np.dtype:
    """The type of a column's numbers, by the end of its file name."""
    return np.dtype({"f16": "<f2", "f32": "<f4"}[name.rpartition(".")[2]])


def read_column(folder: Path, name: str, width: int) -> Tensor:
    """(rows, width), memory-mapped."""
    return torch.from_numpy(np.memmap(folder / name, dtype=column_type(name), mode="c").reshape(-1, width))


def read_windows(folder: Path) -> np.ndarray:
    """The number of rows of each document, (documents,)."""
    return np.fromfile(folder / WINDOWS, dtype="<u4")


class StoreWriter:
    """Appends blocks of documents. Bytes after the given numbers of documents and rows, left by a killed writer, are
    cut off."""

    def __init__(
        self,
        folder: Path,
        precision: str,
        width: int,
        documents: int = 0,
        rows: int = 0,
        columns: Mapping[str, int] | None = None,
    ):
        dtype, self._columns = _TYPES[precision][1], dict(columns or {})
        sizes = _sizes(precision, width, documents, rows)
        sizes |= {name: rows * count * column_type(name).itemsize for name, count in self._columns.items()}
        if any(not (folder / name).is_file() or (folder / name).stat().st_size < size for name, size in sizes.items()):
            documents = rows = 0
        self.documents, self.rows = documents, rows
        self._files: list[tuple[IO[bytes], DTypeLike]] = []
        kinds: tuple[DTypeLike, ...] = (dtype, np.float32, "<u4", *map(column_type, self._columns))
        for (name, size), kind in zip(sizes.items(), kinds, strict=True):
            size = size if documents else 0
            handle = open(folder / name, "r+b" if size else "wb")  # noqa: SIM115
            handle.truncate(size)
            handle.seek(size)
            self._files.append((handle, kind))

    def append(
        self, half: Tensor, trace: Tensor, windows: list[int], values: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write and flush to disk: when this returns, the rows survive a power cut."""
        blocks: tuple[ArrayLike, ...] = (
            half.numpy(),
            trace.numpy(),
            windows,
            *((values or {})[name].numpy() for name in self._columns),
        )
        for (handle, kind), block in zip(self._files, blocks, strict=True):
            handle.write(np.ascontiguousarray(block, dtype=kind).data)
            handle.flush()
            os.fsync(handle.fileno())
        self.documents += len(windows)
        self.rows += len(half)

    def close(self) -> None:
        for handle, _ in self._files:
            handle.close()


def _sizes(precision: str, width: int, documents: int, rows: int) -> dict[str, int]:
    name, dtype = _TYPES[precision]
    return {name: rows * width * np.dtype(dtype).itemsize, _TRACE: 4 * rows, WINDOWS: 4 * documents}
