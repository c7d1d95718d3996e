"""What a document takes and what that buys: recall@10 against bytes per document, for the forms that an index can store (paper §4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from subspaces.paper.figures.parts import POINTS, SMALL, about, finite, not_run, note, size_words, width
from subspaces.paper.style import COLOURS, COLUMN, GREY, use_style

KINDS = {"plain": (COLOURS["blue"], "o"), "conjunction": (COLOURS["green"], "s"), "negation": (COLOURS["red"], "^")}
_FAR = 12.0  # points: a name farther than this from its point is led to it by a line


@dataclass(frozen=True)
class _Form:
    name: str
    bytes: float
    recall: dict[str, float]  # in per cent, by kind of query; one without a name where the content has only one

    @property
    def best(self) -> float:
        return max(self.recall.values())


def draw_storage(content: dict[str, Any]) -> Figure:
    """Smaller is left, better is up. `content["points"]` holds dicts of `form`, `bytes` and `recall`: a share of 1, or one share for each
    kind of query, `{"plain": …, "conjunction": …, "negation": …}`. What lacks one of them is named as not run."""
    use_style()
    figure, axes = plt.subplots(figsize=(COLUMN, 2.9))
    given = [(str(one.get("form", "?")), _form(one)) for one in content.get("points") or []]
    forms = [form for _, form in given if form]
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
    signs = [Line2D([], [], linestyle="none", marker=KINDS[kind][1], color=KINDS[kind][0], label=kind) for kind in KINDS if kind in kinds]
    if signs:
        figure.legend(handles=signs, loc="outside upper center", ncols=3)
    missing = [name for name, form in given if form is None]
    note(figure, "; ".join(words for words in (about(content), f"not run: {', '.join(missing)}" if missing else "") if words))
    figure.draw_without_rendering()  # everything else has its place now
    _name(axes, forms)
    return figure


def _form(one: dict[str, Any]) -> _Form | None:
    recall = one["recall"] if isinstance(one.get("recall"), dict) else {"": one.get("recall")}
    shares = {kind: 100.0 * share for kind, share in recall.items() if finite(share)}
    if not shares or not finite(one.get("bytes")) or one["bytes"] <= 0:
        return None
    return _Form(str(one.get("form", "?")), float(one["bytes"]), shares)


def _axes(axes: Axes, forms: list[_Form]) -> None:
    sizes, shares = [form.bytes for form in forms], [share for form in forms for share in form.recall.values()]
    low, high = min(sizes) / 2.5, max(sizes) * 3
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    steps = (1,) if high / low > 300 else (1, 2, 5)
    ticks = [step * 10**power for power in range(12) for step in steps if low <= step * 10**power <= high]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_words(value)))
    spread = max(100 - min(shares), 5.0)
    axes.set_ylim(max(0.0, min(shares) - 0.15 * spread), 100 + 0.22 * spread)
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in MaxNLocator(5).tick_values(*axes.get_ylim()) if tick <= 100]))
    axes.set_xlabel("bytes per document")
    axes.set_ylabel("recall@10 (%)")


def _name(axes: Axes, forms: list[_Form]) -> None:
    """The name of each form at the nearest spot on no point, no other name and no line that leads to one; large forms first, which stand
    close together near 100."""
    frame, scale = axes.get_window_extent(), axes.figure.dpi / POINTS
    dots = {form.name: axes.transData.transform([(form.bytes, share) for share in form.recall.values()]) for form in forms}
    points = {name: [Bbox.from_bounds(x - 4 * scale, y - 4 * scale, 8 * scale, 8 * scale) for x, y in some] for name, some in dots.items()}
    taken = [box for some in points.values() for box in some]
    for form in sorted(forms, key=lambda form: -form.bytes):
        x, y = axes.transData.transform((form.bytes, form.best))
        wide, high = (width(form.name) + 2) * scale, (SMALL + 3) * scale
        spots = [(x + (0.5 - share) * (wide + gap * scale), y + up * scale) for share, gap, up in _SPOTS]
        boxes = [Bbox.from_bounds(mx - wide / 2, my - high / 2, wide, high) for mx, my in spots]
        inside = [box for box in boxes if frame.x0 + 2 <= box.x0 and box.x1 <= frame.x1 and frame.y0 + 2 <= box.y0 and box.y1 <= frame.y1]
        mine = points[form.name]
        others = [box for box in taken if box not in mine]
        free = [
            box
            for box in inside
            if not any(box.overlaps(one) for one in taken) and not any(one.overlaps(_lead(box, x, y, scale)) for one in others)
        ]
        box = min(free or inside or boxes, key=lambda box: _distance(box, x, y))
        taken += [box, _lead(box, x, y, scale)]
        place = axes.transAxes.inverted().transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
        led = abs((box.y0 + box.y1) / 2 - y) > _FAR * scale
        arrow = {"arrowstyle": "-", "linewidth": 0.4, "color": GREY, "shrinkA": 0, "shrinkB": 3} if led else None
        look = {"ha": "center", "va": "center", "fontsize": SMALL, "arrowprops": arrow, "parse_math": False}
        axes.annotate(form.name, (form.bytes, form.best), place, textcoords="axes fraction", **look)


# (share of the name left of the point, its distance sideways, its height above the point), in points
_SPOTS = [(share, 14.0, up) for up in (0, 9, -9) for share in (0.0, 1.0)]
_SPOTS += [(share, 0.0, up) for up in (9, -9, 20, -20, -31, -42, -53, -64, -75) for share in (0.5, 0.3, 0.7, 0.1, 0.9)]


def _distance(box: Bbox, x: float, y: float) -> float:
    """From the point to the middle of the name; up and down counts more, for names are wide and low."""
    return float(np.hypot((box.x0 + box.x1) / 2 - x, 2.5 * ((box.y0 + box.y1) / 2 - y)))


def _lead(box: Bbox, x: float, y: float, scale: float) -> Bbox:
    """The room that a line from the point to its name takes, roughly."""
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    if abs(middle[1] - y) <= _FAR * scale:
        return Bbox.from_bounds(x, y, 0, 0)
    return Bbox.from_extents(min(x, middle[0]) - scale, min(y, middle[1]), max(x, middle[0]) + scale, max(y, middle[1]))
