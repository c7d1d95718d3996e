"""Effective rank against number of descendants for all nouns, with one chain from specific to general marked (paper §4.6)."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from subspaces.report.style import COLUMN, use_style

# from homo sapiens to entity, along first hypernyms of WordNet 3.0; names that a hierarchy does not have are passed over
CHAIN = (
    "homo_sapiens.n.01",
    "homo.n.02",
    "hominid.n.01",
    "primate.n.02",
    "mammal.n.01",
    "vertebrate.n.01",
    "animal.n.01",
    "organism.n.01",
    "living_thing.n.01",
    "object.n.01",
    "physical_entity.n.01",
    "entity.n.01",
)
LABELLED = {"homo_sapiens.n.01", "primate.n.02", "mammal.n.01", "animal.n.01", "object.n.01", "entity.n.01"}


def draw_ranks(path: Path, points: str, chain: str) -> Figure:
    """`path` is the parquet file of names, descendants and ranks; a node without descendants stands at 0."""
    use_style()
    table = pq.read_table(path)
    names = table["name"].to_pylist()
    descendants = table["descendants"].to_numpy()
    rank = table["rank"].to_numpy()
    across = np.log10(1 + descendants)

    figure, axes = plt.subplots(figsize=(COLUMN, 2.6))
    axes.scatter(
        across, rank, s=3, color=points, alpha=0.25, linewidths=0, rasterized=True, label=f"{len(names):,} nouns"
    )
    medians = _medians(across, rank)
    axes.plot(*medians, color="black", linewidth=0.9, linestyle=(0, (4, 2)), label="median")
    place = {name: row for row, name in enumerate(names)}
    found = [name for name in CHAIN if name in place]
    if found:
        rows = [place[name] for name in found]
        axes.plot(
            across[rows],
            rank[rows],
            color=chain,
            marker="o",
            markersize=3.2,
            linewidth=1.1,
            label="homo sapiens … entity",
        )
    ticks = np.arange(0, int(np.ceil(across.max())) + 1)
    axes.set_xticks(np.log10(1 + np.where(ticks == 0, 0, 10.0**ticks)), [f"{0 if t == 0 else 10**t:,}" for t in ticks])
    axes.set_xlim(-0.15, across.max() + 0.35)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(top=rank.max() + 0.12 * np.ptp(rank))
    axes.set_xlabel("number of descendants")
    axes.set_ylabel(r"effective rank $\mathrm{Tr}(\tilde{P})$")
    legend = axes.legend(loc="lower right", handlelength=1.6, borderpad=0.2)
    for handle in legend.legend_handles[:1]:
        plt.setp(handle, alpha=1.0, sizes=[14])
    _label_chain(axes, [name for name in found if name in LABELLED], place, across, rank, chain)
    return figure


def _medians(across: np.ndarray, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = np.arange(-0.125, across.max() + 0.25, 0.25)
    which = np.digitize(across, edges)
    bins = [bin_ for bin_ in np.unique(which) if (which == bin_).sum() >= 5]
    return np.array([np.median(across[which == b]) for b in bins]), np.array(
        [np.median(rank[which == b]) for b in bins]
    )


def _label_chain(axes, names: list[str], place: dict, across: np.ndarray, rank: np.ndarray, colour: str) -> None:
    """Labels above their points, the general end first; one that would lie on another is left out."""
    axes.figure.canvas.draw()
    taken: list[tuple[float, float]] = []
    for name in reversed(names):
        row = place[name]
        x, y = axes.transData.transform((across[row], rank[row])) * 72 / axes.figure.dpi  # in points
        if any(abs(x - other_x) < 45 and abs(y - other_y) < 10 for other_x, other_y in taken):
            continue
        taken.append((x, y))
        axes.annotate(
            name.split(".")[0].replace("_", " "),
            (across[row], rank[row]),
            textcoords="offset points",
            xytext=(0, 6),
            ha="center",
            fontsize=7,
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        )
