"""Judge one trained noun model on HyperLex, zero-shot (paper §4.1, Table 3): the correlation, and what could not be scored."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subspaces.experiments.hyperlex.pairs import (
    Scorer,
    Senses,
    distance_scorer,
    evaluate_hyperlex,
    gaussian_scorer,
    read_hyperlex,
    subspace_scorer,
)
from subspaces.files import read_json, write_json
from subspaces.geometries.base import VectorGeometry
from subspaces.geometries.gaussian import GaussianGeometry
from subspaces.geometries.subspace import SubspaceGeometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.link_prediction import load_link_prediction
from subspaces.hierarchy.reconstruction import graph_of, load_reconstruction
from subspaces.hierarchy.splits import Split
from subspaces.training.loop import set_threads

_NOUNS = ("hyperlex-nouns.txt", "hyperlex.txt")  # the real file, or the sample


def closure_split(graph: Taxonomy) -> Split:
    """The whole closure to learn, and nothing held out: HyperLex is the test."""
    none, negatives = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 10, 2), dtype=np.int64)
    return Split(
        graph.names, graph.closure, none, negatives, none, negatives, coverage=100, train_origin="whole closure"
    )


def scorer_of(folder: Path, graph_path: Path, alpha: float) -> tuple[dict[str, Any], Taxonomy, Scorer]:
    """(settings, hierarchy, scorer) of a model of the reconstruction family, or of the Gaussians."""
    settings = read_json(folder / "settings.json")
    if settings["model"]["geometry"] == "gaussian":
        graph = graph_of(settings["subtree"], graph_path, settings["data"]["sample"])
        settings, geometry = load_link_prediction(folder, graph.nodes)
        assert isinstance(geometry, GaussianGeometry)
        return {**settings, "graph": graph.counts()}, graph, gaussian_scorer(geometry.means, geometry.variances)
    settings, graph, geometry = load_reconstruction(folder, graph_path)
    if isinstance(geometry, SubspaceGeometry):
        return settings, graph, subspace_scorer(geometry)
    assert isinstance(geometry, VectorGeometry)
    return settings, graph, distance_scorer(geometry, alpha)


def evaluate_on_hyperlex(
    folder: Path,
    graph_path: Path,
    pairs: Path,
    wordnet: Path,
    out: Path,
    key: str,
    threads: int,
    alpha: float,
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Spearman's correlation with people's scores, over all noun pairs, of one model."""
    set_threads(threads)
    began = time.monotonic()
    settings, graph, scorer = scorer_of(folder, graph_path, alpha)
    manifest = read_json(pairs / "manifest.json")
    found = read_hyperlex(next(path for name in _NOUNS if (path := pairs / name).exists()))
    result = evaluate_hyperlex(found, Senses(graph.names, wordnet), scorer)
    timing = read_json(folder / "timing.json")
    named = ("model", "training", "subtree", "seed", "graph", "steps")
    content = {
        "key": key,
        **extra,
        "metrics": result,
        "settings": {name: settings[name] for name in named} | {"alpha": alpha, "pairs": len(found)},
        "model_key": settings["key"],
        "weights_sha256": settings["weights_sha256"],
        "data": settings["data"]
        | {
            "sample": settings["data"]["sample"] or manifest["sample"],
            "hyperlex": {name: one["sha256"] for name, one in manifest["files"].items()},
        },
        "timing": {"train_seconds": timing["seconds"], "evaluate_seconds": round(time.monotonic() - began, 1)},
        "machine": {
            "processor": platform.machine(),
            "threads": threads,
            "train_threads": timing["threads"],
            "torch": torch.__version__,
        },
    }
    write_json(out, content)
    return content
