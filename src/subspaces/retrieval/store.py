"""Half-vectors and traces of all documents as two flat files, written as a stream and mapped when read.

The half-vector and not its NIS form is stored: divided by the trace its small entries would leave the range in which 16-bit floats are
precise. The division is done after the product, in 32 bits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

_TYPES = {"float16": ("half.f16", np.float16), "float32": ("half.f32", np.float32)}
_TRACE = "trace.f32"


class Store:
    """`half` (N, d(d+1)/2) in 16 or 32 bits and `trace` (N,), mapped from a folder."""

    def __init__(self, folder: Path, precision: str, width: int):
        name, dtype = _TYPES[precision]
        self.precision, self.width = precision, width
        self.trace = torch.from_numpy(np.fromfile(folder / _TRACE, dtype=np.float32))
        # torch wants to be able to write; nobody here does, and the file is opened for reading only.
        mapped = np.memmap(folder / name, dtype=dtype, mode="c", shape=(len(self.trace), width))
        self.half = torch.from_numpy(mapped)

    def __len__(self) -> int:
        return len(self.trace)

    def nis(self, rows: slice | Tensor) -> Tensor:
        """hvec(P)/Tr(P) of some rows, float32."""
        return self.half[rows].float().div_(self.trace[rows].unsqueeze(1))

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
        return torch.cat([self.nis(some) for some in rows.split(4096)])


def store_files(precision: str) -> tuple[str, str]:
    """The names of the two files."""
    return _TYPES[precision][0], _TRACE


def row_bytes(precision: str, width: int) -> tuple[int, int]:
    """The bytes of one row in each of the two files."""
    return width * np.dtype(_TYPES[precision][1]).itemsize, 4


class StoreWriter:
    """Appends blocks of rows. `rows` rows are known to be whole; whatever a killed writer left after them is cut off."""

    def __init__(self, folder: Path, precision: str, width: int, rows: int):
        self.rows, self.dtype = rows, _TYPES[precision][1]
        self._handles = []
        for name, size in zip(store_files(precision), row_bytes(precision, width), strict=True):
            handle = open(folder / name, "r+b" if rows else "wb")  # noqa: SIM115
            handle.truncate(rows * size)
            handle.seek(rows * size)
            self._handles.append(handle)

    def append(self, half: Tensor, trace: Tensor) -> None:
        """Write and flush to disk: when this returns, the rows survive a power cut."""
        for handle, values, dtype in zip(self._handles, (half, trace), (self.dtype, np.float32), strict=True):
            handle.write(np.ascontiguousarray(values.numpy(), dtype=dtype).data)
            handle.flush()
            os.fsync(handle.fileno())
        self.rows += len(half)

    def close(self) -> None:
        for handle in self._handles:
            handle.close()
