"""Figure 2: the Subspace Projection Head, step by step. The matrices shown are those of a small head with random weights (paper §3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from subspaces.projector import soft_projector
from subspaces.report.figures.parts import POINTS, SMALL
from subspaces.report.style import COLOURS, COLUMN, GREY, use_style

TOKENS = ("man", "on", "a", "boat")
HIDDEN, DIM, LAMBDA = 8, 6, 0.05  # n = d queries, one attention head
HEIGHT = 3.14
CELL = 4.6  # points
BLUE, RED, GREEN = COLOURS["blue"], COLOURS["red"], COLOURS["green"]
SHADES = LinearSegmentedColormap.from_list("signed", [RED, "white", BLUE])
_LEFT, _BOX, _MATRIX = 32.0, 123.0, 199.0  # middles of the three columns, in points
_BOX_SIZE = (104.0, 34.0)
_ROWS = (26.0, 84.0, 142.0, 200.0)  # middles of the four rows, from above


@dataclass(frozen=True)
class Stages:
    """What each step of the head makes, in the paper's letters: columns are vectors."""

    H: np.ndarray  # (h, m)
    Q: np.ndarray  # (h, n)
    pooled: np.ndarray  # X′ (h, n)
    X: np.ndarray  # (d, n)
    P: np.ndarray  # (d, d)


def stages(seed: int = 2) -> Stages:
    """One pass through a head of random weights: attention with queries Q over H, an MLP per vector, the soft projector (Eq. 5)."""
    rng = np.random.default_rng(seed)
    H, Q = rng.normal(size=(HIDDEN, len(TOKENS))), rng.normal(size=(HIDDEN, DIM))
    keys, values = (rng.normal(size=(HIDDEN, HIDDEN)) / np.sqrt(HIDDEN) @ H for _ in range(2))
    weights = np.exp(keys.T @ Q / np.sqrt(HIDDEN))
    pooled = values @ (weights / weights.sum(0))
    up, down = rng.normal(size=(4 * HIDDEN, HIDDEN)), rng.normal(size=(DIM, 4 * HIDDEN))
    hidden = up @ pooled / np.sqrt(HIDDEN)
    X = down @ np.where(hidden > 0, hidden, 0.01 * hidden) / np.sqrt(4 * HIDDEN)
    return Stages(H, Q, pooled, X, soft_projector(torch.from_numpy(X), LAMBDA).numpy())


def draw_sph() -> Figure:
    """Four rows, from text to projector: what goes in, the step, the matrix that comes out."""
    use_style()
    made = stages()
    figure = Figure(figsize=(COLUMN, HEIGHT))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, COLUMN * POINTS), ylim=(HEIGHT * POINTS, 0))
    axes.axis("off")
    first, second, third, fourth = _ROWS

    axes.text(
        _LEFT, first, " ".join(TOKENS[:2]) + "\n" + " ".join(TOKENS[2:]), ha="center", va="center", style="italic"
    )
    _matrix(axes, made.Q, (_LEFT, second), "$Q$", r"$h\times n$", below=True)
    for row, name, rank in (
        (third, "X'", np.linalg.matrix_rank(made.pooled)),
        (fourth, "X", np.linalg.matrix_rank(made.X)),
    ):
        bound = "m" if name == "X'" else "d"  # m · heads, and there is one head here
        words = f"rank of ${name}$:\n${rank} = {bound}$"
        axes.text(_LEFT, row, words, ha="center", va="center", color=GREY, fontsize=SMALL, linespacing=1.4)

    _step(axes, first, GREY, "Transformer", f"$m = {len(TOKENS)}$ hidden states")
    _step(axes, second, BLUE, "1  MHA pooling", "$n$ learnt queries attend to $H$")
    _step(axes, third, RED, "2  Rank expansion", "MLP on each column")
    _step(axes, fourth, GREEN, "3  Projection", r"$\tilde{P} = X(X^{\mathsf{T}}X+\lambda I)^{-1}X^{\mathsf{T}}$")
    _matrix(axes, made.H, (_MATRIX, first), "$H$", r"$h\times m$")
    _matrix(axes, made.pooled, (_MATRIX, second), "$X'$", r"$h\times n$")
    _matrix(axes, made.X, (_MATRIX, third), "$X$", r"$d\times n$")
    _matrix(axes, made.P, (_MATRIX, fourth), r"$\tilde{P}$", r"$d\times d$")

    left, right = _BOX - _BOX_SIZE[0] / 2, _BOX + _BOX_SIZE[0] / 2
    for row in _ROWS:
        _arrow(axes, (right, row), (_MATRIX - CELL * 3 - 3, row))
    _arrow(axes, (_LEFT + 18, first), (left, first))
    _arrow(axes, (_LEFT + CELL * 3 + 2, second), (left, second))
    for above, below in pairwise(_ROWS):
        # out of the matrix, down, and into the next step from above
        turn = (above + below) / 2 + 1
        under = above + CELL * (HIDDEN if above <= second else DIM) / 2
        axes.plot([_MATRIX, _MATRIX, _BOX], [under, turn, turn], color="black", linewidth=0.8, solid_joinstyle="round")
        _arrow(axes, (_BOX, turn), (_BOX, below - _BOX_SIZE[1] / 2))
    return figure


def _step(axes: Axes, row: float, colour: str, title: str, words: str) -> None:
    wide, high = _BOX_SIZE
    corner = (_BOX - wide / 2, row - high / 2)
    style: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=4", "linewidth": 0.8}
    axes.add_patch(FancyBboxPatch(corner, wide, high, facecolor=colour, edgecolor="none", alpha=0.13, **style))
    axes.add_patch(FancyBboxPatch(corner, wide, high, facecolor="none", edgecolor=colour, **style))
    axes.text(_BOX, row - 6.5, title, ha="center", va="center", fontweight="bold")
    axes.text(_BOX, row + 7.5, words, ha="center", va="center", fontsize=SMALL)


def _matrix(
    axes: Axes, values: np.ndarray, middle: tuple[float, float], name: str, shape: str, below: bool = False
) -> None:
    """Entries as cells, red below and blue above zero; name and shape beside or below."""
    rows, columns = values.shape
    left, top = middle[0] - columns * CELL / 2, middle[1] - rows * CELL / 2
    scale = np.abs(values).max()
    edges = left + CELL * np.arange(columns + 1), top + CELL * np.arange(rows + 1)
    axes.pcolormesh(*edges, values, cmap=SHADES, vmin=-scale, vmax=scale, edgecolors="white", linewidth=0.3)
    axes.add_patch(Rectangle((left, top), columns * CELL, rows * CELL, fill=False, edgecolor="black", linewidth=0.6))
    if below:
        axes.text(middle[0], top + rows * CELL + 6.5, f"{name}  {shape}", ha="center", va="center", fontsize=SMALL)
        return
    across = middle[0] + CELL * 3 + 4
    axes.text(across, middle[1] - 5.5, name, ha="left", va="center")
    axes.text(across, middle[1] + 5.5, shape, ha="left", va="center", fontsize=SMALL, color=GREY)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 6,
        "linewidth": 0.8,
        "color": "black",
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.add_patch(FancyArrowPatch(start, end, **style))
