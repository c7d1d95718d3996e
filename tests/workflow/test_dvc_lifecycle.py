"""The life cycle that people know from DVC, on a small project: metrics, params, plots, experiments, a remote, restore.

Minutes: `make lifecycle`.
"""

from __future__ import annotations

import json

import pytest

from tests.workflow.conftest import Project, stages_run

pytestmark = pytest.mark.lifecycle


def test_metrics_show_speaks_of_paper_numbers(repo):
    shown = json.loads(repo.run("dvc", "metrics", "show", "--json").stdout)
    files = next(iter(shown.values()))["data"]
    assert len(files) == 124
    assert "value" in files["results/numbers/reconstruction/subspace-64/nouns-map.json"]["data"]


def test_params_diff_names_the_parameter(repo):
    repo.edit_params(snli__lambda=0.3)
    changed = json.loads(repo.run("dvc", "params", "diff", "--json").stdout)
    assert changed["params.yaml"]["snli.lambda"] == {"old": 0.05, "new": 0.3}
    repo.run("git", "checkout", "-q", "--", "params.yaml")


def test_plots_show_and_diff_have_the_training_curves(repo):
    for command in (("show",), ("diff", "HEAD~1")):
        repo.run("dvc", "plots", *command, "-o", "plots")
        page = (repo.folder / "plots/index.html").read_text(encoding="utf-8")
        assert "reconstruction/subspace-64/nouns/seed-0" in page and "snli/minilm-subspace-64/2way/seed-0" in page


def test_a_deleted_number_table_or_figure_comes_back_alone(repo):
    for path in ("results/numbers/snli/minilm-subspace-64/accuracy-2way.json", "results/tables/hyperlex.md", "figures/overview.pdf"):
        before = (repo.folder / path).read_bytes()
        others = {one: one.stat().st_mtime_ns for one in repo.folder.glob("results/**/*.json") if one != repo.folder / path}
        (repo.folder / path).unlink()
        repo.run("dvc", "repro")
        assert (repo.folder / path).read_bytes() == before
        assert all(one.stat().st_mtime_ns == time for one, time in others.items())


def test_exp_run_tries_a_parameter_and_show_tells(repo):
    repo.run("dvc", "exp", "run", "-n", "larger-lambda", "-S", "reconstruction.lambda=1.5", "table_reconstruction")
    shown = json.loads(repo.run("dvc", "exp", "show", "--json").stdout)
    assert "larger-lambda" in json.dumps(shown)
    diff = json.loads(repo.run("dvc", "exp", "diff", "HEAD", "larger-lambda", "--json").stdout)
    assert diff["params"]["params.yaml"]["reconstruction.lambda"]["new"] == 1.5
    assert any("/subspace-" in name for name in diff["metrics"])
    repo.run("git", "checkout", "-q", "--", ".")
    repo.run("dvc", "checkout", "-q")


def test_restore_brings_a_clone_to_nothing_to_do(repo, tmp_path):
    repo.run("dvc", "remote", "add", "-f", "-d", "local", str(tmp_path / "remote"))
    repo.run("dvc", "push")
    clone = Project(tmp_path / "clone")
    repo.run("git", "clone", "-q", str(repo.folder), str(clone.folder))
    refused = clone.run("subspaces", "restore", check=False)
    assert refused.returncode == 1 and "dvc remote add" in refused.stderr
    clone.run("dvc", "remote", "add", "-d", "local", str(tmp_path / "remote"))
    assert "nothing to do" in clone.run("subspaces", "restore").stdout
    assert (clone.folder / "models/snli/minilm-subspace-64/2way/seed-0/weights.safetensors").exists()
    assert clone.planned("all") == set()
    assert stages_run(clone.run("dvc", "repro").stdout) == set()
    clone.edit_params(reconstruction__lambda=0.7)
    assert "not as dvc.lock has them" in clone.run("subspaces", "restore", check=False).stderr
