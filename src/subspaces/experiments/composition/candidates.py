"""Candidates and their review, as CSV files that live under version control (paper, appendix on the compositional set).

A candidate is a premise p with two hypotheses h1, h2 that follow from it and one, h3, that contradicts it. A review adds a decision, a
reason for a discard, a note and the automatic flags. Files are UTF-8 with LF, in a stable order; readers are strict and name the line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from subspaces.errors import UserError
from subspaces.files import write_text

WRONG_LABEL = "wrong-label"
NO_CONTRADICTION_OR_CONTEXT = "no-contradiction-or-context"
UNGRAMMATICAL_OR_AMBIGUOUS = "ungrammatical-or-ambiguous"
REASONS: dict[str, str] = {
    WRONG_LABEL: "the entailment label of a hypothesis is wrong",
    NO_CONTRADICTION_OR_CONTEXT: "h3 does not contradict p, or shares no words or theme with it",
    UNGRAMMATICAL_OR_AMBIGUOUS: "a sentence is ungrammatical, or unclear in what it refers to",
}
"""The paper's three reasons to discard a candidate, (i) to (iii)."""

KEEP, DISCARD, OPEN = "keep", "discard", ""
SENTENCES = ("premise", "h1", "h2", "h3")
_TEXTS = ("id", *SENTENCES, "origin")
_DECISION = ("decision", "reason", "note")
CANDIDATE_COLUMNS = (*_TEXTS, *_DECISION)
REVIEW_COLUMNS = (*CANDIDATE_COLUMNS, "flags")
_BETWEEN_FLAGS = "; "


@dataclass(frozen=True)
class Candidate:
    """A premise, two entailed hypotheses, a contradicted one, and where they came from."""

    id: str
    premise: str
    h1: str
    h2: str
    h3: str
    origin: str

    @property
    def sentences(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in SENTENCES}


@dataclass(frozen=True)
class Reviewed:
    """A candidate and what people decided: keep, discard with one of `REASONS`, or nothing yet."""

    candidate: Candidate
    decision: str = OPEN
    reason: str = ""
    note: str = ""
    flags: tuple[str, ...] = ()


def load_candidates(path: Path) -> list[Candidate]:
    """The candidates of a CSV file, without any decisions that it may hold."""
    return [candidate for _, _, candidate in _rows(Path(path), _TEXTS)]


def load_reviewed(path: Path) -> list[Reviewed]:
    """A review: the columns of `REVIEW_COLUMNS`, of which only `flags` may be absent."""
    path = Path(path)
    return [
        _reviewed(f"{path}, line {line}", row, candidate) for line, row, candidate in _rows(path, CANDIDATE_COLUMNS)
    ]


def has_decisions(path: Path) -> bool:
    """Whether a candidate file has the columns of a decision."""
    columns, _ = _table(Path(path))
    return set(_DECISION) <= set(columns)


def kept(reviewed: Iterable[Reviewed]) -> list[Candidate]:
    """The candidates that people kept, in order."""
    return [one.candidate for one in reviewed if one.decision == KEEP]


def write_candidates(path: Path, candidates: Iterable[Candidate]) -> None:
    """Candidates that were not reviewed: the columns of a decision are empty."""
    _write(path, CANDIDATE_COLUMNS, ([*astuple(one), OPEN, "", ""] for one in candidates))


def write_reviewed(path: Path, reviewed: Iterable[Reviewed]) -> None:
    rows = (
        [*astuple(one.candidate), one.decision, one.reason, one.note, _BETWEEN_FLAGS.join(one.flags)]
        for one in reviewed
    )
    _write(path, REVIEW_COLUMNS, rows)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def _rows(path: Path, required: Sequence[str]) -> Iterator[tuple[int, dict[str, str], Candidate]]:
    """(line, row, candidate), each checked: no sentence missing, no id twice."""
    columns, records = _table(path)
    for column in columns:
        if columns.count(column) > 1 or column not in REVIEW_COLUMNS:
            problem = "appears twice" if columns.count(column) > 1 else "is not known"
            raise UserError(f"{path}: column {column!r} {problem}; the columns are {', '.join(REVIEW_COLUMNS)}.")
    if absent := [column for column in required if column not in columns]:
        raise UserError(
            f"{path} lacks the column{'s' * (len(absent) > 1)} {', '.join(absent)}. Its first line must name {', '.join(required)}."
        )
    first: dict[str, int] = {}
    for line, record in records:
        where = f"{path}, line {line}"
        if len(record) != len(columns):
            raise UserError(
                f"{where}: {len(record)} fields instead of {len(columns)}. Put a sentence with commas into double quotes."
            )
        row = dict(zip(columns, record, strict=True))
        for column in _TEXTS:
            if not row[column].strip():
                raise UserError(f"{where}: {column} is empty. Fill it in, or delete the row.")
        if row["id"] in first:
            raise UserError(
                f"{where}: the id {row['id']!r} is taken by line {first[row['id']]}. Give each candidate its own id."
            )
        first[row["id"]] = line
        yield line, row, Candidate(**{field.name: row[field.name] for field in fields(Candidate)})
    if not first:
        raise UserError(
            f"{path} holds no candidates, only its first line. Make some with `subspaces composition elicit` and `parse`."
        )


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the records, each with the line on which it begins."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path} does not exist, or is a folder: give the path of a CSV file of candidates.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start + 1}). Save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
    if not text.strip():
        raise UserError(f"{path} is empty. Its first line must name {', '.join(CANDIDATE_COLUMNS)}.")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records, line = [], 1
    try:
        for record in reader:
            if record:
                records.append((line, record))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: not valid CSV ({error}). Double the quotes inside a quoted sentence."
        ) from error
    return records[0][1], records[1:]


def _reviewed(where: str, row: dict[str, str], candidate: Candidate) -> Reviewed:
    decision, reason = row["decision"], row["reason"]
    if decision not in (KEEP, DISCARD, OPEN):
        raise UserError(f"{where}: the decision {decision!r} must be {KEEP}, {DISCARD} or empty.")
    if decision == DISCARD and reason not in REASONS:
        raise UserError(
            f"{where}: a discarded candidate needs one of the reasons {', '.join(REASONS)}; found {reason!r}."
        )
    if decision != DISCARD and reason:
        raise UserError(
            f"{where}: only a discarded candidate has a reason; found {reason!r}. Delete it, or set the decision to {DISCARD}."
        )
    flags = tuple(flag for flag in row.get("flags", "").split(_BETWEEN_FLAGS) if flag)
    return Reviewed(candidate, decision, reason, row["note"], flags)
