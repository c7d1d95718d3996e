"""DVC around the graph: that its file is the generated one and fits the graph, and what `dvc repro` runs again after a change."""

from __future__ import annotations

import hashlib
import shutil

import pytest
import yaml

from subspaces.dvcfile import dvc_text
from subspaces.params import load_params
from subspaces.recipes import Recipes
from tests.workflow.conftest import ROOT, Project, stages_run

pytestmark = pytest.mark.lifecycle

GIT = ("results/", "figures/")


def stages_of(project: Project) -> dict[str, dict]:
    return yaml.safe_load((project.folder / "dvc.yaml").read_text())["stages"]


def outs_of(stage: dict) -> list[str]:
    return [name for one in (*stage.get("outs", ()), *stage.get("metrics", ())) for name in one]


def test_dvc_yaml_is_the_generated_one():
    expected = dvc_text(Recipes(load_params(ROOT / "params.yaml")))
    assert (ROOT / "dvc.yaml").read_text() == expected, "run `subspaces dvc-yaml`"


def test_a_stage_needs_only_what_git_has_or_another_stage_makes(repo):
    stages = stages_of(repo)
    code = set(repo.run("git", "ls-files", "src", "params.yaml").stdout.splitlines())
    for name, stage in stages.items():
        made = {out for other, one in stages.items() if other != name for out in outs_of(one)}
        assert set(stage["deps"]) <= code | made, name


def test_a_stage_asks_snakemake_for_its_own_outputs_and_all_outputs_have_a_stage(repo):
    targets = {name: stage["cmd"].split(" -- ")[1].split() for name, stage in stages_of(repo).items()}
    for name, stage in stages_of(repo).items():
        outs = outs_of(stage)
        assert all(any(target == out or target.startswith(f"{out}/") for out in outs) for target in targets[name]), name
        assert all(any(target == out or target.startswith(f"{out}/") for target in targets[name]) for out in outs), name
    assert repo.planned(*{one for some in targets.values() for one in some}) == set()
    covered = tuple(out for stage in stages_of(repo).values() for out in outs_of(stage))
    made = [path for top in ("models", "results", "figures") for path in repo.folder.glob(f"{top}/**/*") if path.is_file()]
    assert [path for path in made if not path.relative_to(repo.folder).as_posix().startswith(covered)] == []


def test_dvc_lock_speaks_of_the_committed_numbers_tables_and_figures():
    """Of stages whose outputs live in git; the others name bytes that only their maker has."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    locked = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
    assert {name for name in stages if name.startswith(("table_", "figure_", "page"))} <= locked.keys(), "run `subspaces lock`"
    for name, entry in locked.items():
        kept = {one["path"]: one["md5"] for one in entry["outs"] if (ROOT / one["path"]).is_file() and one["path"].startswith(GIT)}
        assert {path: hashlib.md5((ROOT / path).read_bytes()).hexdigest() for path in kept} == kept, f"{name}: run `subspaces lock`"


def test_lock_remembers_what_is_whole_and_says_what_is_not(twin):
    twin.run("git", "init", "-q")
    shutil.rmtree(twin.folder / "models/snli")
    (twin.folder / "figures/overview.png").write_bytes(b"made by somebody else")
    said = twin.run("subspaces", "lock").stdout
    assert "left as it was: snli_models (models/snli is not here)" in said
    assert "left as it was: figure_overview (figures/overview.png is not current)" in said
    locked = yaml.safe_load((twin.folder / "dvc.lock").read_text())["stages"].keys()
    assert {"wordnet_data", "reconstruction_models", "table_snli", "page"} <= locked
    assert locked.isdisjoint({"snli_models", "snli_evaluations", "figure_overview"})
    assert stages_run(twin.run("dvc", "repro", "--single-item", "table_snli").stdout) == set()


def test_models_are_cached_and_numbers_live_in_git(repo):
    tracked = repo.run("git", "ls-files").stdout.splitlines()
    assert "results/numbers/reconstruction/subspace-64/nouns-map.json" in tracked
    assert not any(name.startswith(("models/", "data/")) for name in tracked)
    assert "models/reconstruction" in (repo.folder / "dvc.lock").read_text()


def test_what_is_built_runs_nothing_even_when_it_is_touched(repo):
    for path in (*repo.folder.glob("src/subspaces/**/*.py"), *repo.folder.glob("models/**/*"), *repo.folder.glob("results/**/*.json")):
        path.touch()
    said = repo.run("dvc", "repro").stdout
    assert stages_run(said) == set()
    assert "up to date" in said


def test_a_colour_runs_its_figure_and_an_edited_module_what_imports_it(edited):
    edited.edit_params(figures__rank_vs_descendants__points="#00aa55")
    path = edited.folder / "src/subspaces/paper/figures/overview.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    ran = edited.run("subspaces", "warm", "--", "dvc", "repro").stdout
    assert stages_run(ran) == {"figure_rank_vs_descendants", "figure_overview", "page"}
    assert ran.count("Running stage '") == 3, "each of them once"
