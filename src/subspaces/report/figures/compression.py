"""What truncation costs (paper §4.6): quality and mean rank against the smallest eigenvalue that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from subspaces.report.figures.parts import POINTS, SMALL, about, finite, not_run, note, size_words, width
from subspaces.report.style import COLOURS, COLUMN, GREY, use_style

TIMES = 4  # the compression that the paper names
QUALITY, RANK = COLOURS["blue"], COLOURS["orange"]
_RANK_LETTERS = "#8A5F00"  # the orange of the line would be too pale
_DASHES = (0, (4, 1.5))
_PARTS = (("wordnet", "map", "WordNet", "mAP"), ("snli", "accuracy", "SNLI", "2-way accuracy"))


@dataclass(frozen=True)
class _Curve:
    """What is known of one data set, by τ; bytes are NaN where they were not counted."""

    tau: np.ndarray
    quality: np.ndarray
    rank: np.ndarray
    bytes: np.ndarray
    full: float

    @classmethod
    def of(cls, part: dict[str, Any], measure: str) -> _Curve | None:
        taus = part.get("taus") or []
        sizes = part.get("bytes") or [None] * len(taus)
        rows = zip(taus, part.get(measure) or [], part.get("rank") or [], sizes, strict=False)
        known = sorted(
            (*row[:3], float(row[3]) if finite(row[3]) else np.nan) for row in rows if all(map(finite, row[:3]))
        )
        if not known:
            return None
        tau, quality, rank, size = np.array(known, dtype=float).T
        return cls(tau, quality, rank, size, float(part.get("full_rank") or rank.max()))

    def reached(self) -> int | None:
        """Where the mean rank is first a quarter of the full one."""
        found = np.flatnonzero(self.rank <= self.full / TIMES)
        return int(found[0]) if len(found) else None


def draw_compression(content: dict[str, Any]) -> Figure:
    """WordNet above, SNLI below: quality on the left axis, mean rank on the right. The first τ at which the mean rank is a quarter of
    `full_rank` (or of the largest rank, where that is not said) is marked, with what it costs against the smallest τ."""
    use_style()
    figure = Figure(figsize=(COLUMN, 3.9))
    panels = figure.subplots(2, 1, sharex=True)
    drawn = []
    for axes, (part, measure, title, name) in zip(panels, _PARTS, strict=True):
        axes.set_title(title, loc="left", fontweight="bold")
        curve = _Curve.of(content.get(part) or {}, measure)
        if curve is None:
            not_run(axes)
        else:
            drawn.append((axes, _draw(axes, curve, name), curve))
    if drawn:
        panels[-1].tick_params(bottom=True, labelbottom=True)
        panels[-1].set_xlabel(r"threshold $\tau$: eigenvalues below it are dropped")
        signs = [
            Line2D([], [], color=QUALITY, marker="o", label="quality"),
            Line2D([], [], color=RANK, marker="s", linestyle=_DASHES, label="mean rank"),
        ]
        figure.legend(handles=signs, loc="outside upper right", ncols=2, handlelength=2.4)
    note(figure, about(content))
    figure.draw_without_rendering()  # everything else has its place now
    for axes, other, curve in drawn:
        _mark(axes, other, curve)
    return figure


def _draw(axes: Axes, curve: _Curve, name: str) -> Axes:
    """Both lines; returns the axes of the rank."""
    axes.plot(curve.tau, curve.quality, color=QUALITY, marker="o", label="quality", zorder=3)
    other = axes.twinx()
    other.plot(curve.tau, curve.rank, color=RANK, marker="s", linestyle=_DASHES, label="rank")
    other.spines["right"].set_visible(True)
    other.grid(visible=False)
    for axis, colour, words in ((axes, QUALITY, f"{name} (%)"), (other, _RANK_LETTERS, "mean rank")):
        axis.set_ylabel(words, color=colour)
        axis.tick_params(axis="y", labelcolor=colour)
        axis.yaxis.set_major_locator(MaxNLocator(4))
    other.set_ylim(0, 1.06 * max(curve.full, curve.rank.max()))
    spread = np.ptp(curve.quality) or 1.0
    axes.set_ylim(curve.quality.min() - 0.1 * spread, curve.quality.max() + 0.1 * spread)
    axes.set_zorder(other.get_zorder() + 1)
    axes.patch.set_visible(False)
    return other


_AROUND = 8  # points kept free around the words, half of it on each side


def _mark(axes: Axes, other: Axes, curve: _Curve) -> None:
    at = curve.reached()
    if at is None:
        words = f"{TIMES}× compression: not reached"
        axes.text(0.5, 0.06, words, transform=axes.transAxes, ha="center", fontsize=SMALL, color=GREY, style="italic")
        return
    tau, quality = curve.tau[at], curve.quality[at]
    axes.axvline(tau, color="black", linewidth=0.8, linestyle=(0, (1, 1)), zorder=2)
    axes.plot(
        tau, quality, "o", markersize=7, markerfacecolor="none", markeredgecolor="black", markeredgewidth=0.9, zorder=4
    )
    cost = round(quality - curve.quality[0], 2)
    signed = "±0.00" if cost == 0 else f"{cost:+.2f}".replace("-", "−")
    lines = [f"≥ {TIMES}× from τ = {tau:g} ({curve.full / curve.rank[at]:.1f}×)", f"quality {signed} → {quality:.2f}"]
    if np.isfinite(curve.bytes[[0, at]]).all():
        lines.append(f"{size_words(curve.bytes[at])} instead of {size_words(curve.bytes[0])}")
    seen = [_dense(axes.transData.transform(np.column_stack([curve.tau, curve.quality])))]
    seen.append(_dense(other.transData.transform(np.column_stack([curve.tau, curve.rank]))))
    place = _free_spot(axes, lines, axes.transData.transform((tau, quality)), np.vstack(seen))
    left = place[0] < axes.transAxes.inverted().transform(axes.transData.transform((tau, quality)))[0]
    style = {
        "arrowstyle": "-",
        "linewidth": 0.5,
        "color": GREY,
        "shrinkA": 2,
        "shrinkB": 4,
        "relpos": (float(left), 0.5),
    }
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, "linespacing": 1.25, "arrowprops": style}
    axes.annotate("\n".join(lines), (tau, quality), tuple(place), textcoords="axes fraction", **look)


def _free_spot(axes: Axes, lines: list[str], point: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """The middle, in shares of the axes, of the spot that covers the least of the lines, and of those the nearest to the point."""
    box, scale = axes.get_window_extent(), axes.figure.dpi / POINTS
    wide, high = (max(map(width, lines)) + _AROUND) * scale, len(lines) * 1.25 * SMALL * scale

    def crowded(middle: tuple[float, float]) -> tuple[float, float]:
        area = Bbox.from_bounds(middle[0] - wide / 2, middle[1] - high / 2, wide, high).padded(_AROUND / 2 * scale)
        covered = ((curves >= area.min) & (curves <= area.max)).all(1).sum()
        on_line = 1000 * (area.x0 < point[0] < area.x1)
        return float(covered + on_line), float(np.hypot(*(np.array(middle) - point)))

    across = np.linspace(box.x0 + wide / 2 + 2, box.x1 - wide / 2 - 2, 25)
    along = np.linspace(box.y0 + high / 2 + 2, box.y1 - high / 2 - 2, 25)
    best = min(((x, y) for x in across for y in along), key=crowded)
    return axes.transAxes.inverted().transform(best)


def _dense(points: np.ndarray, steps: int = 40) -> np.ndarray:
    """Points along a line, so that whatever covers the line covers some."""
    share = np.linspace(0, 1, steps)[:, None]
    return np.vstack([points, *(a + share * (b - a) for a, b in pairwise(points))])
