"""One training and the folder that it leaves: weights, history, timing, and the settings last, so that a folder with them is whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from subspaces.files import write_json
from subspaces.training.checkpoint import Checkpoints, write_tensors
from subspaces.training.loop import Outcome, Progress, Task, set_threads, train


@dataclass
class Run:
    """How a training is run and where it goes; what is trained, and with which settings, is the affair of the `fit` functions."""

    out: Path
    key: str
    checkpoints: Checkpoints
    progress: Progress
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    checkpoint_seconds: float = 600.0
    checkpoint_epochs: int = 0
    record: Mapping[str, Any] = field(default_factory=dict)  # goes into settings.json as it is

    @property
    def best(self) -> Path:
        """Beside the checkpoints: where a task keeps the weights of its best validation until the end."""
        return self.checkpoints.folder.with_name(self.checkpoints.folder.name + ".best")

    def begin(self) -> None:
        """Before anything is computed: the same number of threads gives the same bits."""
        set_threads(self.threads)

    def train(self, task: Task, epochs: int) -> Outcome:
        """To the end, resuming where a killed run was."""
        return train(
            task,
            epochs=epochs,
            seed=self.seed,
            checkpoints=self.checkpoints,
            progress=self.progress,
            checkpoint_seconds=self.checkpoint_seconds,
            checkpoint_epochs=self.checkpoint_epochs,
        )

    def write_weights(self, tensors: dict[str, Tensor]) -> str:
        """Returns their sha256, which belongs into the settings."""
        return write_tensors(self.out / "weights.safetensors", tensors)

    def finish(self, job: Mapping[str, Any], outcome: Outcome, more: Mapping[str, Any]) -> dict[str, Any]:
        """Write timing and settings, drop the checkpoints; returns the settings."""
        timing = {"seconds": round(outcome.seconds, 1), "threads": self.threads, "device": self.device}
        write_json(self.out / "timing.json", timing | {"resumed": outcome.resumed_from > 0})
        settings = {"key": self.key, "seed": self.seed, **job, "steps": outcome.steps, **more, **self.record}
        write_json(self.out / "settings.json", settings)
        self.checkpoints.clear()
        return settings
