"""The hosted CI runs parts of `make test` by the same targets, on every Python that the package supports."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
JOBS = yaml.safe_load(WORKFLOW)["jobs"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> str:
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return lines


def test_every_job_is_one_target_of_make():
    asked = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in JOBS.items()}
    assert asked == {"lint": ["make lint"], "unit": ["make unit"], "quick": ["make run VERBOSE=1"]}


def test_make_test_runs_the_same_scripts():
    checks = (ROOT / ".ci/checks.sh").read_text(encoding="utf-8")
    assert ".ci/checks.sh" in recipe("test") and "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    for target in ("lint", "unit"):
        (script,) = re.findall(r"\.ci/\w+\.sh", recipe(target))
        assert f"bash {script}\n" in checks


def test_unit_tests_and_the_rest_are_all_tests():
    """A marker that the unit tests leave out is run by a line of checks.sh."""
    checks = (ROOT / ".ci/checks.sh").read_text(encoding="utf-8")
    left_out = re.findall(r"not (\w+)", (ROOT / ".ci/unit.sh").read_text(encoding="utf-8").partition("-m")[2])
    assert left_out == ["install", "workflow", "slurm", "lifecycle"]
    assert all(re.search(rf"^pytest .*\b{marker}\b", checks, re.MULTILINE) for marker in left_out)


def test_unit_tests_run_on_every_supported_python():
    pythons = JOBS["unit"]["strategy"]["matrix"]["python"]
    supported = SpecifierSet(re.search(r'requires-python = "(.*)"', (ROOT / "pyproject.toml").read_text())[1])
    assert pythons == ["3.11", "3.12", "3.13"] and all(python in supported for python in pythons)
    assert "3.10" not in supported


def test_caches_follow_the_lock_and_no_host_is_named():
    steps = [step for job in JOBS.values() for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert len(steps) == len(JOBS)
    assert all((ROOT / step["with"]["cache-dependency-path"]).is_file() for step in steps)
    assert "://" not in WORKFLOW
