"""Where a number comes from: evaluations, settings, training curves, digests, and the commands that compute it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from subspaces.report.page.content import EvaluationFile, Number, Table, duration, fixed

LONG = 12  # a list with more entries is shown as JSON
_TIMES = {"train_seconds": "Training time", "evaluate_seconds": "Evaluation time"}
_UNITS = ("pairs", "epoch", "step")
_MEASURED = {"first": "share of pairs that score above all their negatives", "validation_auprc": "validation AUPRC"}
_DIGESTS = {"weights_sha256": "Weights", "model_key": "Key of the model", "key": "Key of the evaluation"}


# --- commands: the target is the number's file, so that nothing else runs ---------------------------------------------


def from_sources(identifier: str, scale: str, directory: str) -> str:
    """Everything behind the number: data, training, evaluation, number."""
    return f"{_snakemake(scale, directory)} --forceall -- {_target(identifier)}"


def from_evaluations(identifier: str, scale: str, directory: str) -> str:
    """The number alone, from the evaluation files."""
    return f"{_snakemake(scale, directory)} --force -- {_target(identifier)}"


def _snakemake(scale: str, directory: str) -> str:
    """`directory` is the working folder relative to the project; it is empty for the project's own folder."""
    options = f" --directory {quote(directory)} --config scale={quote(scale)}" if directory else ""
    return "snakemake --cores 2" + options


def _target(identifier: str) -> str:
    return quote(f"results/numbers/{identifier}.json")


# --- one number -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    title: str
    line: str


def summary(number: Number) -> str:
    ours = "not run" if number.value is None else f"{number.ours}, {number.verdict}"
    return f"{number.name}: {ours}, paper {number.papers}, {number.scale} scale"


def facts(number: Number) -> dict[str, Any]:
    unit = f" {number.unit}" if number.unit else ""
    shown: dict[str, Any] = {"Number": number.id}
    if number.value is not None:
        shown |= {"Ours": f"{number.value!r}{unit}"}
        shown |= {"Standard deviation over seeds": "none: one seed" if number.sd is None else number.sd}
        shown |= {"Seeds": number.seeds, "Value of each seed": list(number.values)}
    shown["Paper’s value"] = f"{number.papers}{unit}"
    if number.difference is not None:
        shown["Difference"] = number.change
    shown["Better is"] = {"up": "larger", "down": "smaller"}.get(number.better)
    return shown | {"Scale": number.scale, "Made from a sample": number.sample}


def commands(number: Number, directory: str) -> list[Command]:
    whole = from_sources(number.id, number.scale, directory)
    if number.value is None:
        title = (
            f"This number has no result at {number.scale} scale. If its row is listed under not_run in params.yaml, "
        )
        return [Command(title + "remove that entry; then run:", whole)]
    seconds = [_timing(evaluation).get("train_seconds") for evaluation in number.evaluations]
    known = [value for value in seconds if isinstance(value, int | float)]
    took = f" (training took {duration(sum(known))})" if known else ""
    again = from_evaluations(number.id, number.scale, directory)
    return [
        Command(f"From the sources: data, training, evaluation, number{took}.", whole),
        Command("From the evaluation files: seconds.", again),
    ]


def run_title(evaluation: EvaluationFile) -> str:
    seed = (evaluation.content or {}).get("seed")
    return "Evaluation" if seed is None else f"Seed {seed}"


def run_facts(evaluation: EvaluationFile) -> dict[str, Any]:
    """Times, machine, origin of the data and digests of one evaluation."""
    content = evaluation.content or {}
    shown: dict[str, Any] = {_TIMES.get(name, name): _seconds(value) for name, value in _timing(evaluation).items()}
    data = content.get("data")
    shown |= {
        "Machine": content.get("machine"),
        "Origin of the data": data.get("origin") if isinstance(data, dict) else None,
    }
    shown |= {label: content.get(name) for name, label in _DIGESTS.items()}
    return {name: value for name, value in shown.items() if value not in (None, {})} | {"File": evaluation.path}


def data_digests(number: Number) -> dict[str, Any] | None:
    """The digests of the data behind a number; the origin is left out because the bytes are the same from anywhere."""
    data = next((e.content.get("data") for e in number.evaluations if e.content), None)
    return {name: value for name, value in data.items() if name != "origin"} if isinstance(data, dict) else None


def settings(number: Number) -> dict[str, Any] | None:
    return next((e.content.get("settings") for e in number.evaluations if e.content), None)


def _timing(evaluation: EvaluationFile) -> dict[str, Any]:
    timing = (evaluation.content or {}).get("timing")
    return timing if isinstance(timing, dict) else {}


def _seconds(value: Any) -> Any:
    return duration(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 else value


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=True)


def is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 32 and all(letter in "0123456789abcdef" for letter in value)


# --- one row of a table: settings and training curves -----------------------------------------------------------------


@dataclass(frozen=True)
class TrainingCurve:
    """A training curve as the points of an SVG polyline in a box of 320 x 90, and what is written at its axes."""

    points: str
    name: str
    unit: str
    first: str
    last: str
    low: str
    high: str


@dataclass(frozen=True)
class RowRun:
    """One evaluation of a row with the columns that are read from it."""

    title: str
    curves: Sequence[TrainingCurve]
    settings: dict[str, Any] | None
    path: str


def row_runs(table: Table, row: str) -> list[RowRun]:
    """The evaluations behind a row, each once."""
    columns: dict[str, list[str]] = {}
    found: dict[str, EvaluationFile] = {}
    for number in filter(None, table.cells(row)):
        for evaluation in number.evaluations:
            found[evaluation.path] = evaluation
            columns.setdefault(evaluation.path, []).append(number.column_label)
    return [_run(found[path], columns[path]) for path in found]


def _run(evaluation: EvaluationFile, columns: Sequence[str]) -> RowRun:
    content = evaluation.content or {}
    used = content.get("settings")
    title = f"{', '.join(columns)}: {run_title(evaluation).lower()}"
    return RowRun(title, curves(evaluation.curve), used if isinstance(used, dict) else None, evaluation.path)


def curves(history: Any) -> list[TrainingCurve]:
    """Every measured quantity of a history against the data seen."""
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        return []
    names = dict.fromkeys(name for entry in history for name in entry)
    unit = next((name for name in _UNITS if name in names), None)
    measured = [name for name in names if name not in (*_UNITS, "lr", "seconds")]
    return [curve for name in measured if unit and (curve := _curve(history, unit, name))]


def _curve(history: list[dict[str, Any]], unit: str, name: str) -> TrainingCurve | None:
    points = [(entry.get(unit), entry.get(name)) for entry in history]
    points = [(x, y) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float) and y == y]
    if len(points) < 2:
        return None
    xs, ys = zip(*points, strict=True)
    wide, high = (max(xs) - min(xs)) or 1, (max(ys) - min(ys)) or 1
    shown = " ".join(f"{50 + 265 * (x - min(xs)) / wide:.1f},{85 - 80 * (y - min(ys)) / high:.1f}" for x, y in points)
    digits = 3 if max(abs(y) for y in ys) < 10 else 2
    ends = (f"{xs[0]:,.0f}", f"{xs[-1]:,.0f}", fixed(min(ys), digits), fixed(max(ys), digits))
    return TrainingCurve(shown, _MEASURED.get(name, name.replace("_", " ")), unit, *ends)
