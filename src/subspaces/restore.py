"""Bring a clone to "nothing to do" in both tools without training anything: pull what DVC remembers, and look that it fits.

Snakemake goes by keys, not by clocks, so pulled files need no touch; what is left to check is that they are the ones that the code and
parameters of this clone ask for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.keys import Recipe

_SHOWN = 5
_SOURCES = "data/sources/"


def restore(recipes: list[Recipe], folder: Path, say: Callable[[str], None]) -> None:
    """`dvc pull`, then require a clean `dvc status` and current keys."""
    say("pulling from the DVC remote")
    advice = "Is a remote set (`dvc remote add -d NAME PLACE`), and was it pushed to (`dvc push`)?"
    run_dvc(folder, "pull", problem="the artefacts could not be pulled", advice=advice)
    changed = json.loads(run_dvc(folder, "status", "--json", problem="DVC cannot compare its files") or "{}")
    if changed:
        names = ", ".join(list(changed)[:_SHOWN])
        raise UserError(
            f"{len(changed)} stages are not as dvc.lock has them ({names} …): parameters or code were edited since. "
            "Undo the edits (`git status` shows them), or rebuild with `dvc repro`."
        )
    if _made_from_samples(recipes, folder):
        recipes = _fetch_samples(recipes, folder)
    stale = [one.output for one in recipes if one.is_stale(folder)]
    if stale:
        raise UserError(
            f"{len(stale)} outputs were made by other code, settings or sources than this clone has ({', '.join(stale[:_SHOWN])} …): "
            "check out the commit that made them, or rebuild with `snakemake`."
        )
    say(f"nothing to do: {sum(one.is_built(folder) for one in recipes)} of {len(recipes)} outputs are here and current")


def _made_from_samples(recipes: list[Recipe], folder: Path) -> bool:
    """Did a sample stand in for a source when the data were made? Only at quick scale; their records say so."""
    data = [folder / one.output for one in recipes if one.output.startswith("data/") and not one.output.startswith(_SOURCES)]
    return any(path.suffix == ".json" and path.exists() and read_json(path).get("sample") for path in data)


def _fetch_samples(recipes: list[Recipe], folder: Path) -> list[Recipe]:
    """Raw files are not in DVC, and that they are samples is part of every key: bring them here too, then ask for the keys again."""
    from subspaces.cli import fetch
    from subspaces.context import recipes_here

    for one in recipes:
        if one.output.startswith(_SOURCES) and not (folder / one.output).exists():
            fetch(Path(one.output).stem)
    return recipes_here().everything()


def run_dvc(folder: Path, *words: str, problem: str, advice: str = "") -> str:
    """What `dvc …` prints; where it fails: the problem, the reason and what to do, in words."""
    program = shutil.which("dvc") or str(Path(sys.executable).parent / "dvc")
    try:
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{problem}: dvc cannot be started. It is installed by `make setup`.") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        reason = lines[0].removeprefix("ERROR: ").rstrip(".:") if lines else "no reason given"
        raise UserError(f"{problem}: {reason}. {advice}".rstrip())
    return done.stdout.strip()
