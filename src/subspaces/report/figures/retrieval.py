"""What composed queries find (the paper's last figure), as a table of captions: logic over subspaces beside two other ways to ask."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from subspaces.report.figures.parts import PALE, POINTS, SMALL, about, finite, width, wrap
from subspaces.report.style import COLOURS, GREY, PAGE, use_style
from subspaces.search.query import And, Not, Or, Query, Term, parse

COLUMNS = {"subspace": "Subspace logic", "text": "Plain-text query", "vector": "Vector arithmetic"}
HITS = 3
WANTED, UNWANTED = COLOURS["blue"], COLOURS["red"]
_HIGHLIGHT = {"facecolor": "#F9DFCC", "edgecolor": "none", "pad": 0.5}  # told apart from WANTED in grey print too
_LINE, _TITLE = 9.6, 11.0  # points: a line of a caption, of a query
_SIDE, _GAP, _SCORE = 6.0, 10.0, 24.0
_FOOT = 26.0
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "is", "it", "it's", "near", "of", "on", "the", "to", "with")
)


def draw_retrieval(content: dict[str, Any]) -> Figure:
    """For each query the first hits of three ways to ask. `content["queries"]` holds dicts of `query`, `subspace`, `text` and `vector`,
    each of the three a list of `{"text", "score"}`, or missing. Words of terms that a query wants are blue, of terms that it rules out
    red on a pale ground: a help for the eye that goes by the form of the words alone."""
    use_style()
    room = (PAGE * POINTS - 2 * _SIDE - 2 * _GAP) / 3
    rows = [_Row(one, room) for one in content.get("queries") or []]
    height = 22 + (sum(row.height for row in rows) or 40) + _FOOT
    figure = Figure(figsize=(PAGE, height / POINTS))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))  # its units are points, from the upper left corner
    axes.set(xlim=(0, PAGE * POINTS), ylim=(height, 0))
    axes.axis("off")
    lefts = [_SIDE + place * (room + _GAP) for place in range(len(COLUMNS))]
    for left, title in zip(lefts, COLUMNS.values(), strict=True):
        axes.text(left, 11, title, fontweight="bold", va="center")
    top = 22.0
    for row in rows:
        row.draw(axes, top, lefts)
        top += row.height
    if not rows:
        axes.text(
            PAGE * POINTS / 2, top + 20, "retrieval: not run", ha="center", va="center", color=GREY, style="italic"
        )
    _foot(axes, height - _FOOT, about(content))
    return figure


class _Row:
    """One query and what each column found, in lines that fit."""

    def __init__(self, one: dict[str, Any], room: float):
        self.room, query = room, str(one["query"])
        self.title = wrap(query, PAGE * POINTS - 30, 8.0, weight="bold")
        wanted, unwanted = _words(parse(query))
        self.colours = dict.fromkeys(wanted, WANTED) | dict.fromkeys(unwanted, UNWANTED)
        self.cells = [self._cell(one.get(name)) for name in COLUMNS]
        self.head = _TITLE * len(self.title) + 5
        self.height = self.head + _LINE * max(sum(len(lines) + 0.25 for _, lines in hits) for hits in self.cells) + 7

    def _cell(self, hits: Sequence[dict[str, Any]] | None) -> list[tuple[str, list[str]]]:
        """(score, lines) of each hit; no score where there is no hit."""
        if not hits:
            return [("", ["not run" if hits is None else "no hits"])]
        scores = [f"{hit['score']:.2f}".replace("-", "−") if finite(hit.get("score")) else "–" for hit in hits[:HITS]]
        texts = [wrap(str(hit.get("text", "")), self.room - _SCORE, lines=3) or ["–"] for hit in hits[:HITS]]
        return list(zip(scores, texts, strict=True))

    def draw(self, axes: Axes, top: float, lefts: list[float]) -> None:
        axes.add_patch(Rectangle((3, top), PAGE * POINTS - 6, self.head - 2, facecolor="#EFEFEF", edgecolor="none"))
        for place, line in enumerate(self.title):
            axes.text(_SIDE, top + 7.5 + _TITLE * place, line, fontweight="bold", va="center", parse_math=False)
        for left, hits in zip(lefts, self.cells, strict=True):
            at = top + self.head + 8.5
            for score, lines in hits:
                if not score:
                    axes.text(left, at, lines[0], fontsize=SMALL, color=GREY, style="italic")
                    continue
                axes.text(left, at, score, fontsize=SMALL, color=GREY)
                for line in lines:
                    self._line(axes, line, left + _SCORE, at)
                    at += _LINE
                at += 0.25 * _LINE

    def _line(self, axes: Axes, line: str, left: float, at: float) -> None:
        """One line of a caption, in runs of one colour."""
        before: list[str] = []
        for colour, group in groupby(line.split(), lambda word: self.colours.get(_stem(word), "black")):
            words = list(group)
            look = {"color": colour, "parse_math": False, "bbox": _HIGHLIGHT if colour == UNWANTED else None}
            _after(axes, " ".join(before), " ".join(words), left, at, **look)
            before += words


def _after(axes: Axes, before: str, words: str, left: float, at: float, **look: Any) -> None:
    """Words where they stand when others stand before them, as the medium measures those: screens round the width of letters."""
    if not before:
        axes.text(left, at, words, fontsize=SMALL, **look)
        return
    measure = Text(left, at, before, fontsize=SMALL, transform=axes.transData, parse_math=False)  # never drawn
    measure.set_figure(axes.figure)
    axes.annotate(
        words,
        xy=(1, at),
        xycoords=(measure, "data"),
        xytext=(width(" "), 0),
        textcoords="offset points",
        fontsize=SMALL,
        **look,
    )


def _words(query: Query, wanted: bool = True) -> tuple[set[str], set[str]]:
    """Stems of the words of the terms that a query wants, and of those that it rules out; small words are left out."""
    match query:
        case Term(text):
            stems = {_stem(word) for word in text.split() if word.lower() not in _SMALL_WORDS}
            return (stems, set()) if wanted else (set(), stems)
        case Not(of):
            return _words(of, not wanted)
        case And(left, right) | Or(left, right):
            (a, b), (c, d) = _words(left, wanted), _words(right, wanted)
            return a | c, b | d


def _stem(word: str) -> str:
    """A word without punctuation and its commonest endings: rain, rains and raining are the same, so are sits and sitting."""
    word = word.lower().strip(".,;:!?\"'()“”’")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e")


def _foot(axes: Axes, top: float, words: str) -> None:
    axes.plot([_SIDE, PAGE * POINTS - _SIDE], [top + 4, top + 4], color=PALE, linewidth=0.6)
    at = top + 17
    first, second = "words of the terms that a query wants  ", "of the terms that it rules out"
    axes.text(_SIDE, at, first, color=WANTED, fontsize=SMALL)
    axes.text(_SIDE + width(first) + 4, at, second, color=UNWANTED, fontsize=SMALL, bbox=_HIGHLIGHT)
    axes.text(PAGE * POINTS - _SIDE, at, words, ha="right", color=GREY, style="italic", fontsize=SMALL)
