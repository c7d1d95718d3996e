"""Link prediction with subspaces: training edges per second, shared pool against per-edge negatives and autograd."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.baseline import AutogradLinkStep
from benchmarks.steps import ALLOWED, LAM, LR, SEED, START, Renumbered, relative
from benchmarks.timing import Row, in_turns, require_agreement
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.link_prediction import LinkPredictionTask, LinkTraining
from subspaces.hierarchy.negatives import PairBatch
from subspaces.hierarchy.splits import Split, draw_split
from subspaces.training.loop import generator_for, set_threads

COVERAGE = 10
MARGINS = {"gamma_positive": 0.8, "gamma_negative": 0.1, "weigh_as": 10.0}
TRAINING = {
    "epochs": 1, "start_epochs": 0, "negatives": 10, "pool": 64, "corrupt": "both", "loss": "margin", "margin": 0.0, "lr": LR,
    "lr_final": 1.0, "start_lr": LR, "optimiser": "adam", "start": 1e-4, "burn_in": 0, "burn_in_factor": 1.0, "validate_every": 1, **MARGINS,
}  # fmt: skip


class LinkWorkload:
    """Some steps of the real task on one split, in our way and in the baseline's, from the same start."""

    def __init__(self, split: Split, dim: int, steps: int, **settings: Any):
        self.task = LinkPredictionTask(
            split, make_geometry("subspace", 1, dim, lam=LAM), LinkTraining(**{**TRAINING, **settings})
        )
        self.task.begin_epoch(0, generator_for(SEED, 1))
        self.steps, self.shared = min(steps, self.task.steps_per_epoch), settings["sampling"] == "shared"
        number = torch.full((split.nodes,), -1)
        touched = torch.unique(torch.cat([self.draw(i).rows for i in range(self.steps)]))
        number[touched] = torch.arange(len(touched))
        self.task.sampler = Renumbered(self.task.sampler, number)
        self.geometry = self.task.geometry = make_geometry("subspace", len(touched), dim, lam=LAM, start=START)
        self.geometry.state()  # makes the optimiser
        self.geometry.initialise(generator_for(SEED, 0))
        self.baseline = AutogradLinkStep(self.geometry.X, LAM, LR, *MARGINS.values())

    def draw(self, i: int) -> PairBatch:
        size = self.task.batch
        edges = self.task.edges[self.task.order[i * size : (i + 1) * size]]
        return self.task.sampler.draw(edges[:, 0], edges[:, 1], generator_for(SEED, 2, i))

    def ours(self, i: int) -> float:
        """The loop's step, in the mode that training sets."""
        set_threads(torch.get_num_threads())
        i %= self.steps
        return self.task.step(0, i, generator_for(SEED, 2, i))["loss"]

    def theirs(self, i: int) -> float:
        """The baseline as torch comes."""
        torch.use_deterministic_algorithms(False)
        return self.baseline.step(self.draw(i % self.steps), self.shared)

    def agreement(self) -> dict[str, float]:
        """Relative differences in loss, gradient (the first moment) and change of the weights after the first step of both."""
        before = self.geometry.X.clone()
        ours, theirs = self.ours(0), self.theirs(0)
        return {
            "loss": abs(ours - theirs) / abs(theirs),
            "gradient": relative(self.geometry.optimiser.mean, self.baseline.mean),
            "update": relative(self.geometry.X - before, self.baseline.weights - before),
        }


def link(
    graph: Taxonomy,
    dim: int,
    batch: int = 256,
    pool: int = 64,
    edge_batch: int = 128,
    negatives: int = 10,
    rounds: int = 7,
) -> Row:
    """Milliseconds per `batch` edges on both sides; the baseline takes them in steps of `edge_batch` with their own negatives."""
    name = f"link prediction edges per second, d = {dim}"
    split = draw_split(graph, COVERAGE)
    work = LinkWorkload(split, dim, steps=3, sampling="shared", batch=batch, pool=pool)
    edgewise = LinkWorkload(split, dim, steps=2, sampling="per-edge", batch=edge_batch, negatives=negatives)
    agreement = edgewise.agreement()  # the two sides on the same per-edge batch
    require_agreement(name, agreement, ALLOWED)
    pooled = work.agreement()  # and on the shared batch that is timed
    require_agreement(name, pooled, ALLOWED)
    agreement |= {f"{key}_shared": value for key, value in pooled.items()}
    ours, theirs = in_turns(work.ours, edgewise.theirs, rounds)
    theirs *= work.task.batch / edgewise.task.batch
    settings = {
        "dim": dim, "batch": batch, "pool": pool, "rounds": rounds, "coverage": COVERAGE, "train_edges": len(split.train),
        "baseline": f"per-edge steps of {edge_batch} edges, {negatives // 2} + {negatives - negatives // 2} negatives",
        "unit": f"ms per {work.task.batch} edges",
        "ours_edges_per_second": round(1e3 * work.task.batch / ours),
        "baseline_edges_per_second": round(1e3 * work.task.batch / theirs),
    }  # fmt: skip
    return Row(name, ours, theirs, theirs / ours, at_least=10.0, aim=15.0, agreement=agreement, settings=settings)
