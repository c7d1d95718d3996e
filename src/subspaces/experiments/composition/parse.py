"""From recorded answers to candidates. What cannot be read is kept, with its reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from subspaces.experiments.composition.candidates import Candidate
from subspaces.experiments.composition.fields import Fields
from subspaces.experiments.composition.forms import read_examples
from subspaces.experiments.composition.record import read_record
from subspaces.files import write_text


@dataclass(frozen=True)
class Reject:
    """A part of an answer that is no candidate."""

    request: int
    reason: str
    text: str


@lru_cache(maxsize=4096)
def parse_answer(text: str) -> tuple[tuple[Fields, ...], tuple[tuple[str, str], ...]]:
    """(premise, h1, h2, h3) of every example in an answer, and (text, reason) of what is none."""
    examples, rejects = read_examples(text)
    return tuple(examples), tuple(rejects)


def parse_entries(entries: Iterable[dict[str, Any]]) -> tuple[list[Candidate], list[Reject]]:
    """Candidates in the order of their requests: e0007, or e0007-1 and e0007-2 if the answer holds several. Refusals are rejects."""
    candidates, rejects = [], []
    answered = (entry for entry in entries if entry["outcome"] != "failed")
    for entry in sorted(answered, key=lambda entry: entry["request"]):
        request = entry["request"]
        if entry["outcome"] == "refused":
            rejects.append(Reject(request, f"refused: {entry.get('reason', '')}", entry.get("text", "")))
            continue
        examples, problems = parse_answer(entry["text"])
        cut = " (the answer was cut off)" if entry.get("finish") == "MAX_TOKENS" else ""
        rejects += [Reject(request, reason + cut, text) for text, reason in problems]
        for number, example in enumerate(examples, start=1):
            name = f"e{request:04d}" + (f"-{number}" if len(examples) > 1 else "")
            candidates.append(Candidate(name, *example, origin=str(entry.get("model", ""))))
    return candidates, rejects


def parse_record(path: Path) -> tuple[list[Candidate], list[Reject]]:
    _, entries = read_record(path)
    return parse_entries(entries)


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    """A CSV file: request, reason, text."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([field.name for field in fields(Reject)])
    writer.writerows(astuple(reject) for reject in rejects)
    write_text(path, buffer.getvalue())
