"""Small hierarchies, and the settings that train them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from subspaces.geometries.base import Geometry, make_geometry
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.reconstruction import ReconstructionTask, ReconstructionTraining
from subspaces.training.loop import generator_for

SETTINGS: dict[str, Any] = {
    "epochs": 4,
    "batch": 16,
    "sampling": "shared",
    "negatives": 5,
    "pool": 12,
    "in_batch": True,
    "weigh_as": 0,
    "lr": 0.02,
    "lr_final": 1.0,
    "burn_in": 0,
    "burn_in_factor": 0.1,
    "start": 0.05,
    "trace_pull": 0.0,
    "trace_pull_from": 0.5,
}
DIMS = {"subspace": 8, "euclidean": 6, "poincare": 4, "lorentz": 4}


def random_tree(nodes: int, seed: int) -> Taxonomy:
    """A random tree, and one node beside it, so that even the root has somebody it is not linked to."""
    draw = random.Random(seed)
    edges = [(child, draw.randrange(child)) for child in range(1, nodes)]
    return build_hierarchy([f"node-{number}" for number in range(nodes + 1)], edges)


def random_dag(nodes: int, seed: int, edges: int) -> Taxonomy:
    """Every node may have several parents; node 0 is a root; numbers say nothing about height."""
    draw = random.Random(seed)
    order = draw.sample(range(nodes), nodes)
    pairs = {tuple(sorted(draw.sample(range(nodes), 2), reverse=True)) for _ in range(edges)}
    return build_hierarchy(
        [f"node-{number}" for number in range(nodes)], [(order[child], order[parent]) for child, parent in pairs]
    )


def binary_tree(depth: int, beside: int = 1) -> Taxonomy:
    inner = 2**depth - 1
    edges = [(child, (child - 1) // 2) for child in range(1, 2 * inner + 1)]
    return build_hierarchy([f"node-{number}" for number in range(2 * inner + 1 + beside)], edges)


def linked(graph: Taxonomy) -> set[tuple[int, int]]:
    """All ordered pairs that are linked in the closure, in either direction."""
    pairs = {(int(one), int(other)) for one, other in graph.closure}
    return pairs | {(other, one) for one, other in pairs}


def make_task(
    name: str, graph: Taxonomy, dim: int | None = None, options: dict | None = None, **settings: Any
) -> ReconstructionTask:
    chosen = ReconstructionTraining(**{**SETTINGS, **settings})
    geometry = make_geometry(name, graph.nodes, dim or DIMS[name], start=chosen.start, ranking=True, **(options or {}))
    return ReconstructionTask(graph, geometry, chosen)


def run_task(task: ReconstructionTask, seed: int = 0) -> Geometry:
    """Train without the loop: what the loop does, minus everything that can go wrong."""
    task.state()
    task.initialise(generator_for(seed, 0))
    for epoch in range(task.settings.epochs):
        task.begin_epoch(epoch, generator_for(seed, 1, epoch))
        for step in range(task.steps_per_epoch):
            task.step(epoch, step, generator_for(seed, 2, epoch, step))
    return task.geometry


def pairs_of(array: np.ndarray) -> set[tuple[int, int]]:
    return {(int(child), int(parent)) for child, parent in array.reshape(-1, 2)}
