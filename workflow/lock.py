"""Pin what is installed: `.venv/bin/python workflow/lock.py` writes workflow/requirements.lock and environment.yml.

The lock holds one `name==version` for every package that the project and its extras need, directly or not. `make setup` gives it to pip as
a constraints file. environment.yml repeats the direct ones for conda. To move to newer versions: install them into .venv (`pip install
--upgrade …` within the ranges of pyproject.toml), run `make test`, run this script, commit. Pins of packages that are not installed here
(such as those of the extra `bench`) stay as they are.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "workflow/requirements.lock"
ENVIRONMENT = ROOT / "environment.yml"
HEADER = "# Exact versions of all packages, made by `python workflow/lock.py`. pip install -c workflow/requirements.lock -e '.[dev]'\n"
CONDA = """\
# Made by `python workflow/lock.py`, with the pins of workflow/requirements.lock.
# conda env create -f environment.yml, then pip install -e . --no-deps
name: subspaces
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def requirements(extras: set[str] | None = None) -> list[Requirement]:
    """What pyproject.toml asks for: the core and some extras, or all of them. Extras that name others are resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional: dict[str, list[str]] = project["optional-dependencies"]
    waiting, seen, found = list(optional if extras is None else extras), set(), list(project["dependencies"])
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for line in optional[extra]:
            requirement = Requirement(line)
            if requirement.name == project["name"]:
                waiting.extend(requirement.extras)
            else:
                found.append(line)
    return [Requirement(line) for line in sorted(set(found), key=str.lower)]


def read_lock(path: Path = LOCK) -> dict[str, str]:
    """canonical name -> `name==version`."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pins = [line for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}


def installed(wanted: list[Requirement]) -> dict[str, str]:
    """The pins of some requirements and of everything that they need in turn, as it is installed here."""
    pins: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        if name != "setuptools":  # torch names it, pip has one
            pins[name] = f"{package.metadata['Name']}=={Version(package.version).public}"
        for use in {"", *requirement.extras}:
            if (name, use) not in seen:
                seen.add((name, use))
                waiting += [(Requirement(line), use) for line in package.requires or []]
    return pins


def main() -> None:
    pins = read_lock() | installed(requirements())
    missing = [str(one) for one in requirements() if canonicalize_name(one.name) not in pins]
    if missing:
        sys.exit(f"error: not installed here and not in {LOCK.name}: {', '.join(missing)}")
    LOCK.write_text(HEADER + "".join(f"{pins[name]}\n" for name in sorted(pins)), encoding="utf-8")
    direct = [pins[canonicalize_name(one.name)] for one in requirements({"dev"})]
    ENVIRONMENT.write_text(CONDA + "".join(f"      - {pin}\n" for pin in direct), encoding="utf-8")


if __name__ == "__main__":
    main()
