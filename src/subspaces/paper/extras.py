"""Tables beside the paper's own, of what it does not print: each is made from evaluations, by a function that is named after it.

link_prediction_extra   average precision, F1 against reversed edges, and what each row was given
retrieval_extra         every kind of index with its recall and its size, which Table 8 leaves out
encoding_overhead       what the projection head costs, as a ratio, beside the ratio of the paper's times
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from subspaces.files import read_json, write_text
from subspaces.paper import registry
from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.tables import escape, plain

Evaluation = Mapping[str, Any]


@dataclass(frozen=True)
class Extra:
    """`rows` begin with a LaTeX label; the other cells are plain text."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str

    def markdown(self, key: str) -> str:
        lines = [f"<!-- key:{key} -->", f"**{self.caption}.** {self.note}", ""]
        lines += ["| | " + " | ".join(self.heads) + " |", "|---" * (len(self.heads) + 1) + "|"]
        return "\n".join([*lines, *("| " + " | ".join([plain(row[0]), *row[1:]]) + " |" for row in self.rows), ""])

    def latex(self, key: str, name: str) -> str:
        lines = [
            f"% key:{key}",
            "% needs booktabs",
            r"\begin{table*}[t]",
            r"  \centering",
            r"  \small",
            rf"  \caption{{{escape(self.caption)}. {escape(self.note)}}}",
            rf"  \label{{tab:{name.replace('_', '-')}}}",
            rf"  \begin{{tabular}}{{l{'c' * len(self.heads)}}}",
            r"    \toprule",
            "     & " + " & ".join(map(escape, self.heads)) + r" \\",
            r"    \midrule",
        ]
        lines += ["    " + " & ".join([row[0], *map(escape, row[1:])]) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table*}", ""])


def write_extra(name: str, evaluations: Sequence[Path], tex: Path, key: str) -> None:
    """Both forms of one of these tables."""
    table = EXTRAS[name]([read_json(path) for path in evaluations])
    write_text(tex.with_suffix(".md"), table.markdown(key))
    write_text(tex, table.latex(key, name))


def link_prediction_extra(evaluations: Sequence[Evaluation]) -> Extra:
    coverages = sorted({one["coverage"] for one in evaluations})
    rows = []
    for row, label in LAYOUTS["link_prediction"].rows.items():
        found = [[one for one in evaluations if (one["row"], one["coverage"]) == (row, coverage)] for coverage in coverages]
        if any(found):
            rows.append([label, *(" / ".join(_mean(some, value) for some in found) for value in _LINK.values())])
    covered = " / ".join(map(str, coverages))
    note = (
        f"At {covered} % of the non-basic edges, test. Reversed: the test edges turned round are the negatives, with the threshold of "
        "Table 4. Minutes: of training, on the machine and beside the work of that day."
    )
    return Extra("WordNet noun link prediction beyond the paper's table", list(_LINK), rows, note)


_LINK: dict[str, Callable[[Evaluation], float]] = {
    "AUPRC (%)": lambda one: one["metrics"]["auprc"],
    "F1 reversed (%)": lambda one: one["metrics"]["f1_reversed"],
    "AUPRC reversed (%)": lambda one: one["metrics"]["auprc_reversed"],
    "epochs": lambda one: one["settings"]["training"]["epochs"],
    "minutes": lambda one: one["timing"]["train_seconds"] / 60,
}


def _mean(some: Sequence[Evaluation], value: Callable[[Evaluation], float]) -> str:
    if not some:
        return "—"
    values = [value(one) for one in some]
    return f"{values[0]}" if isinstance(values[0], int) else f"{fmean(values):.1f}"


_KINDS = {
    "poincare-10": r"$\mathcal{P}^{10}$, brute force as one product",
    "subspace-64": "SE$^{64}$, all entries scored",
    "exact-fp32": "SE$^{128}$ exact, fp32",
    "exact-fp16": "SE$^{128}$ exact, fp16",
    "ivfpq": "SE$^{128}$ IVFPQ, the paper's",
    "reduced": "SE$^{128}$ reduced",
    "compact": "SE$^{128}$ compact",
}


def retrieval_extra(evaluations: Sequence[Evaluation]) -> Extra:
    (latency,) = evaluations
    rows, times = [], latency["rows"]
    for kind, label in _KINDS.items():
        if (one := times.get(kind)) is None:
            continue
        recall = [f"{one['recall'][form]:.3f}" for form in ("plain", "conjunction", "negation")] if one["recall"] else ["1"] * 3
        share = f"{one['latency_ms'] / times['poincare-10']['latency_ms']:.1f}×"
        rows.append([label, f"{one['latency_ms']:.2f}", share, *recall, f"{one['bytes_per_document']:,.0f}"])
    first = next(iter(times.values()))
    note = (
        f"{latency['documents']:,} captions, captions as queries in batches of {first['batch']}, top {first['top']}, "
        f"{first['threads']} thread{'s' * (first['threads'] > 1)}, all rows in one run; recall against exact search. "
        f"Half-vectors take {latency['half_over_full']:.2f} of the time of all entries."
    )
    heads = ["ms per query", "of Poincaré's", "recall@10 plain", "conjunction", "negation", "bytes per caption"]
    return Extra("Retrieval beyond the paper's Table 8: every index with its recall and its size", heads, rows, note)


def encoding_overhead(evaluations: Sequence[Evaluation]) -> Extra:
    (times,) = evaluations
    bare, head = LAYOUTS["encoding_time"].rows
    columns = LAYOUTS["encoding_time"].columns
    paper = {(row, column): registry.number(f"encoding_time/{row}/{column}").value for row in (bare, head) for column in columns}
    ours = {(row, column): times["metrics"][row][column] for row in (bare, head) for column in columns if column in times["metrics"][row]}
    rows = [
        [label, *(f"{found[head, column] / found[bare, column]:.2f}×" if (head, column) in found else "—" for column in columns)]
        for label, found in (("ours", ours), ("the paper's", paper))
    ]
    heads = [f"batch {column.removeprefix('batch-')}" for column in columns]
    return Extra("Encoding time with the projection head over without it", heads, rows, f"Ours: {times['extent']['text']}.")


EXTRAS: dict[str, Callable[[Sequence[Evaluation]], Extra]] = {
    "link_prediction_extra": link_prediction_extra,
    "retrieval_extra": retrieval_extra,
    "encoding_overhead": encoding_overhead,
}
