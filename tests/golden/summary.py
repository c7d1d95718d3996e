"""What is kept of a result: a few numbers and digests per file, so that small changes of rounding pass and others do not."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RELATIVE, ABSOLUTE = 1e-3, 1e-6
_DIGEST = re.compile(r"[0-9a-f]{40,}")
_LEFT_OUT = ("key", "machine", "timing")  # of JSON files: they differ from run to run
_SHORT = 16  # of the digest of a text: a whole one would itself be taken for a digest that a text names
_FIRST = 4  # entries of an array that are kept as they are
_GRID = 12  # a picture is kept as this many cells each way


def summary(path: Path) -> Any:
    """Of one file, by the end of its name."""
    return _READERS[path.suffix](path)


def differences(recorded: Any, found: Any, place: str = "") -> list[str]:
    """Where two summaries differ, numbers by more than the tolerance."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        names = sorted(recorded.keys() | found.keys())
        return [
            line
            for name in names
            for line in differences(recorded.get(name), found.get(name), f"{place}/{name}" if place else name)
        ]
    if isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = enumerate(zip(recorded, found, strict=True))
        return [line for number, pair in pairs for line in differences(*pair, f"{place}[{number}]")]
    if _is_number(recorded) and _is_number(found):
        same = math.isclose(recorded, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    else:
        same = type(recorded) is type(found) and recorded == found
    return [] if same else [f"{place}: recorded {recorded!r}, found {found!r}"]


def plain(content: Any) -> Any:
    """JSON without what differs from run to run; digests of bytes become the word."""
    if isinstance(content, dict):
        return {name: plain(value) for name, value in content.items() if name not in _LEFT_OUT}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, str):
        return _DIGEST.sub("digest", content)
    return content


def text(content: str) -> dict[str, Any]:
    """Lines and a digest, without the keys and digests of bytes that a text names."""
    content = _DIGEST.sub("digest", content)
    return {"lines": content.count("\n"), "sha256": hashlib.sha256(content.encode()).hexdigest()[:_SHORT]}


def array(values: np.ndarray) -> dict[str, Any]:
    """Shape, size and first entries."""
    kept: dict[str, Any] = {"shape": list(values.shape)}
    if values.dtype.kind not in "biuf":
        return kept | text("\n".join(map(str, values.ravel().tolist())))
    numbers = values.astype(np.float64).ravel()
    numbers = numbers[np.isfinite(numbers)]
    norm, mean = float(np.linalg.norm(numbers)), float(np.abs(numbers).mean()) if len(numbers) else 0.0
    return kept | {"norm": norm, "mean": mean, "first": numbers[:_FIRST].tolist()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    return {str(name): array(column.to_numpy()) for name, column in table.items() if "seconds" not in str(name)}


def _tensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return {name: array(tensor) for name, tensor in sorted(load_file(path).items())}


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as content:
        return {name: array(content[name]) for name in sorted(content.files)}


def _picture(path: Path) -> dict[str, Any]:
    """The mean brightness of the cells of a grid."""
    from matplotlib.image import imread

    pixels = imread(path)[..., :3].mean(axis=-1)
    cells: Iterable[np.ndarray] = (
        cell for band in np.array_split(pixels, _GRID) for cell in np.array_split(band, _GRID, axis=1)
    )
    return {"shape": list(pixels.shape), "cells": [round(float(cell.mean()), 5) for cell in cells]}


_READERS = {
    ".json": lambda path: plain(json.loads(path.read_text(encoding="utf-8"))),
    ".npz": _npz,
    ".safetensors": _tensors,
    ".parquet": lambda path: _columns(pd.read_parquet(path)),
    ".csv": lambda path: _columns(pd.read_csv(path, comment="#")),
    ".txt": lambda path: text(path.read_text(encoding="utf-8")),
    ".tex": lambda path: text(path.read_text(encoding="utf-8")),
    ".md": lambda path: text(path.read_text(encoding="utf-8")),
    ".html": lambda path: {"lines": path.read_text(encoding="utf-8").count("\n")},
    ".png": _picture,
}
