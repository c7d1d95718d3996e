"""The graph on a real SLURM: the table end to end, killed jobs, jobs that no node can run, logs, accounts."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.slurm.conftest import ROWS, SLURM, Project, jobs_of, training_job

pytestmark = pytest.mark.slurm

TABLE = "results/tables/reconstruction.tex"
MODEL = "models/reconstruction/{row}/nouns/seed-{seed}/{name}"
WORD = {row: f"{row}_nouns_0" for row in ROWS}


def read(project: Project, row: str, name: str, seed: int = 0) -> dict:
    return json.loads((project.folder / MODEL.format(row=row, seed=seed, name=name)).read_text())


def numbers(project: Project) -> dict[str, float | None]:
    folder = project.folder / "results/numbers/reconstruction"
    return {str(path.relative_to(folder)): json.loads(path.read_text())["value"] for path in sorted(folder.rglob("*.json"))}


def attempts(project: Project, row: str) -> list[str]:
    """States of the training jobs of a row, oldest first."""
    found = [job for job in jobs_of(project) if job["comment"] == f"rule_train_reconstruction_wildcards_{WORD[row]}"]
    return [job["state"] for job in sorted(found, key=lambda job: int(job["id"]))]


def test_a_table_from_jobs_that_were_cancelled_and_timed_out(cluster, small):
    """Two trainings are killed, one by scancel and one by its time limit; the numbers are those of a run that nobody disturbed."""
    project, calm = small("killed", 40), small("calm", 40)
    project.edit_params(cluster__minutes__training__quick=1)  # SLURM's shortest limit
    command = ["snakemake", *SLURM, "--config", "partition=short", "--", TABLE]
    log = project.folder / "snakemake.log"
    with open(log, "w") as out:
        running = subprocess.Popen(command, cwd=project.folder, env=project.environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        # frozen, so that the limit comes in the middle however fast the machine is
        subprocess.run(["scancel", "--signal=STOP", training_job(project, running, "subspace-64")], check=True)
        subprocess.run(["scancel", training_job(project, running, "euclidean-128")], check=True)
        calm.snakemake(TABLE)
        running.wait(timeout=400)
    finally:
        if running.poll() is None:
            running.kill()
    assert running.returncode == 0, log.read_text()[-4000:]

    assert attempts(project, "euclidean-128") == ["CANCELLED", "COMPLETED"]
    assert attempts(project, "subspace-64") == ["TIMEOUT", "COMPLETED"]
    for row in ROWS:
        assert read(project, row, "timing.json")["resumed"] is True
        assert read(calm, row, "timing.json")["resumed"] is False
        assert read(project, row, "settings.json")["weights_sha256"] == read(calm, row, "settings.json")["weights_sha256"]
    assert (project.folder / TABLE).read_text() == (calm.folder / TABLE).read_text()
    assert numbers(project) == numbers(calm)
    assert any(value is not None for value in numbers(project).values())

    # one log for every job and attempt, and the rule's own
    kept = project.folder / "logs/slurm/rule_train_reconstruction"
    for row in ROWS:
        first, second = sorted((kept / WORD[row]).glob("*.log"), key=lambda path: int(path.stem))
        assert "epoch 1/" in first.read_text()
        assert "resuming at step" in second.read_text()
    assert (project.folder / "logs/reconstruction/subspace-64/nouns/seed-0.train.log").read_text()
    # what is small stays where Snakemake runs
    rules = {job["comment"].split("_wildcards_")[0] for job in jobs_of(project)}
    assert rules == {"rule_build_hierarchy", "rule_train_reconstruction", "rule_evaluate_reconstruction"}


def test_what_no_node_can_run_fails_at_once_and_says_why(cluster, small):
    project = small("greedy", 2)
    project.edit_params(cluster__gpus__quick=7)
    project.snakemake("data/wordnet/nouns.npz")
    wanted = [MODEL.format(row=row, seed=0, name="settings.json") for row in ROWS]
    greedy = ("--set-resources", "train_reconstruction:mem_mb=90000000")
    done = project.run("snakemake", *SLURM, "--", wanted[1], check=False, timeout=120)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "SLURM sbatch failed" in said
    assert "Requested node configuration is not available" in said
    assert "--gpus=7" in said
    done = project.run("snakemake", *SLURM, *greedy, "--", wanted[0], check=False, timeout=120)
    assert done.returncode != 0
    assert "Memory specification can not be satisfied" in done.stdout + done.stderr
    assert {job["state"] for job in jobs_of(project)} <= {"FAILED"}, "nothing waits for a node that will never come"
    assert not (project.folder / wanted[0]).exists()


def test_a_job_gets_the_gpu_it_asks_for(cluster, small):
    """SLURM gives the one GPU of the node, which is only a name here, so the job itself trains on the processor. And: in another folder."""
    project = small("gpu", 2)
    project.edit_params(cluster__gpus__quick=1, device="cpu")
    elsewhere = ("--directory", "runs/quick")
    project.snakemake("data/wordnet/nouns.npz", options=elsewhere)
    target = MODEL.format(row="subspace-64", seed=0, name="settings.json")
    done = project.run("snakemake", *SLURM, *elsewhere, "--config", "partition=short", "gpu_partition=gpu", "--", target)
    assert (project.folder / "runs/quick" / target).exists()
    assert "gpu=1, slurm_partition=gpu" in done.stdout + done.stderr
    (job,) = jobs_of(project)
    shown = subprocess.run(["scontrol", "show", "job", job["id"]], capture_output=True, text=True, check=True).stdout
    assert "TresPerJob=gres:gpu:1" in shown
    assert "Partition=gpu" in shown
