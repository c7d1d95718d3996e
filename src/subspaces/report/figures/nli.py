"""SNLI as pictures (paper §4.3, §4.6): inclusion by class, rank along chains of entailment, how models learn, and from how many pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from matplotlib.typing import LineStyleType

from subspaces.errors import UserError
from subspaces.report.figures.parts import (
    POINTS,
    SMALL,
    budget,
    finite,
    in_order,
    label,
    look,
    not_run,
    note,
    seeds,
    wrap,
)
from subspaces.report.style import COLOURS, COLUMN, GREY, PAGE, use_style

Evaluation = dict[str, Any]
# colour and outline of each class
CLASSES: dict[str, tuple[str, LineStyleType]] = {
    "entailment": (COLOURS["blue"], "-"),
    "neutral": (GREY, (0, (3, 1))),
    "contradiction": (COLOURS["red"], (0, (1, 0.8))),
}
RISE, FALL = COLOURS["blue"], COLOURS["red"]
_LINE = 10.5  # points: a line of a chain
_RANK = r"effective rank $\mathrm{Tr}(\tilde{P})$"


def draw_histograms(two: list[Evaluation], three: list[Evaluation]) -> Figure:
    """Test pairs by NIS(P_h | P_p) and gold label, above for the 2-way model, below for the 3-way; each list holds the seeds of one row.

    The 2-way model was told entailment against the rest, so there the other two classes stand on each other.
    """
    use_style()
    figure = Figure(figsize=(COLUMN, 3.7))
    panels = figure.subplots(2, 1, sharex=True)
    used: list[Evaluation] = []
    for axes, ways, evaluations in zip(panels, (2, 3), (two, three), strict=True):
        some = [one for one in evaluations if one.get("inclusion")]
        if len({one.get("row") for one in some}) > 1:
            raise UserError(
                "a histogram shows one model: give the evaluations of one row, its seeds, for each of the two panels."
            )
        if some:
            _histogram(axes, ways, some)
        else:
            not_run(axes, f"{ways}-way: not run")
        used += some
    if used:
        panels[-1].set_xlabel(r"$\mathrm{NIS}(\tilde{P}_h \mid \tilde{P}_p)$;  ▲ and number: mean of the class")
        panels[-1].tick_params(bottom=True, labelbottom=True)
        panels[-1].set_xlim(0, 1)
        panels[-1].xaxis.set_major_locator(MaxNLocator(5))
        panels[-1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    rows = " and ".join(dict.fromkeys(label(one.get("row", "")) for one in used))
    stacked = "2-way: neutral on top of contradiction" if used and used[0] in two else ""
    note(figure, "; ".join(words for words in (rows, budget(used), stacked) if words))
    return figure


def _histogram(axes: Axes, ways: int, evaluations: list[Evaluation]) -> None:
    bins = {one["inclusion"]["bins"] for one in evaluations}
    if len(bins) > 1:
        raise UserError("these evaluations have different bins: evaluate all seeds with the same version.")
    edges = np.linspace(0.0, 1.0, bins.pop() + 1)
    below, handles, highest = np.zeros(len(edges) - 1), [], 0.0
    for name in ("contradiction", "neutral", "entailment"):
        colour, line = CLASSES[name]
        counts, mean = _of_class(evaluations, name, len(edges) - 1)
        stacked = ways == 2 and name != "entailment"
        floor = below if stacked else np.zeros_like(below)
        axes.stairs(floor + counts, edges, baseline=floor, fill=True, color=colour, alpha=0.25, linewidth=0)
        axes.stairs(floor + counts, edges, baseline=None, color=colour, linestyle=line, linewidth=1.0, label=name)
        highest = max(highest, float((floor + counts).max()))
        if stacked:
            below = below + counts
        if mean is not None:
            axes.plot(
                mean,
                0,
                "^",
                color=colour,
                markeredgecolor="white",
                markeredgewidth=0.4,
                markersize=6,
                clip_on=False,
                zorder=5,
            )
        words = f"{name} {mean:.2f}" if mean is not None else f"{name}: none"
        handles.append(
            Patch(facecolor=to_rgba(colour, 0.25), edgecolor=colour, linestyle=line, linewidth=1.0, label=words)
        )
    axes.set_ylim(0, 1.05 * highest or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("test pairs per bin")
    found = [one["metrics"]["accuracy"] for one in evaluations if finite((one.get("metrics") or {}).get("accuracy"))]
    said = [f"{ways}-way", f"accuracy {fmean(found):.1f} %" if found else "", seeds(evaluations)]
    axes.set_title(", ".join(words for words in said if words), loc="left", fontsize=SMALL, fontweight="bold", pad=15)
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1, "borderpad": 0.2}
    axes.legend(handles=handles[::-1], ncols=3, handlelength=1.1, handletextpad=0.4, columnspacing=0.8, **place)


def _of_class(evaluations: list[Evaluation], name: str, bins: int) -> tuple[np.ndarray, float | None]:
    """Counts per bin, and the mean score, over the seeds."""
    found = [one["inclusion"]["classes"].get(name) or {} for one in evaluations]
    counts = [np.asarray(one["counts"], dtype=float) for one in found if one.get("counts")]
    means = [one["mean"] for one in found if finite(one.get("mean"))]
    return np.mean(counts, axis=0) if counts else np.zeros(bins), fmean(means) if means else None


def draw_chains(evaluation: Evaluation) -> Figure:
    """Effective rank along chains of entailment, each from the specific to the general: under a sentence, the way from the rank of the
    one before. A step on which the rank does not rise, as the paper says it does, has another marker and a word."""
    use_style()
    chains = [_known(chain) for chain in evaluation.get("chains") or []]
    chains = [chain for chain in chains if chain]
    if not chains:
        figure = Figure(figsize=(COLUMN, 1.6))
        axes = figure.subplots()
        not_run(axes, "chains: not run")
        return figure
    room = COLUMN * POINTS - 12
    texts = [[wrap(sentence, room) for sentence, _ in chain] for chain in chains]
    lines = [sum(len(text) + 1.35 for text in some) for some in texts]
    height = (sum(lines) * _LINE + 26 * len(chains)) / POINTS + 0.65
    figure = Figure(figsize=(COLUMN, height))
    panels = figure.subplots(len(chains), 1, sharex=True, squeeze=False, height_ratios=lines)
    ranks = [rank for chain in chains for _, rank in chain]
    span = max(ranks) - min(ranks) or 1.0
    wrong = 0
    for place, (axes, chain, text, total) in enumerate(zip(panels[:, 0], chains, texts, lines, strict=True)):
        axes.set_xlim(min(ranks) - 0.04 * span, max(ranks) + 0.27 * span)  # room for a value and a word
        axes.set_ylim(total, 0)
        falls = _chain(axes, [rank for _, rank in chain], text)
        steps = len(chain) - 1
        title = f"chain {place + 1}: the rank rises on {steps - falls} of {steps} steps"
        axes.set_title(title, loc="left", fontsize=SMALL, fontweight="bold")
        wrong += falls
    panels[-1, 0].set_xlabel(_RANK)
    signs = [Line2D([], [], color=RISE, marker="o", markersize=4.5, linewidth=1.6, label="rises")]
    if wrong:
        signs.append(
            Line2D(
                [],
                [],
                color=FALL,
                marker="X",
                markersize=6,
                linewidth=1.6,
                linestyle=(0, (2, 1)),
                label="does not rise",
            )
        )
    figure.legend(handles=signs, loc="outside upper right", ncols=2)
    note(figure, "; ".join(words for words in (label(evaluation.get("row", "")), budget([evaluation])) if words))
    return figure


def _known(chain: dict[str, Any]) -> list[tuple[str, float]]:
    pairs = zip(chain.get("sentences") or [], chain.get("ranks") or [], strict=False)
    return [(sentence, float(rank)) for sentence, rank in pairs if finite(rank)]


def _chain(axes: Axes, ranks: list[float], texts: list[list[str]]) -> int:
    """Draws one chain; returns on how many steps the rank does not rise."""
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    before: float | None = None
    at, wrong = 0.0, 0
    for rank, text in zip(ranks, texts, strict=True):
        words = axes.text(
            0.0, at, "\n".join(text), transform=axes.get_yaxis_transform(), va="top", fontsize=SMALL, linespacing=1.15
        )
        words.set_parse_math(False)
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.4})  # over the grid
        at += len(text) + 0.55
        rises = before is None or rank > before
        colour, marker, size, line = (RISE, "o", 4.5, "-") if rises else (FALL, "X", 6.5, (0, (2, 1)))
        if before is not None:
            axes.plot([before, rank], [at, at], color=colour, linewidth=1.6, linestyle=line, solid_capstyle="butt")
        axes.plot(rank, at, marker, color=colour, markersize=size, clip_on=False)
        value, end = f"{rank:.1f}", rank
        if before is not None:
            value += "" if rises else "  falls" if rank < before else "  level"
            end = max(rank, before)
        style: dict[str, Any] = {
            "textcoords": "offset points",
            "va": "center",
            "fontsize": SMALL,
            "fontweight": "normal" if rises else "bold",
        }
        axes.annotate(value, (end, at), xytext=(7, 0), color=colour, **style)
        at, before, wrong = at + 0.8, rank, wrong + (not rises)
    return wrong


def draw_training_curves(evaluations: list[Evaluation]) -> Figure:
    """Loss and validation accuracy against training pairs seen, left 2-way, right 3-way; one line per row and seed."""
    use_style()
    figure = Figure(figsize=(PAGE, 3.5))
    panels = figure.subplots(2, 2, sharex="col")
    handles: dict[str, Line2D] = {}
    used: list[Evaluation] = []
    for column, ways in enumerate((2, 3)):
        some = [one for one in evaluations if _ways(one) == ways and one.get("history")]
        panels[0, column].set_title(f"{ways}-way", fontweight="bold")
        for axes, measure, name in zip(
            panels[:, column], ("loss", "validation_accuracy"), ("training loss", "validation (%)"), strict=True
        ):
            drawn = [one for one in some if _curve(axes, one, measure)]
            handles |= {one["row"]: _sign(one["row"]) for one in drawn}
            used += [one for one in drawn if one not in used]
            if not drawn:
                not_run(axes)
            axes.set_ylabel(name if column == 0 else "")
        if some:
            panels[1, column].xaxis.set_major_locator(MaxNLocator(5, integer=True))
            panels[1, column].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            panels[1, column].tick_params(bottom=True, labelbottom=True)
            panels[1, column].set_xlabel("training pairs seen")
    if handles:
        figure.legend(handles=[handles[row] for row in in_order(handles)], loc="outside right center", handlelength=2.2)
    note(figure, budget(used))
    return figure


def _curve(axes: Axes, evaluation: Evaluation, measure: str) -> bool:
    points = [
        (one["pairs"], one[measure])
        for one in evaluation["history"]
        if finite(one.get(measure)) and finite(one.get("pairs"))
    ]
    if not points:
        return False
    style = look(evaluation["row"])
    if len(points) > 12:
        style["marker"] = None
    axes.plot(*zip(*points, strict=True), **style, linewidth=1.0, markersize=3.2, alpha=0.9, label=evaluation["row"])
    return True


def draw_accuracy_by_pairs(evaluations: list[Evaluation]) -> Figure:
    """Test accuracy against the number of training pairs, one line per model (`row` and `row@pairs` are the same), and what the most
    frequent class would give. Several seeds: the mean, with one standard deviation."""
    use_style()
    if len({_ways(one) for one in evaluations}) > 1:
        raise UserError(
            "accuracies of 2-way and 3-way models do not belong on one axis: give the evaluations of one of them."
        )
    figure = Figure(figsize=(COLUMN, 2.7))
    axes = figure.subplots()
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    used: list[Evaluation] = []
    for one in evaluations:
        accuracy = (one.get("metrics") or {}).get("accuracy")
        pairs = ((one.get("settings") or {}).get("trained_on") or {}).get("pairs")
        if finite(accuracy) and finite(pairs) and pairs > 0:
            found[one["row"]][int(pairs)].append(accuracy)
            used.append(one)
    if not found:
        not_run(axes, "accuracy by training pairs: not run")
        return figure
    for row in in_order(found):
        points = sorted(found[row].items())
        across, mean = [pairs for pairs, _ in points], [fmean(values) for _, values in points]
        axes.plot(across, mean, **look(row), label=row, markersize=4)
        spread = [(pairs, fmean(values), stdev(values)) for pairs, values in points if len(values) > 1]
        if spread:
            counts, means, deviations = zip(*spread, strict=True)
            bars: dict[str, Any] = {"ecolor": look(row)["color"], "elinewidth": 0.9, "capsize": 1.8}
            axes.errorbar(counts, means, deviations, fmt="none", **bars)
    handles = [_sign(row) for row in in_order(found)]
    missing = in_order({one["row"] for one in evaluations} - found.keys())
    handles += [Line2D([], [], linestyle="none", label=f"{label(row)}: not run") for row in missing]
    majority = _majority(used)
    if majority is not None:
        axes.axhline(majority, color=GREY, linewidth=0.9, linestyle=(0, (1, 1)))
        style: dict[str, Any] = {
            "textcoords": "offset points",
            "ha": "right",
            "va": "bottom",
            "fontsize": SMALL,
            "color": GREY,
        }
        axes.annotate(
            f"most frequent class, {majority:.1f} %",
            (1, majority),
            (-2, 2),
            xycoords=axes.get_yaxis_transform(),
            **style,
        )
        axes.margins(y=0.1)
    _pairs_axis(axes, {pairs for points in found.values() for pairs in points})
    axes.set_ylabel(f"{_ways(used[0])}-way test accuracy (%)")
    axes.set_xlabel("training pairs")
    figure.legend(handles=handles, loc="outside upper center", ncols=2, handlelength=2.2, columnspacing=1.0)
    several = (
        f", {seeds(used)}: mean ± 1 sd"
        if any(len(values) > 1 for points in found.values() for values in points.values())
        else ""
    )
    note(figure, budget(used) + several)
    return figure


def _majority(evaluations: Sequence[Evaluation]) -> float | None:
    """Share of the most frequent gold label in per cent; rows of a confusion are gold labels."""
    tables = [np.asarray(one["confusion"], dtype=float) for one in evaluations if one.get("confusion")]
    gold = [table.sum(1) for table in tables if table.ndim == 2 and table.sum() > 0]
    return float(100 * np.mean([counts.max() / counts.sum() for counts in gold])) if gold else None


def _pairs_axis(axes: Axes, pairs: set[int]) -> None:
    """A logarithmic axis with ticks at the numbers that were used, as many as have room."""
    axes.set_xscale("log")
    axes.set_xlim(min(pairs) / 1.35, max(pairs) * 1.35)
    apart = max(1.4, (max(pairs) / min(pairs)) ** 0.17)
    ticks: list[int] = []
    for count in sorted(pairs, reverse=True):
        if not ticks or ticks[-1] / count >= apart:
            ticks.append(count)
    axes.set_xticks(ticks, [f"{count:,}" for count in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _ways(evaluation: Evaluation) -> int:
    return (evaluation.get("settings") or {}).get("ways", 2)


def _sign(row: str) -> Line2D:
    return Line2D([], [], **look(row), linewidth=1.0, markersize=4, label=label(row))
