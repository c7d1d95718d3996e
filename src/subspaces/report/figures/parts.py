"""What the figures of text models share: the look and name of a row, words that fit, panels that were not run, notes on the budget."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from subspaces.report.layouts import LAYOUTS
from subspaces.report.style import COLOURS, GREY

SMALL = 7.0  # points: the smallest letters of all figures
PALE = "#D9D9D9"
POINTS = 72  # to an inch
# colour and marker tell the kind of model, the line its backbone: each can be read without the others
_KINDS = {
    "subspace-128": (COLOURS["blue"], "o"),
    "subspace-64": (COLOURS["sky"], "s"),
    "mlp-diff": (COLOURS["orange"], "D"),
    "mlp": (COLOURS["red"], "v"),
    "box-128": (COLOURS["green"], "^"),
    "box-64": (COLOURS["purple"], "P"),
    "gru-order": (COLOURS["black"], "X"),
    "gru-hyperbolic": (GREY, "p"),
}
_LINES = {"mpnet": "-", "minilm": (0, (4, 1.5))}
_SWEEP = dict(zip(LAYOUTS["lambda_sensitivity"].rows, list(_KINDS.values()), strict=False))
_OTHER = (GREY, "h")


def look(row: str) -> dict[str, Any]:
    """Colour, marker and line of a row of the SNLI tables."""
    backbone, _, kind = row.partition("-")
    colour, marker = _SWEEP.get(row) or _KINDS.get(row) or _KINDS.get(kind, _OTHER)
    return {"color": colour, "marker": marker, "linestyle": _LINES.get(backbone, "-")}


def label(row: str) -> str:
    """The name of a row in its table; a row that no table has keeps its own."""
    return {**LAYOUTS["snli"].rows, **LAYOUTS["lambda_sensitivity"].rows}.get(row, row)


def in_order(rows: Iterable[str]) -> list[str]:
    """As in the tables, then by name."""
    known = [*LAYOUTS["snli"].rows, *LAYOUTS["lambda_sensitivity"].rows]
    return sorted(set(rows), key=lambda row: (known.index(row) if row in known else len(known), row))


def finite(value: Any) -> TypeGuard[float]:
    """A number that can be drawn: neither missing nor NaN nor infinite."""
    return isinstance(value, int | float) and math.isfinite(value)


def width(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """How wide a line of plain text is, in points."""
    return text_to_path.get_text_width_height_descent(
        text, FontProperties(family="DejaVu Sans", size=size, weight=weight), False
    )[0]


def wrap(text: str, room: float, size: float = SMALL, lines: int | None = None, weight: str = "normal") -> list[str]:
    """Lines of at most `room` points; at most `lines` lines, the last one ending in … where words are left over."""
    found, line = [], ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if width(longer, size, weight) <= room:
            line = longer
            continue
        if line:
            found.append(line)
        while width(word, size, weight) > room and len(word) > 1:
            cut = max(1, next(n for n in range(len(word), 0, -1) if n == 1 or width(word[:n], size, weight) <= room))
            found.append(word[:cut])
            word = word[cut:]
        line = word
    found += [line] if line else []
    if lines is None or len(found) <= lines:
        return found
    last = found[lines - 1]
    while last and width(f"{last} …", size, weight) > room:
        last = last[:-1].rstrip()
    return [*found[: lines - 1], f"{last} …"]


def not_run(axes: Axes, words: str = "not run") -> Text:
    """An empty panel that says so."""
    axes.grid(visible=False)
    # not by the locators, which panels of one axis share
    axes.tick_params(which="both", bottom=False, left=False, labelbottom=False, labelleft=False)
    for spine in axes.spines.values():
        spine.set_color(PALE)
    return axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY, style="italic")


def note(figure: Figure, text: str) -> None:
    """One or two small lines below everything: what a reader must know before comparing with the paper."""
    if not text:
        return
    room = figure.get_figwidth() * POINTS - 10
    figure.supxlabel("\n".join(wrap(text, room)), fontsize=SMALL, color=GREY, style="italic")


def budget(evaluations: Sequence[dict[str, Any]]) -> str:
    """Scale, training pairs, seeds and whatever was not the paper's backbone, as far as the evaluations tell."""
    settings = [one.get("settings") or {} for one in evaluations]
    backbones = [some["backbone"] for some in settings if some.get("backbone")]
    instead = [(one.get("name"), one.get("wanted") or one.get("name")) for one in backbones]
    said = [
        _several(f"{one['scale']} scale" for one in evaluations if one.get("scale")),
        _range([(some.get("trained_on") or {}).get("pairs") for some in settings], "training pair"),
        *(f"{name} in place of {wanted}" for name, wanted in dict.fromkeys(instead) if name != wanted),
        *(
            f"the first {layers} layers only"
            for layers in dict.fromkeys(one.get("layers") for one in backbones)
            if layers
        ),
        "a small sample, not comparable" if any((one.get("data") or {}).get("sample") for one in evaluations) else "",
    ]
    return ", ".join(words for words in said if words)


def seeds(evaluations: Sequence[dict[str, Any]]) -> str:
    count = len({(one.get("settings") or {}).get("seed") for one in evaluations})
    return f"{count} seed{'' if count == 1 else 's'}" if evaluations else ""


def _several(words: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(words))


def _range(counts: Iterable[Any], unit: str) -> str:
    known = sorted({count for count in counts if finite(count)})
    if not known:
        return ""
    text = "–".join(f"{count:,}" for count in dict.fromkeys((known[0], known[-1])))
    return f"{text} {unit}{'' if known[-1] == 1 else 's'}"


def about(content: dict[str, Any]) -> str:
    """Model, scale and documents of an evaluation. A model that is named by its digest only is left out, because it is not readable."""
    documents, model = content.get("documents"), str(content.get("model") or "")
    said = [
        "" if re.fullmatch(r"[0-9a-f]{64}", model) else model,
        f"{content['scale']} scale" if content.get("scale") else "",
        f"{documents:,} documents" if finite(documents) else "",
        "a small sample, not comparable" if content.get("sample") else "",
    ]
    return ", ".join(words for words in said if words)


def size_words(count: float) -> str:
    """A number of bytes in readable units."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count:.3g} B"
