"""The last stage: the scores of a few candidates, from everything that is known of them.

`HalfRows` reads half-vectors of 16 bits: exact scores. `CodedRows` reads what a reduction leaves over, in six levels
per entry, three entries to a byte: a sixth of the size. Levels are relative to the document's own spread: those that
answer a query best are often the ones with the largest entries, and a common scale would cut them off.

With the digits c₀, c₁, c₂ of a byte f = c₀ + 6c₁ + 36c₂, and A = ⌊f/6⌋, B = ⌊f/36⌋, it is c₀ = f − 6A, c₁ = A − 6B, c₂
= B: a score is three products with f, A and B, and no table is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from subspaces.search.storage import Store

_TOGETHER = 64  # candidates at a time: their memory is used again, and the cost of a call is shared
LEVELS = 6


class Rows(Protocol):
    def scores(self, rows: Tensor, queries: Tensor, reduced: Callable[[], Tensor]) -> Tensor:
        """Scores (B, c) of candidates, given half-vectors of queries (B, D) and, if asked for, what their reductions
        say, (B, c)."""
        ...


class HalfRows:
    """NIS from the stored half-vectors; what the reduction said is not needed any more."""

    def __init__(self, store: Store):
        self.store = store
        self._narrow = torch.empty(_TOGETHER, store.width, dtype=store.half.dtype)
        self._wide = torch.empty(_TOGETHER, store.width)

    def scores(self, rows: Tensor, queries: Tensor, reduced: Callable[[], Tensor]) -> Tensor:
        out = torch.empty(rows.shape)
        for query, some, place in _pieces(rows, out):
            narrow, wide = self._narrow[: len(some)], self._wide[: len(some)]
            torch.index_select(self.store.half, 0, some, out=narrow)
            torch.mv(wide.copy_(narrow), queries[query], out=place)
        return out.div_(self.store.trace[rows])


class CodedRows:
    """What a reduction leaves over: `codes` (N, ⌈D/3⌉) of bytes, `step` (D,) the distance of two levels of each entry
    for a document of spread 1, `spread` (N,)."""

    def __init__(self, codes: Tensor, step: Tensor, spread: Tensor):
        self.codes, self.spread = codes, spread
        parts = codes.shape[1]
        self.step = torch.nn.functional.pad(step, (0, 3 * parts - len(step)))
        self._narrow = torch.empty(_TOGETHER, parts, dtype=torch.uint8)
        self._wide, self._floor = torch.empty(_TOGETHER, parts), torch.empty(_TOGETHER, parts)

    def scores(self, rows: Tensor, queries: Tensor, reduced: Callable[[], Tensor]) -> Tensor:
        scaled = torch.nn.functional.pad(queries, (0, len(self.step) - queries.shape[1])) * self.step
        first, second, third = scaled.unflatten(1, (3, -1)).unbind(1)
        factors = torch.stack([first, second - LEVELS * first, third - LEVELS * second], dim=1)
        out = torch.empty(rows.shape)
        for query, some, place in _pieces(rows, out):
            narrow, wide, floor = self._narrow[: len(some)], self._wide[: len(some)], self._floor[: len(some)]
            torch.index_select(self.codes, 0, some, out=narrow)
            torch.mv(wide.copy_(narrow), factors[query, 0], out=place)
            wide += 0.5  # so that rounding never takes a whole number to the one below
            for power in (1, 2):
                torch.mul(wide, 1 / LEVELS**power, out=floor).floor_()
                place.addmv_(floor, factors[query, power])
        middle = (LEVELS - 1) / 2 * scaled.sum(1, keepdim=True)
        return out.sub_(middle).mul_(self.spread[rows]).add_(reduced())


def _pieces(rows: Tensor, out: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(query, some of its rows, where their scores go)."""
    for query in range(len(rows)):
        for some, place in zip(rows[query].split(_TOGETHER), out[query].split(_TOGETHER), strict=True):
            yield query, some, place


def spread_of(rest: Tensor) -> Tensor:
    """Root of the mean square of each row of `rest` (N, D): (N,)."""
    return rest.square().mean(1).sqrt_().clamp_min_(1e-12)


def best_step(rest: Tensor) -> Tensor:
    """The distance of levels for each entry of rows of spread 1 (N, D): its deviation times the factor with the least
    squared error."""
    deviation = rest.std(0).clamp_min(1e-12)
    some = rest[:256]
    factors = torch.linspace(0.5, 1.0, 26)
    errors = [
        (value_of(levels_of(some, factor * deviation), factor * deviation) - some).square().sum() for factor in factors
    ]
    return deviation * factors[int(torch.stack(errors).argmin())]


def levels_of(rest: Tensor, step: Tensor) -> Tensor:
    """The level 0 … 5 of each entry of rows of spread 1 (N, D), whole numbers as floats."""
    return (rest / step + (LEVELS - 1) / 2).round_().clamp_(0, LEVELS - 1)


def value_of(levels: Tensor, step: Tensor) -> Tensor:
    """What the levels stand for."""
    return (levels - (LEVELS - 1) / 2).mul_(step)


def pack(levels: Tensor) -> Tensor:
    """Bytes (N, ⌈D/3⌉); entry j and those one and two thirds further share a byte."""
    parts = -(-levels.shape[1] // 3)
    first, second, third = (
        torch.nn.functional.pad(levels, (0, 3 * parts - levels.shape[1])).unflatten(1, (3, parts)).unbind(1)
    )
    return (first + LEVELS * second + LEVELS**2 * third).to(torch.uint8)


def mapped(path: Path, dtype: type, width: int) -> Tensor:
    """A flat file as a tensor (N, width), not read before it is used."""
    return torch.from_numpy(np.memmap(path, dtype=dtype, mode="c").reshape(-1, width))
