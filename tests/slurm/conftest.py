"""A real slurmctld and slurmd for these tests, and small projects that send their jobs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import Project, copy_project, make_tiny

SCRIPT = Path(__file__).with_name("cluster.sh")
ROWS = ("euclidean-128", "subspace-64")  # two rows of the reconstruction table, nouns only
# the profile as it is, asked more often than is polite on a shared cluster
SLURM = ("--profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "1")


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


def sweep(project: Project, epochs: int, seeds: tuple[int, ...] = (0,)) -> None:
    """Leave two rows of one table, and say how long they train."""
    path = project.folder / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content["checkpoint"] = {"seconds": 1, "epochs": 0}
    quick = content["reconstruction"]["scales"]["quick"]
    quick["seeds"] = list(seeds)
    quick["all"]["epochs"] = epochs
    quick["rows"]["euclidean-128"]["both"]["epochs"] = 10 * epochs  # vectors are faster
    reason = "left out of the tests' own small project"
    verbs = {"verbs": reason}
    quick["not_run"] = {row: verbs if row in ROWS else verbs | {"nouns": reason} for row in content["reconstruction"]["models"]}
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Callable[..., Project]:
    """Makes copies of one small project, data built, nothing trained."""
    first = copy_project(tmp_path_factory.mktemp("slurm") / "first")
    make_tiny(first)

    def make(name: str, epochs: int, seeds: tuple[int, ...] = (0,)) -> Project:
        made = Project(first.folder.with_name(name))
        shutil.copytree(first.folder, made.folder, symlinks=True)
        sweep(made, epochs, seeds)
        return made

    return make


def wait_for(what: Callable[[], bool], seconds: float, message: str) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, message
        time.sleep(0.2)


def jobs_of(project: Project) -> list[dict[str, str]]:
    """Every SLURM job of this project, finished ones too: id, state, what it is for."""
    listed = subprocess.run(
        ["squeue", "--states=all", "--noheader", "--format=%i|%T|%Z|%k"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [dict(zip(("id", "state", "folder", "comment"), line.split("|"), strict=True)) for line in listed]
    return [row for row in rows if Path(row["folder"]).is_relative_to(project.folder)]


def training_job(project: Project, running: subprocess.Popen, row: str) -> str:
    """The SLURM job that trains this row, as soon as it has a checkpoint."""
    saved = project.folder / f"checkpoints/reconstruction/{row}/nouns/seed-0"
    wait_for(lambda: running.poll() is not None or any(saved.rglob("step-*.json")), 240, f"{row}: no checkpoint")
    assert running.poll() is None, "Snakemake ended too early"
    wanted = f"rule_train_reconstruction_wildcards_{row}_nouns_0"
    return next(job["id"] for job in jobs_of(project) if job["state"] == "RUNNING" and job["comment"] == wanted)
