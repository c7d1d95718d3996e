"""Metrics that the paper does not print. Each is one decorated function; every evaluation of its experiment computes it.

The names of these metrics are part of an evaluation's settings. A new metric therefore makes the evaluations of its experiment stale, and
nothing that is trained. A table shows a metric by its name (report/own_tables.py, or a column of report/layouts.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor

from subspaces.geometries.base import Geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.splits import Split

Judged = TypeVar("Judged")


class Metrics(Generic[Judged]):
    """The further metrics of one experiment, as functions of what its evaluation has computed."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[Judged], float]] = {}

    def metric(self, function: Callable[[Judged], float]) -> Callable[[Judged], float]:
        """Register a metric under its function's name."""
        self.functions[function.__name__] = function
        return function

    def compute(self, judged: Judged) -> dict[str, float]:
        return {name: float(function(judged)) for name, function in self.functions.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """What an evaluation's key takes from here; nothing while there is no further metric."""
        return {"metrics": sorted(self.functions)} if self.functions else {}


@dataclass(frozen=True)
class JudgedHierarchy:
    """Reconstruction: the trained model and the graph that it was trained on."""

    geometry: Geometry
    graph: Taxonomy


@dataclass(frozen=True)
class JudgedEdges:
    """Link prediction: decision scores of test edges (N,) and test negatives (M,), and the threshold that validation gave."""

    positive: np.ndarray
    negative: np.ndarray
    threshold: float
    geometry: Geometry
    split: Split


@dataclass(frozen=True)
class JudgedPairs:
    """SNLI: class scores (N, ways) and labels (N,) of the test pairs."""

    logits: Tensor
    labels: np.ndarray


reconstruction: Metrics[JudgedHierarchy] = Metrics()
link_prediction: Metrics[JudgedEdges] = Metrics()
snli: Metrics[JudgedPairs] = Metrics()
