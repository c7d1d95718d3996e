"""A picture of a fitted hierarchy around one node: rank against descendants, the node's chain upwards, and its neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from subspaces.errors import UserError, missing_package
from subspaces.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from subspaces.hierarchy.model import Hierarchy, Relative

_FORMATS = ("png", "pdf", "svg")
_DRAWN = 20_000  # more points only make the file large
_BLUE, _RED, _GREY = "#2166ac", "#b2182b", "#9a9a9a"


def plot_around(hierarchy: Hierarchy, name: str, out: str | Path, neighbours: int = 8) -> Path:
    """Write the picture as PNG, PDF or SVG, by the ending of `out`."""
    out = Path(out)
    kind = out.suffix.lower().removeprefix(".")
    if kind not in _FORMATS:
        raise UserError(f"{out}: the picture must end in {', '.join('.' + one for one in _FORMATS)}.")
    figure = draw_around(hierarchy, name, neighbours)
    with atomic_file(out) as handle:
        figure.savefig(handle, format=kind, dpi=150, bbox_inches="tight")
    return out


def draw_around(hierarchy: Hierarchy, name: str, neighbours: int = 8) -> Figure:
    """Left: all nodes, rank against descendants, the node and its ancestors marked. Right: its inclusion in its ancestors, and how much
    of each of its closest nodes lies in it."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UserError(missing_package(error) or str(error)) from error
    place = hierarchy.place(name)
    name = hierarchy.names[place]
    count = int(hierarchy.graph.offsets[place + 1] - hierarchy.graph.offsets[place])
    chain = sorted(hierarchy.ancestors(name, max(count, 1)), key=lambda node: -node.rank) if count else []
    closest = [node for node in hierarchy.nearest(name, neighbours + 1) if node.name != name][:neighbours]
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    _draw_ranks(left, hierarchy, place, chain)
    _draw_inclusions(right, hierarchy, name, chain, closest)
    return figure


def _draw_ranks(axes: Axes, hierarchy: Hierarchy, place: int, chain: list[Relative]) -> None:
    rank, below = hierarchy.features.trace.numpy(), hierarchy.graph.descendants
    shown = np.arange(len(rank))
    if len(shown) > _DRAWN:  # every node with descendants of its own comes first
        shown = np.argsort(-below, kind="stable")[:_DRAWN]
    axes.scatter(
        below[shown] + 1, rank[shown], s=7, c=_GREY, alpha=0.5, linewidths=0, label="all nodes", rasterized=True
    )
    above = [hierarchy.place(node.name) for node in chain]
    path = [*above, place]
    axes.plot(below[path] + 1, rank[path], "-o", color=_BLUE, markersize=4, linewidth=1, label="its ancestors")
    axes.plot(below[place] + 1, rank[place], "o", color=_RED, markersize=7, label=_short(hierarchy.names[place]))
    axes.set_xscale("log")
    axes.set_xlabel("descendants + 1")
    axes.set_ylabel(f"effective rank Tr(P), of {hierarchy.dim}")
    axes.legend(frameon=False, loc="lower right", fontsize=8)


def _draw_inclusions(
    axes: Axes, hierarchy: Hierarchy, name: str, chain: list[Relative], closest: list[Relative]
) -> None:
    rows = [(f"in {_short(node.name)}", node.inclusion, _BLUE if node.known else _GREY) for node in chain]
    rows += [
        (f"{_short(node.name)} in it", node.inclusion, _RED if _is_below(hierarchy, node.name, name) else _GREY)
        for node in closest
    ]
    places = np.arange(len(rows))[::-1]
    axes.barh(places, [value for _, value, _ in rows], color=[colour for _, _, colour in rows], height=0.7)
    axes.set_yticks(places, [label for label, _, _ in rows], fontsize=8)
    axes.axvline(hierarchy.threshold, color="black", linewidth=1, linestyle="--")
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"inclusion (entailed from {hierarchy.threshold:.3f}); grey: no edge")
    axes.set_title(_short(name, 60), fontsize=10)


def _is_below(hierarchy: Hierarchy, child: str, parent: str) -> bool:
    return hierarchy.place(parent) in hierarchy.known_above(hierarchy.place(child))


def _short(name: str, length: int = 32) -> str:
    """The end of a long name: a path ends with what matters."""
    return name if len(name) <= length else "…" + name[-(length - 1) :]
