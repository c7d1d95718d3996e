"""Files that are either whole or absent: write beside, flush to disk, rename."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from subspaces.errors import UserError


@contextmanager
def atomic_file(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary neighbour of `path`; on success it replaces `path` in one step, on failure it is removed."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. Check the folder's permissions and free space."
        ) from error
    temporary = Path(name)
    try:
        encoding = None if "b" in mode else "utf-8"
        with os.fdopen(descriptor, mode, encoding=encoding) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(
            f"cannot write {path}: {error.strerror}. Nothing was changed; free some space or choose another folder."
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | Path, content: bytes) -> None:
    with atomic_file(path) as handle:
        handle.write(content)


def write_text(path: str | Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: str | Path, content: Any) -> None:
    """Readable and stable: sorted keys, two spaces, a newline at the end; NaN is refused."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path} does not exist, or is a folder.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not valid JSON ({error}). Delete it and run the rule that makes it again."
        ) from error


def sha256_file(path: str | Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest(content: Any) -> str:
    """sha256 of the canonical JSON of `content`."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
