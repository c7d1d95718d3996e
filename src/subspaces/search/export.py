"""Half-vectors of a file of documents as one safetensors file, for other tools.

`half` (N, d(d+1)/2) holds hvec(P) of each document and `trace` (N,) its Tr(P): the product of two rows is Tr(PQ), and
divided by the trace of the first it is NIS(second | first). The file is written as a stream, in place in OUT.part,
whose size is known before the first text is encoded; a killed run resumes after its last complete block. A document
that is longer than the model's limit has one row, as the model cuts it; their number is reported.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import digest, read_json, write_json
from subspaces.search.build import BLOCK, Progress
from subspaces.search.documents import Documents
from subspaces.search.half_vectors import HalfVectorEncoder, TextEncoder
from subspaces.training.progress import Silent

PRECISIONS: dict[str, tuple[str, np.dtype]] = {"fp32": ("F32", np.dtype("<f4")), "fp16": ("F16", np.dtype("<f2"))}
_TRACE = np.dtype("<f4")


class _Layout:
    """Where each row of the two tensors lies in the file: an 8-byte length, a JSON header of that length, then the
    tensors."""

    def __init__(self, count: int, width: int, precision: str, metadata: dict[str, str]):
        name, self.dtype = PRECISIONS[precision]
        self.row = width * self.dtype.itemsize
        end = count * self.row
        header = {
            "__metadata__": metadata,
            "half": {"dtype": name, "shape": [count, width], "data_offsets": [0, end]},
            "trace": {"dtype": "F32", "shape": [count], "data_offsets": [end, end + count * _TRACE.itemsize]},
        }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.header = len(text).to_bytes(8, "little") + text
        self._half, self._trace = len(self.header), len(self.header) + end
        self.size = self._trace + count * _TRACE.itemsize

    def write(self, handle: IO[bytes], first: int, half: Tensor, trace: Tensor) -> None:
        """Rows from `first` on; when this returns they survive a power cut."""
        for place, values, dtype in (
            (self._half + first * self.row, half, self.dtype),
            (self._trace + first * _TRACE.itemsize, trace, _TRACE),
        ):
            handle.seek(place)
            handle.write(np.ascontiguousarray(values.numpy(), dtype=dtype).data)
        handle.flush()
        os.fsync(handle.fileno())


def write_vectors(
    documents: str | Path | Iterable[str],
    encoder: TextEncoder,
    out: str | Path,
    *,
    precision: str = "fp32",
    progress: Progress | None = None,
) -> int:
    """Encode documents (a file with one per line, plain or gzip, or a sequence of texts) into `out`; returns how many
    there are.

    The same request again does nothing; another one into the same file is refused.
    """
    if precision not in PRECISIONS:
        raise UserError(f"unknown precision {precision!r}: choose {' or '.join(PRECISIONS)}.")
    out, progress = Path(out), progress or Silent()
    if out.suffix != ".safetensors":
        raise UserError(
            f"vectors are written in the format safetensors: call the file {out.with_suffix('.safetensors').name}."
        )
    checked, encoder = Documents.check(documents), HalfVectorEncoder.of(encoder)
    metadata = {"model": encoder.fingerprint, "dim": str(encoder.dim), "documents_sha256": checked.sha256}
    request = digest([metadata, precision])
    layout = _Layout(checked.count, encoder.width, precision, {**metadata, "request": request})
    if _is_there(out, request):
        return checked.count
    with _part(out, layout, request) as (handle, state, done):
        texts, cut = checked.texts(done), 0
        progress.start(checked.count, done)
        try:
            while block := list(islice(texts, BLOCK)):
                layout.write(handle, done, *encoder.half_vectors_and_traces(block))
                cut += sum(len(split) > 1 for split in encoder.windows(block))
                done += len(block)
                write_json(state, {"request": request, "rows": done})
                progress.update(done, {})
        finally:
            progress.close()
        if done != checked.count:
            raise UserError(
                f"the documents changed while they were read: delete {state}, and run again when they no longer change."
            )
        if cut:
            progress.say(f"{cut:,} documents are longer than the model's limit and were cut")
        Path(handle.name).replace(out)
        state.unlink()
    return checked.count


def _is_there(out: Path, request: str) -> bool:
    if not out.exists():
        return False
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(out, framework="np") as content:
            same = (content.metadata() or {}).get("request") == request
    except (SafetensorError, OSError):
        same = False
    if not same:
        raise UserError(
            f"{out} exists and holds other content, or vectors of other documents or another model: choose another name."
        )
    return True


@contextmanager
def _part(out: Path, layout: _Layout, request: str) -> Iterator[tuple[IO[bytes], Path, int]]:
    """OUT.part, locked, of its full size and with its header; the file that counts its complete rows; and their
    number."""
    part, state = out.with_name(out.name + ".part"), out.with_name(out.name + ".part.json")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "a+b"):
            pass
        with open(part, "r+b") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(
                    f"another run is writing {out}. Wait for it, or stop it; the run can be resumed."
                ) from error
            left: dict[str, Any] = read_json(state) if state.exists() else {"request": request, "rows": 0}
            if left["request"] != request:
                raise UserError(
                    f"{part} is unfinished and of other documents, another model or precision: delete it and {state.name}, "
                    "or choose another name."
                )
            rows = left["rows"] if os.fstat(handle.fileno()).st_size == layout.size else 0
            if not rows:
                handle.truncate(layout.size)
                handle.seek(0)
                handle.write(layout.header)
            yield handle, state, rows
    except OSError as error:
        raise UserError(
            f"cannot write {part}: {error.strerror}. Encoded blocks are kept; correct this and run again."
        ) from error
