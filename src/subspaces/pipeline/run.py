"""Checkpoints of a job of the graph, and its finished model until it is evaluated.

A job that SLURM ends between its last line and its exit (the time limit, `scancel`, a lost node) counts as failed: Snakemake deletes the
files, whole or not, and the checkpoints are gone by then. So inside a SLURM job the files get second names beside the checkpoints: hard
links, which take no space while the model is there. The next attempt takes them back; the evaluation drops them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file
from subspaces.pipeline.artefact import Artefact
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import Progress
from subspaces.training.run import Run


class JobCheckpoints(Checkpoints):
    """In checkpoints/x/y for the model in models/x/y."""

    def __init__(self, artefact: Artefact, say: Callable[[str], None] = print):
        self.model = Path(artefact.output).parent
        super().__init__(Path("checkpoints", *self.model.parts[1:]), artefact.key, say)
        self.finished = self.folder.with_name(f"{self.folder.name}.finished")

    def clear(self) -> None:
        """Called when the model is written."""
        self.drop_finished()
        if "SLURM_JOB_ID" in os.environ:
            with suppress(OSError):  # a file system without hard links: as outside SLURM
                self._link(self.model, self.finished)
        super().clear()

    def take_back(self) -> bool:
        """Was this training finished by an attempt that counts as failed? Then its files are in place again."""
        try:
            settings = read_json(self.finished / "settings.json")
            sound = settings["key"] == self.key and settings["weights_sha256"] == sha256_file(
                self.finished / "weights.safetensors"
            )
        except (UserError, OSError, KeyError, TypeError):
            return False
        if sound:
            self._link(self.finished, self.model)
            self.say(f"an earlier attempt had finished; its files were restored to {self.model}")
        return sound

    def drop_finished(self) -> None:
        for folder in self.finished.parent.glob("*.finished"):
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _link(here: Path, there: Path) -> None:
        """Hard links to the files of a folder; the settings, which mark it as complete, come last."""
        there.mkdir(parents=True, exist_ok=True)
        for path in sorted(here.glob("[!.]*"), key=lambda path: path.name == "settings.json"):
            (there / path.name).unlink(missing_ok=True)
            os.link(path, there / path.name)


def set_aside(model: Path) -> Path:
    """Move a damaged model out of the workflow: the next run trains it again. Returns the new folder."""
    place = Path("checkpoints", *model.parts[1:-1], f"{model.name}.damaged")
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(model, place)
    return place


def open_run(
    artefact: Artefact,
    often: Any,
    progress: Progress,
    seed: int,
    threads: int,
    record: dict[str, Any],
    device: str = "cpu",
) -> Run | None:
    """The run of a job of the graph, or None where an earlier attempt had finished it. `often`: `checkpoint` of the parameters."""
    checkpoints = JobCheckpoints(artefact, progress.say)
    if checkpoints.take_back():
        return None
    return Run(
        checkpoints.model,
        artefact.key,
        checkpoints,
        progress,
        seed,
        threads,
        device,
        often.seconds,
        often.epochs,
        record,
    )
