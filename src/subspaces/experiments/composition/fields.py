"""The four fields of an example: what models call them, and how a sentence is freed from what wraps it."""

from __future__ import annotations

import re
from typing import Any

Fields = tuple[str, str, str, str]
"""premise, h1, h2, h3."""
Found = tuple[list[Fields], list[tuple[str, str]]]
"""Examples, and what could not be read as (text, reason)."""
NAMES = ("premise", "h1", "h2", "h3")
QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("«", "»"), ("<", ">"))

FIELD = r"premise|p|h(?:yp(?:othesis)?)?[\s_\-#.(]*[123₁₂₃]\)?"
_COLUMN = re.compile(rf"(?:{FIELD})(?:[\s_\-:(\[]+[a-z\s_\-]*[)\]]?)?", re.IGNORECASE)


def field_of(name: Any) -> str | None:
    """premise, h1, h2 or h3, for whatever a model calls it."""
    plain = re.sub(r"[*_`$]+", " ", str(name)).strip().lower()
    if not _COLUMN.fullmatch(plain):
        return None
    digit = re.search(r"[123₁₂₃]", plain)
    return f"h{'₁₂₃'.find(digit[0]) + 1 or digit[0]}" if digit else "premise"


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
    text, before = joined_lines(field), None
    while text != before:
        before = text
        text = text.rstrip(",;").strip()
        for mark in ("**", "__", "*", "_", "`"):
            if (
                len(text) > 2 * len(mark)
                and text.startswith(mark)
                and text.endswith(mark)
                and mark not in text[len(mark) : -len(mark)]
            ):
                text = text[len(mark) : -len(mark)].strip()
        for opening, closing in QUOTES:
            inner = text[1:-1]
            if (
                len(text) > 2
                and text[0] == opening
                and text[-1] == closing
                and opening not in inner
                and closing not in inner
            ):
                text = inner.strip()
    return text


def four(parts: Any) -> Fields:
    premise, h1, h2, h3 = (clean(part) for part in parts)
    return premise, h1, h2, h3


def joined_lines(text: str) -> str:
    return " ".join(text.split())
