"""Peak memory of training, in a process of its own: `python -m benchmarks.memory '{"dim": 64, …}'` is that process."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.graphs import find_graph
from benchmarks.steps import LAM, TRAINING
from benchmarks.timing import Row
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy.reconstruction import ReconstructionTask, ReconstructionTraining
from subspaces.training.loop import generator_for, set_threads


def memory(graph_path: Path, nodes: int, dim: int, batch: int = 512, pool: int = 256, steps: int = 4) -> Row:
    job = {"graph": str(graph_path), "nodes": nodes, "dim": dim, "batch": batch, "pool": pool, "steps": steps}
    job["threads"] = torch.get_num_threads()
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(job)]
    root = Path(__file__).resolve().parent.parent
    answer = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    tables = 3 * nodes * dim * dim * 4 / 1e6
    peak = answer["peak_bytes"] / 1e6
    settings = {
        **{key: value for key, value in job.items() if key != "graph"}, **answer,
        "baseline": "weights + two moments", "note": "all rows of the moments written before, as after an epoch",
    }  # fmt: skip
    name = f"memory, shared training, d = {dim}, {nodes:,} nodes"
    return Row(name, peak, tables, peak / tables, 1.5, 1.15, unit="MB", smaller_is_better=True, settings=settings)


def train_a_little(job: dict[str, Any]) -> dict[str, Any]:
    set_threads(job["threads"])
    started = _peak()
    graph, _ = find_graph(Path(job["graph"]), job["nodes"])
    settings = ReconstructionTraining(**{**TRAINING, "sampling": "shared", "batch": job["batch"], "pool": job["pool"]})
    task = ReconstructionTask(graph, make_geometry("subspace", graph.nodes, job["dim"], lam=LAM, start=1e-3), settings)
    for tensor in task.state().values():
        tensor.add_(0)  # zeros that were never written take no memory: they would flatter us
    task.initialise(generator_for(0, 0))
    task.begin_epoch(0, generator_for(0, 1))
    losses = [task.step(0, i, generator_for(0, 2, i))["loss"] for i in range(min(job["steps"], task.steps_per_epoch))]
    return {"peak_bytes": _peak(), "interpreter_bytes": started, "losses": losses}


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(json.dumps(train_a_little(json.loads(sys.argv[1]))))
