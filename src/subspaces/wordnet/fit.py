"""Train one model of the reconstruction table and save it: weights, history, settings; the settings, with the key, come last."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import atomic_file, write_json
from subspaces.training.checkpoint import Checkpoints, write_tensors
from subspaces.training.loop import Progress, set_threads, train
from subspaces.wordnet.geometries.base import Geometry, make_geometry
from subspaces.wordnet.graph import Hierarchy
from subspaces.wordnet.reconstruction import Reconstruction


def graph_of(job: dict[str, Any], path: Path, sample: bool) -> Hierarchy:
    """The hierarchy that a job trains on. The sample is small already and knows no subtree names, so it is taken whole."""
    graph = Hierarchy.load(path)
    return graph.subtree(job["subtree"]) if job["subtree"] and not sample else graph


def geometry_of(job: dict[str, Any], nodes: int, device: str = "cpu") -> Geometry:
    options = dict(job["model"])
    return make_geometry(options.pop("geometry"), nodes, options.pop("dim"), device, start=job["training"]["start"], **options)


def fit_reconstruction(
    job: dict[str, Any],
    seed: int,
    graph: Hierarchy,
    out: Path,
    key: str,
    checkpoints: Checkpoints,
    progress: Progress,
    threads: int = 1,
    checkpoint_seconds: float = 600.0,
    checkpoint_epochs: int = 0,
    record: dict[str, Any] | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Train to the end, resuming where a killed run was; returns what went into settings.json."""
    if not len(graph.ancestors):
        raise UserError("no node of this hierarchy has an ancestor: there is nothing to learn.")
    set_threads(threads)
    geometry = geometry_of(job, graph.nodes, device)
    task = Reconstruction(graph, geometry, job["training"])
    outcome = train(
        task,
        epochs=job["training"]["epochs"],
        seed=seed,
        checkpoints=checkpoints,
        progress=progress,
        checkpoint_seconds=checkpoint_seconds,
        checkpoint_epochs=checkpoint_epochs,
    )
    sha256 = write_tensors(out / "weights.safetensors", geometry.weights())
    with atomic_file(out / "history.csv", "w") as handle:
        columns = ["epoch", *sorted(outcome.history[0].keys() - {"epoch"}, reverse=True)]
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(outcome.history)
    write_json(
        out / "timing.json",
        {"seconds": round(outcome.seconds, 1), "threads": threads, "device": device, "resumed": outcome.resumed_from > 0},
    )
    settings = {
        "key": key,
        "seed": seed,
        **job,
        "graph": graph.counts(),
        "steps": outcome.steps,
        "weights_sha256": sha256,
        **(record or {}),
    }
    write_json(out / "settings.json", settings)
    checkpoints.clear()
    return settings
