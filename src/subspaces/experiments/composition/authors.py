"""The authors' released set: `premise.h_a.h_b.label`, two rows for each premise."""

from __future__ import annotations

from pathlib import Path

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import Candidate

HEADER = "premise.hypothesis.hypothesis.label"
ENTAILED, CONTRADICTED = "0", "2"


def read_authors(path: Path) -> list[Candidate]:
    """One candidate for each premise: the row with label 0 holds h1 and h2, the row with label 2 holds h1 and h3.

    Full stops separate the fields, so sentences come without one, as the authors' own evaluation reads them. Spaces do not count when
    the two rows of a premise are paired: in the released file two premises lack one in their second row. The first row's text is used.
    """
    try:
        lines = Path(path).read_bytes().decode("utf-8-sig").splitlines()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(
            f"{path} does not exist, or is a folder: fetch it with `subspaces fetch composition`."
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 (byte {error.start + 1}): fetch it again.") from error
    if not lines or lines[0].strip() != HEADER:
        raise UserError(f"{path}, line 1: expected {HEADER!r}; this is not the authors' file.")
    rows: dict[str, dict[str, tuple[int, str, str, str]]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            premise, first, second, label = _split(f"{path}, line {number}", line)
            pair = rows.setdefault(_spaceless(premise), {})
            if label in pair:
                raise UserError(
                    f"{path}, line {number}: this premise has label {label} on line {pair[label][0]} already."
                )
            pair[label] = (number, premise, first, second)
    if not rows:
        raise UserError(f"{path} holds no rows, only its first line: fetch it again.")
    return [_candidate(path, f"a{number:03d}", pair) for number, pair in enumerate(rows.values(), start=1)]


def _split(where: str, line: str) -> tuple[str, str, str, str]:
    fields = [field.strip() for field in line.split(".")]
    if len(fields) != 4:
        raise UserError(f"{where}: expected premise.hypothesis.hypothesis.label, found {len(fields)} fields.")
    premise, first, second, label = fields
    for name, sentence in (("premise", premise), ("first hypothesis", first), ("second hypothesis", second)):
        if not sentence:
            raise UserError(f"{where}: the {name} is empty.")
    if label not in (ENTAILED, CONTRADICTED):
        raise UserError(
            f"{where}: the label must be {ENTAILED} (entailed) or {CONTRADICTED} (contradicted), not {label!r}."
        )
    return premise, first, second, label


def _candidate(path: Path, name: str, pair: dict[str, tuple[int, str, str, str]]) -> Candidate:
    for label, hypothesis in ((ENTAILED, "h2"), (CONTRADICTED, "h3")):
        if label not in pair:
            number, premise, *_ = next(iter(pair.values()))
            raise UserError(
                f"{path}, line {number}: {hypothesis} is missing; no row has the premise {premise!r} and label {label}."
            )
    _, premise, h1, h2 = pair[ENTAILED]
    number, _, other, h3 = pair[CONTRADICTED]
    if _spaceless(other) != _spaceless(h1):
        raise UserError(
            f"{path}, line {number}: its first hypothesis is {other!r}, but the row with label {ENTAILED} has {h1!r}."
        )
    return Candidate(name, premise, h1, h2, h3, origin="authors")


def _spaceless(text: str) -> str:
    return "".join(text.split())
