"""The whole page from the files of a working folder. The same files give the same bytes: no time, no machine of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from subspaces.files import write_text
from subspaces.paper import registry
from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.page.assets import asset, policy
from subspaces.paper.page.citation import citation
from subspaces.paper.page.facts import Number, load_numbers, short_title
from subspaces.paper.page.figures import figures as figures_of
from subspaces.paper.page.headline import PAPER, headline
from subspaces.paper.page.markdown import inline, markdown, split_title
from subspaces.paper.page.markup import Html, join, tag, text
from subspaces.paper.page.sections import extra_table, number_table
from subspaces.paper.page.verdict import sign, style_of
from subspaces.paper.verdicts import VERDICTS


def build_page(
    folder: Path,
    out: Path,
    key: str,
    deviations: Path | None = None,
    *,
    evidence: Mapping[str, Sequence[str]],
    figures: Sequence[str] = (),
    extra_tables: Sequence[str] = ("soft_projectors",),
    captions: Path | None = None,
    citation_file: Path | None = None,
    place: str = "",
) -> None:
    """Write the page of the results in `folder` to `out`.

    `evidence` gives the evaluation files of each number, `figures` and `extra_tables` what else there should be: names that have no file
    are said to be missing. `place` is the working folder as seen from the project's, for the commands; empty for the project's own.
    """
    numbers = load_numbers(folder, evidence)
    tables = _tables(numbers, folder, extra_tables, place)
    title, told = _deviations(deviations)
    style, script = asset("page.css"), asset("page.js")
    page = Template(asset("page.html")).substitute(
        policy=text(policy(style, script)),
        key=text(key),
        paper=text(PAPER),
        style=style,
        script=script,
        contents=_contents(tables),
        headline=headline(numbers),
        filters=_filters(numbers),
        total=len(numbers),
        tables=join((section for _, _, section in tables), "\n"),
        figures=figures_of(figures, folder, captions),
        deviations_title=title,
        deviations=told,
        citation=citation(citation_file),
    )
    write_text(out, page)


def _tables(numbers: list[Number], folder: Path, extra: Sequence[str], place: str) -> list[tuple[str, str, Html]]:
    """(number in the paper, entry of the contents, section) of every table, in the paper's order."""
    found = []
    for name in registry.tables():
        layout = LAYOUTS[name]
        section = number_table(name, [one for one in numbers if one.table == name], place)
        found.append((layout.number, _entry(name, layout.number, short_title(layout)), section))
    for name in extra:
        number, title, section = extra_table(name, folder)
        found.append((number, _entry(name, number, title), section))
    return sorted(found, key=lambda one: (not one[0].isdigit(), int(one[0]) if one[0].isdigit() else 0))


def _entry(name: str, number: str, title: str) -> Html:
    return tag("li", tag("a", tag("span", number, class_="place"), " ", title, href=f"#table-{name}"))


def _contents(tables: list[tuple[str, str, Html]]) -> Html:
    return tag("ol", *(entry for _, entry, _ in tables))


def _filters(numbers: list[Number]) -> Html:
    """Buttons for verdicts (none pressed: all), one list of tables, one field for words."""
    counts = Counter(one.verdict for one in numbers)
    buttons = [
        tag(
            "button",
            sign(name),
            f"{name} ",
            tag("span", counts[name], class_="count"),
            type="button",
            class_=f"toggle {style_of(name)}",
            data_verdict=name,
            aria_pressed="false",
        )
        for name in VERDICTS
    ]
    options = [tag("option", f"Table {LAYOUTS[name].number}: {name.replace('_', ' ')}", value=name) for name in registry.tables()]
    return join(
        [
            tag("div", *buttons, role="group", aria_label="Verdict", class_="toggles"),
            tag("label", tag("span", "Table"), tag("select", tag("option", "All tables", value=""), *options, id="filter-table")),
            tag("label", tag("span", "Search"), tag("input", id="filter-words", type="search", autocomplete="off", spellcheck="false")),
            tag("button", "Clear", type="button", id="filter-clear", class_="plain"),
        ],
        "\n",
    )


def _deviations(path: Path | None) -> tuple[Html, Html]:
    if path is None or not path.is_file():
        missing = "The list of deviations (docs/deviations.md) is not here."
        return text("How this differs from the paper"), tag("p", missing, class_="missing")
    title, rest = split_title(path.read_text(encoding="utf-8", errors="replace"))
    return inline(title or "How this differs from the paper"), markdown(rest, top=2)
