"""Keys: what changes them, what does not, and that every Python version gives the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.pipeline.artefact import Artefact, carries, stamp
from subspaces.pipeline.project import Project

ROOT = Path(__file__).resolve().parents[2]
DATA = Artefact("data/a.json", {"data": 1}, {"seed": 0})
MODEL = Artefact("models/a/settings.json", {"train": 1}, {"epochs": 2, "lr": 0.1}, (DATA,))


def test_settings_versions_and_inputs_are_the_key():
    assert MODEL.key == replace(MODEL, output="models/b/settings.json", beside=("models/b/weights",)).key
    changed = (
        replace(MODEL, settings={"epochs": 3, "lr": 0.1}),
        replace(MODEL, versions={"train": 2}),
        replace(MODEL, inputs=(replace(DATA, settings={"seed": 1}),)),
        replace(MODEL, inputs=()),
    )
    assert len({MODEL.key, *(artefact.key for artefact in changed)}) == 5


def test_the_order_of_settings_is_not_part_of_the_key():
    assert MODEL.key == replace(MODEL, settings={"lr": 0.1, "epochs": 2}).key


def test_a_key_is_found_across_the_pieces_of_a_large_file(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"x" * ((1 << 20) - 30) + MODEL.key.encode() + b"y" * 100)
    assert carries(path, MODEL.key) and not carries(path, DATA.key) and not carries(tmp_path / "absent", DATA.key)


def test_a_stale_output_gets_a_new_stamp_and_a_current_or_absent_one_an_old(tmp_path):
    path, mark = tmp_path / MODEL.output, tmp_path / ".keys" / MODEL.output
    path.parent.mkdir(parents=True)
    stamp(MODEL, tmp_path)
    assert mark.stat().st_mtime == 1, "absent: Snakemake sees that by itself"
    path.write_text("{}")
    stamp(MODEL, tmp_path)
    assert mark.stat().st_mtime_ns >= path.stat().st_mtime_ns and MODEL.is_stale(tmp_path)
    path.write_text(json.dumps({"key": MODEL.key}))
    stamp(MODEL, tmp_path)
    assert mark.stat().st_mtime == 1 and MODEL.is_built(tmp_path)


def test_an_unknown_computation_is_named():
    with pytest.raises(UserError, match="has no entry nonsense"):
        Project.open(ROOT / "params.yaml").artefact("x.json", ["nonsense"], {})


PROGRAM = """
import json, sys
from subspaces.pipeline.artefact import Artefact
made = {}
for entry in json.load(sys.stdin):
    inputs = tuple(made[name] for name in entry["inputs"])
    made[entry["output"]] = Artefact(entry["output"], entry["versions"], entry["settings"], inputs)
json.dump({output: artefact.key for output, artefact in made.items()}, sys.stdout)
"""


def interpreter(version: str) -> str | None:
    """A Python of this version, on the path or under pyenv; a pyenv shim without a version behind it does not count."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))]
    for python in filter(None, found):
        asked = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True, text=True
        )
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return python
    return None


@pytest.fixture(scope="module")
def artefacts() -> dict[str, Artefact]:
    return Project.open(ROOT / "params.yaml").artefacts


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_python_version_gives_the_same_keys(artefacts, version):
    """Of all artefacts of the project. The other interpreters need no packages: a key is made with the standard library."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"needs Python {version}, on the path or under pyenv")
    entries: dict[str, dict] = {}

    def walk(artefact: Artefact) -> None:
        if artefact.output in entries:
            return
        for source in artefact.inputs:
            walk(source)
        inputs = [source.output for source in artefact.inputs]
        versions, settings = dict(artefact.versions), artefact.settings
        entries[artefact.output] = {"versions": versions, "settings": settings, "inputs": inputs}

    for artefact in artefacts.values():
        walk(artefact)
    listed = json.dumps([{"output": output, **entry} for output, entry in entries.items()])
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"], "PYTHONHASHSEED": "7"}
    done = subprocess.run([python, "-c", PROGRAM], input=listed, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    keys = json.loads(done.stdout)
    assert {output: keys[output] for output in artefacts} == {
        output: artefact.key for output, artefact in artefacts.items()
    }
