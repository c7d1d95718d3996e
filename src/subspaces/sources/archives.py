"""Take the wanted files out of whatever an origin delivered: a tar, a zip, a gzip or the plain file.

Members are chosen by the end of their path and written under names that the registry gives, so nothing in an archive can decide where
it lands; copying stops at the expected size, so nothing in an archive can fill the disk.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import IO

from subspaces.errors import UserError
from subspaces.sources.model import OriginError, SourceFile

CHUNK = 1 << 20
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def deliver(path: Path, wanted: Sequence[SourceFile], into: Path) -> None:
    """Write the `wanted` files found in `path` to `into`; their content is judged by the caller."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                deliver_members(_tar_members(archive), wanted, into)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                deliver_members(_zip_members(archive), wanted, into)
        elif len(wanted) != 1:
            raise OriginError(f"{path.name} is damaged or is not an archive")
        elif _is_gzip(path):
            with gzip.open(path) as stream:
                copy(stream, into / wanted[0].name, wanted[0].size)
        else:
            with path.open("rb") as stream:
                copy(stream, into / wanted[0].name, wanted[0].size)
    except DAMAGED as error:
        raise OriginError(f"{path.name} is damaged: {error}") from error
    except OSError as error:
        raise_if_disk(error)
        raise OriginError(f"{path.name} cannot be read: {error.strerror or type(error).__name__}") from error


def deliver_tar_stream(stream: IO[bytes], wanted: Sequence[SourceFile], into: Path) -> None:
    """The same for a tar that arrives through a pipe or lies inside another file."""
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            deliver_members(_tar_members(archive), wanted, into)
    except DAMAGED as error:
        raise OriginError(f"the archive is damaged: {error}") from error


def deliver_members(members: Iterator[tuple[str, int, IO[bytes]]], wanted: Sequence[SourceFile], into: Path) -> None:
    """A member counts only with the name and the size that the registry gives."""
    by_name = {PurePosixPath(file.name).parts: file for file in wanted}
    for path, size, stream in members:
        parts = PurePosixPath(path).parts
        # The longest match first: 1_Pooling/config.json is not config.json.
        file = next((by_name[parts[start:]] for start in range(len(parts)) if parts[start:] in by_name), None)
        if file is not None and file.size in (None, size):
            copy(stream, into / file.name, file.size)


def _tar_members(archive: tarfile.TarFile) -> Iterator[tuple[str, int, IO[bytes]]]:
    for member in archive:
        if member.isreg() and (stream := archive.extractfile(member)) is not None:
            yield member.name, member.size, stream


def _zip_members(archive: zipfile.ZipFile) -> Iterator[tuple[str, int, IO[bytes]]]:
    for member in archive.infolist():
        if not member.is_dir():
            with archive.open(member) as stream:
                yield member.filename, member.file_size, stream


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def copy(stream: IO[bytes] | BufferedIOBase, target: Path, limit: int | None) -> None:
    """Copy a stream, but never more than one chunk beyond `limit` bytes."""
    written = 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as sink:
        if limit is None:
            shutil.copyfileobj(stream, sink, CHUNK)
            return
        while written <= limit and (block := stream.read(CHUNK)):
            sink.write(block)
            written += len(block)


def raise_if_disk(error: OSError) -> None:
    """A full disk is the reader's disk, not the origin's fault: trying the next origin would not help."""
    if error.errno in DISK:
        raise UserError(
            f"cannot store the download: {error.strerror}. Free some space or choose another folder."
        ) from error
