"""Training runs for processes of their own, which are killed."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from subspaces.files import write_json
from subspaces.training.checkpoint import Checkpoints, write_tensors
from subspaces.training.loop import train
from subspaces.training.progress import Silent
from tests.hierarchy.toys import make_task, random_tree

KEY = "0123456789abcdef" * 4
EPOCHS = 6


class Slow:
    """A task with a short rest after every step, so that there is time to kill it."""

    def __init__(self, task, rest: float):
        self.task, self.rest = task, rest
        self.steps_per_epoch = task.steps_per_epoch

    def __getattr__(self, name: str):
        return getattr(self.task, name)

    def step(self, *arguments):
        metrics = self.task.step(*arguments)
        time.sleep(self.rest)
        return metrics


def run(geometry: str, sampling: str, folder: Path, out: Path, slow: bool) -> None:
    """Train slowly with a checkpoint after every step, or straight through; write state, history, and the step it resumed from."""
    torch.set_num_threads(1)
    task = make_task(geometry, random_tree(40, 1), sampling=sampling, epochs=EPOCHS)
    outcome = train(
        Slow(task, 0.005 if slow else 0.0),
        epochs=EPOCHS,
        seed=3,
        checkpoints=Checkpoints(folder, KEY, say=lambda text: None),
        progress=Silent(),
        checkpoint_seconds=1e-9 if slow else 1e9,
    )
    write_tensors(out / "state.safetensors", task.state())
    write_json(out / "history.json", outcome.history)
    write_json(out / "resumed.json", outcome.resumed_from)
