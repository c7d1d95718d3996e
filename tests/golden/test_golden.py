"""Every computation gives its recorded result, unless its version says that it computes something else now."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.golden.instances import INSTANCES, ROOT
from tests.golden.record import RECORDED, check

SENTENCE = "the result of wordnet changed: bump wordnet in workflow/versions.yaml and record the new value"


def _names(tree: dict, prefix: str = "") -> set[str]:
    return {
        name
        for key, value in tree.items()
        for name in (_names(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}"})
    }


def test_every_computation_has_an_instance_and_a_recorded_result():
    computations = _names(yaml.safe_load((ROOT / "workflow/versions.yaml").read_text(encoding="utf-8")))
    assert set(INSTANCES) == computations, "tests/golden/instances.py"
    assert {path.stem for path in RECORDED.glob("*.json")} == computations, "tests/golden/recorded"


@pytest.mark.parametrize("computation", INSTANCES)
def test_the_result_is_the_recorded_one(results: dict[str, dict], computation: str, request: pytest.FixtureRequest):
    found = results[computation]
    if "error" in found:
        pytest.fail(found["error"], pytrace=False)
    record = request.config.getoption("--record", default=False)
    problem = check(computation, found["versions"], found["result"], record)
    if problem:
        pytest.fail(problem, pytrace=False)


# --- the comparison itself ------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path):
    """A result of `wordnet` at version 1."""
    assert check("wordnet", {"wordnet": 1}, {"nodes": 7, "mean": 0.5}, True, tmp_path) is None
    return tmp_path


@pytest.mark.parametrize("record", [False, True])
def test_a_changed_result_with_an_unchanged_version_fails_even_when_it_is_to_be_recorded(recorded, record):
    problem = check("wordnet", {"wordnet": 1}, {"nodes": 7, "mean": 0.51}, record, recorded)
    assert problem.startswith(SENTENCE) and "mean: recorded 0.5, found 0.51" in problem
    assert json.loads((recorded / "wordnet.json").read_text())["result"]["mean"] == 0.5


def test_rounding_is_not_a_change_and_other_types_and_names_are(recorded):
    assert check("wordnet", {"wordnet": 1}, {"nodes": 7, "mean": 0.500001}, False, recorded) is None
    for other in (
        {"nodes": 7},
        {"nodes": 7, "mean": None},
        {"nodes": 7, "mean": 0.5, "more": 1},
        {"nodes": "7", "mean": 0.5},
    ):
        assert check("wordnet", {"wordnet": 1}, other, False, recorded).startswith(SENTENCE)


def test_a_raised_version_fails_until_its_result_is_recorded(recorded):
    result = {"nodes": 7, "mean": 0.6}
    assert "the version of wordnet is not the recorded one" in check("wordnet", {"wordnet": 2}, result, False, recorded)
    assert check("wordnet", {"wordnet": 2}, result, True, recorded) is None
    assert check("wordnet", {"wordnet": 2}, result, False, recorded) is None


def test_a_computation_without_a_recorded_result_is_named(tmp_path):
    assert "captions has no recorded result" in check("captions", {"captions": 1}, {}, False, tmp_path)
