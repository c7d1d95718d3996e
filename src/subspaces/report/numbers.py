"""The numbers of the paper as we measured them: one provenance file per table, one small metrics file per number, one data frame.

results/numbers/TABLE.json              every number of a table: value, seeds, verdict, reason, settings, where it came from
results/numbers/TABLE/ROW/COLUMN.json   {"value": ..., "sd": ...}: what `dvc metrics` shows
results/numbers.csv                     all of them as one tidy table (`frame`)
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from subspaces.errors import UserError
from subspaces.files import digest, read_json, write_json, write_text
from subspaces.report import registry
from subspaces.report.registry import PaperNumber
from subspaces.report.verdicts import verdict

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = "results/numbers/{table}.json"
METRICS = "results/numbers/{id}.json"
FRAME = "results/numbers.csv"
FRAME_COLUMNS = (
    *("id", "table", "row", "column", "unit", "better", "paper", "paper_sd"),
    *("value", "sd", "seeds", "verdict", "scale", "reason", "evidence"),
    *("values", "interval", "sample", "committed"),
)
# settings of an evaluation that are repeated beside its number
_SETTINGS = ("model", "training", "subtree", "threshold", "graph", "split", "backbone", "ways", "pairs", "trained_on")


def unmeasured(
    paper: PaperNumber, scale: str, reason: str | None, committed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A number that is not run at this scale; `committed` is the project's own at another one, to stand beside it."""
    empty: dict[str, Any] = {"value": None, "sd": None, "seeds": 0, "values": [], "sample": False, "evidence": []}
    beside = {"committed": dict(committed)} if committed else {}
    return {**_printed(paper, scale), **empty, "verdict": "not run", "reason": reason, **beside}


def committed_numbers(folder: Path, scale: str) -> dict[str, dict[str, Any]]:
    """Value, sd, verdict and scale of every number of results/numbers.csv in `folder` that was measured at another scale, by id."""
    path, found = folder / FRAME, {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as handle:
            handle.readline()  # the key
            for number in csv.DictReader(handle):
                if number["value"] and number["scale"] != scale:
                    amounts = {name: float(number[name]) if number[name] else None for name in ("value", "sd")}
                    found[number["id"]] = {**amounts, "verdict": number["verdict"], "scale": number["scale"]}
    return found


def measured(
    paper: PaperNumber,
    scale: str,
    values: Sequence[float],
    evaluations: Mapping[str, Mapping[str, Any]],
    extent: tuple[bool, str],
) -> dict[str, Any]:
    """A number from one value per seed; `evaluations` by path, `extent` says whether it compares with the paper and why."""
    value, sd = fmean(values), stdev(values) if len(values) > 1 else None
    comparable, text = extent
    first = next(iter(evaluations.values()))
    settings = {name: first["settings"][name] for name in _SETTINGS if name in first["settings"]}
    return {
        **_printed(paper, scale),
        "value": value,
        "sd": sd,
        "seeds": len(values),
        "values": list(values),
        "verdict": verdict(value, sd, paper.value, paper.sd, paper.better) if comparable else "other scale",
        "reason": text,
        "sample": any(evaluation["data"]["sample"] for evaluation in evaluations.values()),
        "evidence": list(evaluations),
        "settings": settings,
        "settings_sha256": digest(settings),
        "data": {name: entry for name, entry in first["data"].items() if name != "origin"},
        "weights_sha256": [evaluation["weights_sha256"] for evaluation in evaluations.values()],
        **_interval(first, paper.column, values),
    }


def _printed(paper: PaperNumber, scale: str) -> dict[str, Any]:
    names = ("id", "table", "row", "column", "unit", "better")
    return {name: getattr(paper, name) for name in names} | {
        "paper": {"value": paper.value, "sd": paper.sd},
        "scale": scale,
    }


def _interval(evaluation: Mapping[str, Any], column: str, values: Sequence[float]) -> dict[str, Any]:
    """The interval of a single seed, where the evaluation has one."""
    intervals = evaluation.get("interval", {})
    return {"interval": intervals[column]} if column in intervals and len(values) == 1 else {}


def write_numbers(table: str, numbers: Sequence[Mapping[str, Any]], key: str, folder: Path = Path()) -> None:
    """The metrics files, then the provenance file that carries the key."""
    for number in numbers:
        path = folder / METRICS.format(id=number["id"])
        write_json(path, {name: number[name] for name in ("value", "sd") if number[name] is not None})
    content = {"key": key, "table": table, "numbers": {number["id"]: number for number in numbers}}
    write_json(folder / NUMBERS.format(table=table), content)


def read_numbers(table: str, folder: Path = Path()) -> dict[str, dict[str, Any]]:
    """Every number of a table by id, as `write_numbers` left them."""
    path = folder / NUMBERS.format(table=table)
    if not path.exists():
        raise UserError(f"{path} is missing: run `snakemake --cores 2 -- {NUMBERS.format(table=table)}`.")
    return read_json(path)["numbers"]


def frame(folder: Path | str = ".") -> pd.DataFrame:
    """All numbers as one tidy data frame: ours, the paper's, verdict, scale, seeds, and the evaluations behind each."""
    import pandas as pd

    return pd.concat([frame_of(table, folder) for table in registry.tables()], ignore_index=True)


def frame_of(table: str, folder: Path | str = ".") -> pd.DataFrame:
    """The same for one table."""
    import pandas as pd

    numbers = read_numbers(table, Path(folder)).values()
    rows = [number | {"paper": number["paper"]["value"], "paper_sd": number["paper"]["sd"]} for number in numbers]
    return pd.DataFrame(rows, columns=list(FRAME_COLUMNS)).astype({"value": float, "sd": float, "paper_sd": float})


def records(numbers: pd.DataFrame, table: str) -> list[dict[str, Any]]:
    """The numbers of one table as mappings, missing values as None."""
    chosen = numbers[numbers["table"] == table]
    return [{str(name): _value(value) for name, value in row.items()} for row in chosen.to_dict("records")]


def _value(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def write_frame(key: str, folder: Path = Path()) -> None:
    """results/numbers.csv, without what was measured elsewhere; lists become words separated by spaces."""
    table = frame(folder).drop(columns="committed")
    for name in ("evidence", "values", "interval"):
        table[name] = table[name].map(lambda entries: " ".join(map(str, entries)) if isinstance(entries, list) else "")
    text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    write_text(folder / FRAME, f"# key:{key}\n{text}")
