"""Seeds as one array, with a task that is cancelled on the way."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.slurm.conftest import Project, jobs_of, wait_for

pytestmark = pytest.mark.slurm

PATTERN = "models/reconstruction/subspace-64/nouns/seed-{seed}/settings.json"
SWEEP = (sys.executable, "profiles/slurm/sweep.py", PATTERN, "0", "1")


def weights(project: Project) -> list[str]:
    return [json.loads((project.folder / PATTERN.format(seed=seed)).read_text())["weights_sha256"] for seed in (0, 1)]


def test_a_cancelled_task_comes_back_and_leaves_the_other_alone(cluster, small):
    project, calm = small("sweep", 60, (0, 1)), small("sweep-calm", 60, (0, 1))
    log = project.folder / "sweep.log"
    with open(log, "w") as out:
        running = subprocess.Popen(SWEEP, cwd=project.folder, env=project.environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        saved = project.folder / "checkpoints/reconstruction/subspace-64/nouns/seed-0"
        wait_for(lambda: running.poll() is not None or any(saved.rglob("step-*.json")), 200, "no checkpoint")
        assert running.poll() is None, log.read_text()
        first = next(job["id"] for job in jobs_of(project) if job["id"].endswith("_0"))
        subprocess.run(["scancel", first], check=True)
        calm.snakemake(*(PATTERN.format(seed=seed) for seed in (0, 1)))
        assert running.wait(timeout=300) == 0, log.read_text()
    finally:
        if running.poll() is None:
            running.kill()
    states = {job["id"].replace("_", " task "): job["state"] for job in jobs_of(project)}
    assert sorted(states.values()) == ["CANCELLED", "COMPLETED", "COMPLETED"], states
    assert [line for line in log.read_text().splitlines() if line.startswith("attempt")][1].startswith("attempt 2: seeds 0,")
    assert weights(project) == weights(calm)
    assert weights(project)[0] != weights(project)[1]
    assert len(list((project.folder / "logs/slurm/sweep").glob("*.log"))) == 3


def test_an_array_that_no_node_can_run_is_refused_with_the_reason(cluster, small):
    project = small("sweep-greedy", 2, (0, 1))
    project.edit_params(cluster__gpus__quick=7)
    done = project.run(*SWEEP, check=False, timeout=120)
    assert done.returncode != 0
    assert "Requested node configuration is not available" in done.stderr
    assert "--gpus=7" in done.stderr


def test_a_pattern_without_a_seed_is_refused(small):
    done = small("sweep-wrong", 2).run(sys.executable, "profiles/slurm/sweep.py", "results/tables/reconstruction.tex", "0", check=False)
    assert done.returncode != 0
    assert "{seed}" in done.stderr
