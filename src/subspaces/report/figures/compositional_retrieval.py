"""nDCG@10 of ways to answer composed queries, one panel per form of query."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from subspaces.report.figures.parts import about, note
from subspaces.report.style import COLOURS, GREY, PAGE, use_style

OTHERS = ("product", "text", "vector arithmetic", "BM25, Boolean")


def draw_benchmark(content: dict[str, Any]) -> Figure:
    """The default and the other ways on the reporting half of the queries."""
    use_style()
    rows = [row for row in content["summary"] if row["half"] == "reporting" and row["metric"] == "ndcg"]
    cells = {(row["system"], row["form"]): row for row in rows}
    forms = list(dict.fromkeys(row["form"] for row in rows))
    systems = list(dict.fromkeys([content["chosen"], *(name for name in OTHERS if (name, forms[0]) in cells)]))
    figure, panels = plt.subplots(1, len(forms), figsize=(PAGE, 0.6 + 0.24 * len(systems)), sharey=True, squeeze=False)
    for panel, form in zip(panels[0], forms, strict=True):
        for place, system in enumerate(systems):
            cell = cells[system, form]
            colour = COLOURS["blue"] if system == content["chosen"] else GREY
            error = [[cell["mean"] - cell["low"]], [cell["high"] - cell["mean"]]]
            panel.errorbar(cell["mean"], place, xerr=error, fmt="o", color=colour, markersize=4)
        panel.set(title=form, xlim=(0, 100))
    names = [f"{name} (default)" if name == content["chosen"] else name for name in systems]
    panels[0][0].set_yticks(range(len(systems)), names)
    panels[0][0].invert_yaxis()
    panels[0][len(forms) // 2].set_xlabel("nDCG@10, %")
    note(figure, about(content))
    return figure
