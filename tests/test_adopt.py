"""Results outlive a change of code that cannot change them, if somebody says so; a change of settings is never adopted."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from subspaces.adopt import adopt, meant
from subspaces.errors import UserError
from subspaces.files import read_json, write_json
from subspaces.keys import Recipe
from tests.workflow.conftest import copy_project

REASON = "a function got a better name"
OLD = {"data/a.json": "a" * 64, "models/b/settings.json": "b" * 64, "results/evaluations/c.json": "c" * 64}


def chain(rate: float = 0.1) -> list[Recipe]:
    """Data, a model made from it, an evaluation made from that; their keys follow from settings and code."""
    data = Recipe("data/a.json", {"pos": "nouns"}, ("subspaces.files",))
    model = Recipe("models/b/settings.json", {"lr": rate}, ("subspaces.errors",), (data,))
    return [data, model, Recipe("results/evaluations/c.json", {}, (), (model,))]


@pytest.fixture
def folder(tmp_path) -> Path:
    """Outputs that carry the keys of an older code."""
    for name, key in OLD.items():
        write_json(tmp_path / name, {"key": key, "value": 1.5})
    write_json(
        tmp_path / "results/evaluations/c.json", {"key": OLD["results/evaluations/c.json"], "model_key": OLD["models/b/settings.json"]}
    )
    return tmp_path


def before(recipes: list[Recipe]) -> dict[str, tuple[str, str]]:
    return {one.output: (OLD[one.output], meant(one)) for one in recipes}


def test_outputs_take_todays_keys_and_keep_the_reason(folder):
    recipes = chain()
    assert adopt(recipes, before(recipes), REASON, "abc", folder) == list(OLD)
    assert all(one.is_built(folder) for one in recipes)
    evaluation = read_json(folder / "results/evaluations/c.json")
    assert evaluation["model_key"] == recipes[1].key
    assert evaluation["adopted"] == [{"from": "c" * 64, "revision": "abc", "reason": REASON}]
    assert adopt(recipes, before(recipes), REASON, "abc", folder) == [], "a second time there is nothing to do"


def test_a_changed_setting_is_not_adopted_nor_what_is_made_from_it(folder):
    old, new = chain(0.1), chain(0.2)
    assert adopt(new, before(old), REASON, "abc", folder) == ["data/a.json"]
    assert not new[1].is_built(folder) and not new[2].is_built(folder)


def test_a_setting_that_is_new_and_says_what_was_always_done_may_be_told(folder):
    old, new = chain(), chain()
    new[1] = Recipe(new[1].output, {**new[1].settings, "training": {"corrupt": "both"}}, new[1].code, new[1].inputs)
    old[1] = Recipe(old[1].output, {**old[1].settings, "training": {}}, old[1].code, old[1].inputs)
    new[2], old[2] = (Recipe(one[2].output, {}, (), (one[1],)) for one in (new, old))
    assert adopt(new, before(old), REASON, "abc", folder, {"corrupt": "child"}) == ["data/a.json"], "another value is another setting"
    assert adopt(new, before(old), REASON, "abc", folder, {"corrupt": "both"}) == list(OLD)[1:]


def test_a_list_in_parquet_keeps_its_rows_and_carries_key_and_reasons(tmp_path):
    path, recipe = tmp_path / "results/evaluations/ranks.parquet", Recipe("results/evaluations/ranks.parquet", {"pos": "nouns"})
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"rank": [1.5, 2.5]}).replace_schema_metadata({"key": "a" * 64}), path)
    for old, reason in (("a" * 64, REASON), (recipe.key, "another good reason")):
        now = recipe if old != recipe.key else Recipe(recipe.output, recipe.settings, ("subspaces.errors",))
        assert adopt([now], {now.output: (old, meant(now))}, reason, "abc", tmp_path) == [now.output]
        assert now.is_built(tmp_path)
    table = pq.read_table(path)
    assert table["rank"].to_pylist() == [1.5, 2.5]
    assert [one["from"] for one in json.loads(table.schema.metadata[b"adopted"])] == ["a" * 64, recipe.key]


def test_an_output_that_was_stale_already_is_not_adopted(folder):
    write_json(folder / "models/b/settings.json", {"key": "d" * 64})
    assert "models/b/settings.json" not in adopt(chain(), before(chain()), REASON, "abc", folder)


def test_a_reason_is_asked_for(folder):
    with pytest.raises(UserError, match="say in a sentence why"):
        adopt(chain(), before(chain()), "because", "abc", folder)


@pytest.mark.workflow
def test_a_refactored_module_costs_no_rerun_once_it_is_adopted(tmp_path):
    project = copy_project(tmp_path / "project")
    for command in (("git", "init", "-q"), ("git", "config", "user.email", "nobody@example.org"), ("git", "config", "user.name", "nobody")):
        project.run(*command)
    project.edit_params(scale="quick", bounds={"lambdas": [0.05], "dims": [4], "ranks": [1], "draws": 1, "seed": 0})
    project.run("git", "add", "-A")
    project.run("git", "commit", "-qm", "start")
    output = "results/evaluations/soft_projectors.json"
    project.run("subspaces", "paper", "bounds")
    project.replace("src/subspaces/bounds.py", "from __future__ import annotations\n", "from __future__ import annotations\n\nUNUSED = 1\n")
    assert output in project.run("subspaces", "status").stdout
    said = project.run("subspaces", "adopt", "--reason", "an unused constant was added").stdout
    assert output in said and "1 outputs adopted" in said
    commit = project.run("git", "rev-parse", "HEAD").stdout.strip()
    (entry,) = read_json(project.folder / output)["adopted"]
    assert entry["revision"] == commit, "HEAD means something else tomorrow"
    assert output not in project.run("subspaces", "status").stdout
    assert project.run("git", "worktree", "list").stdout.count("\n") == 1, "the other revision's files are gone"
    wrong = project.run("subspaces", "adopt", "--reason", "no such revision here", "--since", "nowhere", check=False)
    assert wrong.returncode == 1 and "git has no revision 'nowhere'" in wrong.stderr
