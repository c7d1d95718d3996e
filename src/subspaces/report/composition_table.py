"""The table beside Table 6: what the paper does not print. Disjunction, double negation, the plain-text control, other operators and sets.

Both texts are made from evaluations; several of one row are seeds, and give a mean and a standard deviation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from subspaces.errors import UserError

Steps = tuple[str, ...]
CAPTION = "Compositional entailment beyond the paper's table: AUC (%)"
CONJUNCTION, NEGATION, DISJUNCTION, DOUBLE_NEGATION = "conjunction", "negation", "disjunction", "double-negation"
OPERATORS, JOINS = ("product", "sandwich-hard", "exact"), ("sum", "span")  # of subspaces, the usual one first
_BOTH = (CONJUNCTION, NEGATION)
_DASH = "—"


def columns(evaluation: Mapping[str, Any], operator: str) -> dict[str, list[Steps]]:
    """Heading → where its values stand in an evaluation, one path for each value of a cell."""
    chosen = evaluation["settings"]["set"]
    here: Steps = ("sets", chosen)
    found: dict[str, list[Steps]] = {"h2 against h3": [(*here, "atomic")]}
    found |= {f"∨ {how}": [(*here, "extras", DISJUNCTION, how)] for how in JOINS}
    found["¬¬"] = [(*here, "extras", DOUBLE_NEGATION)]
    found["text ∧, ∧¬, ∨, ¬¬"] = [(*here, "extras", "control", kind) for kind in (*_BOTH, DISJUNCTION, DOUBLE_NEGATION)]
    for other in OPERATORS:
        if other != operator:
            found[f"{other} ∧, ∧¬"] = [(*here, "operators", other, kind) for kind in _BOTH]
    for other in evaluation["sets"]:
        if other != chosen:
            found[f"{other} set ∧, ∧¬"] = [("sets", other, "operators", "*", kind) for kind in _BOTH]
    return found


def extra_table(
    evaluations: Mapping[str, Sequence[Mapping[str, Any]]], labels: Mapping[str, str] | None = None, key: str = ""
) -> tuple[str, str]:
    """(Markdown, LaTeX) of evaluations by row; `labels` names the rows, in LaTeX."""
    found = [(row, list(some)) for row, some in evaluations.items() if some]
    if not found:
        raise UserError(
            "there are no evaluations to tabulate: run `subspaces composition evaluate` for some models first."
        )
    first = found[0][1][0]
    asked = {one["settings"]["operator"] for _, some in found for one in some} & set(OPERATORS)
    if len(asked) > 1 or len({one["settings"]["set"] for _, some in found for one in some}) > 1:
        raise UserError(
            "these evaluations chose different sets or operators: evaluate all models with the same parameters."
        )
    layout = columns(first, next(iter(asked), OPERATORS[0]))
    cells = {row: [_cell(some, paths) for paths in layout.values()] for row, some in found}
    note = f"Set {first['settings']['set']}, {first['sets'][first['settings']['set']]['premises']} premises"
    note += f"; subspaces compose by {', '.join(asked)} unless the heading says otherwise." if asked else "."
    names = {row: (labels or {}).get(row, row) for row in cells}
    return _markdown(list(layout), cells, names, note, key), _latex(list(layout), cells, names, note, key)


def _cell(some: Sequence[Mapping[str, Any]], paths: Sequence[Steps]) -> list[str]:
    """The values of a cell; one dash if there are none."""
    values = [_value([_at(one, path) for one in some]) for path in paths]
    return values if any(value != _DASH for value in values) else [_DASH]


def _at(evaluation: Mapping[str, Any], path: Steps) -> float | None:
    here: Any = evaluation
    for step in path:
        here = here.get(evaluation["settings"]["operator"] if step == "*" else step) if here is not None else None
    return None if here is None else here["auc"]


def _value(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return _DASH
    return f"{fmean(known):.1f}" + (f" ± {stdev(known):.1f}" if len(known) > 1 else "")


def _markdown(
    heads: list[str], cells: Mapping[str, list[list[str]]], names: Mapping[str, str], note: str, key: str
) -> str:
    lines = [
        f"<!-- key:{key} -->",
        f"**{CAPTION}.** {note}",
        "",
        "| | " + " | ".join(heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    lines += [
        "| " + " | ".join([_plain(names[row]), *(", ".join(cell) for cell in some)]) + " |"
        for row, some in cells.items()
    ]
    return "\n".join([*lines, ""])


def _latex(
    heads: list[str], cells: Mapping[str, list[list[str]]], names: Mapping[str, str], note: str, key: str
) -> str:
    lines = [
        f"% key:{key}",
        "% needs booktabs and graphicx",
        r"\begin{table*}[t]",
        r"  \centering",
        r"  \small",
        rf"  \caption{{{_symbols(CAPTION)}. {_symbols(note)}}}",
        r"  \label{tab:composition-extra}",
        r"  \resizebox{\textwidth}{!}{%",
        rf"  \begin{{tabular}}{{l{'c' * len(heads)}}}",
        r"    \toprule",
        "     & " + " & ".join(map(_symbols, heads)) + r" \\",
        r"    \midrule",
    ]
    lines += [
        "    " + " & ".join([names[row], *(", ".join(map(_symbols, cell)) for cell in some)]) + r" \\"
        for row, some in cells.items()
    ]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}}", r"\end{table*}", ""])


_LATEX = {"∧": r"$\land$", "∨": r"$\lor$", "¬": r"$\neg$", "—": "--", " ± ": r"\,$\pm$\,"}


def _symbols(text: str) -> str:
    text = re.sub(r"([&%#_])", r"\\\1", text)
    for letter, command in _LATEX.items():
        text = text.replace(letter, command)
    return text


def _plain(label: str) -> str:
    """A LaTeX label as ordinary text."""
    return re.sub(r"\^\{(\w+)\}", r"-\1", label).replace("$", "")
