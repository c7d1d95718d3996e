"""What a user would take instead of subspaces: Poincaré or order embeddings of the same hierarchy, judged in the same way (`--geometry`).

A baseline is trained on the same known pairs as link prediction trains it, so no edge is ever a negative. Its figures flatter it a little:
where its score has a free setting (α of Poincaré's is-a score), the value with the best F1 is taken. It is judged only: `Hierarchy`
answers questions from subspaces.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from subspaces.errors import UserError
from subspaces.geometries.base import Geometry, make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.judging import judge_pairs
from subspaces.hierarchy.link_prediction import LinkPredictionTask, LinkTraining
from subspaces.hierarchy.splits import Split
from subspaces.settings import Strict

_SEEN = 20_000_000  # edges that a training sees at most; small hierarchies are passed through `_EPOCHS` times
_EPOCHS = 60
_STEPS = 1000  # at least
_BATCH = 256
_TRIED = 300  # children on which free settings of a score are compared
_COMMON: dict[str, Any] = {
    "sampling": "per-edge",
    "pool": 64,
    "lr_final": 0.1,
    "start_epochs": 0,
    "start_lr": 1.0,
    "validate_every": 1,
    "burn_in_factor": 0.01,
    "gamma_positive": 0.0,
    "gamma_negative": -1.0,
    "margin": 0.0,
    "corrupt": "both",
}
_RECIPES: dict[str, dict[str, Any]] = {  # as in params.yaml; batches and rates follow the smaller number of edges
    "poincare": {"loss": "softmax", "optimiser": "sgd", "negatives": 20, "weigh_as": 1.0, "burn_in": 5, "start": 1e-4},
    "order": {"loss": "margin", "optimiser": "adam", "negatives": 10, "weigh_as": 10.0, "burn_in": 0, "start": 1.0},
}
_RATES = {"poincare": 100.0, "order": 0.05}
BASELINES = tuple(_RECIPES)


class BaselineSettings(Strict):
    """What a baseline is computed from, besides the edges and the seed."""

    geometry: Literal["poincare", "order"]
    dim: int
    training: LinkTraining

    @property
    def epochs(self) -> int:
        return self.training.epochs


def baseline_settings(
    geometry: str,
    graph: Taxonomy,
    dim: int,
    *,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
) -> BaselineSettings:
    if geometry not in BASELINES:
        raise UserError(f"unknown geometry {geometry!r}: choose subspace, {' or '.join(BASELINES)}.")
    if epochs is None:
        edges, least = len(graph.closure), batch or _BATCH
        epochs = max(10, min(_EPOCHS, _SEEN // edges), -(-_STEPS // -(-edges // least)))
    values = _COMMON | _RECIPES[geometry]
    values |= {"epochs": epochs, "batch": batch or _BATCH, "lr": lr or _RATES[geometry]}
    return BaselineSettings(geometry=geometry, dim=dim, training=LinkTraining(**values))  # type: ignore[arg-type]


class BaselineTask(LinkPredictionTask):
    """Link prediction on all known pairs, with nothing held out. `closed=False`: on the given edges only."""

    def __init__(self, graph: Taxonomy, settings: BaselineSettings, closed: bool = True):
        edges = graph.closure if closed else graph.edges.astype(np.int64)
        none, blocks = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 1, 2), dtype=np.int64)
        split = Split(graph.names, edges, none, blocks, none, blocks, coverage=100, train_origin="hierarchy")
        super().__init__(split, _geometry(settings, graph.nodes), settings.training)

    def weights(self) -> dict[str, Tensor]:
        return self.geometry.weights()


class BaselineScores:
    """The decision scores of a trained baseline, as `judge_pairs` reads them."""

    bounded = False

    def __init__(self, geometry: Geometry, **tuned: float):
        self.geometry, self.tuned = geometry, tuned

    def inclusion(self, child: Tensor, parent: Tensor) -> Tensor:
        return self.geometry.score_pairs(child, parent, **self.tuned).double()

    def block(self, children: Tensor, parents: Tensor) -> Tensor:
        """(children, parents)."""
        pairs = torch.cartesian_prod(children, parents)
        return self.inclusion(pairs[:, 0], pairs[:, 1]).view(len(children), len(parents))


def load_baseline(
    weights: Path, settings: BaselineSettings, graph: Taxonomy, seed: int, closed: bool
) -> BaselineScores:
    """The trained baseline with the free settings of its score that have the best F1."""
    geometry = _geometry(settings, graph.nodes)
    with safe_open(weights, framework="pt") as content:
        for name, tensor in geometry.weights().items():
            tensor.copy_(content.get_tensor(name))
    tried = [dict(zip(geometry.tuned, values, strict=True)) for values in product(*geometry.tuned.values())]
    if len(tried) == 1:
        return BaselineScores(geometry)
    f1 = [judge_pairs(BaselineScores(geometry, **one), graph, seed, closed, sample=_TRIED)["f1"] for one in tried]
    return BaselineScores(geometry, **tried[int(np.argmax(f1))])


def _geometry(settings: BaselineSettings, nodes: int) -> Geometry:
    training = settings.training
    return make_geometry(settings.geometry, nodes, settings.dim, start=training.start, optimiser=training.optimiser)
