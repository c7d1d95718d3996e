"""A table of the paper as Markdown and LaTeX: our numbers beside the printed ones, with verdicts. Rendered from the data frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subspaces.report.layouts import Column, Layout

if TYPE_CHECKING:
    import pandas as pd

_MARKS = {"reproduced": "=", "better": "+", "short": "−", "other scale": "~", "not run": ""}
_LEGEND = "= reproduced, + better, − short, ~ other scale (not comparable), — not run"
_PLAIN = {r"\mathbb{R}": "R", r"\mathcal{P}": "P", r"\mathcal{H}": "H", r"\lambda": "λ"}


def amount(value: float, sd: float | None, digits: int, between: str) -> str:
    return f"{value:.{digits}f}" + (f"{between}{sd:.{digits}f}" if _given(sd) else "")


def _given(value: float | None) -> bool:
    return value is not None and value == value  # a missing value of a data frame is NaN


def note(numbers: pd.DataFrame) -> str:
    """One sentence: scale, verdicts, seeds."""
    verdicts = numbers["verdict"].value_counts(sort=False)
    run = numbers[numbers["verdict"] != "not run"]
    parts = [
        f"scale {numbers['scale'].iloc[0]}",
        ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()),
    ]
    if len(run):
        counts = sorted(set(run["seeds"]))
        parts.append("seeds per number " + " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))))
    if numbers["committed"].notna().any():
        scales = {own["scale"] for own in numbers["committed"] if isinstance(own, dict)}
        parts.append(
            f"in parentheses: not run here, the project's committed value at {' or '.join(sorted(scales))} scale"
        )
    if numbers["sample"].any():
        parts.append("made from a sample, not from the real data")
    return "; ".join(parts)


def plain(label: str) -> str:
    """A LaTeX label as ordinary text."""
    for command, letter in _PLAIN.items():
        label = label.replace(command, letter)
    return re.sub(r"\^\{(\w+)\}", r"^\1", label).replace("$", "").replace("^", "-")


def _rows(table: Layout, numbers: pd.DataFrame, cell) -> list[tuple[str, list[str]]]:
    """(label, cells) of every row that has a number."""
    entries = {(number["row"], number["column"]): number for number in numbers.to_dict("records")}
    rows = []
    for row, label in table.rows.items():
        cells = [cell(entries.get((row, column.id)), column) for column in table.cells]
        if any(cells):
            rows.append((label, cells))
    return rows


Extra = Sequence[
    tuple[str, Mapping[str, float | None]]
]  # rows that the paper does not have: label, and value by column id


def markdown(table: Layout, numbers: pd.DataFrame, key: str, extra: Extra = ()) -> str:
    head = ["", *(column.title for column in table.cells)]
    lines = [
        f"<!-- key:{key} -->",
        f"**Table {table.number}. {table.caption}.** Ours, then the paper's in brackets; {_LEGEND}.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for label, cells in _rows(table, numbers, _markdown_cell):
        lines.append("| " + " | ".join([plain(label), *cells]) + " |")
    for label, values in extra:
        cells = [_own(values.get(column.id), column) for column in table.cells]
        lines.append("| " + " | ".join([f"*{plain(label)}*", *cells]) + " |")
    return "\n".join(
        [*lines, "", f"{note(numbers)}." + (" Rows in italics are not in the paper." if extra else ""), ""]
    )


def _own(value: float | None, column: Column) -> str:
    return "" if value is None else f"{value:.{column.digits}f}"


def _markdown_cell(number: dict[str, Any] | None, column: Column) -> str:
    if number is None:
        return ""
    paper = amount(number["paper"], number["paper_sd"], column.digits, " ± ")
    if not _given(number["value"]):
        return f"{_markdown_committed(number, column) or '—'} [{paper}]"
    return f"{amount(number['value'], number['sd'], column.digits, ' ± ')} {_MARKS[number['verdict']]} [{paper}]"


def committed(number: dict[str, Any], column: Column, between: str) -> str:
    """The project's own value of a number that is not run here; empty: there is none."""
    own = number.get("committed")
    return amount(own["value"], own["sd"], column.digits, between) if isinstance(own, dict) else ""


def _markdown_committed(number: dict[str, Any], column: Column) -> str:
    if value := committed(number, column, " ± "):
        value += f" {number['committed']['scale']} {_MARKS[number['committed']['verdict']]}"
        return f"({value.strip()})"
    return ""


def latex(table: Layout, numbers: pd.DataFrame, key: str, extra: Extra = ()) -> str:
    heads = [escape(column.title).replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$") for column in table.cells]
    lines = [
        f"% key:{key}",
        "% needs booktabs; the paper's values stand in brackets",
        r"\begin{table}[t]",
        r"  \centering",
        r"  \small",
        rf"  \caption{{{escape(table.caption)}. Paper's values in brackets. {escape(note(numbers)).capitalize()}.}}",
        rf"  \label{{tab:{table.name}}}",
        rf"  \begin{{tabular}}{{l{'c' * len(heads)}}}",
        r"    \toprule",
        "     & " + " & ".join(heads) + r" \\",
        r"    \midrule",
    ]
    for label, cells in _rows(table, numbers, _latex_cell):
        lines.append("    " + " & ".join([label, *cells]) + r" \\")
    if extra:
        lines.append(r"    \midrule")
    for label, values in extra:
        cells = [_own(values.get(column.id), column) for column in table.cells]
        lines.append("    " + " & ".join([rf"\emph{{{label}}}", *cells]) + r" \\")
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""])


def _latex_cell(number: dict[str, Any] | None, column: Column) -> str:
    if number is None:
        return ""
    paper = amount(number["paper"], number["paper_sd"], column.digits, r"\,\pm\,")
    value = committed(number, column, r"\,\pm\,")
    ours = f"(${value}$)" if value else "--"
    if _given(number["value"]):
        ours = "$" + amount(number["value"], number["sd"], column.digits, r"\,\pm\,") + "$"
    return rf"{ours} {{\scriptsize[${paper}$]}}"


def escape(text: str) -> str:
    """Ordinary text as LaTeX."""
    text = re.sub(r"([&%#_])", r"\\\1", text)
    return text.replace("ρ", r"$\rho$").replace("λ", r"$\lambda$").replace("×", r"$\times$").replace("—", "--")
