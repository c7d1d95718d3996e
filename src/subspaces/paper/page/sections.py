"""The tables: each as the paper lays it out, every number a button to its provenance, and the provenance of all below."""

from __future__ import annotations

import re
from pathlib import Path

from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.page.facts import Number
from subspaces.paper.page.markdown import markdown
from subspaces.paper.page.markup import Html, tag
from subspaces.paper.page.mathml import label
from subspaces.paper.page.provenance import provenance
from subspaces.paper.page.verdict import sign, style_of
from subspaces.paper.tables import note, plain

_OPENING = re.compile(r"\s*(?:<!--.*?-->\s*)?\*\*Table (\w+)\. ([^*]+?)\.?\*\*[.,;]?\s*", re.DOTALL)


def number_table(name: str, numbers: list[Number], place: str) -> Html:
    """Ours, the paper's value and the difference in every cell; scale, seeds and counts in the note."""
    layout = LAYOUTS[name]
    title, _, rest = layout.caption.partition(": ")
    known = {(one.row, one.column): one for one in numbers}
    top = tag("td", class_="corner", role="cell")
    heads = [tag("th", words, scope="col", role="columnheader", data_column=column) for column, words in layout.columns.items()]
    rows = [_row(row, words, [known.get((row, column)) for column in layout.columns], layout.columns) for row, words in layout.rows.items()]
    caption = tag("caption", f"Table {layout.number}: {layout.caption}", class_="unseen")
    body = tag("tbody", *rows, role="rowgroup")
    table = tag(
        "table", caption, tag("thead", tag("tr", top, *heads, role="row"), role="rowgroup"), body, class_="matrix cards", role="table"
    )
    proofs = [provenance(one, place) for one in numbers]
    return tag(
        "section",
        _heading(layout.number, title),
        tag("p", _sentence(rest), class_="lead") if rest else None,
        tag("p", _sentence(note([one.content for one in numbers])), class_="note"),
        tag("div", table, class_="scroll", role="region", aria_label=f"Table {layout.number}", tabindex=0),
        tag("details", tag("summary", f"Provenance of the {len(numbers)} numbers of Table {layout.number}"), *proofs, class_="proofs"),
        id=f"table-{name}",
        class_="table",
        data_table=name,
        tabindex=-1,
    )


def extra_table(name: str, folder: Path) -> tuple[str, str, Html]:
    """A table that holds no number of the paper, from its Markdown: its number, its title, its section."""
    path = folder / f"results/tables/{name}.md"
    number, title = "", name.replace("_", " ").capitalize()
    if path.is_file():
        source = path.read_text(encoding="utf-8", errors="replace")
        found = _OPENING.match(source)
        if found:
            number, title = found[1], found[2]
            rest = source[found.end() :]
            source = rest[:1].upper() + rest[1:]
        body = markdown(source, top=4)
    else:
        body = tag("p", tag("code", f"results/tables/{name}.md"), " has not been made.", class_="missing")
    return number, title, tag("section", _heading(number, title), body, id=f"table-{name}", class_="table extra", tabindex=-1)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _heading(number: str, title: str) -> Html:
    eyebrow = tag("span", f"Table {number}", tag("span", ": ", class_="unseen"), class_="eyebrow") if number else None
    return tag("h3", eyebrow, title)


def _row(row: str, words: str, numbers: list[Number | None], columns: dict[str, str]) -> Html:
    head = tag("th", label(words), scope="row", role="rowheader")
    cells = []
    for one, (column, name) in zip(numbers, columns.items(), strict=True):
        cells.append(_cell(one, name) if one else tag("td", class_="empty", role="cell", data_column=column))
    return tag("tr", head, *cells, role="row", data_row=row)


def _cell(number: Number, column: str) -> Html:
    """What is seen is what is read: the sign is for the eye, the verdict's name for the ear."""
    change = number.change()
    printed = tag("span", tag("span", "paper ", class_="unseen"), f"[{number.papers()}]", class_="printed")
    small = tag("span", printed, " ", tag("span", change, class_="change") if change else None, class_="beside")
    ours = tag("span", sign(number.verdict), tag("span", number.ours(), class_="value"), class_="ours")
    said = "" if number.value is None else f", {number.verdict}"
    heard = tag("span", f"{said}. Provenance of {number.name}.", class_="unseen")
    button = tag("button", ours, " ", small, heard, type="button", class_=f"number {style_of(number.verdict)}", aria_haspopup="dialog")
    words = f"{number.id} {plain(number.row_label)} {number.name} {number.layout.caption} {number.verdict} {number.reason}"
    return tag(
        "td",
        button,
        role="cell",
        data_label=column,
        data_number=number.id,
        data_verdict=number.verdict,
        data_column=number.column,
        data_words=words.lower(),
    )
