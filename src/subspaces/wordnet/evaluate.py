"""Evaluate one trained model: all metrics of Table 2 and their variants, as one JSON file; and its ranks, for the figure."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors import safe_open

from subspaces.errors import UserError
from subspaces.files import atomic_file, read_json, sha256_file, write_json
from subspaces.training.loop import set_threads
from subspaces.wordnet.fit import geometry_of, graph_of
from subspaces.wordnet.geometries.base import Geometry
from subspaces.wordnet.graph import Hierarchy
from subspaces.wordnet.ranking import evaluate_generality, evaluate_ranking


def load_model(folder: Path, graph_path: Path, device: str = "cpu") -> tuple[dict[str, Any], Hierarchy, Geometry]:
    """(settings, hierarchy, geometry with its weights) of a trained model; damaged weights are refused."""
    settings = read_json(folder / "settings.json")
    weights = folder / "weights.safetensors"
    if not weights.exists() or sha256_file(weights) != settings["weights_sha256"]:
        raise UserError(f"{weights} is damaged or missing: delete {folder} and train again (same command).")
    graph = graph_of(settings, graph_path, settings["data"]["sample"])
    geometry = geometry_of(settings, graph.nodes, device)
    with safe_open(weights, framework="pt") as content:
        for name, tensor in geometry.weights().items():
            tensor.copy_(content.get_tensor(name))
    return settings, graph, geometry


def evaluate_reconstruction(
    folder: Path,
    graph_path: Path,
    out: Path,
    key: str,
    threads: int,
    tick: Callable[[int, int], None],
    extra: dict[str, Any],
    device: str = "cpu",
) -> dict[str, Any]:
    """MR, mAP, edge-MRR and the variants of ρ of one model, with all that is needed to trace them."""
    set_threads(threads)
    settings, graph, geometry = load_model(folder, graph_path, device)
    began = time.monotonic()
    metrics = evaluate_ranking(geometry, graph, tick=tick)
    generality = geometry.generality().cpu()
    metrics |= evaluate_generality(generality.double().numpy(), graph)
    metrics["generality_mean"] = float(generality.mean())
    timing = read_json(folder / "timing.json")
    result = {
        "key": key,
        **extra,
        "metrics": metrics,
        "settings": {name: settings[name] for name in ("model", "training", "subtree", "seed", "graph", "steps")},
        "model_key": settings["key"],
        "weights_sha256": settings["weights_sha256"],
        "data": settings["data"],
        "timing": {"train_seconds": timing["seconds"], "evaluate_seconds": round(time.monotonic() - began, 1)},
        "machine": {
            "processor": platform.machine(),
            "threads": threads,
            "train_threads": timing["threads"],
            "torch": torch.__version__,
            "device": device,
            "train_device": timing["device"],
        },
    }
    write_json(out, result)
    return result


def write_ranks(folder: Path, graph_path: Path, out: Path, key: str, threads: int) -> None:
    """One row per node: name, number of descendants, effective rank."""
    set_threads(threads)
    _, graph, geometry = load_model(folder, graph_path)
    table = pa.table(
        {
            "name": graph.names,
            "descendants": graph.descendants.astype(np.int32),
            "rank": geometry.generality().to(torch.float32).numpy(),
        }
    ).replace_schema_metadata({"key": key})
    with atomic_file(out) as handle:
        pq.write_table(table, handle, compression="zstd", compression_level=19)
