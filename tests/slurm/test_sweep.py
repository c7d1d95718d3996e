"""Seeds as one array, with a task that is cancelled on the way."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.slurm.conftest import MODEL, Project, has_checkpoint, jobs_of, slurm, started, wait_for

pytestmark = pytest.mark.slurm

ROW = "subspace-64"
PATTERN = MODEL.format(row=ROW, seed="{seed}", name="settings.json")
SWEEP = (sys.executable, "profiles/slurm/sweep.py", PATTERN, "0", "1", "--every", "1")


def weights(project: Project, seed: int) -> str:
    return json.loads((project.folder / PATTERN.format(seed=seed)).read_text())["weights_sha256"]


def test_a_cancelled_task_comes_back_and_leaves_the_other_alone(cluster, small, calm):
    project = small("sweep")
    with started(project, *SWEEP) as process:
        wait_for(lambda: has_checkpoint(project.folder, ROW), process, "a checkpoint")
        slurm("scancel", next(job["id"] for job in jobs_of(project) if job["id"].endswith("_0")))
    states = {job["id"].replace("_", " task "): job["state"] for job in jobs_of(project)}
    assert sorted(states.values()) == ["CANCELLED", "COMPLETED", "COMPLETED"], states
    attempts = [line for line in (project.folder / "said.log").read_text().splitlines() if line.startswith("attempt")]
    assert [line.split(", --")[0] for line in attempts] == ["attempt 1: seeds 0, 1", "attempt 2: seeds 0"]
    assert weights(project, 0) == weights(calm, 0)
    assert weights(project, 0) != weights(project, 1)
    timing = json.loads((project.folder / MODEL.format(row=ROW, seed=0, name="timing.json")).read_text())
    assert timing["resumed"] is True
    assert len(list((project.folder / "logs/slurm/sweep").glob("*.log"))) == 3


def test_an_interrupted_sweep_takes_its_array_along(cluster, small):
    project = small("sweep-stopped")
    with started(project, *SWEEP, code=1) as process:
        wait_for(lambda: any(job["state"] == "RUNNING" for job in jobs_of(project)), process, "a task that runs")
        process.send_signal(signal.SIGINT)
    assert "is cancelled" in (project.folder / "said.log").read_text()
    assert {job["state"] for job in jobs_of(project)} <= {"CANCELLED", "COMPLETING"}


def test_an_array_that_no_node_can_run_is_refused_with_the_reason(cluster, small):
    project = small("sweep-greedy")
    project.edit_params(cluster__gpus__quick=7)
    done = project.run(*SWEEP, check=False, timeout=120)
    assert done.returncode != 0
    assert "Requested node configuration is not available" in done.stderr
    assert "--gpus=7" in done.stderr


def test_a_pattern_without_a_seed_is_refused(small):
    done = small("sweep-wrong").run(
        sys.executable, "profiles/slurm/sweep.py", "results/tables/reconstruction.tex", "0", check=False
    )
    assert done.returncode != 0
    assert "{seed}" in done.stderr
