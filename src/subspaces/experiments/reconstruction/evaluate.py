"""Evaluate one trained model: all metrics of Table 2 and their variants, as one JSON file; and its ranks, for the figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from subspaces.experiments.metrics import JudgedHierarchy, reconstruction
from subspaces.files import atomic_file
from subspaces.hierarchy.ranking import evaluate_generality, evaluate_ranking
from subspaces.hierarchy.reconstruction import load_reconstruction
from subspaces.training.loop import set_threads
from subspaces.training.record import Evaluation


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
    settings, graph, geometry = load_reconstruction(folder, graph_path, device)
    evaluation = Evaluation(folder, settings, threads, device)
    metrics = evaluate_ranking(geometry, graph, tick=tick)
    generality = geometry.generality().cpu()
    metrics |= evaluate_generality(generality.double().numpy(), graph)
    metrics["generality_mean"] = float(generality.mean())
    metrics |= reconstruction.compute(JudgedHierarchy(geometry, graph))
    kept = ("model", "training", "subtree", "seed", "graph", "steps")
    return evaluation.write(out, key, extra, kept, metrics=metrics)


def write_ranks(folder: Path, graph_path: Path, out: Path, key: str, threads: int) -> None:
    """One row per node: name, number of descendants, effective rank."""
    set_threads(threads)
    _, graph, geometry = load_reconstruction(folder, graph_path)
    table = pa.table(
        {
            "name": graph.names,
            "descendants": graph.descendants.astype(np.int32),
            "rank": geometry.generality().to(torch.float32).numpy(),
        }
    ).replace_schema_metadata({"key": key})
    with atomic_file(out) as handle:
        pq.write_table(table, handle, compression="zstd", compression_level=19)
