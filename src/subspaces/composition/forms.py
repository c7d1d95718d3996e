"""The forms in which a language model writes an example, and how to read each of them.

The paper's prompt asks for `<premise>, <hypothesis 1>, <hypothesis 2>, <hypothesis 3>`. Models also answer with JSON, CSV, tables, labelled
or numbered lines, angle brackets and bold type, and their sentences hold commas, quotes and line breaks. Every reader here either returns
whole examples or nothing: commas that would cut an answer in more than one way reject it. People see every candidate afterwards.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Fields = tuple[str, str, str, str]
"""premise, h1, h2, h3."""
NAMES = ("premise", "h1", "h2", "h3")

_FIELD = r"(?:the\s+)?premise|p|h(?:yp(?:othesis)?)?[\s_\-#.(]*[123₁₂₃]\)?"
_COLUMN = re.compile(rf"(?:{_FIELD})(?:[\s_\-:(\[]+[a-z\s_\-]*[)\]]?)?", re.IGNORECASE)
_MARKS = r"[*_`$]*"
_BULLET = r"[\s>#*_`•–+\-]*"
_NUMBER = r"(?:\(?\d{1,3}[.)]\s+)?"
_LABEL = re.compile(
    rf"^{_BULLET}{_NUMBER}{_MARKS}(?P<name>{_FIELD}){_MARKS}\s*(?:\([^)]*\)|\[[^\]]*\])?{_MARKS}\s*(?:[:=]|\s[–—-]\s){_MARKS}\s*",
    re.IGNORECASE,
)
_INLINE_LABEL = re.compile(rf"[,;|]\s*(?={_MARKS}(?:hypothesis\s*|h)[123]{_MARKS}\s*:)", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[>•–+\-*]\s+)*(?:[*_]*\(?\d{1,3}[.)][*_]*\s+)?")
_HEADING = re.compile(r"^\s*(?:#+\s.*|[-*_=]{3,}\s*|\W*(?:example|sample|candidate)\W*\d*\W*)$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*$", re.MULTILINE)
_QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("«", "»"), ("<", ">"))
_BRACKETS = (*_QUOTES, ("[", "]"), ("(", ")"))
_AFTER_STOP = re.compile(r"(?<=[.!?])(?P<close>[\"”’')*_]*)\s*[,;]\s*(?=[\"“‘'(*_]*[A-Z0-9])")
_BEFORE_CAPITAL = re.compile(r",\s+(?=[\"“‘']?[A-Z])")
_STOP = re.compile(r"[.!?][\"”’')]*$")


def read_examples(text: str) -> tuple[list[Fields], list[tuple[str, str]]]:
    """All examples of an answer, and what could not be read as (text, reason)."""
    text = _FENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        return [], [(text, "the answer is empty")]
    for read in (read_json, read_table, read_labelled):
        found = read(text)
        if found is not None:
            return found
    lines = [line for line in text.split("\n") if not _is_prose(line)]
    body = "\n".join(lines).strip()
    if found := read_csv(body):
        return found, []
    return _read_pieces(text, body)


# --- forms that name their fields -----------------------------------------------------------------------------------------


def read_json(text: str) -> tuple[list[Fields], list[tuple[str, str]]] | None:
    """Objects, or lists of them, or lists of four sentences; one after the other or nested; with words before and after."""
    values, decoder, place = [], json.JSONDecoder(), 0
    while (start := _opening(text, place)) is not None:
        try:
            value, place = decoder.raw_decode(text, start)
            values.append(value)
        except (ValueError, RecursionError):
            place = start + 1
    if not any(_mentions_premise(value) or _is_quadruple(value) or _holds_quadruples(value) for value in values):
        return None
    examples, rejects = [], []
    for value in values:
        for item in _items(value):
            fields = _fields_of(item)
            problem = "JSON without premise, h1, h2 and h3" if fields is None else problem_of(fields)
            if problem:
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
        return _four(item)
    if not isinstance(item, dict):
        return None
    found = {field_of(name): value for name, value in item.items() if field_of(name)}
    inner = item.get("hypotheses")
    if isinstance(inner, list) and len(inner) == 3:
        found |= dict(zip(NAMES[1:], inner, strict=True))
    elif isinstance(inner, dict):
        found |= {field_of(name): value for name, value in inner.items() if field_of(name)}
    values = [found.get(name) for name in NAMES]
    return _four(values) if all(isinstance(value, str) for value in values) else None


def read_table(text: str) -> tuple[list[Fields], list[tuple[str, str]]] | None:
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
        fields = _four([row[place] for place in places] if places else row)
        if problem := problem_of(fields):
            rejects.append((" | ".join(row), problem))
        else:
            examples.append(fields)
    return examples, rejects


def _cells(line: str) -> list[str]:
    inner = line.strip()[1:-1]
    cells = re.split(r"(?<!\\)\|", inner)
    return [re.sub(r"<br\s*/?>", " ", cell.replace("\\|", "|")).strip() for cell in cells]


def read_labelled(text: str) -> tuple[list[Fields], list[tuple[str, str]]] | None:
    """`Premise: …`, `h1: …`, also bold, numbered or in bullets. A field goes on until a blank line or the next label."""
    lines = text.split("\n")
    if sum(_LABEL.match(line) is not None for line in lines) == 1:
        lines = _INLINE_LABEL.sub("\n", text).split("\n")
    blocks: list[dict[str, str]] = []
    current: str | None = None
    for line in lines:
        label = _LABEL.match(line)
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
            fields = _four([block[name] for name in NAMES])
            problem = problem_of(fields)
        else:
            problem = f"{', '.join(absent)} missing"
        if problem:
            rejects.append(("\n".join(f"{name}: {value}" for name, value in block.items()), problem))
        else:
            examples.append(fields)
    return examples, rejects


def field_of(name: Any) -> str | None:
    """premise, h1, h2 or h3, for whatever a model calls it."""
    plain = re.sub(r"[*_`$]+", " ", str(name)).strip().lower()
    if not _COLUMN.fullmatch(plain):
        return None
    digit = re.search(r"[123₁₂₃]", plain)
    return f"h{'₁₂₃'.find(digit[0]) + 1 or digit[0]}" if digit else "premise"


# --- forms that rely on order ---------------------------------------------------------------------------------------------


def read_csv(body: str) -> list[Fields]:
    """CSV with quotes or with a header, every record four fields (a number before them is left out); otherwise nothing."""
    try:
        records = [
            record for record in csv.reader(io.StringIO(_unnumbered(body), newline=""), strict=True, skipinitialspace=True) if record
        ]
    except csv.Error:
        return []
    if not records:
        return []
    order = [field_of(cell) for cell in records[0]]
    header = all(name in order for name in NAMES)
    if header:
        rows = [[record[order.index(name)] for name in NAMES] for record in records[1:] if len(record) == len(order)]
        if len(rows) != len(records) - 1:
            return []
    elif '"' in body:
        rows = [record[1:] if len(record) == 5 and record[0].strip().isdigit() else record for record in records]
    else:
        return []
    if any(len(row) != 4 or not (header or _is_consistent(row)) for row in rows):
        return []
    examples = [_four(row) for row in rows]
    return [] if any(map(problem_of, examples)) else examples


def _read_pieces(text: str, body: str) -> tuple[list[Fields], list[tuple[str, str]]]:
    """The whole answer as one example; or else its blocks between blank lines; or else its lines: the first way that reads all of it,
    otherwise the one that reads most."""
    ways = [[body], [block for block in re.split(r"\n\s*\n", body) if block.strip()], [line for line in body.split("\n") if line.strip()]]
    best: tuple[list[Fields], list[tuple[str, str]]] = ([], [(text, _why_not(body))])
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
    joined = _ITEM.sub("", _joined(piece))
    ways: list[Callable[[], list[str] | None]] = [
        lambda: _delimited(joined),
        lambda: _after_stops(joined),
        lambda: _four_lines(piece),
        lambda: _plain_commas(joined),
    ]
    for way in ways:
        parts = way()
        if parts is not None and not problem_of(fields := _four(parts)):
            return fields
    return None


def _delimited(joined: str) -> list[str] | None:
    """`<…>, <…>, <…>, <…>`, also with quotes or square brackets."""
    for opening, closing in _BRACKETS:
        if joined.startswith(opening):
            inner = joined.rstrip(" .,;")
            if inner.endswith(closing) and len(inner) > 1:
                parts = re.split(rf"{re.escape(closing)}\s*[,;]?\s*{re.escape(opening)}", inner[len(opening) : -len(closing)])
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


# --- sentences ------------------------------------------------------------------------------------------------------------


def problem_of(fields: Fields) -> str:
    """Why four fields are no example; empty if they are."""
    for name, field in zip(NAMES, fields, strict=True):
        if not re.search(r"[^\W\d_]", field):
            return f"{name} has no words"
        if len(field.split()) <= 3 and field_of(field):
            return f"{name} is a placeholder"
    return ""


def clean(field: str) -> str:
    """One line, without what wraps the sentence as a whole: bold or code marks, quotes, angle brackets, a comma behind."""
    text, before = _joined(field), None
    while text != before:
        before = text
        text = text.rstrip(",;").strip()
        for mark in ("**", "__", "*", "_", "`"):
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in text[len(mark) : -len(mark)]:
                text = text[len(mark) : -len(mark)].strip()
        for opening, closing in _QUOTES:
            inner = text[1:-1]
            if len(text) > 2 and text[0] == opening and text[-1] == closing and opening not in inner and closing not in inner:
                text = inner.strip()
    return text


def _four(parts: Any) -> Fields:
    premise, h1, h2, h3 = (clean(part) for part in parts)
    return premise, h1, h2, h3


def _joined(text: str) -> str:
    return " ".join(text.split())


def _unnumbered(body: str) -> str:
    return re.sub(r"^\s*\(?\d{1,3}[.)]\s+(?=\")", "", body, flags=re.MULTILINE)


def _is_prose(line: str) -> bool:
    """Words around the examples: a heading, a rule, `Here is one:`, or the form itself repeated."""
    if _HEADING.match(line) or (line.rstrip().endswith(":") and not _LABEL.match(line)):
        return True
    parts = _delimited(_joined(line))
    return parts is not None and all(field_of(part) for part in parts)
