"""The two kinds of this project: scores in a few coordinates first, then every entry of the best.

reduced   384 coordinates beside the half-vectors in 16 bits: exact scores of the last candidates
compact   256 coordinates and what they leave over in six levels: a fifth of the size, scores off by about a thousandth
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.retrieval.kinds.base import Searcher, with_defaults
from subspaces.retrieval.kinds.cascade import CascadeSearcher, Stages
from subspaces.retrieval.kinds.codes import Codes
from subspaces.retrieval.kinds.reduction import DocumentReduction, Reduction, learn_near, learn_reduction, without
from subspaces.retrieval.kinds.rows import CodedRows, HalfRows, best_step, levels_of, mapped, pack, spread_of, value_of
from subspaces.retrieval.store import Store

_MAPS, _FIRST = "reduction.safetensors", "first.faiss"
_UNIT, _DIGITS = "unit.f32", "coordinates.i8"
_SPREAD, _LEVELS = "spread.f32", "levels.u8"
_BLOCK = 4096
_SAMPLE = 4096  # documents that decide the steps of the levels
REDUCED = {"first": 96, "fine": 8, "dims": 384, "shortlist": 448, "rerank": 32, "seed": 0}
COMPACT = {"first": 96, "fine": 8, "dims": 256, "shortlist": 448, "rerank": 64, "seed": 0}


class Cascade:
    precision = "float16"
    smallest = 64

    def __init__(self, name: str, defaults: dict[str, int], keeps_vectors: bool):
        self.name, self.defaults, self.keeps_vectors = name, defaults, keeps_vectors
        self.files = (_MAPS, _FIRST, _UNIT, _DIGITS, *(() if keeps_vectors else (_SPREAD, _LEVELS)))

    def make(self, store: Store, folder: Path, settings: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        used = with_defaults(self.name, self.defaults, settings)
        say(f"learning {used['dims']} coordinates")
        identity = half_vector(torch.eye(isqrt(2 * store.width)))
        reduction = learn_reduction(store, used["dims"], identity, used["seed"])
        first = min(used["first"], reduction.dims)
        used |= {"dims": reduction.dims, "first": first, "fine": min(used["fine"], first)}
        sample = store.sample(_SAMPLE, used["seed"])
        near = learn_near(store, reduction, identity, used["seed"])
        codes = Codes.learn(reduction.reduce(sample), reduction.ask(without(identity, sample)), near.emphasis(first), used["fine"])
        tensors = {"mean": reduction.mean, "queries": reduction.queries, "near": near.emphasis(reduction.dims), **codes.tensors}
        if not self.keeps_vectors:
            tensors["step"] = best_step(_rest(reduction, sample)[0])
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / _MAPS)
        handles = [open(folder / name, "wb") for name in self.files[2:]]  # noqa: SIM115
        try:
            for _, block in store.blocks(_BLOCK):
                more = []
                if not self.keeps_vectors:
                    rest, spread = _rest(reduction, block)
                    levels = levels_of(rest, tensors["step"])
                    more = [spread, pack(levels)]
                    # What the levels got wrong among the coordinates is put right by the coordinates, where most of a query lies.
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

    def open(self, folder: Path, width: int, settings: dict[str, Any]) -> Searcher:
        with safe_open(folder / _MAPS, framework="pt") as content:
            maps = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        if "near" not in maps:
            raise UserError(f"{folder} was built by an earlier version: build the index again.")
        reduction = Reduction(maps["mean"], maps["queries"])
        codes = Codes.read(folder / _FIRST, maps)
        digits = mapped(folder / _DIGITS, np.int8, settings["dims"])
        if self.keeps_vectors:
            rows = HalfRows(Store(folder, self.precision, width))
        else:
            rows = CodedRows(mapped(folder / _LEVELS, np.uint8, -(-width // 3)), maps["step"], _column(folder / _SPREAD))
        stages = Stages(codes, digits, _column(folder / _UNIT), maps["near"], settings["shortlist"], settings["rerank"])
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
