"""Figure 1: concepts as subspaces of R³ and the operations on them, drawn from the projectors that the algebra computes.

x₁ is a "man on a boat that is fishing", x₂ a "man on a boat that is not fishing", x₃ a man fishing who is not on a boat. Whatever
is drawn, plane or line, is the shadow of the cube [−1, 1]³ under a computed projector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Polygon
from scipy.spatial import ConvexHull

from subspaces.algebra import Subspace
from subspaces.report.style import COLOURS, GREY, PAGE, use_style

X = torch.eye(3, dtype=torch.float64)  # columns x₁, x₂, x₃
AZIMUTH, ELEVATION = np.radians(42.0), np.radians(24.0)
BLUE, RED, GREEN, PURPLE = COLOURS["blue"], COLOURS["red"], COLOURS["green"], "#7B3294"
FAINT = 0.13  # opacity of what a panel starts from
LINE = 1.2  # lines reach a little out of the planes


def concepts() -> dict[str, Subspace]:
    """The subspaces of the figure: two are given by their vectors, the others follow by &, | and ~."""
    boat = Subspace.from_vectors(X[:, [0, 1]], None)
    fishing = Subspace.from_vectors(X[:, [0, 2]], None)
    both, ashore = boat & fishing, ~boat & fishing
    return {
        "man on a boat": boat,
        "is fishing": fishing,
        "man fishing on a boat": both,
        "man fishing not on a boat": ashore,
        "man fishing": both | ashore,
    }


def draw_overview() -> Figure:
    """Four panels, left to right: the concepts, their intersection, negation and composition, linear sum."""
    use_style()
    boat, fishing, both, ashore, either = concepts().values()
    fig = Figure(figsize=(PAGE, 2.3))
    fig.set_layout_engine("none")
    axes = [fig.add_axes((k / 4, 0.16, 0.25, 0.69)) for k in range(4)]
    ghosts = [_Shape(boat, BLUE, "$A$", (-0.8, 0.75, 0), FAINT), _Shape(fishing, RED, "$B$", (-0.8, 0, 0.8), FAINT)]

    given = [_Shape(boat, BLUE, "$A$", (-0.8, 0.75, 0)), _Shape(fishing, RED, "$B$", (-0.8, 0, 0.8))]
    _panel(axes[0], "Concepts", r"subspaces of $\mathbb{R}^3$", given)
    for k in range(3):
        _arrow(axes[0], k)
    _say(axes[0], ("$A$: man on a boat", BLUE), ("$B$: is fishing", RED))

    _panel(axes[1], "Intersection", r"$P_A P_B$", [*ghosts, _Shape(both, GREEN, r"$A\wedge B$", (1.3, -0.3, 0))])
    _say(axes[1], (r"$A\wedge B$: man fishing", GREEN), ("on a boat", GREEN))

    _panel(axes[2], "Negation", r"$(I-P_A)\,P_B$", [*ghosts, _Shape(ashore, PURPLE, r"$\neg A\wedge B$", (0, 0, 1.42))])
    _say(axes[2], (r"$\neg A\wedge B$: man fishing", PURPLE), ("not on a boat", PURPLE))

    parts = [
        _Shape(both, GREEN, r"$A\wedge B$", (1.3, -0.3, 0)),
        _Shape(ashore, PURPLE, r"$\neg A\wedge B$", (0, 0, 1.42)),
    ]
    _panel(axes[3], "Linear sum", r"$P_i+P_j-P_iP_j$", [_Shape(either, RED), *parts])
    _say(axes[3], (r"$(A\wedge B)\vee(\neg A\wedge B)$:", RED), ("man fishing", RED))
    return fig


@dataclass(frozen=True)
class _Shape:
    """What to draw, and what to write where (a point of R³)."""

    subspace: Subspace
    colour: str
    name: str = ""
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    alpha: float = 0.38


def basis_of(subspace: Subspace) -> np.ndarray:
    """Orthonormal basis (3, r) of the range of a computed projector."""
    values, vectors = torch.linalg.eigh(subspace.symmetric().projector)
    return vectors[:, values > 0.5].numpy()


def _outline(subspace: Subspace) -> np.ndarray:
    """The shadow of the cube [−1, 1]³ on the subspace, (corners, 3): two ends of a line, or the corners of a plane in order."""
    basis = basis_of(subspace)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3) @ basis
    if basis.shape[1] == 1:
        return np.stack([basis[:, 0] * corners.min(), basis[:, 0] * corners.max()])
    return corners[ConvexHull(corners).vertices] @ basis.T


def _cut(polygon: np.ndarray, normal: np.ndarray) -> list[np.ndarray]:
    """Split a convex polygon (or a segment) by the plane through 0, so that nearer pieces can be painted over farther ones."""
    side = polygon @ normal
    if (side > -1e-9).all() or (side < 1e-9).all():
        return [polygon]
    pieces: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for p, q, a, b in zip(polygon, np.roll(polygon, -1, axis=0), side, np.roll(side, -1), strict=True):
        for sign, piece in zip((1, -1), pieces, strict=True):
            if sign * a >= 0:
                piece.append(p)
            if a * b < 0:
                piece.append(p + (q - p) * a / (a - b))
    return [np.unique(piece, axis=0) if len(polygon) == 2 else np.stack(piece) for piece in pieces]


def _screen(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parallel projection: positions (…, 2) on the page and nearness (…)."""
    ca, sa, ce, se = np.cos(AZIMUTH), np.sin(AZIMUTH), np.cos(ELEVATION), np.sin(ELEVATION)
    right, up, near = np.array([-sa, ca, 0]), np.array([-se * ca, -se * sa, ce]), np.array([ce * ca, ce * sa, se])
    return np.stack([points @ right, points @ up], axis=-1), points @ near


def _panel(ax: Axes, title: str, formula: str, shapes: list[_Shape]) -> None:
    planes = [shape for shape in shapes if basis_of(shape.subspace).shape[1] == 2]
    normals = [basis_of(~shape.subspace)[:, 0] for shape in planes]
    pieces = []
    for shape in shapes:
        cut = [_outline(shape.subspace) * (LINE if shape not in planes else 1.0)]
        for normal in normals:
            cut = [part for whole in cut for part in _cut(whole, normal)]
        pieces += [(shape, part) for part in cut]
    # Far pieces first; a line lies in its plane and is painted after it.
    pieces.sort(key=lambda piece: _screen(piece[1])[1].mean() + (0.4 if len(piece[1]) == 2 else 0.0))
    for layer, (shape, part) in enumerate(pieces):
        flat, _ = _screen(part)
        if len(part) == 2:
            ax.plot(*flat.T, color=shape.colour, linewidth=2, solid_capstyle="butt", zorder=layer)
            continue
        strength = 0.9 if shape.alpha > FAINT else 0.3
        ax.add_patch(Polygon(flat, facecolor=shape.colour, edgecolor="none", alpha=shape.alpha, zorder=layer))
        ax.add_patch(
            Polygon(
                flat, fill=False, edgecolor=shape.colour, linewidth=0.6, alpha=strength, zorder=layer, joinstyle="round"
            )
        )
    for shape in shapes:
        (x, y), _ = _screen(np.array(shape.at))
        faded = 0.6 if shape.alpha == FAINT else 1.0
        ax.text(x, y, shape.name, color=shape.colour, alpha=faded, ha="center", va="center", zorder=len(pieces) + 1)
    ax.text(0.5, 1.125, title, transform=ax.transAxes, ha="center", va="baseline", fontweight="bold")
    ax.text(0.5, 1.015, formula, transform=ax.transAxes, ha="center", va="baseline", color=GREY, fontsize=7.5)
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.4, 1.52), aspect="equal")
    ax.axis("off")


def _arrow(ax: Axes, k: int) -> None:
    """x_k from the origin, with its name beyond the tip."""
    tip = X[:, k].numpy()
    (start, end, (x, y)), _ = _screen(np.stack([0 * tip, tip, 1.22 * tip]))
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 7,
        "linewidth": 1,
        "color": "black",
        "shrinkA": 0,
        "shrinkB": 0,
    }
    ax.add_patch(FancyArrowPatch(start, end, zorder=50, **style))
    ax.text(x, y, f"$x_{k + 1}$", ha="center", va="center", zorder=51)


def _say(ax: Axes, *lines: tuple[str, str]) -> None:
    """Lines of text below a panel."""
    for row, (text, colour) in enumerate(lines):
        ax.text(
            0.5,
            -0.07 - 0.115 * row,
            text,
            transform=ax.transAxes,
            ha="center",
            va="baseline",
            color=colour,
            fontsize=7.5,
        )
