"""The life cycle that people know from DVC, on a small project: metrics, params, plots, experiments, a remote, restore."""

from __future__ import annotations

import json

import pytest

from subspaces.paper.registry import numbers
from tests.workflow.conftest import Project, stages_run

pytestmark = pytest.mark.lifecycle

CURVES = ("reconstruction/subspace-64/nouns/seed-0", "link_prediction/cones-10/0/seed-0", "snli/minilm-subspace-64/2way/seed-0")


def answer(project: Project, *command: str):
    return json.loads(project.run("dvc", *command, "--json").stdout)


def dates(project: Project) -> dict[str, int]:
    """When each result was written."""
    paths = [path for top in ("models", "results", "figures") for path in project.folder.glob(f"{top}/**/*") if path.is_file()]
    return {path.relative_to(project.folder).as_posix(): path.stat().st_mtime_ns for path in paths}


def test_metrics_show_speaks_of_paper_numbers(repo):
    found = next(iter(answer(repo, "metrics", "show").values()))["data"]
    assert found.keys() == {f"results/numbers/{identifier}.json" for identifier in numbers()}
    assert isinstance(found["results/numbers/reconstruction/subspace-64/nouns-map.json"]["data"]["value"], float)


def test_plots_show_has_the_training_curves_and_figures(repo, tmp_path):
    repo.run("dvc", "plots", "show", "-o", str(tmp_path))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(curve in page for curve in CURVES)
    assert "figures/overview.png" in page or "figures_overview.png" in page


@pytest.mark.parametrize(
    ("victim", "stage", "twin"),
    [
        ("results/numbers/snli/minilm-subspace-64/accuracy-2way.json", "table_snli", None),
        ("results/tables/hyperlex.md", "table_hyperlex", "results/tables/hyperlex.tex"),
        ("figures/overview.pdf", "figure_overview", "figures/overview.png"),
    ],
)
def test_a_deleted_number_table_or_figure_comes_back_alone(repo, victim, stage, twin):
    """Two forms of a table or figure are made by one rule."""
    before, content = dates(repo), (repo.folder / victim).read_bytes()
    (repo.folder / victim).unlink()
    asked = [] if twin is None else [stage]  # the number by a plain `dvc repro`
    assert stages_run(repo.run("dvc", "repro", *asked).stdout) == {stage}
    assert (repo.folder / victim).read_bytes() == content
    after = dates(repo)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {victim} | ({twin} if twin else set())


def test_exp_run_tries_a_parameter_and_the_numbers_tell(edited, tmp_path):
    before = dates(edited)
    ran = edited.run("subspaces", "warm", "--", "dvc", "exp", "run", "-n", "smaller-lambda", "-S", "reconstruction.lambda=0.1").stdout
    assert stages_run(ran) == {
        "reconstruction_models",
        "reconstruction_evaluations",
        "table_reconstruction",
        "hyperlex_evaluations",
        "table_hyperlex",
        "ranks_rank_vs_descendants",
        "figure_rank_vs_descendants",
        "retrieval_compression_wordnet",
        "figure_compression",
        "page",
    }
    after = dates(edited)
    trained = {name.split("/")[2] for name in after if name.startswith("models/") and after[name] != before[name]}
    assert trained == {"subspace-64", "subspace-128"}, "a stage ran, but only what depends on λ was trained again"

    tried = [one for branch in answer(edited, "exp", "show") for run in branch["experiments"] or () for one in run["revs"]]
    shown = next(one for one in tried if one["name"] == "smaller-lambda")
    assert shown["data"]["params"]["params.yaml"]["data"]["reconstruction"]["lambda"] == 0.1

    assert answer(edited, "params", "diff") == {"params.yaml": {"reconstruction.lambda": {"old": 0.2, "new": 0.1, "diff": -0.1}}}
    changed = {name.removeprefix("results/numbers/") for name, entry in answer(edited, "metrics", "diff").items() if "value" in entry}
    assert {name.split("/")[0] for name in changed} == {"reconstruction", "hyperlex"}
    assert {name.split("/")[1] for name in changed} == {"subspace-64", "subspace-128"}
    edited.run("dvc", "plots", "diff", "HEAD", "-o", str(tmp_path))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert CURVES[0] in page and '"HEAD"' in page and '"workspace"' in page


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
    assert dates(clone).keys() == dates(repo).keys()

    clone.edit_params(reconstruction__lambda=0.7)
    refused = clone.run("subspaces", "restore", check=False)
    assert refused.returncode == 1
    assert "not as dvc.lock has them (reconstruction_models" in refused.stderr
