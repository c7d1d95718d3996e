"""Markup that is safe by type: whatever is not `Html` already is text, and is escaped on its way in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_VOID = {"img", "input", "meta"}
# characters that a file cannot hold, that a parser drops, or that turn the direction of what follows
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

Attribute = str | int | float | bool | None


class Html(str):
    """Finished markup. Only this module, and those that build on `tag`, make it."""

    __slots__ = ()


def text(content: object) -> Html:
    """Data as markup: `<`, `>`, `&` and quotes escaped, unshowable characters replaced."""
    if isinstance(content, Html):
        return content
    return Html(escape(_UNSHOWABLE.sub("\ufffd", str(content)), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    return Html(text(between).join(text(part) for part in parts if part is not None))


def tag(name: str, *children: object, **attributes: Attribute) -> Html:
    """One element. `class_` is class, `data_number` is data-number; True is a bare attribute, None and False leave it out."""
    shown = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        shown.append(f" {word}" if value is True else f' {word}="{text(value)}"')
    opening = f"<{name}{''.join(shown)}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")
