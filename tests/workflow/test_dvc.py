"""DVC around the graph: what `dvc repro` runs again after a change, and that its file is the generated one."""

from __future__ import annotations

import json

import pytest

from subspaces.dvcfile import dvc_text
from subspaces.params import load_params
from subspaces.recipes import Recipes
from tests.workflow.conftest import ROOT, Project, copy_project, make_tiny

pytestmark = pytest.mark.workflow


def stages_run(output: str) -> set[str]:
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")}


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
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
    assert stages_run(repo.run("dvc", "repro").stdout) == {"figure_rank_vs_descendants"}


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
    }
    assert weights.stat().st_mtime_ns == before, "the stage ran, but only the subspace models were trained again"
    changed = json.loads(repo.run("dvc", "metrics", "diff", "--json").stdout)
    rows = {name.split("/")[3] for name, entry in changed.items() if "value" in str(entry)}
    assert rows <= {"subspace-64", "subspace-128"}
    assert rows


def test_an_edited_module_runs_what_imports_it(repo):
    path = repo.folder / "src/subspaces/paper/figures/overview.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    assert stages_run(repo.run("dvc", "repro").stdout) == {"figure_overview"}


# --- the life cycle that people know from DVC -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clean(repo):
    """The same repository with everything reproduced and committed, whatever the tests above left."""
    repo.run("git", "checkout", "-q", "--", ".")
    repo.run("dvc", "repro")
    repo.run("git", "add", "-A")
    repo.run("git", "commit", "-qm", "again", "--allow-empty")
    return repo


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
