"""The life cycle that people know from DVC, on a small project: metrics, params, plots, experiments, a remote, restore."""

from __future__ import annotations

import json

import pytest

from subspaces.files import sha256_file
from subspaces.report.registry import numbers
from tests.workflow.conftest import Project, stages_run

pytestmark = pytest.mark.lifecycle


def answer(project: Project, *command: str):
    return json.loads(project.run("dvc", *command, "--json").stdout)


def contents(project: Project) -> dict[str, str]:
    """Digests of all models, results and figures; not of the .gitignore files that `dvc add` leaves beside weights."""
    paths = [path for top in ("models", "results", "figures") for path in project.folder.glob(f"{top}/**/*")]
    files = [path for path in paths if path.is_file() and path.name != ".gitignore"]
    return {path.relative_to(project.folder).as_posix(): sha256_file(path) for path in files}


def test_metrics_show_speaks_of_paper_numbers_one_line_each(repo):
    found = next(iter(answer(repo, "metrics", "show").values()))["data"]
    names = {f"results/numbers/{identifier}.json" for identifier in numbers()}
    assert found.keys() <= names
    assert found["results/numbers/reconstruction/subspace-64/nouns-map.json"]["data"].keys() == {"value"}
    lines = repo.run("dvc", "metrics", "show").stdout.splitlines()
    assert sum("nouns-map" in line and "subspace-64" in line for line in lines) == 1


def test_plots_show_has_the_figures(repo, tmp_path):
    repo.run("dvc", "plots", "show", "-o", str(tmp_path))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "figures/overview.png" in page or "figures_overview.png" in page


@pytest.mark.parametrize(
    ("victim", "stage"),
    [
        ("results/numbers/snli/minilm-subspace-64/accuracy-2way.json", "numbers_snli"),
        ("results/tables/hyperlex.md", "table_hyperlex"),
        ("figures/overview.pdf", "figure_overview"),
    ],
)
def test_a_deleted_number_table_or_figure_comes_back_alone(repo, victim, stage):
    content = (repo.folder / victim).read_bytes()
    (repo.folder / victim).unlink()
    assert stages_run(repo.run("dvc", "repro", stage).stdout) == {stage}
    assert (repo.folder / victim).read_bytes() == content
    assert repo.run("git", "status", "--short").stdout == ""


def test_exp_run_tries_a_parameter_and_the_numbers_tell(edited):
    before = contents(edited)
    ran = stages_run(
        edited.run(
            "subspaces", "warm", "--", "dvc", "exp", "run", "-n", "smaller-lambda", "-S", "reconstruction.lambda=0.1"
        ).stdout
    )
    assert {stage for stage in ran if stage.startswith("train_")} == {
        f"train_reconstruction@{row}-{pos}" for row in ("subspace-64", "subspace-128") for pos in ("nouns", "verbs")
    }
    assert not {stage for stage in ran if "snli" in stage.removeprefix("measure_") or "link_prediction" in stage}
    after = contents(edited)
    weights = [name for name in after if name.endswith("weights.safetensors")]
    trained = {name.split("/")[2] for name in weights if after[name] != before[name]}
    assert trained == {"subspace-64", "subspace-128"}

    tried = [
        one for branch in answer(edited, "exp", "show") for run in branch["experiments"] or () for one in run["revs"]
    ]
    shown = next(one for one in tried if one["name"] == "smaller-lambda")
    assert shown["data"]["params"]["params.yaml"]["data"]["reconstruction"]["lambda"] == 0.1

    assert answer(edited, "params", "diff") == {
        "params.yaml": {"reconstruction.lambda": {"old": 0.2, "new": 0.1, "diff": -0.1}}
    }
    changed = {
        name.removeprefix("results/numbers/")
        for name, entry in answer(edited, "metrics", "diff").items()
        if "value" in entry
    }
    assert {name.split("/")[0] for name in changed} == {"reconstruction", "hyperlex"}
    assert {name.split("/")[1] for name in changed} == {"subspace-64", "subspace-128"}


def test_restore_brings_a_clone_to_nothing_to_do(repo, tmp_path):
    remote, clone = str(tmp_path / "remote"), Project(tmp_path / "clone")
    repo.run("git", "clone", "-q", str(repo.folder), str(clone.folder))
    refused = clone.run("subspaces", "restore", check=False)
    assert refused.returncode == 1
    assert "dvc remote add" in refused.stderr and "Traceback" not in refused.stderr

    repo.run("dvc", "remote", "add", "--local", "-d", "shelf", remote)
    repo.run("dvc", "push")
    clone.run("dvc", "remote", "add", "-d", "shelf", remote)
    assert "nothing to do" in clone.run("subspaces", "restore").stdout
    assert (clone.folder / "models/snli/minilm-subspace-64/2way/seed-0/weights.safetensors").exists()
    assert clone.planned("all") == set()
    assert stages_run(clone.run("dvc", "repro").stdout) == set()
    assert contents(clone) == contents(repo)

    clone.edit_params(reconstruction__lambda=0.7)
    refused = clone.run("subspaces", "restore", check=False)
    assert refused.returncode == 1
    assert "differ from dvc.lock (plan" in refused.stderr
