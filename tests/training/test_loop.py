"""The loop: a run that was stopped, by whatever, ends with the same bits as one that was not."""

from __future__ import annotations

import errno
import io
import math
import os
import random
import time
from pathlib import Path

import pytest
import torch

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.training import checkpoint as checkpoint_module
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import Outcome, generator_for, train
from subspaces.training.progress import ConsoleProgress, Silent
from tests.hierarchy.toys import DIMS, SETTINGS, make_task, random_tree
from tests.training import jobs

KEY = "k" * 64
ALWAYS = 1e-9  # seconds between checkpoints: one after every step
NEVER = 1e9


class Interrupted(Exception):
    pass


class Watched:
    """A real task that can be stopped before a step, or made to report another loss."""

    def __init__(self, task, stop_at: int | None = None, losses: dict[int, float] | None = None):
        self.task, self.stop_at, self.losses, self.seen = task, stop_at, losses or {}, []
        self.steps_per_epoch = task.steps_per_epoch

    def state(self):
        return self.task.state()

    def initialise(self, generator):
        self.task.initialise(generator)

    def begin_epoch(self, epoch, generator):
        self.task.begin_epoch(epoch, generator)

    def step(self, epoch, step, generator):
        number = epoch * self.steps_per_epoch + step
        if number == self.stop_at:
            raise Interrupted
        self.seen.append(number)
        metrics = self.task.step(epoch, step, generator)
        return {**metrics, "loss": self.losses.get(number, metrics["loss"])}


class Notes(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.closed = 0

    def say(self, text: str) -> None:
        self.said.append(text)

    def close(self) -> None:
        self.closed += 1


def small(name: str = "subspace", **settings) -> Watched:
    return Watched(make_task(name, random_tree(40, 1), **settings))


def go(
    task: Watched,
    folder: Path,
    key: str = KEY,
    seconds: float = NEVER,
    epochs: int = SETTINGS["epochs"],
    seed: int = 0,
    **more,
) -> tuple[Outcome, list[str]]:
    notes = Notes()
    checkpoints = Checkpoints(folder, key, say=notes.say)
    try:
        outcome = train(
            task, epochs=epochs, seed=seed, checkpoints=checkpoints, progress=notes, checkpoint_seconds=seconds, **more
        )
    finally:
        assert notes.closed == 1
    return outcome, notes.said


def bits(task: Watched) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in task.state().items()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list]:
    """Final bits and history of the run that most tests here disturb."""
    torch.set_num_threads(1)
    task = small()
    outcome, _ = go(task, tmp_path_factory.mktemp("plain"))
    assert outcome.resumed_from == 0 and len(task.seen) == outcome.steps
    return bits(task), outcome.history


def stopped(folder: Path, at: int) -> None:
    """A run that ends before step `at`, with a checkpoint after every step."""
    task = small()
    task.stop_at = at
    with pytest.raises(Interrupted):
        go(task, folder, seconds=ALWAYS)


def files(folder: Path, ending: str) -> list[Path]:
    return sorted((folder / KEY[:16]).glob(f"step-*.{ending}"))


# --- stopped and resumed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["shared", "per-edge"])
@pytest.mark.parametrize("name", DIMS)
def test_an_interrupted_run_ends_with_the_same_bits(tmp_path: Path, name: str, sampling: str) -> None:
    whole = small(name, sampling=sampling)
    expected, _ = go(whole, tmp_path / "whole")
    total = expected.steps
    assert total > 20
    for at in (5, whole.steps_per_epoch, total // 2, total - 1):
        task = small(name, sampling=sampling)
        task.stop_at = at
        with pytest.raises(Interrupted):
            go(task, tmp_path / "parts", seconds=ALWAYS)
    last = small(name, sampling=sampling)
    outcome, said = go(last, tmp_path / "parts")
    assert outcome.resumed_from == total - 1 and last.seen == [total - 1]
    assert f"resuming at step {total - 1:,} of {total:,}" in said
    assert bits(last) == bits(whole)
    assert outcome.history == expected.history
    assert [entry["epoch"] for entry in outcome.history] == [1, 2, 3, 4]


@pytest.mark.parametrize("pull", [0.0, 0.01])
def test_settings_that_change_with_time_survive_an_interruption(tmp_path: Path, pull: float) -> None:
    settings = {
        "lr_final": 0.1,
        "burn_in": 1,
        "trace_pull": pull,
        "trace_pull_from": 0.4,
        "weigh_as": 5,
        "in_batch": False,
    }
    whole, first, second = small(**settings), small(**settings), small(**settings)
    go(whole, tmp_path / "whole")
    first.stop_at = 17
    with pytest.raises(Interrupted):
        go(first, tmp_path / "parts", seconds=ALWAYS)
    go(second, tmp_path / "parts")
    assert bits(second) == bits(whole)


@pytest.mark.parametrize(("geometry", "sampling"), [("subspace", "shared"), ("poincare", "per-edge")])
def test_sigkill_at_random_moments(tmp_path: Path, processes, geometry: str, sampling: str) -> None:
    """Real processes, killed without warning again and again, also in the middle of writing a checkpoint."""
    plain = processes.Process(target=jobs.run, args=(geometry, sampling, tmp_path / "plain", tmp_path / "whole", False))
    plain.start()
    draw, kills, progressed = random.Random(), 0, 0
    while kills < 60:
        worker = processes.Process(
            target=jobs.run, args=(geometry, sampling, tmp_path / "parts", tmp_path / "out", True)
        )
        worker.start()
        if progressed < 4:
            before = newest(tmp_path / "parts")
            deadline = time.monotonic() + 60
            while newest(tmp_path / "parts") <= before and worker.is_alive() and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(draw.uniform(0.0, 0.05))
            worker.kill()
            worker.join()
            assert worker.exitcode == -9, f"it ended by itself ({worker.exitcode}) before it was killed"
            kills += 1
            progressed += newest(tmp_path / "parts") > before
        else:
            worker.join(120)
            break
    plain.join(120)
    assert plain.exitcode == 0 and worker.exitcode == 0 and kills >= 4
    assert read_json(tmp_path / "out" / "resumed.json") > 0
    for name in ("state.safetensors", "history.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def newest(folder: Path) -> int:
    steps = [int(path.stem.removeprefix("step-")) for path in (folder / jobs.KEY[:16]).glob("step-*.json")]
    return max(steps, default=0)


# --- damaged checkpoints ----------------------------------------------------------------------------------------------------------


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[min(len(content) - 1, int(place * len(content)))] ^= 0x01
    path.write_bytes(content)


DAMAGES = {
    "flipped byte in the weights": lambda tensors, record: flip(tensors, 0.3),
    "flipped last byte": lambda tensors, record: flip(tensors, 1.0),
    "flipped first byte": lambda tensors, record: flip(tensors, 0.0),
    "flipped byte in the header": lambda tensors, record: flip(tensors, 20 / tensors.stat().st_size),
    "cut in half": lambda tensors, record: os.truncate(tensors, tensors.stat().st_size // 2),
    "cut to nothing": lambda tensors, record: os.truncate(tensors, 0),
    "no tensors": lambda tensors, record: tensors.unlink(),
    "garbage record": lambda tensors, record: record.write_bytes(b"\x00\xff{{{"),
    "empty record": lambda tensors, record: record.write_bytes(b""),
    "record without keys": lambda tensors, record: record.write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_reported_and_the_one_before_used(tmp_path: Path, uninterrupted, damage: str) -> None:
    stopped(tmp_path, 12)
    (_, tensors), (_, record) = files(tmp_path, "safetensors"), files(tmp_path, "json")
    assert tensors.stem == record.stem == "step-000000012"
    DAMAGES[damage](tensors, record)
    task = small()
    outcome, said = go(task, tmp_path)
    assert any("step-000000012 is damaged" in line for line in said)
    assert outcome.resumed_from == 11 and task.seen[0] == 11
    assert (bits(task), outcome.history) == uninterrupted


@pytest.mark.parametrize("damage", DAMAGES)
def test_when_all_are_damaged_it_starts_over(tmp_path: Path, uninterrupted, damage: str) -> None:
    stopped(tmp_path, 12)
    for tensors, record in zip(files(tmp_path, "safetensors"), files(tmp_path, "json"), strict=True):
        DAMAGES[damage](tensors, record)
    task = small()
    outcome, said = go(task, tmp_path)
    assert sum("is damaged" in line for line in said) == 2
    assert outcome.resumed_from == 0 and task.seen[0] == 0
    assert (bits(task), outcome.history) == uninterrupted


@pytest.mark.parametrize("content", ["[]", "null", "3"])
def test_a_record_of_another_kind_is_damaged_too(tmp_path: Path, uninterrupted, content: str) -> None:
    stopped(tmp_path, 12)
    files(tmp_path, "json")[-1].write_text(content)
    task = small()
    assert go(task, tmp_path)[0].resumed_from == 11
    assert bits(task) == uninterrupted[0]


@pytest.mark.parametrize("change", [('"step": 12', '"step": 13'), ('"loss": ', '"loss": 1')])
def test_a_record_with_another_number_is_damaged_too(tmp_path: Path, uninterrupted, change: tuple[str, str]) -> None:
    stopped(tmp_path, 12)
    record = files(tmp_path, "json")[-1]
    text = record.read_text()
    assert change[0] in text
    record.write_text(text.replace(*change))
    task = small()
    outcome, _ = go(task, tmp_path)
    assert (bits(task), outcome.history) == uninterrupted


# --- what ends a run --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_the_step_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, uninterrupted, loss: float
) -> None:
    task = small()
    task.losses[task.steps_per_epoch + 2] = loss
    number = task.steps_per_epoch + 2
    with pytest.raises(
        UserError, match=rf"the loss became {loss} at step {number:,} \(epoch 2, step 3\).*learning rate"
    ) as caught:
        go(task, tmp_path, seconds=ALWAYS)
    assert str(tmp_path / KEY[:16]) in str(caught.value)
    again = small()
    outcome, _ = go(again, tmp_path)
    assert 0 < outcome.resumed_from <= number
    assert (bits(again), outcome.history) == uninterrupted


@pytest.mark.parametrize("name", [pytest.param("subspace"), "euclidean"])
def test_a_run_that_really_diverges(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"the loss became .* at step"):
        go(small(name, lr=1e30), tmp_path)


def test_ruined_weights_are_not_the_last_checkpoint(tmp_path: Path) -> None:
    settings = {"lr": 1e30, "options": {"score": "inner"}}
    with pytest.raises(UserError, match="the loss became"):
        go(small("euclidean", **settings), tmp_path, seconds=ALWAYS)
    task = small("euclidean", **settings)
    record = Checkpoints(tmp_path, KEY, say=lambda text: None).restore(task.state())
    if record is not None:
        task.begin_epoch(0, generator_for(0, 1, 0))
        assert math.isfinite(task.step(0, record["step"], generator_for(0, 2, 0, record["step"]))["loss"])


def test_two_runs_at_once(tmp_path: Path, uninterrupted) -> None:
    running = Checkpoints(tmp_path, KEY)
    with running.lock():
        with pytest.raises(UserError, match=r"another run is training this model already.*lock.*it resumes"):
            train(small(), epochs=1, seed=0, checkpoints=Checkpoints(tmp_path, KEY), progress=Silent())
        go(small(), tmp_path, key="o" * 64, epochs=1)  # another job has a lock of its own
    task = small()
    go(task, tmp_path)
    assert bits(task) == uninterrupted[0]


class FullAfter:
    """A file handle on a disk that takes only so many bytes more."""

    def __init__(self, handle, room: int):
        self.handle, self.room = handle, room

    def write(self, piece) -> int:
        if len(piece) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(piece)
        return self.handle.write(piece)


@pytest.mark.parametrize("room", [0, 600, 5_000])
def test_a_full_disk_during_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted, room: int
) -> None:
    from contextlib import contextmanager

    real, writes = checkpoint_module.atomic_file, []

    @contextmanager
    def filling(path, mode="wb"):
        writes.append(path)
        with real(path, mode) as handle:
            yield FullAfter(handle, room) if len(writes) == 6 else handle

    task = small()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "atomic_file", filling)
        with pytest.raises(UserError, match=r"step-000000006\.safetensors: No space left on device.*free some space"):
            go(task, tmp_path, seconds=ALWAYS)
    assert [path.stem for path in files(tmp_path, "json")] == ["step-000000005"]
    assert not list((tmp_path / KEY[:16]).glob("*.part")) + list((tmp_path / KEY[:16]).glob(".*.part"))
    again = small()
    outcome, said = go(again, tmp_path)
    assert outcome.resumed_from == 5 and not any("damaged" in line for line in said)
    assert (bits(again), outcome.history) == uninterrupted


# --- when checkpoints are written -------------------------------------------------------------------------------------------------


def test_only_two_checkpoints_are_kept(tmp_path: Path) -> None:
    folder, counts = tmp_path / KEY[:16], []
    task = small()
    step = task.task.step

    def counting(*arguments):
        counts.append(len(list(folder.glob("step-*.json"))))
        assert len(list(folder.glob("step-*.safetensors"))) == counts[-1]
        return step(*arguments)

    task.task.step = counting
    outcome, _ = go(task, tmp_path, seconds=ALWAYS)
    assert counts == [0, 1] + [2] * (outcome.steps - 2)
    assert sorted(path.name for path in folder.iterdir())[0] == "lock"


def test_checkpoints_by_epoch(tmp_path: Path) -> None:
    task = small()
    outcome, _ = go(task, tmp_path, checkpoint_epochs=2)
    assert [path.stem for path in files(tmp_path, "json")] == [f"step-{2 * task.steps_per_epoch:09d}"]
    assert outcome.steps == 4 * task.steps_per_epoch
    go(small(), tmp_path / "none")
    assert not files(tmp_path / "none", "json")


def test_other_settings_never_resume_from_these(tmp_path: Path, uninterrupted) -> None:
    stopped(tmp_path, 12)
    other = small()
    outcome, _ = go(other, tmp_path, key="o" * 64)
    assert outcome.resumed_from == 0 and bits(other) == uninterrupted[0]
    same_folder = small()  # the folder is named by the first 16 letters only; the record knows the whole key
    outcome, said = go(same_folder, tmp_path, key=KEY[:16] + "x" * 48)
    assert outcome.resumed_from == 0 and any("other settings" in line for line in said)
    assert bits(same_folder) == uninterrupted[0]


def test_seeds_differ_and_time_adds_up(tmp_path: Path, uninterrupted) -> None:
    task = small()
    go(task, tmp_path / "seed", seed=1)
    assert bits(task) != uninterrupted[0]
    stopped(tmp_path / "time", 12)
    before = read_json(files(tmp_path / "time", "json")[-1])["record"]["seconds"]
    outcome, _ = go(small(), tmp_path / "time")
    assert outcome.seconds > before > 0


def test_history_is_the_mean_of_the_steps(tmp_path: Path) -> None:
    task, losses = small(), []
    step = task.task.step
    task.task.step = lambda *arguments: losses.append(step(*arguments)) or losses[-1]
    outcome, said = go(task, tmp_path)
    width = task.steps_per_epoch
    for entry in outcome.history:
        part = losses[(entry["epoch"] - 1) * width : entry["epoch"] * width]
        assert entry["loss"] == pytest.approx(sum(one["loss"] for one in part) / width)
        assert entry["first"] == pytest.approx(sum(one["first"] for one in part) / width)
    assert outcome.history[-1]["loss"] < outcome.history[0]["loss"]
    assert any(line.startswith("epoch 4/4: loss ") for line in said)


def test_the_console_tells_of_a_resumed_run(tmp_path: Path) -> None:
    stopped(tmp_path, 12)
    stream = io.StringIO()
    progress = ConsoleProgress("toy", stream=stream, every=0.0)
    train(small(), epochs=4, seed=0, checkpoints=Checkpoints(tmp_path, KEY), progress=progress)
    assert "toy  resuming at step 12 of" in stream.getvalue() and "100.0 %" in stream.getvalue()
