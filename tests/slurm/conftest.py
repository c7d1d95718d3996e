"""A real slurmctld and slurmd for these tests, and small projects that send their jobs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import Project, copy_project, make_tiny

SCRIPT = Path(__file__).with_name("cluster.sh")
ROWS = ("euclidean-128", "subspace-64", "poincare-10")  # of the reconstruction table, nouns only
TABLE = "results/tables/reconstruction.tex"
MODEL = "models/reconstruction/{row}/nouns/seed-{seed}/{name}"
# Snakemake with the profile as it is; only the questions to SLURM come more often than is polite on a shared cluster
SLURM = (sys.executable, str(Path(__file__).with_name("eager.py")), "--profile", "profiles/slurm")


def _cluster(*command: str) -> subprocess.CompletedProcess[str]:
    full = ["bash", str(SCRIPT), *command]
    return subprocess.run(full, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)


def _running(accounting: str) -> Iterator[None]:
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip("a SLURM of our own needs root and apt-get")
    started = _cluster("start", accounting)
    if started.returncode:
        _cluster("stop")
        reason = started.stderr.strip()
        if "could not install" in reason or "not ours" in reason:
            pytest.skip(f"no SLURM here: {reason[-300:]}")
        pytest.fail(f"SLURM did not start: {reason}")
    yield
    _cluster("stop")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One node, no accounting database."""
    yield from _running("none")


@pytest.fixture(scope="module")
def accounting_cluster() -> Iterator[None]:
    """One node that keeps accounts: jobs must name the account `lab`."""
    yield from _running("database")


def _few_rows(project: Project) -> None:
    """Leave three rows of one table, which train for seconds and write checkpoints all the time."""
    path = project.folder / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content["checkpoint"] = {"seconds": 0.2, "epochs": 0}
    quick = content["reconstruction"]["scales"]["quick"]
    quick["seeds"] = [0]
    for row, epochs in zip(ROWS, (300, 30, 80), strict=True):
        quick["rows"].setdefault(row, {}).setdefault("both", {})["epochs"] = epochs
    reason = "left out of the tests' own small project"
    verbs = {"verbs": reason}
    quick["not_run"] = {
        row: verbs if row in ROWS else verbs | {"nouns": reason} for row in content["reconstruction"]["models"]
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Callable[..., Project]:
    """Makes copies of one small project: nouns built or not, nothing trained."""
    first = copy_project(tmp_path_factory.mktemp("slurm") / "first")
    make_tiny(first)
    _few_rows(first)
    first.snakemake("data/wordnet/nouns.npz")

    def make(name: str, built: bool = True) -> Project:
        made = Project(first.folder.with_name(name))
        shutil.copytree(
            first.folder, made.folder, symlinks=True, ignore=None if built else shutil.ignore_patterns("data", ".keys")
        )
        return made

    return make


@pytest.fixture(scope="session")
def calm(small) -> Project:
    """The same table, made here and undisturbed: what everything that was killed has to be equal to."""
    project = small("calm")
    project.run("subspaces", "warm", "--", "snakemake", "--cores", "2", "--", TABLE)
    return project


@contextmanager
def started(project: Project, *command: str, code: int = 0) -> Iterator[subprocess.Popen]:
    """A command that runs in the background; what it says goes to a file, which is shown if it fails."""
    log = project.folder / "said.log"
    with open(log, "w") as out:
        process = subprocess.Popen(
            command, cwd=project.folder, env=project.environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
        assert process.wait(timeout=900) == code, log.read_text()[-4000:]
    finally:
        if process.poll() is None:
            process.kill()


def wait_for(what: Callable[[], object], process: subprocess.Popen, message: str) -> None:
    """Until something is so, as long as the process lives."""
    end = time.monotonic() + 600
    while not what():
        assert process.poll() is None, f"the command ended before: {message}"
        assert time.monotonic() < end, f"never: {message}"
        time.sleep(0.05)


def slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def jobs_of(project: Project) -> list[dict[str, str]]:
    """Every SLURM job of this project, finished ones too, oldest first: id, state, what it is for."""
    listed = slurm("squeue", "--states=all", "--noheader", "--sort=i", "--format=%i|%T|%Z|%k").splitlines()
    rows = [dict(zip(("id", "state", "folder", "comment"), line.split("|"), strict=True)) for line in listed]
    return [row for row in rows if Path(row["folder"]).is_relative_to(project.folder)]


def has_checkpoint(folder: Path, row: str, seed: int = 0) -> bool:
    return any((folder / f"checkpoints/reconstruction/{row}/nouns/seed-{seed}").rglob("step-*.json"))
