"""Edge lists as files, and a fit for a process of its own, which is killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import torch

from subspaces.hierarchy.fit import fit_hierarchy
from subspaces.hierarchy.learning import InclusionTask


def tree_edges(nodes: int, seed: int = 0) -> list[tuple[str, str]]:
    """A tree whose inner nodes have 3 to 5 children, filled level by level: (child, parent)."""
    draw = random.Random(seed)
    edges, waiting = [], [0]
    while len(edges) < nodes - 1:
        parent = waiting.pop(0)
        for _ in range(min(draw.randint(3, 5), nodes - 1 - len(edges))):
            child = len(edges) + 1
            edges.append((f"node {child}", f"node {parent}"))
            waiting.append(child)
    return edges


def write_edges(path: Path, edges: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{child}\t{parent}\n" for child, parent in edges), encoding="utf-8")
    return path


def fit_slowly(edges: Path, out: Path) -> None:
    """A fit with a checkpoint and a rest after every step, so that there is time to kill it."""
    torch.set_num_threads(1)
    step = InclusionTask.step

    def slow(*arguments):
        time.sleep(0.2)
        return step(*arguments)

    InclusionTask.step = slow
    fit_hierarchy(edges, out, dim=8, epochs=30, checkpoint_seconds=1e-9)
