"""Forms of an answer that name their fields: JSON, tables, CSV with a header, labelled lines."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from subspaces.experiments.composition.fields import FIELD, NAMES, Fields, Found, field_of, four, problem_of

_MARKS = r"[*_`$]*+"  # possessive, as is the next: a line of ten thousand asterisks must not take minutes
_BULLET = r"[\s>#*_`•–+\-]*+"
_NUMBER = r"(?:\(?\d{1,3}[.)]\s+)?"
LABEL = re.compile(
    rf"^{_BULLET}{_NUMBER}{_MARKS}(?P<name>{FIELD}){_MARKS}\s*(?:\([^)]*\)|\[[^\]]*\])?{_MARKS}\s*(?:[:=]|\s[–—-]\s){_MARKS}\s*",
    re.IGNORECASE,
)
_INLINE_LABEL = re.compile(rf"[,;|]\s*(?={_MARKS}(?:hypothesis\s*|h)[123]{_MARKS}\s*:)", re.IGNORECASE)


def read_json(text: str) -> Found | None:
    """Objects, or lists of them, or lists of four sentences; one after the other or nested; with words before and after."""
    values, decoder, place = [], json.JSONDecoder(), 0
    while (start := _opening(text, place)) is not None:
        try:
            value, place = decoder.raw_decode(text, start)
            values.append(value)
        except ValueError:
            place = start + 1
        except RecursionError:
            break
    if not any(_mentions_premise(value) or _is_quadruple(value) or _holds_quadruples(value) for value in values):
        return None
    examples, rejects = [], []
    for value in values:
        for item in _items(value):
            fields = _fields_of(item)
            problem = "JSON without premise, h1, h2 and h3" if fields is None else problem_of(fields)
            if fields is None or problem:
                rejects.append((json.dumps(item, ensure_ascii=False), problem))
            else:
                examples.append(fields)
    return examples, rejects


def _opening(text: str, place: int) -> int | None:
    found = re.compile(r"[{\[]").search(text, place)
    return None if found is None else found.start()


def _mentions_premise(value: Any) -> bool:
    if isinstance(value, dict):
        return any(field_of(name) == "premise" for name in value) or any(map(_mentions_premise, value.values()))
    return isinstance(value, list) and any(map(_mentions_premise, value))


def _is_quadruple(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(isinstance(one, str) for one in value)


def _holds_quadruples(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_quadruple, value))


def _items(value: Any) -> Iterator[Any]:
    """The examples inside a list, or inside the only list of an object."""
    if isinstance(value, dict) and not any(field_of(name) for name in value):
        for inner in value.values():
            yield from _items(inner)
    elif isinstance(value, list) and not _is_quadruple(value):
        for inner in value:
            yield from _items(inner)
    else:
        yield value


def _fields_of(item: Any) -> Fields | None:
    if _is_quadruple(item):
        return four(item)
    if not isinstance(item, dict):
        return None
    found = {field_of(name): value for name, value in item.items() if field_of(name)}
    inner = item.get("hypotheses")
    if isinstance(inner, list) and len(inner) == 3:
        found |= dict(zip(NAMES[1:], inner, strict=True))
    elif isinstance(inner, dict):
        found |= {field_of(name): value for name, value in inner.items() if field_of(name)}
    values = [found.get(name) for name in NAMES]
    return four(values) if all(isinstance(value, str) for value in values) else None


def read_table(text: str) -> Found | None:
    """A Markdown table: one example per row, in named or in the asked order; or one field per row, named in the first cell."""
    rows = [_cells(line) for line in text.split("\n") if line.strip().startswith("|") and line.strip().endswith("|")]
    rows = [row for row in rows if not all(re.fullmatch(r":?-*:?", cell) for cell in row)]
    if not rows:
        return None
    if any(len(row) == 2 and field_of(row[0]) for row in rows):
        lines = [f"{row[0]}: {row[1]}" for row in rows if len(row) == 2 and field_of(row[0])]
        return read_labelled("\n".join(lines))
    places = None
    examples, rejects = [], []
    for row in rows:
        named = {field_of(cell): place for place, cell in enumerate(row) if field_of(cell)}
        if len(named) == 4:
            places = [named[name] for name in NAMES]
            continue
        if places is None and len(row) == 5 and re.fullmatch(r"\W*\d+\W*", row[0]):
            row = row[1:]
        if len(row) <= max(places) if places else len(row) != 4:
            rejects.append((" | ".join(row), f"a table row with {len(row)} cells"))
            continue
        fields = four([row[place] for place in places] if places else row)
        if problem := problem_of(fields):
            rejects.append((" | ".join(row), problem))
        else:
            examples.append(fields)
    return examples, rejects


def _cells(line: str) -> list[str]:
    inner = line.strip()[1:-1]
    cells = re.split(r"(?<!\\)\|", inner)
    return [re.sub(r"<br\s*/?>", " ", cell.replace("\\|", "|")).strip() for cell in cells]


def read_named_csv(body: str) -> Found | None:
    """CSV whose first record names the fields, in any order."""
    records = records_of(body)
    order = [field_of(cell) for cell in records[0]] if records else []
    if not all(name in order for name in NAMES):
        return None
    examples, rejects = [], []
    for record in records[1:]:
        if len(record) != len(order):
            rejects.append((",".join(record), f"a CSV record with {len(record)} fields"))
            continue
        fields = four([record[order.index(name)] for name in NAMES])
        if problem := problem_of(fields):
            rejects.append((",".join(record), problem))
        else:
            examples.append(fields)
    return (examples, rejects) if len(records) > 1 else None


def records_of(body: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(_unnumbered(body), newline=""), strict=True, skipinitialspace=True)
    try:
        return [record for record in reader if record]
    except csv.Error:
        return []


def read_labelled(text: str) -> Found | None:
    """`Premise: …`, `h1: …`, also bold, numbered or in bullets. A field goes on until a blank line or the next label."""
    lines = text.split("\n")
    if sum(LABEL.match(line) is not None for line in lines) == 1:
        lines = _INLINE_LABEL.sub("\n", text).split("\n")
    blocks: list[dict[str, str]] = []
    current: str | None = None
    for line in lines:
        label = LABEL.match(line)
        if label:
            current = field_of(label["name"]) or ""
            if current == "premise" or not blocks or current in blocks[-1]:
                blocks.append({})
            blocks[-1][current] = line[label.end() :]
        elif not line.strip():
            current = None
        elif current is not None:
            blocks[-1][current] += " " + line
    if not any("premise" in block for block in blocks):
        return None
    examples, rejects = [], []
    for block in blocks:
        absent = [name for name in NAMES if name not in block]
        if not absent:
            fields = four([block[name] for name in NAMES])
            problem = problem_of(fields)
        else:
            problem = f"{', '.join(absent)} missing"
        if problem:
            rejects.append(("\n".join(f"{name}: {value}" for name, value in block.items()), problem))
        else:
            examples.append(fields)
    return examples, rejects


def _unnumbered(body: str) -> str:
    return re.sub(r"^\s*\(?\d{1,3}[.)]\s+(?=\")", "", body, flags=re.MULTILINE)
