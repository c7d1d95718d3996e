"""Let DVC remember what Snakemake made: the other direction of `restore`.

`dvc commit` writes dvc.lock, and wants everything that a stage reads and makes. On a machine that has only a part of it, as a clone
without the models has, the stages whose files are all here and current are remembered, and the others keep what dvc.lock says of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from subspaces.errors import UserError
from subspaces.keys import Recipe
from subspaces.restore import run_dvc


def lock(recipes: list[Recipe], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Remember what can be; returns the stages that were, and why each of the others was not."""
    path = folder / "dvc.yaml"
    if not path.is_file():
        raise UserError(f"{path} is not here: run this in the project's folder.")
    stages: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]
    outdated = {one.output for one in recipes if not one.is_built(folder)}
    reasons = {name: _why_not(stage, outdated, folder) for name, stage in stages.items()}
    whole = [name for name, reason in reasons.items() if reason is None]
    if whole:
        run_dvc(folder, "commit", "--force", *whole, problem="DVC cannot remember the outputs")
    return whole, {name: reason for name, reason in reasons.items() if reason is not None}


def _why_not(stage: dict[str, Any], outdated: Iterable[str], folder: Path) -> str | None:
    made = [name for one in (*stage.get("outs", ()), *stage.get("metrics", ())) for name in one]
    for name in (*stage["deps"], *made):
        if not (folder / name).exists():
            return f"{name} is not here"
    return next((f"{one} is not current" for one in outdated for name in made if f"{one}/".startswith(f"{name}/")), None)
