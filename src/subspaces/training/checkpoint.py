"""Checkpoints: streamed to disk without a second copy in memory, renamed when whole, verified when read.

A checkpoint is a pair: `step-N.safetensors` (the tensors) and `step-N.json` (step, digest of the first file, the loop's own record).
The second file is written last, so a pair is complete or it does not count. The newest two are kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import atomic_file, digest, read_json, write_json

_CHUNK = 1 << 26
_NAMES = {torch.float16: "F16", torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}


def _bytes_of(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().view(-1).numpy().view(np.uint8)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write a safetensors file chunk by chunk; returns its sha256."""
    header, position = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    hasher = hashlib.sha256()
    with atomic_file(path) as handle:
        piece: bytes | memoryview
        for piece in (struct.pack("<Q", len(text)), text):
            handle.write(piece)
            hasher.update(piece)
        for tensor in tensors.values():
            content = _bytes_of(tensor)
            for start in range(0, len(content), _CHUNK):
                piece = content[start : start + _CHUNK].data
                handle.write(piece)
                hasher.update(piece)
    return hasher.hexdigest()


def _read_into(path: Path, tensors: dict[str, Tensor], expected: str) -> None:
    """Fill `tensors` in place from a file made by `write_tensors`; raises ValueError when the file is not what was written."""
    hasher = hashlib.sha256()
    with open(path, "rb") as handle:
        head = handle.read(8)
        if len(head) < 8:
            raise ValueError("the file is cut off")
        (length,) = struct.unpack("<Q", head)
        if length > 1 << 20:
            raise ValueError("the header is damaged")
        text = handle.read(length)
        hasher.update(head)
        hasher.update(text)
        try:
            header = json.loads(text)
        except ValueError:
            raise ValueError("the header is damaged") from None
        for name, tensor in tensors.items():
            entry = header.get(name)
            if entry is None or entry["shape"] != list(tensor.shape) or entry["dtype"] != _NAMES[tensor.dtype]:
                raise ValueError(f"tensor {name} is missing or has another shape")
            direct = tensor.device.type == "cpu" and tensor.is_contiguous()
            target = tensor if direct else torch.empty(tensor.shape, dtype=tensor.dtype)
            view = target.view(-1).numpy().view(np.uint8)
            for start in range(0, len(view), _CHUNK):
                piece = view[start : start + _CHUNK]
                if handle.readinto(piece.data) != len(piece):
                    raise ValueError("the file is cut off")
                hasher.update(piece.data)
            if target is not tensor:
                tensor.copy_(target)
    if hasher.hexdigest() != expected:
        raise ValueError("the content does not match its digest")


class Checkpoints:
    """The checkpoints of one training job, in a folder of their own that is never an output of a rule."""

    def __init__(self, folder: Path, key: str, say: Callable[[str], None] = print):
        # The folder is keyed by the job's settings and code: another λ never resumes from this one's weights.
        self.folder = Path(folder) / key[:16]
        self.key, self.say = key, say

    def _records(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.json"), reverse=True)

    def _drop(self, record: Path) -> None:
        record.unlink(missing_ok=True)
        record.with_suffix(".safetensors").unlink(missing_ok=True)

    def save(self, step: int, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
        for old in self._records()[1:]:  # room first: big states come close to the size of a disk
            self._drop(old)
        known = {path.with_suffix(".safetensors") for path in self._records()}
        for stray in self.folder.glob("*"):
            if stray.name.endswith(".part") or (stray.suffix == ".safetensors" and stray not in known):
                stray.unlink(missing_ok=True)
        path = self.folder / f"step-{step:09d}.safetensors"
        sha256 = write_tensors(path, tensors)
        entry = {"step": step, "key": self.key, "sha256": sha256, "record": record}
        write_json(path.with_suffix(".json"), {**entry, "entry_sha256": digest(entry)})

    def restore(self, tensors: dict[str, Tensor]) -> dict[str, Any] | None:
        """Fill `tensors` from the newest sound checkpoint and return its record, or None when there is none.

        A damaged one is reported and removed, and the one before it is used. After None the tensors must be initialised anew.
        """
        for path in self._records():
            try:
                entry = read_json(path)
                if not isinstance(entry, dict) or entry.pop("entry_sha256", None) != digest(entry):
                    raise ValueError("its record was changed")
                if entry["key"] != self.key:
                    raise ValueError("it belongs to other settings")
                _read_into(path.with_suffix(".safetensors"), tensors, entry["sha256"])
                return {"step": entry["step"], **entry["record"]}
            except (UserError, ValueError, KeyError, OSError) as error:
                self.say(f"checkpoint {path.stem} is damaged ({error}); trying the one before it")
                self._drop(path)
        return None

    def due(self) -> bool:
        """Is a checkpoint wanted now, whatever the clock says? A subclass that can be interrupted says yes."""
        return False

    def forget(self, step: int) -> None:
        """Remove the checkpoint of one step."""
        self._drop(self.folder / f"step-{step:09d}.json")

    def clear(self) -> None:
        for path in self.folder.glob("*"):
            if path.name != "lock":
                path.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One process at a time; the system lets go of the lock when that process dies, however it dies."""
        path = self.folder / "lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise UserError(
                f"cannot write to {self.folder}: {error.strerror}. Checkpoints need a folder that can be written."
            ) from error
        with path.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(
                    f"another run is training this model already (lock {path}). Wait for it, or stop it; it resumes."
                ) from error
            yield
