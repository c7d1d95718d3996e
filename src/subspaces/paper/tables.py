"""A table is a view of number files: ours beside the paper's, with what each verdict is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from subspaces.files import read_json, write_text
from subspaces.paper.layouts import LAYOUTS, Layout

_MARKS = {"reproduced": "=", "better": "+", "short": "−", "other scale": "~", "not run": ""}
_LEGEND = "= reproduced, + better, − short, ~ other scale (not comparable), — not run"
_PLAIN = {r"\mathbb{R}": "R", r"\mathcal{P}": "P", r"\mathcal{H}": "H", r"\lambda": "λ"}


def write_table(name: str, numbers: Iterable[Path], tex: Path, md: Path, key: str) -> None:
    """Both forms of one table from its number files."""
    found = [read_json(path) for path in numbers]
    cells = {(one["row"], one["column"]): one for one in found}
    layout = LAYOUTS[name]
    write_text(md, _markdown(name, layout, cells, found, key))
    write_text(tex, _latex(name, layout, cells, found, key))


def amount(value: float, sd: float | None, digits: int, between: str) -> str:
    return f"{value:.{digits}f}" + (f"{between}{sd:.{digits}f}" if sd is not None else "")


def note(numbers: list[dict[str, Any]]) -> str:
    """One sentence: scale, seeds, verdicts, and whether a sample stood in."""
    verdicts = Counter(one["verdict"] for one in numbers)
    run = [one for one in numbers if one["verdict"] != "not run"]
    parts = [f"scale {numbers[0]['scale']}", ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())]
    if run:
        seeds = sorted({one["n"] for one in run})
        parts.append("seeds per number " + " to ".join(str(count) for count in dict.fromkeys((seeds[0], seeds[-1]))))
    if any(one["sample"] for one in numbers):
        parts.append("made from a sample, not from the real data")
    return "; ".join(parts)


def plain(label: str) -> str:
    """A LaTeX label as ordinary text."""
    for command, letter in _PLAIN.items():
        label = label.replace(command, letter)
    return re.sub(r"\^\{(\w+)\}", r"^\1", label).replace("$", "").replace("^", "-")


def _markdown(name: str, layout: Layout, cells: dict, numbers: list[dict[str, Any]], key: str) -> str:
    head = ["", *layout.columns.values()]
    lines = [
        f"<!-- key:{key} -->",
        f"**Table {layout.number}. {layout.caption}.** Ours, then the paper's in brackets; {_LEGEND}.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row, label in layout.rows.items():
        texts = [_markdown_cell(cells.get((row, column)), layout.decimals(column)) for column in layout.columns]
        if any(texts):
            lines.append("| " + " | ".join([plain(label), *texts]) + " |")
    return "\n".join([*lines, "", f"{note(numbers)}.", ""])


def _markdown_cell(one: dict[str, Any] | None, digits: int) -> str:
    if one is None:
        return ""
    paper = amount(one["paper"]["value"], one["paper"]["sd"], digits, " ± ")
    ours = "—" if one["value"] is None else f"{amount(one['value'], one['sd'], digits, ' ± ')} {_MARKS[one['verdict']]}"
    return f"{ours} [{paper}]"


def _latex(name: str, layout: Layout, cells: dict, numbers: list[dict[str, Any]], key: str) -> str:
    heads = [escape(label).replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$") for label in layout.columns.values()]
    lines = [
        f"% key:{key}",
        "% needs booktabs; the paper's values stand in brackets",
        r"\begin{table}[t]",
        r"  \centering",
        r"  \small",
        rf"  \caption{{{escape(layout.caption)}. Paper's values in brackets. {escape(note(numbers)).capitalize()}.}}",
        rf"  \label{{tab:{name}}}",
        rf"  \begin{{tabular}}{{l{'c' * len(heads)}}}",
        r"    \toprule",
        "     & " + " & ".join(heads) + r" \\",
        r"    \midrule",
    ]
    for row, label in layout.rows.items():
        texts = [_latex_cell(cells.get((row, column)), layout.decimals(column)) for column in layout.columns]
        if any(texts):
            lines.append("    " + " & ".join([label, *texts]) + r" \\")
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""])


def _latex_cell(one: dict[str, Any] | None, digits: int) -> str:
    if one is None:
        return ""
    paper = amount(one["paper"]["value"], one["paper"]["sd"], digits, r"\,\pm\,")
    ours = "--" if one["value"] is None else "$" + amount(one["value"], one["sd"], digits, r"\,\pm\,") + "$"
    return rf"{ours} {{\scriptsize[${paper}$]}}"


def escape(text: str) -> str:
    """Ordinary text as LaTeX."""
    text = re.sub(r"([&%#_])", r"\\\1", text)
    return text.replace("ρ", r"$\rho$").replace("λ", r"$\lambda$").replace("×", r"$\times$").replace("—", "--")
