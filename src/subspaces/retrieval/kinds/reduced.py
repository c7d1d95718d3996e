"""The two kinds of this project: scores in a few coordinates first, then every entry of the best.

reduced   512 coordinates beside the half-vectors in 16 bits: exact scores of the last candidates
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

from subspaces.algebra import half_vector
from subspaces.retrieval.kinds.base import Searcher, with_defaults
from subspaces.retrieval.kinds.cascade import CascadeSearcher, Stages
from subspaces.retrieval.kinds.reduction import Reduction, learn_reduction
from subspaces.retrieval.kinds.rows import CodedRows, HalfRows, best_step, encode_rows, mapped
from subspaces.retrieval.store import Store

_MAPS, _FIRST, _SECOND, _CODES = "reduction.safetensors", "first.i8", "second.i8", "codes.u8"
_BLOCK = 4096
_SAMPLE = 4096  # documents that decide the steps of the quantisers
REDUCED = {"first": 128, "dims": 512, "shortlist": 1000, "rerank": 64, "seed": 0}
COMPACT = {"first": 128, "dims": 256, "shortlist": 1000, "rerank": 128, "seed": 0}


class Cascade:
    precision = "float16"
    smallest = 64

    def __init__(self, name: str, defaults: dict[str, int], keeps_vectors: bool):
        self.name, self.defaults, self.keeps_vectors = name, defaults, keeps_vectors
        self.files = (_MAPS, _FIRST, _SECOND) if keeps_vectors else (_MAPS, _FIRST, _SECOND, _CODES)

    def make(self, store: Store, folder: Path, settings: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        used = with_defaults(self.name, self.defaults, settings)
        say(f"learning {used['dims']} coordinates")
        reduction = learn_reduction(store, used["dims"], half_vector(torch.eye(isqrt(2 * store.width))), used["seed"])
        used |= {"dims": reduction.dims, "first": min(used["first"], reduction.dims)}
        sample = store.sample(_SAMPLE, used["seed"])
        unit = reduction.reduce(sample).abs().amax(0).clamp_min(1e-12) / 127
        tensors = {"mean": reduction.mean, "documents": reduction.documents, "queries": reduction.queries, "unit": unit}
        if not self.keeps_vectors:
            tensors["step"] = best_step(_rest(reduction, sample, _eight_bits(reduction, sample, unit) * unit))
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / _MAPS)
        handles = [open(folder / name, "wb") for name in self.files[1:]]  # noqa: SIM115
        try:
            for _, block in store.blocks(_BLOCK):
                digits = _eight_bits(reduction, block, unit)
                parts = [*digits.to(torch.int8).split([used["first"], used["dims"] - used["first"]], dim=1)]
                if not self.keeps_vectors:
                    parts.append(encode_rows(_rest(reduction, block, digits * unit), tensors["step"]))
                for handle, part in zip(handles, parts, strict=True):
                    handle.write(part.contiguous().numpy().data)
        finally:
            for handle in handles:
                handle.close()
        return used

    def open(self, folder: Path, width: int, settings: dict[str, Any]) -> Searcher:
        with safe_open(folder / _MAPS, framework="pt") as content:
            maps = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        reduction = Reduction(maps["mean"], maps["documents"], maps["queries"])
        first = mapped(folder / _FIRST, np.int8, settings["first"])
        rest = settings["dims"] - settings["first"]
        second = mapped(folder / _SECOND, np.int8, rest) if rest else first[:, :0]
        if self.keeps_vectors:
            rows = HalfRows(Store(folder, self.precision, width))
        else:
            rows = CodedRows(mapped(folder / _CODES, np.uint8, -(-width // 3)), maps["step"])
        return CascadeSearcher(reduction, Stages(first, second, maps["unit"], settings["shortlist"], settings["rerank"]), rows)


def _eight_bits(reduction: Reduction, vectors: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """Whole numbers from −127 to 127, still as floats."""
    return (reduction.reduce(vectors) / unit).round_().clamp_(-127, 127)


def _rest(reduction: Reduction, vectors: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """What rounded coordinates leave over of v − μ."""
    return vectors - reduction.mean - reduction.restore(z)
