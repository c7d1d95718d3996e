"""The core alone, in an empty environment: what the library promises works without the packages of the reproduction."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "workflow/requirements.lock"
EDGES = "dog mammal, cat mammal, whale mammal, eagle bird, wren bird, mammal animal, bird animal, oak tree, elm tree"
pytestmark = pytest.mark.install


class Place:
    """A virtual environment and a working folder; commands run there see nothing of this one."""

    def __init__(self, folder: Path):
        self.bin, self.folder = folder / "venv/bin", folder / "work"
        self.folder.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SUBSPACES"))}
        self.environment = kept | {"OMP_NUM_THREADS": "1"}

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)

    def output(self, program: str, *arguments: str) -> str:
        done = self.run(program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    """pip installs the package as it would from a registry: the core, with the versions of the lock."""
    folder = tmp_path_factory.mktemp("install")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    place = Place(folder)
    torch = next(line for line in LOCK.read_text().splitlines() if line.startswith("torch=="))
    # the build for the CPU where the package sources have one: the other brings gigabytes
    if place.run("python", "-m", "pip", "install", "--quiet", f"{torch}+cpu").returncode:
        place.output("python", "-m", "pip", "install", "--quiet", torch)
    place.output("python", "-m", "pip", "install", "--quiet", "-c", str(LOCK), str(source))
    return place


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_what_only_the_reproduction_needs_is_not_there(place):
    packages = place.output("python", "-m", "pip", "list", "--format=freeze").lower()
    for name in (
        "snakemake",
        "dvc",
        "datasets",
        "google-genai",
        "matplotlib",
        "nltk",
        "pandas",
        "sentence-transformers",
    ):
        assert f"{name}==" not in packages
    assert "subspaces==" in packages


@pytest.mark.parametrize("document", ["README.md", "docs/library.md"])
def test_the_python_of_the_documents_runs(place, document):
    blocks = python_blocks(ROOT / document)
    assert blocks
    (place.folder / "blocks.py").write_text("\n".join(blocks), encoding="utf-8")
    place.output("python", "blocks.py")


def test_every_name_of_the_package_can_be_imported(place):
    place.output("python", "-c", "import subspaces; [getattr(subspaces, name) for name in subspaces.__all__]")


def test_a_hierarchy_from_the_command_line(place):
    (place.folder / "animals.tsv").write_text("\n".join(edge.replace(" ", "\t") for edge in EDGES.split(", ")))
    fitted = place.output("subspaces", "hierarchy", "fit", "animals.tsv", "--out", "animals", "--dim", "16")
    assert "F1 100.00 %" in fitted
    assert "mammal" in place.output("subspaces", "hierarchy", "query", "animals", "dog")
    assert "yes" in place.output("subspaces", "hierarchy", "score", "animals", "animals.tsv")


def test_help_and_version(place):
    assert "hierarchy" in place.output("subspaces", "--help")
    assert place.output("subspaces", "--version").startswith("subspaces ")
    for command in ("encode", "index", "search", "entail"):
        place.output("subspaces", command, "--help")


def test_the_model_that_ships_works_without_a_project(place):
    assert "rank" in place.output("subspaces", "encode", "a dog")
    assert "entailment" in place.output("subspaces", "entail", "a dog", "an animal")
    done = place.run("subspaces", "search", "a & ~b", "--index", "none")
    assert done.returncode == 1
    assert "none" in done.stderr and "pip install" not in done.stderr


def test_a_command_of_the_reproduction_names_the_extra(place):
    shutil.copytree(ROOT / "workflow", place.folder / "workflow")
    shutil.copy(ROOT / "params.yaml", place.folder)
    done = place.run("subspaces", "make", "results/tables/reconstruction.md")
    assert done.returncode == 1
    assert "pip install 'subspaces[pipeline]'" in done.stderr and "Traceback" not in done.stderr
