"""Keys: which code counts for an artefact, which edits change its key, and the stamps that Snakemake looks at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from subspaces.files import write_text
from subspaces.keys import PACKAGE, Recipe, carries, code_of, module_file, modules_of, stamp

GEOMETRIES = "subspaces.wordnet.geometries"
ROOTS = {name: ("subspaces.wordnet.fit", f"{GEOMETRIES}.{name}") for name in ("subspace", "poincare")}
PROGRAM = """
import json, sys
from subspaces.keys import PACKAGE, Recipe, code_of
roots = json.loads(sys.argv[1])
out = {name: {"code": code_of(*some), "key": Recipe("x", {}, tuple(some)).key} for name, some in roots.items()}
print(json.dumps({"package": str(PACKAGE), **out}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be edited."""
    shutil.copytree(PACKAGE, tmp_path / "subspaces", ignore=shutil.ignore_patterns("__pycache__", "*.part"))
    return tmp_path / "subspaces"


def keys_now(package: Path) -> dict[str, dict]:
    """Keys as a new process sees them: digests are remembered within one."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    program = [sys.executable, "-c", PROGRAM, json.dumps(ROOTS)]
    result = json.loads(subprocess.run(program, env=environment, check=True, capture_output=True, text=True, cwd=package.parent).stdout)
    assert Path(result.pop("package")) == package
    return result


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def test_the_closure_follows_imports() -> None:
    modules = modules_of("subspaces.wordnet.fit")
    direct = {
        "subspaces.errors",
        "subspaces.files",
        "subspaces.training.loop",
        f"{GEOMETRIES}.base",
        "subspaces.wordnet.reconstruction",
    }
    through_others = {"subspaces.wordnet.sampling", "subspaces.wordnet.graph", "subspaces.training.checkpoint"}
    packages = {"subspaces", "subspaces.training", "subspaces.wordnet", GEOMETRIES}
    assert {"subspaces.wordnet.fit"} | direct | through_others | packages <= set(modules)
    assert f"{GEOMETRIES}.poincare" not in modules and "subspaces.params" not in modules
    assert code_of("subspaces.wordnet.fit").keys() == set(modules)


def test_imports_inside_functions_count() -> None:
    """`recipes` reads the registry of sources inside a property."""
    assert "subspaces.sources.registry" in modules_of("subspaces.recipes")


def test_no_module_uses_imports_that_the_walk_does_not_see() -> None:
    """The walk reads absolute imports; a relative one would leave the key without a word."""
    import ast

    for path in PACKAGE.rglob("*.py"):
        relative = [node.lineno for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom) and node.level]
        assert not relative, f"{path}: relative import in line {relative}"


def test_only_modules_of_this_package() -> None:
    assert module_file("subspaces.keys") == PACKAGE / "keys.py"
    assert module_file("subspaces.wordnet") == PACKAGE / "wordnet" / "__init__.py"
    assert module_file("torch") is None and module_file("subspaces.nothing") is None
    with pytest.raises(ValueError, match=r"subspaces\.nothing is not a module"):
        modules_of("subspaces.nothing")


def test_prose_and_layout_do_not_change_a_key(package: Path) -> None:
    before = keys_now(package)
    adam = package / "training" / "adam.py"
    edit(adam, lambda text: text.replace('"""Adam that touches', '"""Another sentence. Adam that touches'))
    edit(adam, lambda text: text.replace('"""`rows` are distinct', '"""New words: `rows` are distinct'))
    edit(adam, lambda text: text.replace("self.count += 1", "self.count  +=  1   # one more\n"))
    edit(
        adam,
        lambda text: text.replace('return {"adam.mean": self.mean,', "return {\n            'adam.mean':\n            self.mean,"),
    )
    edit(package / "training" / "riemannian.py", lambda text: text + "\n\n# the end\n")
    os.utime(package / "projector.py", (0, 0))
    assert keys_now(package) == before


def test_an_edit_of_code_changes_a_key(package: Path) -> None:
    before = keys_now(package)
    edit(package / "training" / "adam.py", lambda text: text.replace("eps: float = 1e-8", "eps: float = 1e-7"))
    after = keys_now(package)
    assert after["subspace"]["key"] != before["subspace"]["key"]
    changed = {name for name, value in after["subspace"]["code"].items() if before["subspace"]["code"][name] != value}
    assert changed == {"subspaces.training.adam"}
    assert after["poincare"] == before["poincare"]  # points in the ball do not use Adam


def test_only_dependents_change(package: Path) -> None:
    before = keys_now(package)
    assert f"{GEOMETRIES}.poincare" in before["poincare"]["code"] and f"{GEOMETRIES}.poincare" not in before["subspace"]["code"]
    edit(package / "wordnet" / "geometries" / "poincare.py", lambda text: text.replace("_EDGE = 1e-5", "_EDGE = 1e-6"))
    after = keys_now(package)
    assert after["subspace"] == before["subspace"]
    assert after["poincare"]["key"] != before["poincare"]["key"]


def test_a_new_import_and_a_package_file_count(package: Path) -> None:
    before = keys_now(package)
    edit(package / "training" / "__init__.py", lambda text: text + "\nVERSION = 2\n")
    second = keys_now(package)
    edit(
        package / "wordnet" / "sampling.py",
        lambda text: text.replace("import numpy as np\n", "import numpy as np\nimport subspaces.bounds\n"),
    )
    third = keys_now(package)
    assert before["subspace"]["key"] != second["subspace"]["key"] != third["subspace"]["key"]
    assert "subspaces.bounds" in third["subspace"]["code"] and "subspaces.bounds" not in second["subspace"]["code"]


def test_a_key_depends_on_settings_code_and_inputs() -> None:
    source = Recipe("a", {"x": 1})
    keys = [
        source.key,
        Recipe("a", {"x": 2}).key,
        Recipe("a", {"x": 1}, ("subspaces.errors",)).key,
        Recipe("a", {"x": 1}, inputs=(source,)).key,
        Recipe("a", {"x": 1}, inputs=(Recipe("a", {"x": 2}),)).key,
    ]
    assert len(set(keys)) == len(keys)
    assert Recipe("elsewhere", {"x": 1}).key == source.key  # where it lies does not decide what it is
    assert Recipe("a", {"x": 1}, ("subspaces.errors",)).code_digest != source.code_digest


@pytest.mark.parametrize("place", [0, 1, (1 << 20) - 64, (1 << 20) - 63, (1 << 20) - 1, 1 << 20, (2 << 20) - 30])
def test_a_key_is_found_wherever_it_stands(tmp_path: Path, place: int) -> None:
    key = Recipe("a", {}).key
    path = tmp_path / "file"
    path.write_bytes(b"-" * place + key.encode() + b"-" * 100)
    assert carries(path, key)
    assert not carries(path, Recipe("a", {"x": 1}).key)
    path.write_bytes(path.read_bytes().replace(key.encode(), key[:-1].encode() + b"-"))
    assert not carries(path, key)


def test_no_file_carries_no_key(tmp_path: Path) -> None:
    key = Recipe("a", {}).key
    (tmp_path / "empty").touch()
    assert not carries(tmp_path / "absent", key) and not carries(tmp_path / "empty", key) and not carries(tmp_path, key)


def snapshot(path: Path) -> tuple[str, int]:
    return path.read_text(), path.stat().st_mtime_ns


def test_stamps_are_new_when_the_output_is_stale_and_old_otherwise(tmp_path: Path) -> None:
    recipe = Recipe("results/one.json", {"x": 1})
    output, place = tmp_path / recipe.output, tmp_path / ".keys" / recipe.output
    assert stamp(recipe, tmp_path) == ".keys/results/one.json"
    absent = snapshot(place)
    assert place.stat().st_mtime < 1e6  # Snakemake sees for itself that the output is absent

    write_text(output, json.dumps({"key": Recipe("x", {"x": 2}).key}))
    assert recipe.is_stale(tmp_path) and not recipe.is_built(tmp_path)
    stamp(recipe, tmp_path)
    wanted = snapshot(place)
    assert "wanted" in wanted[0] and place.stat().st_mtime >= output.stat().st_mtime - 1
    stamp(recipe, tmp_path)
    assert snapshot(place) == wanted  # asking again does not make it newer: Snakemake would run for ever

    write_text(output, json.dumps({"key": recipe.key}))
    assert recipe.is_built(tmp_path) and not recipe.is_stale(tmp_path)
    for touched in (output, place):
        touched.touch()
        stamp(recipe, tmp_path)
        assert snapshot(place) == absent  # a touched file changes nothing


def test_what_is_absent_changes_nothing_but_what_is_stale_does(tmp_path: Path) -> None:
    data = Recipe("data", {"x": 1})
    model = Recipe("model", {}, inputs=(data,))
    table = Recipe("table", {}, inputs=(model,))
    write_text(tmp_path / "table", table.key)
    assert not table.will_change(tmp_path)  # a fresh clone: neither data nor model is there
    write_text(tmp_path / "data", "another key")
    assert table.will_change(tmp_path) and model.will_change(tmp_path)
    write_text(tmp_path / "data", data.key)
    assert not table.will_change(tmp_path)


def test_another_wish_makes_a_new_stamp(tmp_path: Path) -> None:
    one, two = Recipe("a.json", {"x": 1}), Recipe("a.json", {"x": 2})
    write_text(tmp_path / "a.json", one.key)
    stamp(one, tmp_path)
    old = snapshot(tmp_path / ".keys/a.json")
    stamp(two, tmp_path)
    assert snapshot(tmp_path / ".keys/a.json")[1] > old[1]
    assert two.key in (tmp_path / ".keys/a.json").read_text()
    stamp(one, tmp_path)
    assert snapshot(tmp_path / ".keys/a.json") == old
