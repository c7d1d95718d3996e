"""From a job to a saved model to its evaluation, and what is refused on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.reconstruction.evaluate import evaluate_reconstruction, load_reconstruction, write_ranks
from subspaces.files import read_json, sha256_file
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.reconstruction import ReconstructionJob, ReconstructionTask, fit_reconstruction, graph_of
from subspaces.pipeline.artefact import carries
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.progress import Silent
from subspaces.training.run import Run
from tests.hierarchy.toys import DIMS, SETTINGS, binary_tree, random_tree

KEY = "a" * 64
RECORD = {"data": {"sample": False}}


def job(name: str, subtree: str | None = None, **settings: Any) -> ReconstructionJob:
    model = {"geometry": name, "dim": DIMS[name]}
    return ReconstructionJob(model=model, training={**SETTINGS, **settings}, subtree=subtree)


def fit(one: ReconstructionJob, graph: Taxonomy, folder: Path, seed: int = 0, **more: Any) -> dict[str, Any]:
    checkpoints = Checkpoints(folder / "checkpoints", KEY, say=lambda text: None)
    return fit_reconstruction(
        one, graph, Run(folder / "model", KEY, checkpoints, Silent(), seed, record=RECORD, **more)
    )


@pytest.fixture(autouse=True)
def global_switches():
    """`fit` and `evaluate` set threads and determinism for their process; the next test gets its own back."""
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", DIMS)
def test_a_model_is_saved_loaded_and_evaluated(tmp_path: Path, name: str) -> None:
    graph = random_tree(30, 1)
    graph.save(tmp_path / "graph.npz")
    settings = fit(job(name), graph, tmp_path)
    folder = tmp_path / "model"
    assert read_json(folder / "settings.json") == settings
    assert settings["weights_sha256"] == sha256_file(folder / "weights.safetensors")
    assert carries(folder / "settings.json", KEY)
    assert not list((tmp_path / "checkpoints").rglob("step-*"))
    assert len((folder / "history.csv").read_text().splitlines()) == 1 + SETTINGS["epochs"]

    _, loaded_graph, geometry = load_reconstruction(folder, tmp_path / "graph.npz")
    assert loaded_graph.names == graph.names
    result = evaluate_reconstruction(
        folder, tmp_path / "graph.npz", tmp_path / "out.json", "b" * 64, 1, lambda *_: None, {"scale": "quick"}
    )
    assert read_json(tmp_path / "out.json") == result
    assert result["model_key"] == KEY and result["key"] == "b" * 64 and result["scale"] == "quick"
    assert result["metrics"]["sources"] == 29 and 0 < result["metrics"]["map"] <= 100
    assert result["metrics"]["generality_mean"] == pytest.approx(float(geometry.generality().mean()))

    write_ranks(folder, tmp_path / "graph.npz", tmp_path / "ranks.parquet", "c" * 64, 1)
    table = pq.read_table(tmp_path / "ranks.parquet")
    assert carries(tmp_path / "ranks.parquet", "c" * 64)
    assert table["name"].to_pylist() == graph.names
    assert table["descendants"].to_pylist() == graph.descendants.tolist()
    assert np.allclose(table["rank"].to_numpy(), geometry.generality().numpy(), rtol=1e-6)


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    graph = random_tree(30, 1)
    for folder, seed in (("one", 0), ("two", 0), ("three", 1)):
        fit(job("subspace"), graph, tmp_path / folder, seed)
    content = {
        folder: [
            (tmp_path / folder / "model" / name).read_bytes()
            for name in ("weights.safetensors", "history.csv", "settings.json")
        ]
        for folder in ("one", "two", "three")
    }
    assert content["one"] == content["two"]
    assert all(one != three for one, three in zip(content["one"], content["three"], strict=True))


def test_a_resumed_run_writes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_tree(30, 1)
    fit(job("subspace"), graph, tmp_path / "whole")
    real, count = ReconstructionTask.step, [0]

    def failing(*arguments):
        count[0] += 1
        if count[0] == 12:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ReconstructionTask, "step", failing)
        with pytest.raises(KeyboardInterrupt):
            fit(job("subspace"), graph, tmp_path / "parts", checkpoint_seconds=1e-9)
    assert not (tmp_path / "parts" / "model").exists()
    fit(job("subspace"), graph, tmp_path / "parts")
    assert read_json(tmp_path / "parts/model/timing.json")["resumed"]
    for name in ("weights.safetensors", "settings.json", "history.csv"):
        assert (tmp_path / "parts/model" / name).read_bytes() == (tmp_path / "whole/model" / name).read_bytes(), name


def test_damaged_or_missing_weights_are_refused(tmp_path: Path) -> None:
    graph = random_tree(30, 1)
    graph.save(tmp_path / "graph.npz")
    fit(job("poincare", epochs=1), graph, tmp_path)
    weights = tmp_path / "model" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged or missing: copy .* again, or delete it"):
        load_reconstruction(tmp_path / "model", tmp_path / "graph.npz")
    weights.unlink()
    with pytest.raises(UserError, match="damaged or missing"):
        load_reconstruction(tmp_path / "model", tmp_path / "graph.npz")


def test_a_job_on_a_subtree(tmp_path: Path) -> None:
    binary_tree(4).save(tmp_path / "graph.npz")
    small = graph_of("node-1", tmp_path / "graph.npz", sample=False)
    assert small.nodes == 16 and "node-0" in small.names and "node-2" not in small.names
    assert graph_of("node-1", tmp_path / "graph.npz", sample=True).nodes == 32
    assert graph_of(None, tmp_path / "graph.npz", sample=False).nodes == 32
