"""DVC around the graph: what `dvc repro` runs again after a change, and that its file is the generated one."""

from __future__ import annotations

import json

import pytest

from subspaces.dvcfile import dvc_text
from subspaces.params import load_params
from subspaces.recipes import Recipes
from tests.workflow.conftest import ROOT, stages_run

pytestmark = pytest.mark.lifecycle  # minutes: `make lifecycle`


def test_dvc_yaml_is_the_generated_one():
    expected = dvc_text(Recipes(load_params(ROOT / "params.yaml")))
    assert (ROOT / "dvc.yaml").read_text() == expected, "run `subspaces dvc-yaml`"


def test_repro_runs_every_stage_once_and_then_none(repo):
    assert len(stages_run(repo.first)) == repo.first.count("Running stage '")
    families = {f"{name}_models" for name in ("reconstruction", "hyperlex", "link_prediction", "snli")}
    assert {"wordnet_data", "link_prediction_data", "table_reconstruction", "figure_overview"} | families <= stages_run(repo.first)
    assert stages_run(repo.run("dvc", "repro").stdout) == set()
    assert "up to date" in repo.run("dvc", "status").stdout


def test_models_are_cached_and_numbers_live_in_git(repo):
    tracked = repo.run("git", "ls-files").stdout.splitlines()
    assert "results/numbers/reconstruction/subspace-64/nouns-map.json" in tracked
    assert not any(name.startswith(("models/", "data/")) for name in tracked)
    assert "models/reconstruction" in (repo.folder / "dvc.lock").read_text()


def test_a_touched_file_runs_nothing(repo):
    for path in repo.folder.glob("src/subspaces/**/*.py"):
        path.touch()
    assert stages_run(repo.run("dvc", "repro").stdout) == set()


def test_a_colour_runs_one_figure(repo):
    repo.edit_params(figures__rank_vs_descendants__points="#00aa55")
    assert stages_run(repo.run("dvc", "repro").stdout) == {"figure_rank_vs_descendants", "page"}


def test_lambda_runs_what_depends_on_it_and_the_metrics_tell(repo):
    repo.edit_params(reconstruction__lambda=2.0)
    weights = repo.folder / "models/reconstruction/poincare-10/nouns/seed-0/weights.safetensors"
    before = weights.stat().st_mtime_ns
    ran = stages_run(repo.run("dvc", "repro").stdout)
    assert ran == {
        "reconstruction_models",
        "reconstruction_evaluations",
        "table_reconstruction",
        "hyperlex_evaluations",
        "table_hyperlex",
        "ranks_rank_vs_descendants",
        "figure_rank_vs_descendants",
        "retrieval_compression",
        "figure_compression",
        "page",
    }
    assert weights.stat().st_mtime_ns == before, "the stage ran, but only the subspace models were trained again"
    changed = json.loads(repo.run("dvc", "metrics", "diff", "--json").stdout)
    rows = {name.split("/")[3] for name, entry in changed.items() if "value" in str(entry)}
    assert rows <= {"subspace-64", "subspace-128"}
    assert rows


def test_an_edited_module_runs_what_imports_it(repo):
    path = repo.folder / "src/subspaces/paper/figures/overview.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    assert stages_run(repo.run("dvc", "repro").stdout) == {"figure_overview", "page"}
