"""Arrays in one npz whose bytes follow from its content alone: `numpy.savez` leaves the headers to Python's zipfile, which has changed
them between patch releases, and then the same relation has another digest on another machine."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import ArrayLike

from subspaces.files import atomic_file, sha256_file

_UNIX, _RIGHTS = 3, 0o644 << 16


def write_arrays(path: Path, arrays: Mapping[str, ArrayLike]) -> str:
    """`numpy.load` reads it; returns its sha256."""
    with atomic_file(path) as handle, ZipFile(handle, "w", ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = ZipInfo(f"{name}.npy")  # dated 1980
            entry.create_system, entry.external_attr = _UNIX, _RIGHTS
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(entry, content.getvalue())
    return sha256_file(path)
