"""How to cite the paper and this project, from CITATION.cff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from subspaces.errors import UserError
from subspaces.paper.page.markup import Html, join, tag
from subspaces.paper.page.provenance import command


def citation(path: Path | None) -> Html:
    if path is None or not path.is_file():
        return tag("p", "See CITATION.cff in the project’s folder.", class_="missing")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: correct it, the page shows how to cite from it.") from error
    if not isinstance(content, dict) or "title" not in content:
        raise UserError(f"{path} has no title: it should be a citation file of format 1.2.")
    paper = content.get("preferred-citation")
    parts = [command("The paper:", bibtex(paper), "the entry of the paper")] if isinstance(paper, dict) else []
    return join([*parts, command("This project:", bibtex(content), "the entry of this project")])


def bibtex(entry: dict[str, Any]) -> str:
    """One entry of a citation file as BibTeX."""
    kind = "inproceedings" if entry.get("type") == "conference-paper" else "software"
    people = [_person(one) for one in entry.get("authors", [])]
    fields = {
        "title": f"{{{entry['title']}}}",
        "author": " and ".join(people),
        "booktitle": entry.get("collection-title"),
        "year": entry.get("year"),
        "version": entry.get("version"),
        "doi": entry.get("doi"),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{_handle(entry)},", *lines, "}"])


def _person(one: dict[str, Any]) -> str:
    if "name" in one:
        return f"{{{one['name']}}}"
    return f"{one.get('family-names', '')}, {one.get('given-names', '')}".strip(", ")


def _handle(entry: dict[str, Any]) -> str:
    """Family name, year, first long word of the title."""
    authors = entry.get("authors") or [{}]
    long = [word for word in str(entry["title"]).lower().split() if len(word) > 3]
    parts = (authors[0].get("family-names", ""), entry.get("year", ""), long[0] if long else "")
    return "".join(letter for part in parts for letter in str(part).lower() if letter.isalnum()) or "entry"
