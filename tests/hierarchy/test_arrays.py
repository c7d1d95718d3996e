"""Arrays whose file is the same everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from subspaces.hierarchy.arrays import write_arrays


def test_arrays_come_back_and_their_bytes_are_fixed(tmp_path: Path) -> None:
    arrays = {
        "edges": np.arange(12, dtype=np.int32).reshape(6, 2),
        "none": np.empty((0, 2), np.int32),
        "one": np.int64(7),
    }
    arrays["turned"] = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    path = tmp_path / "some.npz"
    found = write_arrays(path, arrays)
    assert found == hashlib.sha256(path.read_bytes()).hexdigest()
    # Made once with each of Python 3.11.2 and 3.11.7, whose zipfile modules write other headers when they are asked by numpy.
    assert found == "2bbcc3d364f92e957dfa252b31a160f1abab65a689b8e7c403d4a22e1c70c4ca"
    with np.load(path, allow_pickle=False) as content:
        assert list(content) == list(arrays)
        for name, array in arrays.items():
            assert np.array_equal(content[name], array) and content[name].dtype == array.dtype


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "some.npz", {"any": np.array([{}], dtype=object)})
    assert not list(tmp_path.iterdir())
