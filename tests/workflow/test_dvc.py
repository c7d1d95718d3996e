"""DVC around the graph: dvc.yaml is the generated one and fits the graph, dvc.lock is complete, and `dvc repro` runs what an edit concerns."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from subspaces.pipeline.dvc import dvc_text
from subspaces.pipeline.project import Project as Graph
from tests.workflow.conftest import ROOT, Project, copy_built, copy_project, stages_run

pytestmark = pytest.mark.lifecycle

HEAVY = ("models", "data", "checkpoints", ".snakemake", ".keys", "logs", "src.before")


def under_git(project: Project) -> Project:
    project.run("git", "init", "-q")
    project.run("git", "config", "user.email", "nobody@example.org")
    project.run("git", "config", "user.name", "nobody")
    project.run("git", "add", "-A")
    project.run("git", "commit", "-qm", "clone")
    return project


@pytest.fixture
def clone(repo, tmp_path) -> Project:
    """What somebody else has: the repository, without models, data and DVC's cache."""
    cloned = Project(tmp_path / "clone")
    repo.run("git", "clone", "-q", str(repo.folder), str(cloned.folder))
    return cloned


def test_dvc_yaml_is_the_generated_one_and_short_enough_to_read():
    text = (ROOT / "dvc.yaml").read_text()
    assert text == dvc_text(Graph.open(ROOT / "params.yaml")), "run `subspaces dvc-yaml`"
    assert len(text.splitlines()) < 600


def test_every_output_of_the_graph_belongs_to_a_stage(repo):
    """Or is made on the way to one: sources, models (tracked by their own files), shards and indexes."""
    stages = yaml.safe_load((repo.folder / "dvc.lock").read_text())["stages"].values()
    covered = tuple(out["path"] for stage in stages for out in stage["outs"])
    made = [path for top in ("results", "figures") for path in repo.folder.glob(f"{top}/**/*") if path.is_file()]
    assert [path for path in made if not path.relative_to(repo.folder).as_posix().startswith(covered)] == []


def test_the_committed_project_has_nothing_to_do_and_edits_concern_their_dependents_only(tmp_path):
    """On a fresh clone; then a budget, a setting of a model that another experiment measures, and a text of the page are edited."""
    clone = under_git(copy_project(tmp_path / "clone", results=True))
    assert stages_run(clone.run("dvc", "repro", "--allow-missing").stdout) == set()
    clone.edit_params(
        **{
            "reconstruction__scales__laptop__rows__lorentz-10__both__epochs": 321,
            "snli__scales__laptop__rows__mpnet-subspace-128__model__heads": 4,
        }
    )
    clone.replace("docs/deviations.md", "#", "# Another title:")
    clone.run("subspaces", "plan")
    status = json.loads(clone.run("dvc", "status", "--json").stdout)
    assert {stage for stage in status if not stage.startswith("data_")} == {
        *("plan", "train_reconstruction@lorentz-10-verbs"),
        *("train_snli_2way_3way@mpnet-subspace-128-2way", "train_snli_2way_3way@mpnet-subspace-128-3way"),
        *("evaluate_reconstruction", "evaluate_snli", "evaluate_composition", "measure_encoding_time"),
        *(f"numbers_{name}" for name in ("reconstruction", "snli", "composition", "encoding_time")),
        *(f"table_{name}" for name in ("reconstruction", "snli", "composition", "encoding_time")),
        *("table_composition_extra", "table_encoding_overhead", "figure_composition", "figure_training_curves"),
        *("table_claims", "frame", "page"),
    }


def test_weights_are_tracked_and_numbers_live_in_git(repo):
    tracked = repo.run("git", "ls-files").stdout.splitlines()
    assert "results/numbers/reconstruction/subspace-64/nouns-map.json" in tracked
    assert "models/reconstruction/subspace-64/nouns.dvc" in tracked
    large = [name for name in tracked if name.startswith(("models/", "data/")) and not name.startswith("data/sources/")]
    assert large and all(name.endswith(".dvc") for name in large)


def test_what_is_built_runs_nothing_even_when_it_is_touched(repo):
    for path in (
        *repo.folder.glob("src/subspaces/**/*.py"),
        *repo.folder.glob("models/**/*"),
        *repo.folder.glob("results/**/*.json"),
    ):
        path.touch()
    said = repo.run("dvc", "repro").stdout
    assert stages_run(said) == set()
    assert "up to date" in said


def test_a_clone_without_models_has_nothing_to_do_and_an_edited_row_trains_that_row(clone):
    assert stages_run(clone.run("dvc", "repro", "--allow-missing").stdout) == set()
    clone.edit_params(**{"reconstruction__scales__quick__rows__poincare-10__both__epochs": 3})
    ran = stages_run(clone.run("subspaces", "warm", "--", "dvc", "repro", "--allow-missing").stdout)
    assert ran == {
        *("plan", "train_reconstruction@poincare-10-nouns", "train_reconstruction@poincare-10-verbs"),
        *("evaluate_reconstruction", "numbers_reconstruction", "table_reconstruction"),
        *("table_claims", "frame", "page"),
    }
    trained = {path.relative_to(clone.folder).parts[2] for path in clone.folder.glob("models/**/weights.safetensors")}
    assert trained == {"poincare-10"}, "the models of the other rows stay absent"


def test_a_colour_runs_its_figure(edited):
    edited.edit_params(figures__rank_vs_descendants__points="#00aa55")
    ran = stages_run(edited.run("subspaces", "warm", "--", "dvc", "repro").stdout)
    assert ran == {"plan", "figure_rank_vs_descendants", "page"}


def test_lock_records_what_is_whole_and_says_what_is_not(built, tmp_path):
    twin = under_git(copy_built(built, tmp_path / "project"))
    shutil.rmtree(twin.folder / "results/evaluations/snli")
    (twin.folder / "figures/overview.png").write_bytes(b"made by somebody else")
    said = twin.run("subspaces", "lock").stdout
    assert "evaluate_snli" in said and "results/evaluations/snli is missing" in said
    assert "figure_overview" in said and "figures/overview.png is stale" in said
    locked = yaml.safe_load((twin.folder / "dvc.lock").read_text())["stages"].keys()
    assert {"data_wordnet_verbs", "train_reconstruction@subspace-64-nouns", "table_snli", "page"} <= locked
    assert locked.isdisjoint({"evaluate_snli", "figure_overview"})
    shutil.rmtree(tmp_path / "project")
