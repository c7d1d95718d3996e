"""One record per trained row and condition, in git: seeds, digests of weights, times, budgets and training curves.

The weights themselves are large and belong to DVC's cache. Everything downstream depends on the record, so a clone
without the weights counts as built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.files import read_json, write_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import Experiment

RECORD = "results/models/{experiment}/{row}/{condition}.json"
TRAINED = ("reconstruction", "hyperlex", "link_prediction", "snli")
POINTS = 40  # of a training curve, which is there to be looked at
_KEPT = ("weights_sha256", "steps", "best_epoch", "best_step", "seed")


class ModelRecords(Experiment):
    name = "models"

    def conditions(self, experiment: str) -> dict[tuple[str, str], list[Artefact]]:
        """(row, condition) -> the models of its seeds, for everything that is trained at this scale."""
        family = self.project.experiment(experiment)
        found: dict[tuple[str, str], list[Artefact]] = {}
        for job in family.jobs():
            found.setdefault((job.row, job.condition or "all"), []).append(family.model_of(job))
        return found

    @cache  # noqa: B019
    def record(self, experiment: str, row: str, condition: str) -> Artefact:
        models = self.conditions(experiment)[row, condition]
        return self.project.artefact(
            RECORD.format(experiment=experiment, row=row, condition=condition), (), {}, models, self._write
        )

    def _write(self, artefact: Artefact, machine: Machine) -> None:
        seeds = []
        for model in artefact.inputs:
            settings, timing = read_json(model.output), read_json(model.path.parent / "timing.json")
            entry = {name: settings[name] for name in _KEPT if name in settings}
            entry["bytes"] = (model.path.parent / "weights.safetensors").stat().st_size
            entry["curve"] = training_curve(model.path.parent / "history.csv")
            seeds.append(entry | {"train_seconds": timing["seconds"], "folder": model.path.parent.as_posix()})
        write_json(artefact.output, {"key": artefact.key, "seeds": seeds})

    def artefacts(self) -> Iterable[Artefact]:
        return [self.record(name, *pair) for name in TRAINED for pair in self.conditions(name)]


def training_curve(history: Path) -> list[dict[str, Any]]:
    """A history at POINTS rows or fewer: its first, then the last value of each column in stretches of equal length."""
    import numpy as np
    import pandas as pd

    rows = pd.read_csv(history)
    stretch = np.ceil(np.arange(len(rows)) * (POINTS - 1) / max(POINTS - 1, len(rows) - 1))
    return json.loads(rows.groupby(stretch).last().to_json(orient="records", double_precision=6))
