"""One look for all figures, and one way to save them: the same bytes from the same inputs, with the key of those inputs inside."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from subspaces.files import atomic_file

COLUMN = 3.35  # inches: one column of the paper
PAGE = 7.0  # inches: both columns

# Okabe and Ito's palette, told apart with every common kind of colour vision; yellow is left out, too pale for print.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
}
GREY = "#6B6B6B"


def use_style() -> None:
    """Set matplotlib's defaults; every figure calls this first."""
    matplotlib.use("Agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "figure.figsize": (COLUMN, 2.3),
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "savefig.dpi": 200,
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "mathtext.fontset": "dejavusans",
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "legend.fontsize": 7,
            "legend.frameon": False,
            "axes.prop_cycle": plt.cycler(color=list(COLOURS.values())),
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": "#D9D9D9",
            "grid.linewidth": 0.4,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "lines.linewidth": 1.3,
            "lines.markersize": 3.5,
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "svg.hashsalt": "subspaces",
        }
    )


def save(fig: Figure, stem: Path, key: str) -> None:
    """Write `<stem>.pdf` and `<stem>.png`, completely or not at all. Neither holds a date; both hold `key:<key>` as keywords.

    A figure made with pyplot is closed.
    """
    stem = Path(stem)
    keywords = f"key:{key}"
    documents = {
        "pdf": {"CreationDate": None, "Producer": None, "Creator": "subspaces", "Keywords": keywords},
        "png": {"Software": None, "Keywords": keywords},
    }
    for kind, metadata in documents.items():
        with atomic_file(stem.with_name(f"{stem.name}.{kind}")) as handle:
            fig.savefig(handle, format=kind, metadata=metadata)
    plt.close(fig)
