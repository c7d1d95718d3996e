"""A number of the paper as one file: what was measured, beside what was printed, with the verdict and everything it came from.

Nothing in it changes when nothing changed: times and machines stay in the evaluation files.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from subspaces.errors import UserError
from subspaces.files import digest, read_json, write_json
from subspaces.paper.verdicts import verdict

_DECIDING = ("model", "training", "subtree", "graph", "split", "threshold", "alpha", "pairs")
_DECIDING += ("backbone", "ways", "dev_pairs", "test_pairs", "subset_seed", "trained_on", "set", "operator")


def write_number(
    paper: dict[str, Any], scale: str, evaluations: list[Path], out: Path, key: str, code: str, reason: str | None
) -> dict[str, Any]:
    """`paper` is the registry's row as a mapping; without evaluations the number is `not run`, for the `reason` given."""
    base = {
        "id": paper["id"],
        "table": paper["table"],
        "row": paper["row"],
        "column": paper["column"],
        "unit": paper["unit"],
        "better": paper["better"],
        "paper": {"value": paper["value"], "sd": paper["sd"]},
        "scale": scale,
        "key": key,
        "code_sha256": code,
    }
    if evaluations:
        base |= _measured(paper, scale, [read_json(path) for path in evaluations])
    else:
        base |= {
            "value": None,
            "sd": None,
            "n": 0,
            "verdict": "not run",
            "reason": reason,
            "sample": False,
            "seeds": [],
            "settings": None,
            "settings_sha256": None,
            "data": None,
        }
    write_json(out, base)
    return base


def _measured(paper: dict[str, Any], scale: str, evaluations: list[dict[str, Any]]) -> dict[str, Any]:
    names = (paper["column"], *paper["column"].split("-"))  # a metric has the column's name, or that of one of its words
    measure = next((name for name in names if all(name in one["metrics"] for one in evaluations)), None)
    if measure is None:
        raise UserError(f"number {paper['id']}: no metric is known for column {paper['column']}.")
    values = [one["metrics"][measure] for one in evaluations]
    value, sd = fmean(values), stdev(values) if len(values) > 1 else None
    first = evaluations[0]
    settings = {name: first["settings"][name] for name in _DECIDING if name in first["settings"]}
    sample = any(one["data"]["sample"] for one in evaluations)
    if "extent" in first:
        judged, reason = _judge_extent(paper, scale, value, sd, first["extent"])
    else:
        judged, reason = _judge(paper, scale, value, sd, settings, sample)
    return {
        "value": value,
        "sd": sd,
        "n": len(values),
        "verdict": judged,
        "reason": reason,
        "sample": sample,
        "seeds": [one["settings"]["seed"] for one in evaluations],
        "values": values,
        "settings": settings,
        "settings_sha256": digest(settings),
        "data": {name: value for name, value in first["data"].items() if name != "origin"},  # the same bytes from anywhere
        "weights_sha256": [one["weights_sha256"] for one in evaluations],
        **({"interval": first["interval"][measure]} if measure in first.get("interval", {}) and len(values) == 1 else {}),
    }


def _judge_extent(paper: dict, scale: str, value: float, sd: float | None, extent: dict[str, Any]) -> tuple[str, str]:
    """The evaluation itself says what it covered, and whether that compares."""
    text = f"{extent['text']}; {scale} scale"
    if not extent["comparable"]:
        return "other scale", text
    return verdict(value, sd, paper["value"], paper["sd"], paper["better"]), text


def _judge(paper: dict, scale: str, value: float, sd: float | None, settings: dict, sample: bool) -> tuple[str, str]:
    training, size = settings["training"], settings.get("graph") or settings["split"]
    budget = f"{scale} scale, {training['epochs']} epochs, {training['sampling']} sampling"
    if sample:
        return "other scale", f"made from a small sample that stands in for the real data; {budget}"
    if settings["subtree"]:
        return "other scale", f"trained and tested below {settings['subtree']} only, {size['nodes']:,} nodes; {budget}"
    judged = verdict(value, sd, paper["value"], paper["sd"], paper["better"])
    return judged, f"{_extent(settings)}, same evaluation as the paper; {budget}"


def _extent(settings: dict) -> str:
    if "split" not in settings or "pairs" in settings:
        return f"all {settings['pairs']:,} noun pairs" if "pairs" in settings else "whole hierarchy"
    origin = settings["split"]["train_origin"]
    return "whole split" + ("" if origin == "original file" else f" (training edges: {origin})")
