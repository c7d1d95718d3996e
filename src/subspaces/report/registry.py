"""The 124 numbers and 20 countable claims of the paper, as data (numbers.csv, claims.csv). No code that computes reads their values."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from subspaces.errors import UserError


@dataclass(frozen=True)
class PaperNumber:
    id: str
    table: str
    row: str
    column: str
    value: float
    sd: float | None
    better: str
    unit: str


@cache
def numbers() -> dict[str, PaperNumber]:
    with open(Path(__file__).with_name("numbers.csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    result = {}
    for row in rows:
        sd = float(row["sd"]) if row["sd"] else None
        result[row["id"]] = PaperNumber(
            row["id"], row["table"], row["row"], row["column"], float(row["value"]), sd, row["better"], row["unit"]
        )
    return result


@cache
def claims() -> dict[str, float]:
    with open(Path(__file__).with_name("claims.csv"), encoding="utf-8", newline="") as handle:
        return {row["id"]: float(row["value"]) for row in csv.DictReader(handle)}


def number(identifier: str) -> PaperNumber:
    found = numbers().get(identifier)
    if found is None:
        near = [name for name in numbers() if name.split("/")[0] == identifier.split("/")[0]] or sorted(
            {n.split("/")[0] for n in numbers()}
        )
        raise UserError(f"unknown number {identifier!r}: ids are table/row/column, for example {', '.join(near[:4])}.")
    return found


def tables() -> list[str]:
    return list(dict.fromkeys(one.table for one in numbers().values()))


def of_table(table: str) -> list[PaperNumber]:
    found = [one for one in numbers().values() if one.table == table]
    if not found:
        raise UserError(f"unknown table {table!r}: choose one of {', '.join(tables())}.")
    return found


def rows(table: str) -> list[str]:
    """Row ids of a table, in the order of the registry."""
    return list(dict.fromkeys(entry.row for entry in of_table(table)))


def columns(table: str) -> list[str]:
    return list(dict.fromkeys(entry.column for entry in of_table(table)))
