"""The last screen of a run: each table with our numbers, the paper's and the verdict, on a terminal or as plain text."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from subspaces.files import read_json
from subspaces.report import registry
from subspaces.report.layouts import LAYOUTS, Column
from subspaces.report.numbers import NUMBERS, frame, frame_of, records
from subspaces.report.tables import amount, committed, note, plain

_STYLES = {"reproduced": "cyan", "better": "green", "short": "yellow", "other scale": "magenta", "not run": "dim"}
TRY_NEXT = (
    'subspaces search "a child playing outdoors & ~near a road" --top 3',
    'subspaces entail "A dog runs on grass." "An animal is outside."',
    r"printf 'dog\tmammal\ncat\tmammal\nmammal\tanimal\n' | subspaces hierarchy fit - --out animals"
    " && subspaces hierarchy query animals dog",
)
_CLAIMS = {"holds": "green", "holds in part": "yellow", "does not hold": "red", "cannot be told here": "dim"}


def summarise(folder: Path, seconds: float | None = None, colour: bool | None = None) -> str:
    """The summary as text, coloured when `colour` is true; by default when the output is a terminal."""
    buffer = io.StringIO()
    shown = sys.stdout.isatty() if colour is None else colour
    # wide enough for the widest table, so that a file or a log never has a wrapped row
    console = Console(file=buffer, force_terminal=shown, no_color=not shown, width=240, highlight=False)
    verdicts: Counter[str] = Counter()
    waiting: list[str] = []
    for table in registry.tables():
        numbers = _numbers(folder, table)
        verdicts.update(number["verdict"] for number in numbers)
        if any(number["value"] is not None for number in numbers):
            layout = LAYOUTS[table]
            console.print(f"\nTable {layout.number}  {layout.caption}", style="bold", markup=False)
            console.print(f"  {note(frame_of(table, folder))}", markup=False)
            console.print(_table(table, numbers))
        else:
            waiting.append(f"  Table {LAYOUTS[table].number}  {table}: {len(numbers)} numbers, not run")
    bounds = folder / "results/evaluations/soft_projectors.json"
    if bounds.exists():
        rows = [row for row in read_json(bounds)["rows"] if row["expected_to_hold"]]
        console.print(
            f"Table 1  soft_projectors: {sum(row['holds'] for row in rows)} of {len(rows)} bounds hold numerically"
        )
    _show_claims(console, folder)
    if waiting:
        console.print("\nTables without results:")
        console.print("\n".join(waiting))
    console.print("\nNumbers: " + ", ".join(f"{count} {name}" for name, count in verdicts.most_common()))
    page = folder / "results/report.html"
    if page.exists():
        console.print(f"Page:    {page}", soft_wrap=True)
    parts = ("results/tables", "results/numbers", "figures")
    console.print("Files:   " + ", ".join(str(folder / part) for part in parts), soft_wrap=True)
    if seconds is not None:
        console.print(f"Time:    {int(seconds // 60)} min {int(seconds % 60)} s")
        console.print("\nTo try next (after `source .venv/bin/activate`):")
        console.print("\n".join(f"  {command}" for command in TRY_NEXT), markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def _show_claims(console: Console, folder: Path) -> None:
    """Verdict and evidence of every claim, where all numbers are there."""
    from subspaces.report.claims import judge

    if not all((folder / NUMBERS.format(table=table)).exists() for table in registry.tables()):
        return
    console.print("\nDoes the paper hold?", style="bold")
    for claim in judge(frame(folder), folder):
        console.print(Text.assemble((f"{claim.verdict:<20}", _CLAIMS[claim.verdict]), claim.title), soft_wrap=True)
        console.print(Text(f"{'':<20}{claim.evidence}", style="dim"), soft_wrap=True)


def _numbers(folder: Path, table: str) -> list[dict[str, Any]]:
    """The numbers of a table, none where it was not built."""
    if not (folder / NUMBERS.format(table=table)).exists():
        return []
    return records(frame_of(table, folder), table)


def _table(name: str, numbers: list[dict[str, Any]]) -> Table:
    layout = LAYOUTS[name]
    cells = {(number["row"], number["column"]): number for number in numbers}
    table = Table("", *(column.title for column in layout.cells), box=None)
    table.caption, table.caption_justify = Text("ours [paper's] verdict", style="dim"), "left"
    for row, label in layout.rows.items():
        table.add_row(plain(label), *(_cell(cells.get((row, column.id)), column) for column in layout.cells))
    return table


def _cell(number: dict[str, Any] | None, column: Column) -> Text:
    if number is None:
        return Text("")
    return Text(_pair(number, column), style=_STYLES[number["verdict"]], no_wrap=True)


def _pair(number: dict[str, Any], column: Column) -> str:
    """Ours, the paper's, verdict."""
    paper = f"[{number['paper']:.{column.digits}f}]"
    if number["value"] is not None:
        return f"{amount(number['value'], number['sd'], column.digits, ' ± ')} {paper} {number['verdict']}"
    if own := committed(number, column, " ± "):
        return f"({own}) {paper} {number['committed']['verdict']}"
    return f"— {paper} not run"


# what the README shows, at most eight numbers: subspaces and the strongest rival of a table; the tables have every row
_HEADLINE = (
    "reconstruction/subspace-64/nouns-map",
    "reconstruction/euclidean-128/nouns-map",
    "hyperlex/subspace-128/spearman",
    "link_prediction/subspace-64/f1-10",
    "link_prediction/umbral-10/f1-10",
    "snli/minilm-subspace-128/accuracy-2way",
    "snli/minilm-mlp-diff/accuracy-2way",
    "composition/minilm-subspace-128/auc-negation",
)


def headline(folder: Path) -> str:
    """The README's table: one number per line, ours beside the paper's, with verdict, scale and seeds."""
    lines = ["| Table | Row | Column | Ours | Paper | Verdict | Scale | Seeds |", "|---" * 8 + "|"]
    for identifier in _HEADLINE:
        paper = registry.number(identifier)
        layout = LAYOUTS[paper.table]
        column = layout.column(paper.column)
        number = next((entry for entry in _numbers(folder, paper.table) if entry["id"] == identifier), None)
        if number is None or number["value"] is None:
            ours, rest = "—", ["not run", "—", "—"]
        else:
            ours = f"**{amount(number['value'], number['sd'], column.digits, ' ± ')}**"
            rest = [number["verdict"], number["scale"], str(number["seeds"])]
        printed = amount(paper.value, paper.sd, column.digits, " ± ")
        title = f"{layout.number}: {paper.table.replace('_', ' ')}"
        cells = [title, plain(layout.rows[paper.row]), column.title, ours, printed, *rest]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fill_headline(readme: str, block: str) -> str:
    """`readme` with the part between its two marks replaced."""
    before, rest = readme.split("<!-- headline -->", 1)
    _, after = rest.split("<!-- end -->", 1)
    return f"{before}<!-- headline -->\n{block}\n<!-- end -->{after}"
