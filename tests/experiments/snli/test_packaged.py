"""At quick scale the model of the package takes the place of its training."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from subspaces.experiments.snli.experiment import FILES, PACKAGED
from subspaces.files import read_json, sha256_file
from subspaces.pipeline.artefact import Machine
from subspaces.pipeline.params import load_params
from subspaces.pipeline.project import Project

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "src/subspaces/sources/samples"


@pytest.fixture
def quick(tmp_path, monkeypatch) -> Project:
    """The project at quick scale, in an empty folder with the words of a backbone."""
    monkeypatch.chdir(tmp_path)
    backbone = tmp_path / "data/sources/all-MiniLM-L6-v2"
    backbone.mkdir(parents=True)
    shutil.copy(SAMPLES / "tiny-vocab.txt", backbone)
    params = load_params(ROOT / "params.yaml").model_copy(update={"scale": "quick"})
    return Project(params, root=ROOT, folder=tmp_path)


def test_the_row_that_ships_is_taken_from_the_package(quick):
    model = quick.experiment("snli").model(quick.params.snli.shipped, "2way", 0)
    model.make(model, Machine())
    assert all((model.path.parent / name).exists() for name in FILES)
    settings, shipped = read_json(model.output), read_json(PACKAGED / "settings.json")
    assert settings == shipped | {"key": model.key}
    assert sha256_file(model.path.parent / "weights.safetensors") == model.settings["packaged"]


def test_figures_and_retrieval_use_it_and_other_scales_do_not(quick):
    shipped, row = quick.params.snli.shipped, quick.params.retrieval.model
    assert quick.experiment("snli").subspace_row(row) == shipped
    assert "shipped" in quick.experiment("efficiency").text_model.output
    laptop = Project(load_params(ROOT / "params.yaml").model_copy(update={"scale": "laptop"}), root=ROOT)
    assert laptop.experiment("snli").subspace_row(row) == row
    assert "packaged" not in laptop.experiment("snli").model(shipped, "2way", 0).settings
