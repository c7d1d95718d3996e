"""One training step, per-edge and shared, against autograd through a batched solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.baseline import AutogradStep
from benchmarks.timing import Row, in_turns, require_agreement
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.reconstruction import ReconstructionTask, ReconstructionTraining
from subspaces.hierarchy.sampling import Batch
from subspaces.training.loop import generator_for, set_threads

LAM, LR, START, SEED = 0.2, 5e-4, 0.1, 3
TRAINING = {
    "epochs": 1, "negatives": 19, "pool": 256, "in_batch": True, "weigh_as": 0, "lr": LR, "lr_final": 1.0, "burn_in": 0,
    "burn_in_factor": 1.0, "start": 1e-4, "trace_pull": 0.0, "trace_pull_from": 0.5,
}  # fmt: skip
ALLOWED = {
    "loss": 1e-5,
    "gradient": 1e-3,
    "update": 1e-2,
}  # relative; Adam's first step is a sign, so tiny gradients show there


@dataclass
class Renumbered:
    """A sampler whose nodes are looked up in a table of only those rows that the benchmark will touch: memory for laptops."""

    sampler: Any
    number: Tensor

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> Any:
        batch = self.sampler.draw(children, parents, generator)
        batch.rows = self.number[batch.rows]
        return batch


class Workload:
    """Some steps of the real task on the full hierarchy, in our way and in the baseline's, from the same start."""

    def __init__(self, graph: Taxonomy, dim: int, steps: int, **settings: Any):
        self.task = ReconstructionTask(graph, None, ReconstructionTraining(**{**TRAINING, **settings}))
        self.task.begin_epoch(0, generator_for(SEED, 1))
        self.steps = min(steps, self.task.steps_per_epoch)
        number = torch.full((graph.nodes,), -1)
        touched = torch.unique(torch.cat([self.draw(i).rows for i in range(self.steps)]))
        number[touched] = torch.arange(len(touched))
        self.task.sampler = Renumbered(self.task.sampler, number)
        self.geometry = make_geometry("subspace", len(touched), dim, lam=LAM, start=START)
        self.geometry.initialise(generator_for(SEED, 0))
        self.geometry.state()  # makes the optimiser
        self.task.geometry = self.geometry
        self.baseline = AutogradStep(self.geometry.X, LAM, LR)

    def draw(self, i: int) -> Batch:
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
        return self.baseline.step(self.draw(i % self.steps))

    def agreement(self) -> dict[str, float]:
        """Relative differences in loss, gradient (the first moment) and change of the weights after the first step of both."""
        before = self.geometry.X.clone()
        ours, theirs = self.ours(0), self.theirs(0)
        return {
            "loss": abs(ours - theirs) / abs(theirs),
            "gradient": relative(self.geometry.optimiser.mean, self.baseline.mean),
            "update": relative(self.geometry.X - before, self.baseline.weights - before),
        }


def relative(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


def per_edge(graph: Taxonomy, dim: int, at_least: float, batch: int = 128, negatives: int = 19, rounds: int = 7) -> Row:
    name = f"training step, per-edge, d = {dim}"
    work = Workload(graph, dim, steps=2, sampling="per-edge", batch=batch, negatives=negatives)
    agreement = work.agreement()
    require_agreement(name, agreement, ALLOWED)
    ours, theirs = in_turns(work.ours, work.theirs, rounds)
    settings = {
        "dim": dim,
        "batch": batch,
        "candidates": negatives + 1,
        "rounds": rounds,
        "timed": "draw, loss, gradient, Adam",
    }
    return Row(name, ours, theirs, theirs / ours, at_least, aim=8.0, agreement=agreement, settings=settings)


def shared(graph: Taxonomy, dim: int, batch: int = 512, pool: int = 256, edge_batch: int = 128, rounds: int = 7) -> Row:
    """Milliseconds per `batch` edges on both sides; the baseline takes them in per-edge steps of `edge_batch`."""
    name = f"training edges per second, shared, d = {dim}"
    work = Workload(graph, dim, steps=3, sampling="shared", batch=batch, pool=pool)
    agreement = work.agreement()  # with an autograd step on the same shared batch
    require_agreement(name, agreement, ALLOWED)
    edgewise = Workload(graph, dim, steps=2, sampling="per-edge", batch=edge_batch)
    ours, theirs = in_turns(work.ours, edgewise.theirs, rounds)
    theirs *= work.task.batch / edgewise.task.batch
    settings = {
        "dim": dim, "batch": batch, "pool": pool, "in_batch": True, "rounds": rounds,
        "baseline": f"per-edge steps of {edge_batch} edges, 20 candidates", "unit": f"ms per {batch} edges",
        "ours_edges_per_second": round(1e3 * work.task.batch / ours),
        "baseline_edges_per_second": round(1e3 * work.task.batch / theirs),
    }  # fmt: skip
    return Row(name, ours, theirs, theirs / ours, at_least=15.0, aim=30.0, agreement=agreement, settings=settings)
