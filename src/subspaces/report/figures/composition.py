"""Compositional entailment as a picture (paper Table 6): AUC of conjunction and negation per model, ours above the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from subspaces.errors import UserError
from subspaces.report.figures.parts import SMALL, finite, not_run, note
from subspaces.report.style import COLOURS, COLUMN, GREY, use_style

Number = dict[str, Any]
CHANCE = 50.0
OPERATIONS = {
    "auc-conjunction": ("conjunction", COLOURS["blue"], "o"),
    "auc-negation": ("negation", COLOURS["red"], "s"),
}
_SHIFT = 0.2  # ours above the middle of a row, the paper's below
_APART = {"auc-conjunction": -0.07, "auc-negation": 0.07}  # so that equal values do not hide each other
_ROW = 0.29  # inches


def draw_composition(numbers: list[Number], order: Mapping[str, str]) -> Figure:
    """`numbers` are the records of the table, `order` its rows and their labels. Ours are filled, with the 95 % interval of the
    bootstrap where a number has one, else with the deviation over seeds; the paper's are open. A line joins the two of a model."""
    strange = sorted(
        {one["row"] for one in numbers} - order.keys() | {one["column"] for one in numbers} - OPERATIONS.keys()
    )
    if strange:
        raise UserError(
            f"{', '.join(strange)} has no place in this figure: give it the numbers of composition and the rows of its layout."
        )
    use_style()
    figure = Figure(figsize=(COLUMN, 1.15 + _ROW * max(len(order), 2)))
    axes = figure.subplots()
    if not order:
        not_run(axes, "composition: not run")
        return figure
    found = {(one["row"], one["column"]): one for one in numbers}
    reach = [CHANCE]
    for place, row in enumerate(order):
        mine = {column: found[row, column] for column in OPERATIONS if (row, column) in found}
        if place % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", linewidth=0, zorder=0)
        reach += _printed(axes, mine, place + _SHIFT)
        reach += _ours(axes, mine, place - _SHIFT)
        _missing(axes, mine, place - _SHIFT)
    low = min(reach)
    axes.set_xlim(low - 0.05 * (100 - low), 100 + 0.03 * (100 - low))
    axes.axvline(CHANCE, color=GREY, linewidth=0.9, linestyle=(0, (1, 1)), zorder=1)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_yticks(range(len(order)), list(order.values()))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("AUC (%)")
    figure.legend(handles=_signs(), loc="outside upper center", ncols=3, handlelength=1.3, columnspacing=1.2)
    note(figure, _about([one for one in numbers if finite(one["value"])]))
    return figure


def _printed(axes: Axes, mine: dict[str, Number], at: float) -> list[float]:
    values = {column: one["paper"] for column, one in mine.items() if finite(one["paper"])}
    _joined(axes, values, at)
    for column, value in values.items():
        name, colour, marker = OPERATIONS[column]
        look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 0.8}
        axes.plot(value, at + _APART[column], marker, markersize=4.5, label=f"{name} paper", zorder=3, **look)
    return list(values.values())


def _ours(axes: Axes, mine: dict[str, Number], at: float) -> list[float]:
    """Draws what was run; returns the ends of the bars."""
    run = {column: one for column, one in mine.items() if finite(one["value"])}
    _joined(axes, {column: one["value"] for column, one in run.items()}, at)
    ends = []
    for column, one in run.items():
        name, colour, marker = OPERATIONS[column]
        low, high = _interval(one)
        bar = [[one["value"] - low], [high - one["value"]]]
        look: dict[str, Any] = {"color": colour, "markersize": 4.5, "elinewidth": 0.9, "capsize": 1.8, "capthick": 0.9}
        axes.errorbar(
            [one["value"]],
            [at + _APART[column]],
            xerr=bar if high > low else None,
            fmt=marker,
            label=name,
            zorder=4,
            **look,
        )
        ends += [low, high]
    return ends


def _interval(one: Number) -> tuple[float, float]:
    """95 % of the bootstrap, or one deviation over seeds, or the value alone; never without the value, never above 100."""
    value = one["value"]
    if one.get("interval") and all(finite(end) for end in one["interval"]):
        low, high = one["interval"]
    else:
        spread = one["sd"] if (one.get("seeds") or 0) > 1 and finite(one.get("sd")) else 0.0
        low, high = value - spread, value + spread
    return min(max(low, 0.0), value), max(min(high, 100.0), value)


def _joined(axes: Axes, values: dict[str, float], at: float) -> None:
    if len(values) == 2:
        axes.plot(
            list(values.values()),
            [at + _APART[column] for column in values],
            color=GREY,
            linewidth=0.6,
            alpha=0.6,
            zorder=2,
        )


def _missing(axes: Axes, mine: dict[str, Number], at: float) -> None:
    """Says what was not run, between chance and 100, on the side that has more room."""
    run = [one for one in mine.values() if finite(one["value"])]
    names = [OPERATIONS[column][0] for column, one in mine.items() if not finite(one["value"])]
    if run and not names:
        return
    words = f"{' and '.join(names)} not run" if run else "not run"
    low, high = _interval(run[0]) if run else (100.0, 100.0)
    left = low - CHANCE > 100 - high
    x, side = (CHANCE + 1.0, "left") if left else (100.0, "right")
    axes.text(x, at, words, ha=side, va="center", fontsize=SMALL, color=GREY, style="italic")


def _signs() -> list[Line2D]:
    """Read by columns: the two operations, ours and the paper's, chance."""
    signs = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, label=name)
        for name, colour, marker in OPERATIONS.values()
    ]
    signs.append(Line2D([], [], linestyle="none", marker="o", color=GREY, label="ours"))
    signs.append(Line2D([], [], linestyle="none", marker="o", color=GREY, markerfacecolor="white", label="paper"))
    signs.append(Line2D([], [], linestyle=(0, (1, 1)), linewidth=0.9, color=GREY, label="chance"))
    return signs


def _about(run: list[Number]) -> str:
    """Scale, what a bar is, and whether it may be compared."""
    if not run:
        return ""
    said = list(dict.fromkeys(f"{one['scale']} scale" for one in run if one.get("scale")))
    if any(one.get("interval") for one in run):
        said.append("bars: 95 % bootstrap")
    elif any((one.get("seeds") or 0) > 1 for one in run):
        said.append("bars: 1 sd over seeds")
    if any(one.get("sample") for one in run):
        said.append("a small sample, not comparable")
    return "; ".join(said)
