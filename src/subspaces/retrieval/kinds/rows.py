"""The last stage: the scores of a few candidates, from everything that is known of them.

`HalfRows` reads half-vectors of 16 bits: exact scores. `CodedRows` reads what a reduction leaves over, in six levels per entry, three
entries to a byte: a sixth of the size. With the digits c₀, c₁, c₂ of a byte f = c₀ + 6c₁ + 36c₂, and A = ⌊f/6⌋, B = ⌊f/36⌋, it is
c₀ = f − 6A, c₁ = A − 6B, c₂ = B: a score is three products with f, A and B, and no table is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from subspaces.retrieval.store import Store

_TOGETHER = 48  # candidates at a time: they stay in the second-level cache while they are widened and multiplied
LEVELS = 6


class Rows(Protocol):
    def prepare(self, queries: Tensor) -> Tensor:
        """What `scores` wants of half-vectors of queries (B, D)."""
        ...

    def scores(self, rows: Tensor, query: Tensor, reduced: Tensor) -> Tensor:
        """Scores (c,) of candidates, given one prepared query and their scores after the reduction (c,)."""
        ...


class HalfRows:
    """NIS from the stored half-vectors; what the reduction thought is not needed any more."""

    def __init__(self, store: Store):
        self.store = store
        self._narrow = torch.empty(_TOGETHER, store.width, dtype=store.half.dtype)
        self._wide = torch.empty(_TOGETHER, store.width)

    def prepare(self, queries: Tensor) -> Tensor:
        return queries.contiguous()

    def scores(self, rows: Tensor, query: Tensor, reduced: Tensor) -> Tensor:
        out = torch.empty(len(rows))
        for some, place in _pieces(rows, out):
            narrow, wide = self._narrow[: len(some)], self._wide[: len(some)]
            torch.index_select(self.store.half, 0, some, out=narrow)
            torch.mv(wide.copy_(narrow), query, out=place)
        return out.div_(self.store.trace[rows])


class CodedRows:
    """What a reduction leaves over: `codes` (N, ⌈D/3⌉) of bytes, `step` (D,) the distance of two levels of each entry."""

    def __init__(self, codes: Tensor, step: Tensor):
        self.codes = codes
        parts = codes.shape[1]
        self.step = torch.nn.functional.pad(step, (0, 3 * parts - len(step)))
        self._narrow = torch.empty(_TOGETHER, parts, dtype=torch.uint8)
        self._wide, self._floor = torch.empty(_TOGETHER, parts), torch.empty(_TOGETHER, parts)

    def prepare(self, queries: Tensor) -> Tensor:
        """(B, 4, ⌈D/3⌉): the factors of f, A and B, and the shift of the middle of the levels."""
        scaled = torch.nn.functional.pad(queries, (0, len(self.step) - queries.shape[1])) * self.step
        first, second, third = scaled.unflatten(1, (3, -1)).unbind(1)
        shift = -(LEVELS - 1) / 2 * (first + second + third)
        return torch.stack([first, second - LEVELS * first, third - LEVELS * second, shift], dim=1)

    def scores(self, rows: Tensor, query: Tensor, reduced: Tensor) -> Tensor:
        out = torch.empty(len(rows))
        for some, place in _pieces(rows, out):
            narrow, wide, floor = self._narrow[: len(some)], self._wide[: len(some)], self._floor[: len(some)]
            torch.index_select(self.codes, 0, some, out=narrow)
            torch.mv(wide.copy_(narrow), query[0], out=place)
            for power in (1, 2):
                # half a unit before the division, so that rounding never takes a whole number to the one below
                torch.add(wide, 0.5, out=floor).mul_(1 / LEVELS**power).floor_()
                place += floor @ query[power]
        return out.add_(reduced).add_(query[3].sum())


def _pieces(rows: Tensor, out: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(rows.split(_TOGETHER), out.split(_TOGETHER), strict=True)


def best_step(rest: Tensor) -> Tensor:
    """The distance of levels for each entry of `rest` (N, D): its deviation times the factor with the least squared error overall."""
    deviation = rest.std(0).clamp_min(1e-12)
    unit = rest[:256] / deviation
    steps = torch.linspace(0.5, 1.0, 26)
    errors = [(levels_of(unit, step).float() - (LEVELS - 1) / 2).mul_(step).sub_(unit).square().sum() for step in steps]
    return deviation * steps[int(torch.stack(errors).argmin())]


def levels_of(rest: Tensor, step: Tensor) -> Tensor:
    """The level 0 … 5 of each entry, whole numbers as float."""
    return (rest / step + (LEVELS - 1) / 2).round_().clamp_(0, LEVELS - 1)


def encode_rows(rest: Tensor, step: Tensor) -> Tensor:
    """Bytes (N, ⌈D/3⌉); entry j and those one and two thirds further share a byte."""
    levels = levels_of(rest, step)
    parts = -(-rest.shape[1] // 3)
    first, second, third = torch.nn.functional.pad(levels, (0, 3 * parts - rest.shape[1])).unflatten(1, (3, parts)).unbind(1)
    return (first + LEVELS * second + LEVELS**2 * third).to(torch.uint8)


def mapped(path: Path, dtype: type, width: int) -> Tensor:
    """A flat file as a tensor (N, width), not read before it is used."""
    return torch.from_numpy(np.memmap(path, dtype=dtype, mode="c").reshape(-1, width))
