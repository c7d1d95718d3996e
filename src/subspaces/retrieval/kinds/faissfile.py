"""faiss indexes as files that are whole or absent, and as many threads as the rest of the arithmetic uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import torch

from subspaces.errors import UserError
from subspaces.files import atomic_file


def write_faiss(index: Any, path: Path) -> None:
    with atomic_file(path) as handle:
        writer = faiss.PyCallbackIOWriter(handle.write)
        faiss.write_index(index, writer)


def read_faiss(path: Path) -> Any:
    try:
        return faiss.read_index(str(path))
    except RuntimeError as error:
        raise UserError(f"{path} is damaged or missing: delete the index and build it again.") from error


def same_threads() -> None:
    faiss.omp_set_num_threads(torch.get_num_threads())
