"""Does the paper hold? Each claim of the paper as a function of the numbers, with a verdict and one line of evidence.

A comparison "A is better than B" counts only when the budgets allow it: both are measured at one scale on the same data, and the loser
was trained at least as long as the winner (epochs times examples, as recorded in the evaluations) or reaches the paper's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from subspaces.files import read_json
from subspaces.report.verdicts import tolerance

HOLDS, PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be told here"
MEANINGS = {
    HOLDS: "every comparison that the claim makes comes out as the paper says",
    PART: "some comparisons come out as the paper says; others do not, or cannot be made",
    FAILS: "no comparison comes out as the paper says",
    UNKNOWN: "no comparable budgets or data; the evidence says what is needed",
}


@dataclass(frozen=True)
class Claim:
    name: str
    title: str
    section: str  # of the paper
    verdict: str
    evidence: str
    numbers: tuple[str, ...]


Judged = tuple[str, str, Sequence[str]]  # verdict, evidence, ids of the numbers


class Results:
    """The frame of numbers and the evaluations in a folder."""

    def __init__(self, frame: pd.DataFrame, folder: Path):
        self.frame = frame.set_index("id", drop=False)
        self.folder = folder

    def value(self, identifier: str) -> float | None:
        value: Any = self.frame.at[identifier, "value"]
        return None if pd.isna(value) else float(value)

    def paper(self, identifier: str) -> float:
        value: Any = self.frame.at[identifier, "paper"]
        return float(value)

    def verdict(self, identifier: str) -> str:
        return str(self.frame.at[identifier, "verdict"])

    def reaches(self, identifier: str) -> bool:
        return self.verdict(identifier) in ("reproduced", "better")

    def read(self, path: str) -> dict[str, Any] | None:
        """An evaluation by its path, or None where it is missing."""
        file = self.folder / path
        content = read_json(file) if file.is_file() else None
        return content if isinstance(content, dict) else None

    def evaluation(self, identifier: str) -> dict[str, Any] | None:
        """The first evaluation behind a number."""
        evidence: Any = self.frame.at[identifier, "evidence"]
        return next((content for path in evidence if (content := self.read(path))), None)

    @cached_property
    def ids(self) -> list[str]:
        return list(self.frame.index)

    def rows(self, table: str, column: str, word: str = "") -> list[str]:
        """Ids of a column, of the rows whose name contains `word`."""
        chosen = self.frame[(self.frame["table"] == table) & (self.frame["column"] == column)]
        return [identifier for identifier, row in zip(chosen["id"], chosen["row"], strict=True) if word in row]


@dataclass(frozen=True)
class Budget:
    """What a model was trained on: epochs times examples, and what the data were."""

    work: float
    data: tuple[Any, ...]
    text: str


def budget(results: Results, identifier: str) -> Budget | None:
    """None where the evaluation records no training."""
    content = results.evaluation(identifier) or {}
    settings = content.get("settings") or {}
    training = settings.get("training")
    if not isinstance(training, dict) or "epochs" not in training:
        return None
    trained_on = settings.get("trained_on") or {}
    graph, split = settings.get("graph") or {}, settings.get("split") or {}
    examples = trained_on.get("pairs") or split.get("train") or graph.get("closure") or graph.get("nodes")
    if not examples:
        return None
    data = (
        content.get("scale"),
        settings.get("subtree"),
        (content.get("data") or {}).get("sample"),
        split.get("nodes") or graph.get("nodes"),
        (settings.get("backbone") or {}).get("name"),
    )
    return Budget(float(training["epochs"]) * float(examples), data, f"{examples:,} × {training['epochs']}")


def compare(results: Results, ours: str, other: str) -> bool | None:
    """Is `ours` better than `other`? None where it cannot be told.

    Geometries need different numbers of epochs, so equal epochs alone do not make two of them comparable: the loser must have
    converged (its number reaches the paper's), or the winner must be better than the loser's value in the paper as well.
    """
    a, b = results.value(ours), results.value(other)
    if a is None or b is None:
        return None
    sign = 1 if results.frame.at[ours, "better"] == "up" else -1
    mine, its = budget(results, ours), budget(results, other)
    if mine is None or its is None or mine.data != its.data:
        return None
    wins = sign * (a - b) > 0
    winner, loser, more = (a, other, its.work >= mine.work) if wins else (b, ours, mine.work >= its.work)
    beats_paper = results.verdict(loser) != "other scale" and sign * (winner - results.paper(loser)) > 0
    return wins if results.reaches(loser) or (more and beats_paper) else None


def matches(results: Results, ours: str, other: str) -> bool | None:
    """Is `ours` not worse than `other` by more than the tolerance, on one backbone, the same pairs and the same epochs?"""
    a, b = results.value(ours), results.value(other)
    mine, its = budget(results, ours), budget(results, other)
    if a is None or b is None or mine is None or its is None or (mine.data, mine.work) != (its.data, its.work):
        return None
    return a >= b - tolerance(b, None, None)


def fold(outcomes: Sequence[bool | None]) -> str:
    """One verdict from several comparisons."""
    if all(outcome is None for outcome in outcomes):
        return UNKNOWN
    if all(outcomes):
        return HOLDS
    return PART if any(outcomes) else FAILS


def tally(outcomes: Sequence[bool | None]) -> str:
    wins, losses = sum(outcome is True for outcome in outcomes), sum(outcome is False for outcome in outcomes)
    untold = len(outcomes) - wins - losses
    text = f"{wins} of {len(outcomes)} comparisons hold"
    text += f", {losses} {'does' if losses == 1 else 'do'} not" if losses else ""
    return text + (f", {untold} cannot be made: unequal budgets or data, or not run" if untold else "")


def show(results: Results, identifier: str, digits: int = 1) -> str:
    value = results.value(identifier)
    return "not run" if value is None else f"{value:.{digits}f}"


CLAIMS: dict[str, tuple[str, str, Callable[[Results], Judged]]] = {}


def claim(name: str, title: str, section: str) -> Callable[[Callable[[Results], Judged]], Callable[[Results], Judged]]:
    """Register the decorated function as the judge of a claim."""

    def register(function: Callable[[Results], Judged]) -> Callable[[Results], Judged]:
        CLAIMS[name] = (title, section, function)
        return function

    return register


def judge(frame: pd.DataFrame, folder: Path) -> list[Claim]:
    """Every claim in the order of the paper."""
    results = Results(frame, folder)
    judged = []
    for name, (title, section, function) in CLAIMS.items():
        verdict, evidence, numbers = function(results)
        judged.append(Claim(name, title, section, verdict, evidence, tuple(numbers)))
    return judged


def any_of(outcomes: Sequence[bool | None]) -> bool | None:
    """True when one subspace row wins, False when every one loses."""
    if any(outcome is True for outcome in outcomes):
        return True
    return None if any(outcome is None for outcome in outcomes) else False


def best(results: Results, table: str, column: str, word: str, digits: int = 1) -> str:
    ids = results.rows(table, column, word)
    known = [value for identifier in ids if (value := results.value(identifier)) is not None]
    if not known:
        return "not run"
    return f"{(max if results.frame.at[ids[0], 'better'] == 'up' else min)(known):.{digits}f}"


def all_of(outcomes: Sequence[bool | None]) -> bool | None:
    if any(outcome is False for outcome in outcomes):
        return False
    return None if any(outcome is None for outcome in outcomes) else True


def needed(outcomes: Sequence[bool | None], what: str) -> str:
    return f" Needed: {what}." if any(outcome is None for outcome in outcomes) else ""
