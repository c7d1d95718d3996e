"""The last screen of a run: each table with its numbers beside the paper's, in plain text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from subspaces.files import read_json
from subspaces.paper import registry
from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.tables import amount, note, plain


def summarise(folder: Path, seconds: float | None = None) -> str:
    """Text for a terminal; tables without any measured number take one line each."""
    lines: list[str] = []
    verdicts: Counter[str] = Counter()
    waiting: list[str] = []
    for table in registry.tables():
        found = [read_json(path) for one in registry.of_table(table) if (path := folder / f"results/numbers/{one.id}.json").exists()]
        verdicts.update(one["verdict"] for one in found)
        if not any(one["value"] is not None for one in found):
            waiting.append(f"  Table {LAYOUTS[table].number}  {table}: {len(found)} numbers, not run yet")
            continue
        lines += ["", *_block(table, found)]
    bounds = folder / "results/evaluations/soft_projectors.json"
    if bounds.exists():
        rows = read_json(bounds)["rows"]
        holding = sum(row["holds"] for row in rows if row["expected_to_hold"])
        expected = sum(row["expected_to_hold"] for row in rows)
        lines += ["", f"Table 1  soft_projectors: {holding} of {expected} bounds hold numerically"]
    if waiting:
        lines += ["", "Tables whose experiments are still to come:", *waiting]
    lines += ["", "Numbers: " + ", ".join(f"{count} {name}" for name, count in verdicts.most_common())]
    lines.append("Files:   " + ", ".join(str(folder / part) for part in ("results/tables", "results/numbers", "figures")))
    if seconds is not None:
        lines.append(f"Time:    {int(seconds // 60)} min {int(seconds % 60)} s")
    return "\n".join(lines)


def _block(table: str, numbers: list[dict]) -> list[str]:
    layout = LAYOUTS[table]
    cells = {(one["row"], one["column"]): one for one in numbers}
    width = max(len(plain(label)) for label in layout.rows.values())
    lines = [f"Table {layout.number}  {layout.caption}", f"  {note(numbers)}"]
    head = [plain(label) for label in layout.columns.values()]
    shown = [["", *head]]
    for row, label in layout.rows.items():
        texts = []
        for column in layout.columns:
            one = cells.get((row, column))
            digits = layout.decimals(column)
            if one is None:
                texts.append("")
            else:
                ours = "—" if one["value"] is None else amount(one["value"], one["sd"], digits, "±")
                texts.append(f"{ours} [{one['paper']['value']:.{digits}f}] {one['verdict']}")
        shown.append([plain(label).ljust(width), *texts])
    widths = [max(len(line[place]) for line in shown) for place in range(len(shown[0]))]
    lines += ["  " + "  ".join(text.ljust(size) for text, size in zip(line, widths, strict=True)).rstrip() for line in shown]
    lines.append("  ours [paper's] verdict")
    return lines


# what the README shows: subspaces and their strongest rivals; the tables have every row
_SHOWN = {
    "reconstruction": ("euclidean-128", "subspace-64", "subspace-128"),
    "link_prediction": ("cones-10", "umbral-10", "subspace-64", "subspace-128"),
    "hyperlex": ("euclidean-5", "poincare-5", "gaussian-50", "subspace-128"),
    "snli": ("minilm-mlp-diff", "minilm-subspace-64", "minilm-subspace-128"),
    "composition": ("minilm-mlp-diff", "minilm-subspace-64", "minilm-subspace-128"),
}


def headline(folder: Path) -> str:
    """The README's tables, ours beside the paper's."""
    return "\n\n".join(_headline(folder, table, rows) for table, rows in _SHOWN.items())


def _headline(folder: Path, table: str, rows: tuple[str, ...]) -> str:
    layout = LAYOUTS[table]
    lines = [
        f"| Table {layout.number}: {table.replace('_', ' ')} | " + " | ".join(plain(label) for label in layout.columns.values()) + " |"
    ]
    lines.append("|---" * (1 + len(layout.columns)) + "|")
    for row in rows:
        texts = []
        for column in layout.columns:
            path = folder / f"results/numbers/{table}/{row}/{column}.json"
            texts.append(_pair(read_json(path), layout.decimals(column)) if path.exists() else "")
        lines.append(f"| {plain(layout.rows[row])} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _pair(one: dict, digits: int) -> str:
    ours = "not run" if one["value"] is None else f"**{amount(one['value'], one['sd'], digits, ' ± ')}**"
    return f"{ours} [{one['paper']['value']:.{digits}f}] {one['verdict']}"


def fill_headline(readme: str, block: str) -> str:
    """`readme` with the part between its two marks replaced."""
    before, rest = readme.split("<!-- headline -->", 1)
    _, after = rest.split("<!-- end -->", 1)
    return f"{before}<!-- headline -->\n{block}\n<!-- end -->{after}"
