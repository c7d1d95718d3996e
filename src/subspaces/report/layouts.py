"""The tables of the paper: what stands in their rows and columns. Printed values are in the registry only.

A column is a pair of a metric and a condition, so nothing reads a meaning out of a column's name. Rows come from the registry: a new row
of numbers.csv is a new row of its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from subspaces.report import registry
from subspaces.report.labels import EFFICIENCY_LABELS, NLI_LABELS, geometry_label


@dataclass(frozen=True)
class Column:
    """Where the values of a column stand in an evaluation, and under which condition the models were trained or judged."""

    id: str  # as in the registry of printed numbers
    title: str
    metric: str  # key of `metrics` in an evaluation
    condition: str = ""  # nouns, 10 (per cent), 2way, ...; empty: the experiment has none
    digits: int = 2


@dataclass(frozen=True)
class Layout:
    name: str
    number: str  # of the table in the paper
    caption: str
    rows: Mapping[str, str]  # row id -> LaTeX label
    cells: tuple[Column, ...]

    @property
    def columns(self) -> dict[str, str]:
        """Column id -> title."""
        return {column.id: column.title for column in self.cells}

    def column(self, identifier: str) -> Column:
        return next(column for column in self.cells if column.id == identifier)

    def decimals(self, identifier: str) -> int:
        return self.column(identifier).digits


def _geometry_rows(table: str) -> dict[str, str]:
    return {row: geometry_label(row) for row in registry.rows(table)}


def _text_rows(table: str) -> dict[str, str]:
    return {row: NLI_LABELS.get(row, row) for row in registry.rows(table)}


_ACCURACY = tuple(Column(f"accuracy-{ways}way", f"{ways}-way ↑", "accuracy", f"{ways}way") for ways in (2, 3))

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout(
            "reconstruction",
            "2",
            "WordNet reconstruction: mean average precision (%), mean rank, Spearman's ρ (×100) of generality with "
            "taxonomy rank",
            _geometry_rows("reconstruction"),
            tuple(
                Column(f"{pos}-{metric}", f"{pos.capitalize()} {title}", metric, pos, digits)
                for pos in ("nouns", "verbs")
                for metric, title, digits in (("map", "mAP ↑", 1), ("mr", "MR ↓", 2), ("rho", "ρ ↑", 1))
            ),
        ),
        Layout(
            "hyperlex",
            "3",
            "HyperLex nouns: Spearman's correlation with human scores",
            _geometry_rows("hyperlex"),
            (Column("spearman", "Spearman ↑", "spearman", digits=3),),
        ),
        Layout(
            "link_prediction",
            "4",
            "WordNet noun link prediction: F1 (%) by share of non-basic edges seen in training",
            _geometry_rows("link_prediction"),
            tuple(Column(f"f1-{share}", f"{share} % ↑", "f1", str(share), 1) for share in (0, 10, 25, 50)),
        ),
        Layout("snli", "5", "SNLI test accuracy (%)", _text_rows("snli"), _ACCURACY),
        Layout(
            "composition",
            "6",
            "Compositional entailment: AUC (%)",
            _text_rows("composition"),
            (
                Column("auc-conjunction", "Conjunction ↑", "auc-conjunction"),
                Column("auc-negation", "Negation ↑", "auc-negation"),
            ),
        ),
        Layout(
            "encoding_time",
            "7",
            "Encoding time (ms per query) by batch size",
            {row: EFFICIENCY_LABELS.get(row, row) for row in registry.rows("encoding_time")},
            tuple(Column(f"batch-{size}", f"{size} ↓", f"batch-{size}") for size in (1, 4, 16, 64, 128)),
        ),
        Layout(
            "retrieval_latency",
            "8",
            "Top-10 retrieval latency on Flickr30k captions (ms per query)",
            {row: EFFICIENCY_LABELS.get(row, row) for row in registry.rows("retrieval_latency")},
            (Column("latency", "Latency ↓", "latency", digits=1),),
        ),
        Layout(
            "lambda_sensitivity",
            "9",
            "SNLI accuracy (%) by λ",
            {row: row.replace("lambda-", r"$\lambda=") + "$" for row in registry.rows("lambda_sensitivity")},
            _ACCURACY,
        ),
    )
}
