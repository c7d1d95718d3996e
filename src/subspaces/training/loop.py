"""The one loop. All randomness of a step comes from (seed, epoch, step), so a checkpoint needs weights, moments and a counter,
and a killed run that goes on ends with the same bits as one that was never stopped."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.training.checkpoint import Checkpoints


class Task(Protocol):
    """What the loop trains: a model with its data."""

    steps_per_epoch: int

    def state(self) -> dict[str, Tensor]:
        """Every tensor that a step reads and changes, updated in place."""
        ...

    def initialise(self, generator: Generator) -> None: ...

    def begin_epoch(self, epoch: int, generator: Generator) -> None: ...

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        """One optimiser step; returns at least `loss`, before the weights moved."""
        ...


class Progress(Protocol):
    def start(self, total: int, done: int) -> None: ...

    def update(self, done: int, metrics: dict[str, float]) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


@dataclass
class Outcome:
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    resumed_from: int = 0
    steps: int = 0


def generator_for(*words: int) -> Generator:
    """A generator that depends on its words only (splitmix64 over them), not on what was drawn before."""
    state = 0x9E3779B97F4A7C15
    for word in words:
        state = (state ^ (word & 0xFFFFFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    generator = Generator()
    generator.manual_seed(state & 0x7FFFFFFFFFFFFFFF)
    return generator


def train(
    task: Task,
    *,
    epochs: int,
    seed: int,
    checkpoints: Checkpoints,
    progress: Progress,
    checkpoint_seconds: float = 300.0,
    checkpoint_epochs: int = 0,
) -> Outcome:
    """Train to the end, from the newest sound checkpoint if there is one.

    A checkpoint is written when `checkpoint_seconds` have passed and every `checkpoint_epochs` epochs (0: never by epoch). A loss that
    is not finite stops the run before anything is saved, so the last good checkpoint stays.
    """
    with checkpoints.lock():
        return _train(task, epochs, seed, checkpoints, progress, checkpoint_seconds, checkpoint_epochs)


def _train(
    task: Task,
    epochs: int,
    seed: int,
    checkpoints: Checkpoints,
    progress: Progress,
    checkpoint_seconds: float,
    checkpoint_epochs: int,
) -> Outcome:
    per_epoch, total = task.steps_per_epoch, epochs * task.steps_per_epoch
    outcome, sums = Outcome(steps=total), {}
    record = checkpoints.restore(task.state())
    done = 0
    if record is None:
        task.initialise(generator_for(seed, 0))
    else:
        done, outcome.history = record["step"], record["history"]
        outcome.seconds, sums, outcome.resumed_from = record["seconds"], record["sums"], record["step"]
        progress.say(f"resuming at step {done:,} of {total:,}")
    started = saved = time.monotonic()
    spent = outcome.seconds

    def save(step: int) -> None:
        content: dict[str, Any] = {
            "history": outcome.history,
            "sums": sums,
            "seconds": spent + time.monotonic() - started,
        }
        checkpoints.save(step, task.state(), content)

    progress.start(total, done)
    epoch_ready = -1
    try:
        while done < total:
            epoch, step = divmod(done, per_epoch)
            if epoch != epoch_ready:
                task.begin_epoch(epoch, generator_for(seed, 1, epoch))
                epoch_ready = epoch
            try:
                metrics = task.step(epoch, step, generator_for(seed, 2, epoch, step))
            except torch.linalg.LinAlgError:  # a factorisation of NaN or infinity
                metrics = {"loss": math.nan}
            if not math.isfinite(metrics["loss"]):
                checkpoints.forget(
                    done
                )  # the loss is from before the step: weights saved just now may be ruined already
                raise UserError(
                    f"the loss became {metrics['loss']} at step {done:,} (epoch {epoch + 1}, step {step + 1}). The last good checkpoint "
                    f"is kept in {checkpoints.folder}. Lower the learning rate, or raise λ, in params.yaml and run again."
                )
            done += 1
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + value
            progress.update(done, metrics)
            if done % per_epoch == 0:
                outcome.history.append(
                    {"epoch": epoch + 1, **{name: value / per_epoch for name, value in sums.items()}}
                )
                sums.clear()
                progress.say(f"epoch {epoch + 1}/{epochs}: {_line(outcome.history[-1])}")
                by_epoch = checkpoint_epochs > 0 and (epoch + 1) % checkpoint_epochs == 0
            else:
                by_epoch = False
            if done < total and (by_epoch or checkpoints.due() or time.monotonic() - saved >= checkpoint_seconds):
                save(done)
                saved = time.monotonic()
    finally:
        progress.close()
    outcome.seconds = spent + time.monotonic() - started
    return outcome


def _line(entry: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in entry.items() if name != "epoch")


def set_threads(threads: int) -> None:
    """Fix the number of threads: the same bits need the same order of sums."""
    torch.set_num_threads(threads)
    # as torch.use_deterministic_algorithms does, without its import of the compiler, which takes longer than a small job
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    # nothing here reads what was not written; filling costs 5 %
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a property of the module
