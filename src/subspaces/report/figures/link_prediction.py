"""Noun link prediction as pictures (paper Table 4): F1 against coverage beside the paper's points, and F1 against training time."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from subspaces.errors import UserError
from subspaces.report.layouts import Layout
from subspaces.report.style import COLOURS, GREY, PAGE, use_style

HEIGHT = 2.9
# colour and marker both tell a geometry: one of them is lost in grey print, the other to a reader who sees few colours
LOOKS = {
    "subspace-128": (COLOURS["blue"], "o"),
    "subspace-64": (COLOURS["sky"], "s"),
    "umbral-10": (COLOURS["green"], "^"),
    "disk-10": (COLOURS["orange"], "D"),
    "cones-10": (COLOURS["red"], "v"),
    "order-10": (COLOURS["purple"], "P"),
    "poincare-10": (COLOURS["black"], "X"),
    "euclidean-10": (GREY, "p"),
}
_OTHER = (GREY, "h")  # a geometry that the paper does not have
_TICKS = (0, 20, 40, 60, 70, 80, 90, 95, 98, 100)
_TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h", 360_000: "100 h"}
_SPREAD = 0.5  # of the room between two coverages, for eight geometries side by side
_CEILING = 104.0


def draw_coverage(rows: list[dict[str, Any]], layout: Layout) -> Figure:
    """`rows` are the records of the table. Ours are filled, with lines and deviations; the paper's points are open."""
    labels = layout.rows
    order = _known({one["row"] for one in rows}, labels)
    strange = sorted({one["column"] for one in rows} - layout.columns.keys())
    if strange:
        raise UserError(
            f"{', '.join(strange)} is not a column of link_prediction: pass the numbers of that table only."
        )
    columns = [column for column in layout.columns if any(one["column"] == column for one in rows)]
    use_style()
    figure, axes = plt.subplots(figsize=(PAGE, HEIGHT))
    shown: list[float] = []
    for row, shift in zip(order, _shifts(len(order)), strict=True):
        colour, marker = LOOKS.get(row, _OTHER)
        mine = sorted((one for one in rows if one["row"] == row), key=lambda one: columns.index(one["column"]))
        found = [(columns.index(one["column"]), one) for one in mine]
        place = np.array([at for at, _ in found]) + shift
        printed = [one["paper"] for _, one in found]
        axes.plot(
            place,
            printed,
            marker,
            markersize=6.5,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=0.8,
            label=f"{row} paper",
        )
        ours = [(at, one) for at, (_, one) in zip(place, found, strict=True) if one["value"] is not None]
        if ours:
            across, value = [at for at, _ in ours], [one["value"] for _, one in ours]
            axes.plot(across, value, color=colour, marker=marker, markersize=3.4, linewidth=0.9, label=row)
            shown += [*value, *_deviations(axes, ours, colour)]
        shown += printed
    _stretch(axes, shown)
    axes.set_xticks(range(len(columns)), [layout.columns[column].rstrip(" ↑↓") for column in columns])
    axes.set_xlim(-0.45, len(columns) - 0.55)
    axes.grid(visible=False, axis="x")
    for between in range(1, len(columns)):
        axes.axvline(between - 0.5, color="#D9D9D9", linewidth=0.4, zorder=0)
    axes.set_xlabel("non-basic edges seen in training")
    run = {one["row"] for one in rows if one["value"] is not None}
    _legend(axes, order, labels, [_sign("ours", "o", filled=True), _sign("paper", "o", filled=False)], run)
    other = [one for one in rows if one["verdict"] == "other scale" or one["sample"]]
    if other:
        _note(axes, f"{other[0]['scale']} scale: ", sample=any(one["sample"] for one in other))
    return figure


def draw_time(evaluations: list[dict[str, Any]], labels: Mapping[str, str]) -> Figure:
    """One marker per row and coverage, larger for more coverage, joined in that order; the mean over seeds."""
    order = _known({one["row"] for one in evaluations}, labels)
    coverages = sorted({one["coverage"] for one in evaluations})
    use_style()
    figure, axes = plt.subplots(figsize=(PAGE, HEIGHT))
    sizes = dict(zip(coverages, np.linspace(3.4, 7.6, len(coverages)) if len(coverages) > 1 else [4.5], strict=True))
    times, values = [], []
    for row in order:
        colour, marker = LOOKS.get(row, _OTHER)
        seeds = {at: [one for one in evaluations if (one["row"], one["coverage"]) == (row, at)] for at in coverages}
        points = [
            (at, fmean(one["timing"]["train_seconds"] for one in some), fmean(one["metrics"]["f1"] for one in some))
            for at, some in seeds.items()
            if some
        ]
        if min(seconds for _, seconds, _ in points) <= 0:
            raise UserError(
                f"{row} was trained in no time at all, which has no place on a logarithmic axis: evaluate it again."
            )
        axes.plot(
            [x for _, x, _ in points], [y for _, _, y in points], color=colour, linewidth=0.7, alpha=0.6, label=row
        )
        for at, seconds, f1 in points:
            axes.plot(
                seconds, f1, marker, color=colour, markersize=sizes[at], markeredgecolor="white", markeredgewidth=0.3
            )
        times += [seconds for _, seconds, _ in points]
        values += [f1 for _, _, f1 in points]
    _stretch(axes, values)
    axes.set_xscale("log")
    axes.set_xlim(min(times) / 1.6, max(times) * 1.6)
    _time_ticks(axes, min(times) / 1.6, max(times) * 1.6)
    threads = {
        row: sorted({one["machine"]["train_threads"] for one in evaluations if one["row"] == row}) for row in order
    }
    same = len({tuple(some) for some in threads.values()}) == 1
    axes.set_xlabel(f"training time, {_threads(threads[order[0]])}" if same else "training time")
    named = labels if same else {row: f"{labels[row]}, {_threads(threads[row])}" for row in order}
    signs = [_sign(f"{at} % seen", "o", filled=True, size=sizes[at]) for at in coverages]
    _legend(axes, order, named, signs, set(order))
    sample = any(one.get("data", {}).get("sample") for one in evaluations)
    if sample or any(one.get("settings", {}).get("subtree") for one in evaluations):
        _note(axes, "", sample)
    return figure


def _known(found: set[str], labels: Mapping[str, str]) -> list[str]:
    """The rows in the order of the legend."""
    if not found:
        raise UserError("there is nothing to draw: build the numbers and evaluations of link prediction first.")
    if unknown := sorted(found - labels.keys()):
        raise UserError(f"no label for {', '.join(unknown)}: add its numbers to numbers.csv.")
    return [row for row in (*LOOKS, *sorted(found - LOOKS.keys())) if row in found]


def _shifts(count: int) -> np.ndarray:
    return np.linspace(-_SPREAD / 2, _SPREAD / 2, count) if count > 1 else np.zeros(1)


def _deviations(axes: Axes, ours: list[tuple[float, dict[str, Any]]], colour: str) -> list[float]:
    """Bars of one standard deviation where there are several seeds, cut at 0 and 100; returns their ends."""
    some = [(at, one["value"], one["sd"]) for at, one in ours if one["seeds"] > 1 and one["sd"] is not None]
    if not some:
        return []
    across, value, sd = (np.array(column) for column in zip(*some, strict=True))
    low, high = np.minimum(sd, value), np.minimum(sd, 100 - value)
    axes.errorbar(across, value, [low, high], fmt="none", ecolor=colour, elinewidth=0.9, capsize=1.8, capthick=0.9)
    return [*(value - low), *(value + high)]


def _upwards(value: Any) -> Any:
    return -np.log(np.maximum(_CEILING - value, 1e-3))


def _back(place: Any) -> Any:
    return _CEILING - np.exp(-place)


def _stretch(axes: Axes, values: list[float]) -> None:
    """An axis of per cent with more room towards 100, where most rows are: steps on it are ratios of the distance to 104."""
    axes.set_yscale("function", functions=(_upwards, _back))
    low, high = _upwards(min(values)), _upwards(max(values))
    room = 0.08 * max(high - low, 0.5)
    axes.set_ylim(max(-10.0, _back(low - room)), min(101.0, _back(high + room)))
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("F1 (%), stretched towards 100")


def _time_ticks(axes: Axes, low: float, high: float) -> None:
    """Times in readable units; where fewer than two of them fit, some seconds."""
    ticks = [time for time in _TIMES if low <= time <= high]
    names = [_TIMES[time] for time in ticks]
    if len(ticks) < 2:
        ticks = list(np.geomspace(low * 1.1, high / 1.1, 3))
        names = [f"{time:.2g} s" if time < 100 else f"{time / 60:.2g} min" for time in ticks]
    axes.set_xticks(ticks, names)
    axes.xaxis.set_minor_locator(NullLocator())


def _threads(counts: list[int]) -> str:
    text = "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return f"{text} thread{'' if text == '1' else 's'}"


def _sign(label: str, marker: str, filled: bool, size: float = 4.0) -> Line2D:
    look = {"markerfacecolor": GREY} if filled else {"markerfacecolor": "none", "markeredgewidth": 0.8}
    return Line2D([], [], linestyle="none", marker=marker, markersize=size, markeredgecolor=GREY, label=label, **look)


def _legend(axes: Axes, order: list[str], labels: Mapping[str, str], signs: list[Line2D], run: set[str]) -> None:
    """Beside the axes, never on a point: the geometries (open and without a line if not run), a gap, what the signs mean."""
    lines = []
    for row in order:
        colour, marker = LOOKS.get(row, _OTHER)
        look = (
            {"linewidth": 0.9}
            if row in run
            else {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.8}
        )
        lines.append(Line2D([], [], color=colour, marker=marker, markersize=4.5, label=labels[row], **look))
    gap = Line2D([], [], linestyle="none", label=" ")
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.005, 0.5), "borderaxespad": 0.3}
    axes.legend(handles=[*lines, gap, *signs], handlelength=1.8, labelspacing=0.45, **place)


def _note(axes: Axes, scale: str, sample: bool) -> None:
    """What a reader must know before comparing with the paper."""
    text = f"{scale}{'a small sample' if sample else 'a subtree'}, not comparable"
    axes.text(
        0.985, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=7, color=GREY, style="italic"
    )
