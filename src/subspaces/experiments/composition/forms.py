"""The forms in which a language model writes an example, and how to read each of them.

The paper's prompt asks for `<premise>, <hypothesis 1>, <hypothesis 2>, <hypothesis 3>`. Models also answer with JSON, CSV, tables, labelled
or numbered lines, angle brackets and bold type, and their sentences hold commas, quotes and line breaks. Every reader here either returns
whole examples or nothing: commas that would cut an answer in more than one way reject it. People see every candidate afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from subspaces.experiments.composition.fields import QUOTES, Fields, Found, field_of, four, joined_lines, problem_of
from subspaces.experiments.composition.named_forms import (
    LABEL,
    read_json,
    read_labelled,
    read_named_csv,
    read_table,
    records_of,
)

_ITEM = re.compile(r"^\s*(?:[>•–+\-*]\s+)*(?:[*_]*\(?\d{1,3}[.)][*_]*\s+)?")
_HEADING = re.compile(r"^\s*(?:#+\s.*|[-*_=]{3,}\s*|\W*(?:example|sample|candidate)\W*\d*\W*)$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*$", re.MULTILINE)
_BRACKETS = (*QUOTES, ("[", "]"), ("(", ")"))
_AFTER_STOP = re.compile(r"(?<=[.!?])(?P<close>[\"”’')*_]*)\s*[,;]\s*(?=[\"“‘'(*_]*[A-Z0-9])")
_BEFORE_CAPITAL = re.compile(r",\s+(?=[\"“‘']?[A-Z])")
_STOP = re.compile(r"[.!?][\"”’')]*$")


def read_examples(text: str) -> Found:
    """All examples of an answer, and what could not be read as (text, reason)."""
    text = _FENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        return [], [(text, "the answer is empty")]
    body = "\n".join(line for line in text.split("\n") if not _is_prose(line)).strip()
    for read in (read_json, read_table, lambda _: read_named_csv(body), read_labelled, lambda _: read_quoted_csv(body)):
        found = read(text)
        if found is not None:
            return found
    return _read_pieces(text, body)


def read_quoted_csv(body: str) -> Found | None:
    """CSV with quotes, every record four fields in the asked order (a number before them is left out)."""
    if '"' not in body:
        return None
    rows = [record[1:] if len(record) == 5 and record[0].strip().isdigit() else record for record in records_of(body)]
    if not rows or any(len(row) != 4 or not _is_consistent(row) for row in rows):
        return None
    examples = [four(row) for row in rows]
    return None if any(map(problem_of, examples)) else (examples, [])


def _read_pieces(text: str, body: str) -> Found:
    """The whole answer as one example; or else its blocks between blank lines; or else its lines: the first way that reads all of it,
    otherwise the one that reads most."""
    ways = [
        [body],
        [block for block in re.split(r"\n\s*\n", body) if block.strip()],
        [line for line in body.split("\n") if line.strip()],
    ]
    best: Found = ([], [(text, _why_not(body))])
    for pieces in ways:
        found = [(piece, read_one(piece)) for piece in pieces]
        examples = [fields for _, fields in found if fields is not None]
        if examples and len(examples) == len(pieces):
            return examples, []
        if len(examples) > len(best[0]):
            best = (examples, [(piece, _why_not(piece)) for piece, fields in found if fields is None])
    return best


def read_one(piece: str) -> Fields | None:
    """One example: four delimited fields, four sentences with commas between, or four lines."""
    joined, lines = _ITEM.sub("", joined_lines(piece)), len([line for line in piece.split("\n") if line.strip()])
    ways: list[Callable[[], list[str] | None]] = [
        lambda: _delimited(joined),
        lambda: _after_stops(joined),
        lambda: _four_lines(piece),
        lambda: _plain_commas(joined) if lines < 4 else None,  # four lines or more may be anything
    ]
    for way in ways:
        parts = way()
        if parts is not None and not problem_of(fields := four(parts)):
            return fields
    return None


def _delimited(joined: str) -> list[str] | None:
    """`<…>, <…>, <…>, <…>`, also with quotes or square brackets."""
    for opening, closing in _BRACKETS:
        if joined.startswith(opening):
            inner = joined.rstrip(" .,;")
            if inner.endswith(closing) and len(inner) > 1:
                parts = re.split(
                    rf"{re.escape(closing)}\s*[,;]?\s*{re.escape(opening)}", inner[len(opening) : -len(closing)]
                )
                if len(parts) == 4:
                    return parts
    return None


def _after_stops(joined: str) -> list[str] | None:
    """`A., B., C., D.`: a comma after a full stop, before a capital, is never inside a sentence."""
    parts, place = [], 0
    for found in _AFTER_STOP.finditer(joined):
        parts.append(joined[place : found.end("close")])
        place = found.end()
    parts.append(joined[place:])
    return parts if len(parts) == 4 and _is_consistent(parts) else None


def _four_lines(piece: str) -> list[str] | None:
    lines = [_ITEM.sub("", line) for line in piece.split("\n") if line.strip()]
    inline = (_delimited, _after_stops, _plain_commas)
    if len(lines) != 4 or all(any(way(line.strip()) for way in inline) for line in lines):
        return None  # four examples, one on each line
    return lines


def _plain_commas(joined: str) -> list[str] | None:
    """`A, B, C, D` without stops: three commas in all, or three before a capital. Anything else could be cut in several ways."""
    for parts in (joined.split(", "), _BEFORE_CAPITAL.split(joined)):
        if len(parts) == 4 and _is_consistent(parts):
            return parts
    return None


def _is_consistent(parts: list[str]) -> bool:
    """All four end like a sentence, or the first three do not; and all begin with a capital if the first one does."""
    bare = [part.strip().strip("*_`") for part in parts]
    stops = [bool(_STOP.search(part)) for part in bare]
    capitals = [bool(re.match(r"[\"“‘'(]*[A-Z0-9]", part)) for part in bare]
    return (all(stops) or not any(stops[:3])) and (all(capitals) or not any(capitals))


def _why_not(piece: str) -> str:
    lines, commas = sum(bool(line.strip()) for line in piece.split("\n")), piece.count(",")
    if commas < 3 and lines < 4:
        return f"four sentences were asked for; found {lines} line{'s' * (lines != 1)} and {commas} comma{'s' * (commas != 1)}"
    return f"ambiguous: {commas} commas in {lines} line{'s' * (lines != 1)}, which do not cut into four sentences in one way"


def _is_prose(line: str) -> bool:
    """Words around the examples: a heading, a rule, `Here is one:`, or the form itself repeated."""
    if _HEADING.match(line) or (line.rstrip().endswith(":") and not LABEL.match(line)):
        return True
    parts = _delimited(joined_lines(line))
    return parts is not None and all(field_of(part) for part in parts)
