"""The graph on a real SLURM: one table end to end while its trainings are killed in three ways, and jobs that no node can run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.conftest import MODEL, ROWS, SLURM, TABLE, Project, has_checkpoint, jobs_of, slurm, started, wait_for

pytestmark = pytest.mark.slurm

WORD = {row: f"{row}_nouns_0" for row in ROWS}
CANCELLED, LIMITED, FINISHED = ROWS


@dataclass
class Killed:
    """A table that was made while its trainings were killed."""

    folder: Path
    calm: Path  # the same table, made undisturbed
    jobs: list[dict[str, str]]
    asked: dict[str, str]  # of the first training job of each row, as SLURM shows it

    def attempts(self, row: str) -> list[str]:
        """States of the training jobs of a row, oldest first."""
        return [
            job["state"] for job in self.jobs if job["comment"] == f"rule_train_reconstruction_wildcards_{WORD[row]}"
        ]

    def logs(self, row: str) -> list[str]:
        """What SLURM kept of every attempt, oldest first."""
        kept = (self.folder / "logs/slurm/rule_train_reconstruction" / WORD[row]).glob("*.log")
        return [path.read_text() for path in sorted(kept, key=lambda path: int(path.stem))]


def read(folder: Path, row: str, name: str) -> dict:
    return json.loads((folder / MODEL.format(row=row, seed=0, name=name)).read_text())


def numbers(folder: Path) -> dict[str, float | None]:
    top = folder / "results/numbers/reconstruction"
    return {
        str(path.relative_to(top)): json.loads(path.read_text()).get("value") for path in sorted(top.rglob("*.json"))
    }


def training_job(project: Project, row: str) -> str:
    wanted = f"rule_train_reconstruction_wildcards_{WORD[row]}"
    return next(job["id"] for job in jobs_of(project) if job["state"] == "RUNNING" and job["comment"] == wanted)


def make_the_table(project: Project, undisturbed: Callable[[], Project]) -> Killed:
    """One call of Snakemake. One training is cancelled, one reaches its time limit, one is cancelled when its files are whole."""
    folder = project.folder / "runs/quick"
    project.edit_params(cluster__gpus__quick=1, device="cpu")  # the node's GPU is only a name
    site = ("scale=quick", "partition=short", "gpu_partition=gpu")
    asked, ids = {}, {}
    with started(project, *SLURM, "--config", *site, "--directory", "runs/quick", "--", TABLE) as process:
        while len(asked) < len(ROWS):
            left = [row for row in ROWS if row not in asked]
            wait_for(
                lambda left=left: any(has_checkpoint(folder, row) for row in left), process, "checkpoints of all rows"
            )
            for row in left:
                if has_checkpoint(folder, row):
                    job = ids[row] = training_job(project, row)
                    if row == CANCELLED:
                        slurm("scancel", job)
                    elif row == LIMITED:  # frozen, so that the limit comes in the middle however fast the machine is
                        slurm("scancel", "--signal=STOP", job)
                    else:  # only the script around the training is frozen: the job cannot end when its work is done
                        slurm("scancel", "--batch", "--signal=STOP", job)
                    asked[row] = slurm("scontrol", "show", "job", job)
        slurm("scontrol", "update", f"JobId={ids[LIMITED]}", "EndTime=now+1")  # its 30 minutes are over now
        steps = ("squeue", "--steps", "--noheader", "--format=%i", f"--jobs={ids[FINISHED]}")
        wait_for(lambda: f"{ids[FINISHED]}.0" not in slurm(*steps), process, "the training writes its files")
        assert (folder / MODEL.format(row=FINISHED, seed=0, name="settings.json")).exists()
        slurm("scancel", ids[FINISHED])
        calm = undisturbed().folder
    return Killed(folder, calm, jobs_of(project), asked)


@pytest.fixture(scope="module")
def killed(cluster, small, request) -> Killed:
    return make_the_table(small("killed", built=False), lambda: request.getfixturevalue("calm"))


def test_the_table_of_killed_jobs_is_that_of_a_run_that_nobody_disturbed(killed):
    assert (killed.folder / TABLE).read_text() == (killed.calm / TABLE).read_text()
    assert numbers(killed.folder) == numbers(killed.calm)
    assert sum(value is not None for value in numbers(killed.folder).values()) >= len(ROWS)
    # what is small stays where Snakemake runs
    rules = {job["comment"].split("_wildcards_")[0] for job in killed.jobs}
    assert rules == {"rule_build_hierarchy", "rule_train_reconstruction", "rule_evaluate_reconstruction"}


@pytest.mark.parametrize(
    ("row", "states"), [(CANCELLED, ["CANCELLED", "COMPLETED"]), (LIMITED, ["TIMEOUT", "COMPLETED"])]
)
def test_a_training_that_was_killed_goes_on_by_itself_to_the_same_weights(killed, row, states):
    assert killed.attempts(row) == states
    assert read(killed.folder, row, "timing.json")["resumed"] is True
    assert read(killed.calm, row, "timing.json")["resumed"] is False
    assert (
        read(killed.folder, row, "settings.json")["weights_sha256"]
        == read(killed.calm, row, "settings.json")["weights_sha256"]
    )
    first, second = killed.logs(row)
    assert "steps done" not in first
    assert re.search(r"resuming at step [1-9]", second)


def test_a_training_that_was_killed_after_its_last_step_does_not_start_from_nothing(killed):
    """SLURM calls the job failed although its files are whole, so Snakemake deletes them."""
    assert killed.attempts(FINISHED) == ["CANCELLED", "COMPLETED"]
    first, second = killed.logs(FINISHED)
    assert "steps done" in first
    assert "an earlier attempt had finished" in second
    assert "epoch" not in second
    ours, theirs = read(killed.folder, FINISHED, "settings.json"), read(killed.calm, FINISHED, "settings.json")
    assert ours["weights_sha256"] == theirs["weights_sha256"]
    assert not list((killed.folder / "checkpoints").rglob("*.finished")), "the evaluation needs no second names"


def test_every_job_keeps_its_log_and_every_rule_its_own(killed):
    kept = {path.stem for path in (killed.folder / "logs/slurm").rglob("*.log")}
    assert kept == {job["id"] for job in killed.jobs}
    for row in ROWS:
        for step in ("train", "evaluate"):
            assert (killed.folder / f"logs/reconstruction/{row}/nouns/seed-0.{step}.log").read_text()


def test_jobs_get_the_partition_the_gpu_and_the_time_they_ask_for(killed):
    for row in ROWS:
        learns = row == "subspace-64"
        assert ("TresPerJob=gres:gpu:1" in killed.asked[row]) == learns
        assert f"Partition={'gpu' if learns else 'short'} " in killed.asked[row]
        assert "TimeLimit=00:30:00" in killed.asked[row]
        assert "NumCPUs=1 " in killed.asked[row]


def test_what_no_node_can_run_fails_at_once_and_says_why(cluster, small):
    project = small("greedy")
    project.edit_params(cluster__gpus__quick=7)
    wanted = [MODEL.format(row="subspace-64", seed=0, name="settings.json"), "data/wordnet/verbs.npz"]
    done = project.run(
        *SLURM, "--set-resources", "build_hierarchy:mem_mb=90000000", "--", *wanted, check=False, timeout=120
    )
    assert done.returncode != 0
    said = done.stdout + done.stderr
    reasons = re.findall(r"SLURM sbatch failed. The error message was '(.*?)'", said, re.DOTALL)
    assert "--gpus=7" in said
    assert all("Requested node configuration is not available" in reason for reason in reasons)
    memory = ["Memory specification can not be satisfied" in reason for reason in reasons]
    assert (memory.count(False), memory.count(True)) == (4, 1), "only training is sent again"
    assert {job["state"] for job in jobs_of(project)} <= {"FAILED"}, "nothing waits for a node that will never come"
    assert not any((project.folder / name).exists() for name in wanted)
