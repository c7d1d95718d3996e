"""What the page shows, read from the number files and the evaluations behind them, and checked: a page of wrong types helps nobody."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.paper import registry
from subspaces.paper.layouts import LAYOUTS, Layout
from subspaces.paper.tables import plain
from subspaces.paper.verdicts import VERDICTS, tolerance

_UNIT = re.compile(r" \([^)]*\)")


@dataclass(frozen=True)
class Evaluation:
    """One model and seed: the file's path as the recipes name it, and its content, or None where it is not here."""

    path: str
    content: dict[str, Any] | None


@dataclass(frozen=True)
class Number:
    """A number file with what the layout of its table says about it."""

    content: dict[str, Any]
    evaluations: tuple[Evaluation, ...]

    @property
    def id(self) -> str:
        return self.content["id"]

    @property
    def table(self) -> str:
        return self.content["table"]

    @property
    def row(self) -> str:
        return self.content["row"]

    @property
    def column(self) -> str:
        return self.content["column"]

    @property
    def verdict(self) -> str:
        return self.content["verdict"]

    @property
    def scale(self) -> str:
        return str(self.content["scale"])

    @property
    def reason(self) -> str:
        return str(self.content.get("reason") or "no reason is given")

    @property
    def value(self) -> float | None:
        return self.content["value"]

    @property
    def sd(self) -> float | None:
        return self.content["sd"]

    @property
    def paper(self) -> float:
        return self.content["paper"]["value"]

    @property
    def paper_sd(self) -> float | None:
        return self.content["paper"]["sd"]

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.table]

    @property
    def row_label(self) -> str:
        """As LaTeX; `mathml.label` shows it."""
        return self.layout.rows[self.row]

    @property
    def column_label(self) -> str:
        return self.layout.columns[self.column]

    @property
    def name(self) -> str:
        """In plain words: table, row and column."""
        return f"Table {self.layout.number}, {plain(self.row_label)}, {self.column_label}"

    @property
    def digits(self) -> int:
        return self.layout.decimals(self.column)

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; none where the two are not comparable."""
        return None if self.value is None or self.verdict == "other scale" else self.value - self.paper

    @cached_property
    def tolerance(self) -> float:
        return tolerance(self.paper, self.sd, self.paper_sd)

    def ours(self) -> str:
        return self.verdict if self.value is None else amount(self.value, self.sd, self.digits)

    def papers(self) -> str:
        return amount(self.paper, self.paper_sd, self.digits)

    def change(self) -> str | None:
        return None if self.difference is None else signed(self.difference, self.digits)


def short_title(layout: Layout) -> str:
    """The caption without what follows its colon, and without units."""
    return _UNIT.sub("", layout.caption.partition(":")[0])


def amount(value: float, sd: float | None, digits: int) -> str:
    shown = fixed(value, digits)
    return shown if sd is None else f"{shown} ± {fixed(sd, digits)}"


def fixed(value: float, digits: int) -> str:
    """With a true minus, and no minus before a zero."""
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown.replace("-", "−")


def signed(value: float, digits: int) -> str:
    shown = fixed(value, digits)
    return shown if shown.startswith("−") or not float(shown) else f"+{shown}"


def load_numbers(folder: Path, evidence: Mapping[str, Sequence[str]]) -> list[Number]:
    """All numbers of the paper in its order. `evidence` names the evaluation files of each, relative to `folder`."""
    return [_load(folder, entry, evidence.get(entry.id, ())) for entry in registry.numbers().values()]


def _load(folder: Path, entry: registry.PaperNumber, paths: Sequence[str]) -> Number:
    path = folder / f"results/numbers/{entry.id}.json"
    if not path.is_file():
        raise UserError(f"{path} is not there: run `snakemake --cores 2 -- results/numbers/{entry.id}.json` first.")
    content = read_json(path)
    wrong = _fault(content, entry)
    if wrong:
        raise UserError(f"{path}: {wrong}. Delete it and run `snakemake --cores 2 -- results/numbers/{entry.id}.json`.")
    return Number(content, tuple(_evaluation(folder, one) for one in paths))


def _evaluation(folder: Path, path: str) -> Evaluation:
    file = folder / path
    content = read_json(file) if file.is_file() else None
    return Evaluation(path, content if isinstance(content, dict) else None)


def _fault(content: Any, entry: registry.PaperNumber) -> str | None:
    """What is wrong with a number file, if anything is."""
    if not isinstance(content, dict):
        return "it holds no mapping"
    missing = sorted({"id", "table", "row", "column", "value", "sd", "paper", "verdict", "scale", "n", "seeds"} - content.keys())
    if missing:
        return f"it has no {', '.join(missing)}"
    if any(content[name] != getattr(entry, name) for name in ("id", "table", "row", "column")):
        return f"it says that it is {content['id']!r}"
    if content["verdict"] not in VERDICTS:
        return f"{content['verdict']!r} is not a verdict"
    paper = content["paper"]
    if not isinstance(paper, dict) or not _is_number(paper.get("value")) or not _is_number_or_none(paper.get("sd")):
        return "the paper's value is not a number"
    if not _is_number_or_none(content["value"]) or not _is_number_or_none(content["sd"]):
        return "its value or deviation is not a number"
    if (content["value"] is None) != (content["verdict"] == "not run"):
        return "its value and its verdict do not go together"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)
