"""What goes wrong on real machines, done to real runs: every fault ends in words, nothing is lost, and the next run completes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from subspaces.files import read_json
from tests.workflow.conftest import Project, copy_built, outputs_made

pytestmark = pytest.mark.workflow

MODEL = "models/reconstruction/poincare-10/verbs/seed-0"
WEIGHTS = f"{MODEL}/weights.safetensors"
EVALUATION = "results/evaluations/reconstruction/poincare-10/verbs/seed-0.json"
NUMBER = "results/numbers/reconstruction/poincare-10/verbs-map.json"
NUMBERS = "results/numbers/reconstruction.json"
TRAIN = ("subspaces", "make", f"{MODEL}/settings.json")
RUN = ("snakemake", "--cores", "2", "--")
PAGE = "results/report.html"
YEAR = 365 * 86_400


@pytest.fixture(scope="module")
def slow(built, tmp_path_factory) -> Iterator[Project]:
    """One small model trains for seconds instead of a moment, with many checkpoints; `expected` are its weights when nothing happens."""
    copied = copy_built(built, tmp_path_factory.mktemp("slow") / "project")
    copied.edit_params(
        **{"reconstruction__scales__quick__rows__poincare-10__both__epochs": 800, "checkpoint__seconds": 0.2}
    )
    copied.run(*TRAIN)
    copied.expected = (copied.folder / WEIGHTS).read_bytes()
    yield copied
    shutil.rmtree(copied.folder)


@pytest.fixture
def untrained(slow) -> Project:
    shutil.rmtree(slow.folder / MODEL)
    shutil.rmtree(slow.folder / "checkpoints")
    (slow.folder / EVALUATION).unlink(missing_ok=True)
    return slow


def files(project: Project, *patterns: str) -> dict[Path, int]:
    return {
        path: path.stat().st_mtime_ns for pattern in patterns for path in project.folder.glob(pattern) if path.is_file()
    }


def locks(project: Project) -> list[Path]:
    return list(project.folder.glob(".snakemake/locks/*"))


def until_a_new_checkpoint(project: Project, run: subprocess.Popen[str]) -> None:
    """Wait until the training that `run` has started is under way."""
    old = files(project, "checkpoints/**/step-*.json")
    while not files(project, "checkpoints/**/step-*.json").keys() - old.keys():
        assert run.poll() is None, run.stdout.read()
        time.sleep(0.01)


def test_a_terminated_run_ends_in_order_and_the_next_one_goes_on(untrained):
    run = untrained.start(*RUN, EVALUATION)
    until_a_new_checkpoint(untrained, run)
    os.killpg(run.pid, signal.SIGTERM)  # all of it, as SLURM and systemd do
    said, _ = run.communicate()
    assert run.returncode
    assert "Traceback" not in said
    assert not locks(untrained)
    assert not (untrained.folder / WEIGHTS).exists()

    run = untrained.start(*RUN, EVALUATION)
    until_a_new_checkpoint(untrained, run)
    run.terminate()  # Snakemake alone, as `kill` does
    said, _ = run.communicate()
    assert run.returncode
    assert "resuming at step" in said
    assert "Will exit after finishing currently running jobs" in said
    assert not locks(untrained)
    assert (untrained.folder / WEIGHTS).read_bytes() == untrained.expected
    assert not (untrained.folder / EVALUATION).exists()

    assert outputs_made(untrained.snakemake(EVALUATION)) == {EVALUATION}


def test_a_killed_run_leaves_a_lock_that_says_how_to_go_on(untrained):
    run = untrained.start(*RUN, EVALUATION)
    until_a_new_checkpoint(untrained, run)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    assert locks(untrained)
    before = files(untrained, "models/**/*", "results/**/*", "checkpoints/**/*", ".snakemake/locks/*")

    refused = untrained.snakemake(EVALUATION, check=False)
    assert refused.returncode
    assert "cannot be locked" in refused.stderr
    assert "It can be removed with the --unlock argument" in refused.stderr
    assert files(untrained, "models/**/*", "results/**/*", "checkpoints/**/*", ".snakemake/locks/*") == before

    untrained.run("snakemake", "--unlock")
    assert "resuming at step" in untrained.snakemake(EVALUATION).stderr
    assert (untrained.folder / WEIGHTS).read_bytes() == untrained.expected
    assert (untrained.folder / EVALUATION).exists()


def test_two_runs_in_one_folder_do_not_touch_the_same_files(untrained):
    """While the first is at work, a second is refused, by Snakemake or by the training itself; one that makes other files is not."""
    other = untrained.folder / "results/numbers/snli/minilm-mlp/accuracy-2way.json"
    before = other.read_bytes()
    other.unlink()
    first = untrained.start(*RUN, EVALUATION)
    try:
        until_a_new_checkpoint(untrained, first)
        os.killpg(first.pid, signal.SIGSTOP)  # in the middle of its work, for as long as this takes
        refused = untrained.snakemake(NUMBER, check=False)
        assert refused.returncode
        assert "Please make sure that no other Snakemake process is trying to create the same files" in refused.stderr
        assert str(untrained.folder) in refused.stderr

        refused = untrained.run(*TRAIN, check=False)
        assert refused.returncode == 1
        assert "another run is training this model already" in refused.stderr
        assert "Wait for it, or stop it; it resumes." in refused.stderr
        assert "Traceback" not in refused.stderr

        untrained.snakemake(other.relative_to(untrained.folder).as_posix())
        assert other.read_bytes() == before
    finally:
        os.killpg(first.pid, signal.SIGCONT)
        said, _ = first.communicate()
    assert first.returncode == 0, said
    assert (untrained.folder / WEIGHTS).read_bytes() == untrained.expected
    assert (untrained.folder / EVALUATION).exists()
    assert not list(untrained.folder.glob("models/**/.*.part"))


def test_damaged_weights_are_refused_and_the_next_run_makes_them_again(twin):
    models = (
        "reconstruction/lorentz-10/verbs/seed-0",
        "link_prediction/cones-10/0/seed-0",
        "snli/minilm-mlp-diff/2way/seed-0",
    )
    evaluations = [f"results/evaluations/{model}.json" for model in models]
    weights = [twin.folder / f"models/{model}/weights.safetensors" for model in models]
    sound = {path: path.read_bytes() for path in weights}
    measured = {name: read_json(twin.folder / name)["metrics"] for name in evaluations}
    for path, content in sound.items():
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for name in evaluations:
        (twin.folder / name).unlink()

    command = ("subspaces", "warm", "--", *RUN, "all", *evaluations)
    refused = twin.run(*command, check=False)
    assert refused.returncode
    assert "Traceback" not in refused.stderr
    told = dict(
        re.findall(
            r"error: (\S+) is damaged or missing. The folder is now (\S+); run the same command again", refused.stderr
        )
    )
    assert told == {f"models/{model}/weights.safetensors": f"checkpoints/{model}.damaged" for model in models}
    assert not any((twin.folder / name).exists() for name in evaluations)
    assert all((twin.folder / place / "weights.safetensors").exists() for place in told.values()), "nothing is lost"

    assert outputs_made(twin.run(*command)) == {f"models/{model}/settings.json" for model in models} | {*evaluations}
    assert {path: path.read_bytes() for path in weights} == sound
    assert {name: read_json(twin.folder / name)["metrics"] for name in evaluations} == measured


def move_clocks(project: Project, seconds: float, *patterns: str) -> None:
    moment = time.time() + seconds
    for path in files(project, *patterns):
        os.utime(path, (moment, moment))


@pytest.fixture
def dated(built) -> Iterator[Project]:
    """The built project, for a test that moves its files in time and edits its parameters."""
    before = (built.folder / "params.yaml").read_text()
    yield built
    (built.folder / "params.yaml").write_text(before)
    move_clocks(built, 0, "src/**/*", "params.yaml", "data/**/*", "models/**/*", "results/**/*", "figures/*")


def test_files_from_the_future_and_the_past_rerun_nothing_and_may_be_inputs(dated):
    """The clock was wrong when they were made, or has been moved back since."""
    move_clocks(dated, YEAR, "src/**/*", "params.yaml", "data/**/*", "results/**/*", "figures/*")
    move_clocks(dated, -YEAR, "models/**/*")
    assert dated.planned("all") == set()
    before = (dated.folder / NUMBER).read_bytes()
    (dated.folder / NUMBER).unlink()
    move_clocks(dated, YEAR, EVALUATION)
    assert outputs_made(dated.snakemake("all")) == {NUMBERS}
    assert (dated.folder / NUMBER).read_bytes() == before


def test_a_stale_output_is_made_again_whatever_its_date(dated):
    dated.edit_params(figures__rank_vs_descendants__chain="#123456")
    for seconds in (YEAR, 0):  # the second time they are newer than the wish for new ones
        move_clocks(dated, seconds, "results/**/*", "figures/*")
        assert dated.planned("all") == {"figures/rank_vs_descendants.png", PAGE}


@pytest.fixture
def full_disks(twin) -> Iterator[tuple[Project, list[Path]]]:
    """A project in which the folder of a model and that of the tables are disks of 64 KiB, both full of ballast."""
    folders = [twin.folder / MODEL, twin.folder / "results/tables"]
    mounted = []
    try:
        for folder in folders:
            shutil.rmtree(folder)
            folder.mkdir()
            try:
                subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True, capture_output=True
                )
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("needs the right to mount a tmpfs")
            mounted.append(folder)
            with pytest.raises(OSError, match="No space left"), (folder / "ballast").open("wb", buffering=0) as handle:
                while True:
                    handle.write(bytes(4096))
        yield twin, [folder / "ballast" for folder in folders]
    finally:
        for folder in mounted:
            subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_in_words_and_room_is_all_it_takes(full_disks):
    project, ballast = full_disks
    table = "results/tables/reconstruction.tex"
    failed = project.snakemake(WEIGHTS, table, check=False)
    assert failed.returncode
    for stem in (f"{MODEL}/", "results/tables/reconstruction"):
        assert re.search(rf"error: cannot write {stem}[\w.]*: No space left on device", failed.stderr)
    assert "Traceback" not in failed.stderr
    assert [path.name for one in ballast for path in one.parent.iterdir()] == ["ballast", "ballast"]
    for one in ballast:
        one.unlink()
    assert outputs_made(project.snakemake(WEIGHTS, table)) == {f"{MODEL}/settings.json", table}
