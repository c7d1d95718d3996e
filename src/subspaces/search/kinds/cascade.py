"""The two kinds of this project: three stages, each more precise on fewer documents (short codes, coordinates, all
entries).

reduced   384 coordinates beside the half-vectors in 16 bits: exact scores of the last candidates
compact   256 coordinates and what they leave over in six levels: a fifth of the size, scores off by about a thousandth
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.search.kinds.base import Answer, Searcher, keep_best
from subspaces.search.kinds.codes import Codes
from subspaces.search.kinds.reduction import DocumentReduction, Reduction, learn_near, learn_reduction, without
from subspaces.search.kinds.rows import (
    CodedRows,
    HalfRows,
    Rows,
    best_step,
    levels_of,
    mapped,
    pack,
    spread_of,
    value_of,
)
from subspaces.search.storage import Store
from subspaces.settings import Strict
from subspaces.training.checkpoint import write_tensors

_MAPS, _FIRST = "reduction.safetensors", "first.faiss"
_UNIT, _DIGITS = "unit.f32", "coordinates.i8"
_SPREAD, _LEVELS = "spread.f32", "levels.u8"
_BLOCK = 4096
_SAMPLE = 4096  # documents that decide the steps of the levels


class CascadeSettings(Strict):
    first: int = Field(96, ge=1, description="coordinates of the first stage")
    fine: int = Field(8, ge=0, description="coordinates of the first stage that get two codes")
    dims: int = Field(384, ge=1, description="coordinates of the second stage")
    shortlist: int = Field(448, ge=1, description="documents that pass the first stage")
    rerank: int = Field(32, ge=1, description="documents that pass the second stage")
    seed: int = Field(0, ge=0)


REDUCED = CascadeSettings()
COMPACT = CascadeSettings(dims=256, rerank=64)


class Cascade:
    precision = "float16"
    smallest = 64

    def __init__(self, name: str, defaults: CascadeSettings, keeps_vectors: bool):
        self.name, self.settings, self.keeps_vectors = name, defaults, keeps_vectors
        self.files = (_MAPS, _FIRST, _UNIT, _DIGITS, *(() if keeps_vectors else (_SPREAD, _LEVELS)))

    def make(
        self, store: Store, folder: Path, settings: CascadeSettings, say: Callable[[str], None]
    ) -> CascadeSettings:
        say(f"learning {settings.dims} coordinates")
        identity = half_vector(torch.eye(isqrt(2 * store.width)))
        reduction = learn_reduction(store, settings.dims, identity, settings.seed)
        first = min(settings.first, reduction.dims)
        used = settings.model_copy(update={"dims": reduction.dims, "first": first, "fine": min(settings.fine, first)})
        sample = store.sample(_SAMPLE, used.seed)
        near = learn_near(store, reduction, identity, used.seed)
        codes = Codes.learn(
            reduction.reduce(sample), reduction.ask(without(identity, sample)), near.emphasis(first), used.fine
        )
        tensors = {
            "mean": reduction.mean,
            "queries": reduction.queries,
            "near": near.emphasis(reduction.dims),
            **codes.tensors,
        }
        if not self.keeps_vectors:
            tensors["step"] = best_step(_rest(reduction, sample)[0])
        write_tensors(folder / _MAPS, tensors)
        handles = [open(folder / name, "wb") for name in self.files[2:]]  # noqa: SIM115
        try:
            for _, block in store.blocks(_BLOCK):
                more = []
                if not self.keeps_vectors:
                    rest, spread = _rest(reduction, block)
                    levels = levels_of(rest, tensors["step"])
                    more = [spread, pack(levels)]
                    # What the levels got wrong among the coordinates is put right by the coordinates, where most of a
                    # query lies.
                    block = block - value_of(levels, tensors["step"]).mul_(spread.unsqueeze(1))
                z = reduction.reduce(block)
                codes.add(z)
                digits, unit = _eight_bits(z)
                for handle, part in zip(handles, [unit, digits, *more], strict=True):
                    handle.write(part.contiguous().numpy().data)
        finally:
            for handle in handles:
                handle.close()
        codes.write(folder / _FIRST)
        return used

    def open(self, folder: Path, width: int, settings: CascadeSettings) -> Searcher:
        with safe_open(folder / _MAPS, framework="pt") as content:
            maps = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        reduction = Reduction(maps["mean"], maps["queries"])
        codes = Codes.read(folder / _FIRST, maps)
        digits = mapped(folder / _DIGITS, np.int8, settings.dims)
        rows: Rows
        if self.keeps_vectors:
            rows = HalfRows(Store(folder, self.precision, width))
        else:
            rows = CodedRows(
                mapped(folder / _LEVELS, np.uint8, -(-width // 3)), maps["step"], _column(folder / _SPREAD)
            )
        stages = CascadeStages(
            codes, digits, _column(folder / _UNIT), maps["near"], settings.shortlist, settings.rerank
        )
        return CascadeSearcher(reduction, stages, rows)


def _eight_bits(z: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinates (N, m) as whole numbers from −127 to 127, and the value of one unit of each document (N,)."""
    unit = z.abs().amax(1).clamp_min_(1e-12).div_(127)
    return z.div_(unit.unsqueeze(1)).round_().to(torch.int8), unit


def _rest(reduction: DocumentReduction, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """What the coordinates leave over of v − μ, as rows of spread 1 (N, D), and the spreads (N,)."""
    rest = vectors - reduction.mean - reduction.restore(reduction.reduce(vectors))
    spread = spread_of(rest)
    return rest.div_(spread.unsqueeze(1)), spread


def _column(path: Path) -> Tensor:
    return mapped(path, np.float32, 1).flatten()


@dataclass(frozen=True)
class CascadeStages:
    """Codes of all documents, coordinates in 8 bits (N, m), the value of one unit for each document (N,), factors of
    the coordinates for choosing by them (m,), how many documents pass on."""

    codes: Codes
    digits: Tensor
    unit: Tensor
    emphasis: Tensor
    shortlist: int
    rerank: int


class CascadeSearcher:
    def __init__(self, reduction: Reduction, stages: CascadeStages, rows: Rows):
        self.reduction, self.stages, self.rows = reduction, stages, rows

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        count = len(self.stages.codes)
        last = min(count, max(round(effort * self.stages.rerank), 2 * top))
        short = min(count, max(round(effort * self.stages.shortlist), 4 * last))
        w = self.reduction.ask(queries)
        rows = self.stages.codes.best(w, short)[1].sort(dim=1).values  # in the order of the file, which memory likes
        place = self._reduced(w * self.stages.emphasis, rows).topk(last, dim=1, sorted=False).indices
        rows = rows.gather(1, place).sort(dim=1).values  # once more: it is the order of equal scores
        return keep_best(self._all_entries(queries, w, rows), rows, top)

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        return self._all_entries(queries, self.reduction.ask(queries), rows.expand(len(queries), -1))

    def _all_entries(self, queries: Tensor, w: Tensor, rows: Tensor) -> Tensor:
        """Scores (B, c) from everything that is stored of some documents (B, c), chosen for each query."""

        def reduced() -> Tensor:
            return self._reduced(w, rows) + self.reduction.shared(queries).unsqueeze(1)

        return self.rows.scores(rows, queries, reduced)

    def _reduced(self, w: Tensor, rows: Tensor) -> Tensor:
        """Scores by all coordinates of some documents (B, c), chosen for each query."""
        digits, scores = self.stages.digits, torch.empty(rows.shape)
        narrow = torch.empty(rows.shape[1], digits.shape[1], dtype=digits.dtype)
        wide = torch.empty(narrow.shape)
        for place, chosen in enumerate(rows):
            torch.index_select(digits, 0, chosen, out=narrow)
            torch.mv(wide.copy_(narrow), w[place], out=scores[place])
        return scores.mul_(self.stages.unit[rows])
