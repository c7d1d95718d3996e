"""Pairs from a file to their inclusions: streamed, so that the file may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from subspaces.errors import UserError
from subspaces.hierarchy.edges import read_pairs
from subspaces.hierarchy.model import Hierarchy

_PAIRS = 2048


class Scored(NamedTuple):
    child: str
    parent: str
    inclusion: float
    entailed: bool


class Scorer:
    """Scores the lines of a file in order; `unknown` counts the lines that were left out.

    Names count as they are written. A part of a name is enough for a question, but in a file it could name another node
    unseen.
    """

    def __init__(self, hierarchy: Hierarchy, skip_unknown: bool = False):
        self.hierarchy, self.skip_unknown, self.unknown = hierarchy, skip_unknown, 0

    def scores(self, path: str | Path) -> Iterator[Scored]:
        waiting: list[tuple[str, str]] = []
        for number, child, parent in read_pairs(path):
            unknown = next((name for name in (child, parent) if name not in self.hierarchy), None)
            if unknown is not None:
                if not self.skip_unknown:
                    self._refuse(path, number, unknown)
                self.unknown += 1
                continue
            waiting.append((child, parent))
            if len(waiting) == _PAIRS:
                yield from self._score(waiting)
                waiting = []
        yield from self._score(waiting)

    def _refuse(self, path: str | Path, number: int, name: str) -> None:
        try:
            close = self.hierarchy.names[self.hierarchy.place(name)]
            reason = f"{self.hierarchy.folder} has no node {name!r}: did you mean {close!r}?"
        except UserError as error:
            reason = str(error)
        raise UserError(
            f"{path}, line {number}: {reason} Correct the line, or leave such lines out with --skip-unknown."
        )

    def _score(self, pairs: list[tuple[str, str]]) -> Iterator[Scored]:
        if not pairs:
            return
        places = torch.tensor([[self.hierarchy.place(child), self.hierarchy.place(parent)] for child, parent in pairs])
        inclusion = self.hierarchy.features.inclusion(places[:, 0], places[:, 1]).tolist()
        for (child, parent), value in zip(pairs, inclusion, strict=True):
            yield Scored(child, parent, value, value >= self.hierarchy.threshold)
