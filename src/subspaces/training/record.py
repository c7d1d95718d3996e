"""What a trained model says of itself, and what every evaluation of one writes down beside its metrics."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from subspaces.errors import DamagedModel
from subspaces.files import read_json, sha256_file, write_json


def read_settings(folder: Path) -> dict[str, Any]:
    """settings.json of a trained model, whose weights must be the ones that it names."""
    settings = read_json(folder / "settings.json")
    weights = folder / "weights.safetensors"
    if not weights.exists() or sha256_file(weights) != settings["weights_sha256"]:
        raise DamagedModel(folder)
    return settings


def read_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Fill tensors, by name, from a trained model's folder."""
    with safe_open(folder / "weights.safetensors", framework="pt") as content:
        for name, tensor in tensors.items():
            tensor.copy_(content.get_tensor(name))


class Evaluation:
    """One evaluation of one model, timed from when it is made; `write` leaves everything that is needed to trace its numbers."""

    def __init__(self, folder: Path, settings: dict[str, Any], threads: int, device: str):
        self.folder, self.settings, self.threads, self.device = folder, settings, threads, device
        self.began = time.monotonic()

    def write(self, out: Path, key: str, extra: dict[str, Any], kept: Iterable[str], **found: Any) -> dict[str, Any]:
        """`kept` names the settings that are repeated here."""
        timing = read_json(self.folder / "timing.json")
        result = {
            "key": key,
            **extra,
            **found,
            "settings": {name: self.settings[name] for name in kept},
            "model_key": self.settings["key"],
            "weights_sha256": self.settings["weights_sha256"],
            "data": self.settings["data"],
            "timing": {"train_seconds": timing["seconds"], "evaluate_seconds": round(time.monotonic() - self.began, 1)},
            "machine": {
                "processor": platform.machine(),
                "threads": self.threads,
                "train_threads": timing["threads"],
                "torch": torch.__version__,
                "device": self.device,
                "train_device": timing["device"],
            },
        }
        write_json(out, result)
        return result
