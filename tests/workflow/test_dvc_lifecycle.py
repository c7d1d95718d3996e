"""The life cycle that people know from DVC, on a small project: metrics, params, plots, experiments, a remote, restore.

Minutes: `make lifecycle`.
"""

from __future__ import annotations

import json

import pytest

from tests.workflow.conftest import Project, copy_project, make_tiny

pytestmark = pytest.mark.lifecycle


def stages_run(output: str) -> set[str]:
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A small project under git and DVC, reproduced once."""
    copied = copy_project(tmp_path_factory.mktemp("dvc") / "project")
    make_tiny(copied)
    for command in (
        ("git", "init", "-q"),
        ("git", "config", "user.email", "nobody@example.org"),
        ("git", "config", "user.name", "nobody"),
        ("git", "add", "-A"),
        ("git", "commit", "-qm", "start"),
    ):
        copied.run(*command)
    copied.first = copied.run("dvc", "repro").stdout
    copied.run("git", "add", "-A")
    copied.run("git", "commit", "-qm", "reproduced")
    return copied


def test_metrics_show_speaks_of_paper_numbers(clean):
    shown = json.loads(clean.run("dvc", "metrics", "show", "--json").stdout)
    files = next(iter(shown.values()))["data"]
    assert len(files) == 124
    assert "value" in files["results/numbers/reconstruction/subspace-64/nouns-map.json"]["data"]


def test_params_diff_names_the_parameter(clean):
    clean.edit_params(snli__lambda=0.3)
    changed = json.loads(clean.run("dvc", "params", "diff", "--json").stdout)
    assert changed["params.yaml"]["snli.lambda"] == {"old": 0.05, "new": 0.3}
    clean.run("git", "checkout", "-q", "--", "params.yaml")


def test_plots_show_and_diff_have_the_training_curves(clean):
    for command in (("show",), ("diff", "HEAD~1")):
        clean.run("dvc", "plots", *command, "-o", "plots")
        page = (clean.folder / "plots/index.html").read_text(encoding="utf-8")
        assert "reconstruction/subspace-64/nouns/seed-0" in page and "snli/minilm-subspace-64/2way/seed-0" in page


def test_a_deleted_number_table_or_figure_comes_back_alone(clean):
    for path in ("results/numbers/snli/minilm-subspace-64/accuracy-2way.json", "results/tables/hyperlex.md", "figures/overview.pdf"):
        before = (clean.folder / path).read_bytes()
        others = {one: one.stat().st_mtime_ns for one in clean.folder.glob("results/**/*.json") if one != clean.folder / path}
        (clean.folder / path).unlink()
        clean.run("dvc", "repro")
        assert (clean.folder / path).read_bytes() == before
        assert all(one.stat().st_mtime_ns == time for one, time in others.items())


def test_exp_run_tries_a_parameter_and_show_tells(clean):
    clean.run("dvc", "exp", "run", "-n", "larger-lambda", "-S", "reconstruction.lambda=1.5", "table_reconstruction")
    shown = json.loads(clean.run("dvc", "exp", "show", "--json").stdout)
    assert "larger-lambda" in json.dumps(shown)
    diff = json.loads(clean.run("dvc", "exp", "diff", "HEAD", "larger-lambda", "--json").stdout)
    assert diff["params"]["params.yaml"]["reconstruction.lambda"]["new"] == 1.5
    assert any("/subspace-" in name for name in diff["metrics"])
    clean.run("git", "checkout", "-q", "--", ".")
    clean.run("dvc", "checkout", "-q")


def test_restore_brings_a_clone_to_nothing_to_do(clean, tmp_path):
    clean.run("dvc", "remote", "add", "-f", "-d", "local", str(tmp_path / "remote"))
    clean.run("dvc", "push")
    clone = Project(tmp_path / "clone")
    clean.run("git", "clone", "-q", str(clean.folder), str(clone.folder))
    refused = clone.run("subspaces", "restore", check=False)
    assert refused.returncode == 1 and "dvc remote add" in refused.stderr
    clone.run("dvc", "remote", "add", "-d", "local", str(tmp_path / "remote"))
    assert "nothing to do" in clone.run("subspaces", "restore").stdout
    assert (clone.folder / "models/snli/minilm-subspace-64/2way/seed-0/weights.safetensors").exists()
    assert clone.planned("all") == set()
    assert stages_run(clone.run("dvc", "repro").stdout) == set()
    clone.edit_params(reconstruction__lambda=0.7)
    assert "not as dvc.lock has them" in clone.run("subspaces", "restore", check=False).stderr
