"""Markdown as far as this project writes it: headings, paragraphs, lists, tables, code, links, formulas. Raw markup is text here."""

from __future__ import annotations

import re
from collections.abc import Callable

from subspaces.paper.page.markup import Html, join, tag, text
from subspaces.paper.page.mathml import formula

_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<strong>.+?)\*\*(?!\*)"
    r"|(?<!\w)\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*(?!\w)"
    r"|\[(?P<words>[^\]]+)\]\((?P<target>[^()\s]+)\)"
    r"|\$(?P<tex>[^$\s](?:[^$]*[^$\s])?)\$",
    re.DOTALL,
)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|(\d+)[.)])\s+(.*)")
_RULE = re.compile(r"\|?\s*:?-{3,}:?\s*(\|\s*:?-{3,}:?\s*)*\|?\s*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")


def markdown(source: str, top: int = 2) -> Html:
    """`source` as markup; its first level of headings becomes `<h{top}>`."""
    lines = _COMMENT.sub("", source).splitlines()
    blocks: list[Html] = []
    while lines:
        if not lines[0].strip():
            lines = lines[1:]
            continue
        block, lines = _block(lines, top)
        blocks.append(block)
    return join(blocks, "\n")


def inline(source: str) -> Html:
    """One run of text with its code, emphasis, links and formulas."""
    parts: list[Html] = []
    end = 0
    for found in _INLINE.finditer(source):
        parts += [text(source[end : found.start()]), _span(found)]
        end = found.end()
    return join([*parts, text(source[end:])])


def split_title(source: str) -> tuple[str | None, str]:
    """The text of a heading that opens the document, and the rest."""
    stripped = _COMMENT.sub("", source).lstrip()
    first, _, rest = stripped.partition("\n")
    found = _HEADING.fullmatch(first.strip())
    return (found[2], rest) if found else (None, stripped)


def _span(found: re.Match[str]) -> Html:
    if found["code"] is not None:
        return tag("code", found["code"])
    if found["strong"] is not None:
        return tag("strong", inline(found["strong"]))
    if found["em"] is not None:
        return tag("em", inline(found["em"]))
    if found["tex"] is not None:
        return formula(found["tex"])
    words, target = inline(found["words"]), found["target"]
    if target.startswith("https://"):
        return tag("a", words, href=target, rel="noopener noreferrer")
    # a file of the project, or something that is no address: the page may lie anywhere, so it is named and not linked
    return words if found["words"].endswith(target) else join([words, " (", tag("code", target), ")"])


def _block(lines: list[str], top: int) -> tuple[Html, list[str]]:
    heading = _HEADING.fullmatch(lines[0].strip())
    if heading:
        return tag(f"h{min(6, top - 1 + len(heading[1]))}", inline(heading[2])), lines[1:]
    if lines[0].startswith("```"):
        return _code(lines)
    if len(lines) > 1 and "|" in lines[0] and _RULE.fullmatch(lines[1].strip()):
        return _table(lines)
    if _ITEM.fullmatch(lines[0]):
        return _list(lines)
    taken = _while(lines, lambda line: bool(line.strip()) and not _starts_block(line))
    return tag("p", inline(" ".join(line.strip() for line in taken))), lines[len(taken) :]


def _starts_block(line: str) -> bool:
    return bool(line.startswith("```") or _HEADING.fullmatch(line.strip()) or _ITEM.fullmatch(line) or line.startswith("|"))


def _while(lines: list[str], holds: Callable[[str], bool]) -> list[str]:
    """The first line, whatever it is, and those after it as long as `holds`."""
    count = 1
    while count < len(lines) and holds(lines[count]):
        count += 1
    return lines[:count]


def _code(lines: list[str]) -> tuple[Html, list[str]]:
    body = _while(lines, lambda line: not line.startswith("```"))[1:]
    return tag("pre", tag("code", "\n".join(body)), tabindex=0), lines[len(body) + 2 :]


def _list(lines: list[str]) -> tuple[Html, list[str]]:
    taken = _while(lines, lambda line: bool(line.strip()))
    items: list[str] = []
    for line in taken:
        found = _ITEM.fullmatch(line)
        if found:
            items.append(found[2])
        else:
            items[-1] += f" {line.strip()}"
    kind = "ol" if _ITEM.fullmatch(lines[0])[1] else "ul"
    return tag(kind, *(tag("li", inline(item)) for item in items)), lines[len(taken) :]


def _table(lines: list[str]) -> tuple[Html, list[str]]:
    taken = _while(lines, lambda line: bool(line.strip()) and "|" in line)
    head, _, *body = [_cells(line) for line in taken]
    return wide_table(head, body), lines[len(taken) :]


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]


def wide_table(head: list[str], body: list[list[str]]) -> Html:
    """A table of running text; on a narrow screen each row is a card, whose roles are said because its display changes."""
    top = tag("tr", *(tag("th", inline(cell), scope="col", role="columnheader") for cell in head), role="row")
    rows = []
    for cells in body:
        padded = [*cells, *[""] * (len(head) - len(cells))][: len(head)]
        first = tag("th", inline(padded[0]), scope="row", role="rowheader")
        others = [tag("td", inline(cell), data_label=_bare(name), role="cell") for name, cell in zip(head[1:], padded[1:], strict=True)]
        rows.append(tag("tr", first, *others, role="row"))
    table = tag("table", tag("thead", top, role="rowgroup"), tag("tbody", *rows, role="rowgroup"), class_="prose cards", role="table")
    return tag("div", table, class_="scroll", role="region", aria_label=", ".join(_bare(name) for name in head if name), tabindex=0)


def _bare(source: str) -> str:
    """Without the marks of code and emphasis."""
    return source.replace("`", "").replace("*", "")
