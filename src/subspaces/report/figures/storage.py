"""What a document takes and what that buys: recall@10 against bytes per document, for the forms that an index can store (paper §4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from subspaces.report.figures.parts import POINTS, SMALL, about, finite, not_run, note, size_words, width
from subspaces.report.style import COLOURS, COLUMN, GREY, use_style

KINDS = {"plain": (COLOURS["blue"], "o"), "conjunction": (COLOURS["green"], "s"), "negation": (COLOURS["red"], "^")}


@dataclass(frozen=True)
class _Form:
    name: str
    bytes: float
    recall: dict[str, float]  # in per cent, by kind of query; one without a name where the content has only one

    @property
    def best(self) -> float:
        return max(self.recall.values())


def draw_storage(content: dict[str, Any]) -> Figure:
    """Smaller is left, better is up; a letter stands at each form, its name and size below.

    `content["points"]` holds dicts of `form`, `bytes` and `recall`: a share of 1, or one share for each kind of query,
    `{"plain": …, "conjunction": …, "negation": …}`. What lacks one of them is named as not run.
    """
    use_style()
    figure = Figure(figsize=(COLUMN, 2.9))
    axes = figure.subplots()
    given = [(str(one.get("form", "?")), _form(one)) for one in content.get("points") or []]
    forms = sorted((form for _, form in given if form), key=lambda form: (form.bytes, form.name))
    if not forms:
        not_run(axes, "storage: not run")
        return figure
    for form in forms:
        if len(form.recall) > 1:
            axes.plot([form.bytes] * 2, [min(form.recall.values()), form.best], color=GREY, linewidth=0.6, zorder=2)
        for kind, share in form.recall.items():
            colour, marker = KINDS.get(kind, (COLOURS["blue"], "o"))
            axes.plot(form.bytes, share, marker, color=colour, markersize=4.5, zorder=3)
    _axes(axes, forms)
    kinds = {kind for form in forms for kind in form.recall}
    signs = [
        Line2D([], [], linestyle="none", marker=KINDS[kind][1], color=KINDS[kind][0], label=kind)
        for kind in KINDS
        if kind in kinds
    ]
    if signs:
        figure.legend(handles=signs, loc="outside upper center", ncols=3)
    missing = [name for name, form in given if form is None]
    names = [
        f"{letter}  {form.name}, {size_words(form.bytes)}" for letter, form in zip(ascii_lowercase, forms, strict=False)
    ]
    columns = 2 if max(map(width, names)) < COLUMN * POINTS / 2 - 14 else 1
    figure.set_figheight(2.6 + 0.15 * -(-len(names) // columns))
    bare = [Line2D([], [], linestyle="none", label=name) for name in names]
    below = axes.transAxes + ScaledTranslation(0, -28 / POINTS, figure.dpi_scale_trans)  # under the label of the axis
    place: dict[str, Any] = {
        "loc": "upper center",
        "bbox_to_anchor": (0.45, 0),
        "bbox_transform": below,
        "borderaxespad": 0,
    }
    axes.legend(handles=bare, ncols=columns, handlelength=0, handletextpad=0, columnspacing=1.2, **place)
    note(
        figure,
        "; ".join(words for words in (about(content), f"not run: {', '.join(missing)}" if missing else "") if words),
    )
    figure.draw_without_rendering()  # everything else has its place now
    _letters(axes, forms)
    return figure


def _form(one: dict[str, Any]) -> _Form | None:
    recall = one["recall"] if isinstance(one.get("recall"), dict) else {"": one.get("recall")}
    shares = {kind: 100.0 * share for kind, share in recall.items() if finite(share)}
    if not shares or not finite(one.get("bytes")) or one["bytes"] <= 0:
        return None
    return _Form(str(one.get("form", "?")), float(one["bytes"]), shares)


def _axes(axes: Axes, forms: list[_Form]) -> None:
    sizes, shares = [form.bytes for form in forms], [share for form in forms for share in form.recall.values()]
    low, high = min(sizes) / 2, max(sizes) * 2
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    steps = (1,) if high / low > 300 else (1, 2, 5)
    ticks = [step * 10**power for power in range(12) for step in steps if low <= step * 10**power <= high]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_words(value)))
    spread = max(100 - min(shares), 5.0)
    axes.set_ylim(max(0.0, min(shares) - 0.1 * spread), 100 + 0.15 * spread)
    axes.yaxis.set_major_locator(
        FixedLocator(
            [tick for tick in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(*axes.get_ylim()) if tick <= 100]
        )
    )
    axes.set_xlabel("bytes per document")
    axes.set_ylabel("recall@10 (%)")


def _letters(axes: Axes, forms: list[_Form]) -> None:
    """A letter above each form, or above the letter that stands there already."""
    scale = axes.figure.dpi / POINTS
    taken: list[tuple[float, float]] = []
    for letter, form in zip(ascii_lowercase, forms, strict=False):
        x, y = axes.transData.transform((form.bytes, form.best)) / scale
        up = 4.0
        while any(abs(x - other) < 8 and abs(y + up - height) < 9 for other, height in taken):
            up += 1.0
        taken.append((x, y + up))
        axes.annotate(letter, (form.bytes, form.best), (0, up), textcoords="offset points", ha="center", fontsize=SMALL)
