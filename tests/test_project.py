"""The project's own papers agree with each other."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

from subspaces.pipeline.params import load_params, params_schema
from subspaces.report.layouts import LAYOUTS
from subspaces.report.registry import claims, number, numbers, of_table, tables

ROOT = Path(__file__).resolve().parents[1]


def _lock():
    spec = importlib.util.spec_from_file_location("lock", ROOT / "workflow/lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_has_a_range_and_an_exact_pin_inside_it():
    lock = _lock()
    pins = lock.read_lock()
    for requirement in lock.requirements():
        assert requirement.specifier and "==" not in str(requirement.specifier), f"{requirement}: a range, not a pin"
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.partition("==")[2]), f"{pin} is outside of {requirement}"


def test_the_environment_has_the_pins_of_the_lock():
    lock = _lock()
    pins = lock.read_lock()
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    assert pip == [pins[canonicalize_name(one.name)] for one in lock.requirements({"dev"})], "run workflow/lock.py"


def test_the_lock_holds_names_and_versions_only():
    lines = (ROOT / "workflow/requirements.lock").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines[1:])


def test_the_core_is_light():
    """What only the reproduction needs is in the extra `pipeline`."""
    core = {one.name for one in _lock().requirements(set())}
    assert core.isdisjoint({"snakemake", "dvc", "datasets", "google-genai", "matplotlib", "nltk", "pandas"})
    assert {"torch", "transformers", "faiss-cpu", "typer"} <= core


def test_the_schema_is_the_generated_one():
    stored = json.loads((ROOT / "workflow/schemas/params.schema.json").read_text())
    assert stored == json.loads(json.dumps(params_schema())), "run `subspaces schema`"


def test_params_yaml_fits_its_schema():
    import jsonschema

    jsonschema.validate(yaml.safe_load((ROOT / "params.yaml").read_text()), params_schema())
    assert load_params(ROOT / "params.yaml").scale == "laptop"


def test_the_registry_has_all_numbers_and_claims_and_every_one_has_a_place():
    assert len(numbers()) >= 124  # the paper's, and those of rows that were added
    assert len(claims()) == 20
    for name in tables():
        layout = LAYOUTS[name]
        assert {one.row for one in of_table(name)} == set(layout.rows)
        assert {one.column for one in of_table(name)} == set(layout.columns)


def test_the_registry_is_the_papers():
    shared = ROOT.parent / "shared/paper/numbers.csv"
    if not shared.exists():
        pytest.skip("the paper's own list is not beside the project")
    ours = (ROOT / "src/subspaces/report/numbers.csv").read_text().splitlines()
    assert set(shared.read_text().splitlines()) <= set(ours)


def test_paper_values_live_in_the_registry_only():
    """No source file computes with, or states, a distinctive value of the paper."""
    distinctive = {
        f"{one.value:.2f}" for one in numbers().values() if one.value > 40 and round(one.value % 1 * 100) % 10
    }
    assert len(distinctive) > 20
    for path in (ROOT / "src").rglob("*.py"):
        found = {value for value in distinctive if value in path.read_text()}
        assert not found, (path, found)


def test_unknown_ids_are_refused_with_a_hint():
    from subspaces.errors import UserError

    with pytest.raises(UserError, match=r"unknown number 'snli/nothing/here'.*snli/"):
        number("snli/nothing/here")
    with pytest.raises(UserError, match="unknown table"):
        of_table("nothing")


def test_no_paths_of_a_machine_and_no_unfinished_marks():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    # pieced together, so that this file does not hold what it looks for
    forbidden = ["/" + "work/", "TO" + "DO", "FIX" + "ME", "pypi" + ".org"]
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".yaml", ".yml", ".smk", ".sh", ".toml", ".json"} and path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not [mark for mark in forbidden if mark in text], name


def test_the_readme_shows_the_committed_numbers():
    from subspaces.report.summary import fill_headline, headline

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert fill_headline(readme, headline(ROOT)) == readme, "run `subspaces readme`"
    assert "make run" in readme and "make test" in readme
