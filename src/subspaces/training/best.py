"""The weights with the best validation so far, in a file beside the checkpoints: a second copy in memory would be too much for the large
models. The values are part of the task's state, so a killed run ends with the same weights as one that was never stopped."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json
from subspaces.training.checkpoint import write_tensors
from subspaces.training.record import read_weights


class BestWeights:
    """`curve` has a value per validation, larger is better, NaN where there was none; `weights` gives the tensors of the model. Without a
    folder, values are recorded and no weights are kept."""

    def __init__(self, folder: Path | None, validations: int, weights: Callable[[], dict[str, Tensor]]):
        self.folder, self.weights = folder, weights
        self.curve = torch.full((validations,), math.nan, dtype=torch.float64)

    def reset(self) -> None:
        self.curve.fill_(math.nan)

    def knows(self, validation: int) -> bool:
        """A run that was resumed meets validations that it has made already."""
        return not math.isnan(float(self.curve[validation]))

    def offer(self, validation: int, value: float) -> None:
        """Record a value; weights that are better than all before go to the file."""
        known = self.curve[~self.curve.isnan()]
        self.curve[validation] = value
        if self.folder is not None and (not len(known) or value > float(known.max())):
            sha256 = write_tensors(self.folder / "weights.safetensors", self.weights())
            record = {"place": validation, "value": value, "weights_sha256": sha256}
            write_json(self.folder / "record.json", record)

    def take(self) -> int:
        """Load the weights of the best validation, the first of equal ones; returns which it was, counted from 0."""
        chosen = int(torch.argmax(self.curve.nan_to_num(-1.0)))
        if self.folder is None:
            return chosen
        try:
            record = read_json(self.folder / "record.json")
            sha256 = sha256_file(self.folder / "weights.safetensors")
            sound = record["place"] == chosen and sha256 == record["weights_sha256"]
        except (UserError, OSError, KeyError, TypeError):
            sound = False
        if not sound:
            raise UserError(
                f"the best weights in {self.folder} are damaged or missing: delete {self.folder.parent} and train again."
            )
        read_weights(self.folder, self.weights())
        return chosen
