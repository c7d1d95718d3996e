"""Train one model of the reconstruction table and save it: weights, history, settings; the settings, with the key, come last."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import atomic_file
from subspaces.training.run import Run
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


def fit_reconstruction(job: dict[str, Any], graph: Hierarchy, run: Run) -> dict[str, Any]:
    """Train to the end, resuming where a killed run was; returns what went into settings.json."""
    if not len(graph.ancestors):
        raise UserError("no node of this hierarchy has an ancestor: there is nothing to learn.")
    run.begin()
    geometry = geometry_of(job, graph.nodes, run.device)
    task = Reconstruction(graph, geometry, job["training"])
    outcome = run.train(task, job["training"]["epochs"])
    sha256 = run.write_weights(geometry.weights())
    with atomic_file(run.out / "history.csv", "w") as handle:
        columns = ["epoch", *sorted(outcome.history[0].keys() - {"epoch"}, reverse=True)]
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(outcome.history)
    return run.finish(job, outcome, {"graph": graph.counts(), "weights_sha256": sha256})
