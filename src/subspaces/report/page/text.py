"""Markdown and LaTeX labels as HTML. Raw HTML in a source is shown as text; links other than https are named and not linked."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FORMULA = re.compile(r"\$([^$\s](?:[^$]*[^$\s])?)\$")
_ELEMENTS = {"math", "mrow", "mi", "mn", "mo", "mover", "msub", "msup", "msubsup", "msqrt", "mfrac", "mspace", "mstyle"}
_ATTRIBUTES = {"mathvariant", "stretchy", "fence", "form", "width", "displaystyle", "scriptlevel"}
_SYMBOLS = {r"\mathbb{R}": "ℝ", r"\mathcal{P}": "𝒫", r"\mathcal{H}": "ℋ", r"\lambda": "λ"}
_ASCII = {"ℝ": "R", "𝒫": "P", "ℋ": "H"}
_RAISED = re.compile(r"\^\{(\w+)\}")


def markdown(source: str, top: int = 2) -> Markup:
    """`source` as HTML. Its first level of headings becomes `<h{top}>`; tables become cards on narrow screens."""
    tokens = _parser().parse(_COMMENT.sub("", source))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + top - 1)}"
    _label_cells(tokens)
    parser = _parser()
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def inline(source: str) -> Markup:
    """One run of text with its code, emphasis, links and formulas."""
    return Markup(_parser().renderInline(_COMMENT.sub("", source)))


def split_title(source: str) -> tuple[str | None, str]:
    """The text of a heading that opens the document, and the rest."""
    stripped = _COMMENT.sub("", source).lstrip()
    first, _, rest = stripped.partition("\n")
    heading = re.fullmatch(r"#{1,6}\s+(.*)", first.strip())
    return (heading[1], rest) if heading else (None, stripped)


def formula(tex: str) -> Markup:
    """MathML for a formula. A formula that latex2mathml cannot read, or whose result is not plain MathML, is shown as code.

    latex2mathml does not escape text and passes links through, so that its result is parsed and checked.
    """
    try:
        root = ElementTree.fromstring(convert(tex).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))
    except Exception:  # the library raises many classes of its own
        return Markup("<code>{}</code>").format(tex)
    for element in root.iter():
        element.attrib = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
        if element.tag not in _ELEMENTS or "\\" in (element.text or ""):
            return Markup("<code>{}</code>").format(tex)
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def label(latex: str) -> Markup:
    """A row label of the tables: plain text with superscripts, so that a screen reader can read it."""
    shown = str(escape(_symbols(latex)))
    return Markup(_RAISED.sub(r"<sup>\1</sup>", shown))


def plain(latex: str) -> str:
    """A row label as ordinary text."""
    shown = _RAISED.sub(r"-\1", _symbols(latex))
    for symbol, letter in _ASCII.items():
        shown = shown.replace(symbol, letter)
    return shown


def _symbols(latex: str) -> str:
    for command, symbol in _SYMBOLS.items():
        latex = latex.replace(command, symbol)
    return re.sub(r"\$([^$]*)\$", lambda found: found[1].replace("-", "−"), latex)


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return True  # `_link_open` decides


@cache
def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False}).enable("table").disable(["image", "autolink"])
    parser.inline.ruler.before("escape", "formula", _formula_rule)
    parser.add_render_rule("formula", lambda self, tokens, place, options, env: str(formula(tokens[place].content)))
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    return parser


def _formula_rule(state: StateInline, silent: bool) -> bool:
    found = _FORMULA.match(state.src, state.pos) if state.src[state.pos] == "$" else None
    if not found or found.end() > state.posMax or state.src[found.end() : found.end() + 1].isdigit():
        return False
    if not silent:
        state.push("formula", "math", 0).content = found[1]
    state.pos = found.end()
    return True


def _fence(self, tokens: list[Token], place: int, options, env) -> str:
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[place].content))


def _link_open(self, tokens: list[Token], place: int, options, env) -> str:
    address = str(tokens[place].attrGet("href"))
    if not address.startswith("https://"):
        return ""
    return str(Markup('<a href="{}" rel="noopener noreferrer">').format(address))


def _link_close(self, tokens: list[Token], place: int, options, env) -> str:
    """The page can be anywhere, so a file of the project is named behind the words and not linked."""
    start = place
    depth = 0
    while True:
        depth += {"link_close": 1, "link_open": -1}.get(tokens[start].type, 0)
        if depth == 0:
            break
        start -= 1
    address = str(tokens[start].attrGet("href"))
    if address.startswith("https://"):
        return "</a>"
    words = "".join(token.content for token in tokens[start + 1 : place])
    return "" if words.endswith(address) else str(Markup(" (<code>{}</code>)").format(address))


def _table_open(self, tokens: list[Token], place: int, options, env) -> str:
    start = '<div class="scroll" role="region" tabindex="0" aria-label="{}"><table class="prose cards" role="table">'
    return str(Markup(start).format(tokens[place].meta.get("name") or "Table"))


_ROLES = {"thead_open": "rowgroup", "tbody_open": "rowgroup", "tr_open": "row", "th_open": "columnheader"}


def _label_cells(tokens: list[Token]) -> None:
    """Roles for every cell, the first of each row as its header, and the column's name on the others."""
    heads: list[str] = []
    table: Token | None = None
    column = 0
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            table, heads = token, []
        if token.type == "tr_open":
            column = 0
        if token.type in ("th_open", "td_open"):
            token.attrs.pop("style", None)
        if token.type in _ROLES:
            token.attrSet("role", _ROLES[token.type])
        if token.type == "th_open":
            token.attrSet("scope", "col")
            heads.append(re.sub(r"[`*]", "", tokens[place + 1].content))
            if table is not None:
                table.meta["name"] = ", ".join(head for head in heads if head)
        if token.type == "td_open":
            if column == 0:
                token.tag = tokens[place + 2].tag = "th"
                token.attrSet("scope", "row")
                token.attrSet("role", "rowheader")
            else:
                token.attrSet("role", "cell")
                token.attrSet("data-label", heads[column])
            column += 1
