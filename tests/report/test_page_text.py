"""Markdown, formulas and markup of the page, piece by piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from subspaces.report.figures import FIGURES
from subspaces.report.layouts import LAYOUTS
from subspaces.report.page.text import formula, inline, label, markdown, plain, split_title
from tests.report.elements import Page

KNOWN = {"p", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "pre", "code", "strong", "em", "div", "hr", "br"}
KNOWN |= {"table", "thead", "tbody", "tr", "th", "td", "blockquote"}
KNOWN |= {
    "math",
    "mi",
    "mn",
    "mo",
    "mrow",
    "mover",
    "msub",
    "msup",
    "msubsup",
    "mspace",
}  # the alphabet spells no address


@given(st.text(alphabet="*`[]()|$#-\n <>&ab1.\\_", max_size=80))
def test_any_markdown_is_well_formed_and_makes_only_known_elements(source):
    page = Page(markdown(source))
    assert {one.tag for one in page.elements} <= KNOWN


def test_blocks():
    source = """<!-- gone -->
# Title

A line
and its end.

- one
  goes on
- two

```
<b> & **c**
```

| a | `b` |
|---|---|
| x \\| y | *z* |
| short |
"""
    page = Page(markdown(source, top=3))
    assert page.one("h3").text == "Title"
    assert page.all("p")[0].text == "A line\nand its end."
    assert [one.text for one in page.all("li")] == ["one\ngoes on", "two"]
    assert page.one("pre").text == "<b> & **c**\n"
    assert [one.text for one in page.all("th")] == ["a", "b", "x | y", "short"]
    assert [one.text for one in page.all("td")] == ["z", ""]
    assert page.all("td")[0].attributes["data-label"] == "b"
    assert "gone" not in page.source


def test_spans():
    assert inline("a_b_c **b *i*** `x*y*`") == "a_b_c <strong>b <em>i</em></strong> <code>x*y*</code>"
    assert inline("[here](https://a.example/b)") == '<a href="https://a.example/b" rel="noopener noreferrer">here</a>'
    assert inline("[rho.md](rho.md), [there](../x.md)") == "rho.md, there (<code>../x.md</code>)"
    assert "<a" not in inline("[x](javascript:void) [y](data:text/html,z) [z](http://a.example) <http://b.example>")
    assert inline("costs $5 and $6") == "costs $5 and $6"
    assert "<img" not in inline("![x](https://a.example/b.png)") and "&lt;b&gt;" in inline("<b>")


def test_title():
    assert split_title("<!-- k -->\n# A *b*\n\nrest") == ("A *b*", "\nrest")
    assert split_title("rest") == (None, "rest")


@pytest.mark.parametrize(
    ("tex", "text", "element"),
    [
        (r"\epsilon(\sigma_r,\lambda)", "ϵ(σr,λ)", "msub"),
        (r"\tilde P_i\tilde P_j", "P~iP~j", "mover"),
        (r"\sqrt{r_ir_j}\left(\tfrac{\sigma_r^2}{\sigma_r^2+\lambda}\right)", "rirj(σr2σr2+λ)", "msubsup"),
        (r"\lVert P\rVert_F", "‖P‖F", "msub"),
        (r"\mathrm{Tr}(P)-1", "Tr(P)−1", "mi"),
        (r"\min(a,b)\leq 0.5", "min(a,b)≤0.5", "mn"),
    ],
)
def test_formulas(tex, text, element):
    page = Page(formula(tex))
    assert page.one("math").text == text
    assert page.all(element)


@pytest.mark.parametrize("tex", [r"\unknown x", "{", "x_", "a & b", "", r"\text{<script>x</script>}"])
def test_formulas_that_cannot_be_read_are_shown_as_code(tex):
    page = Page(formula(tex))
    assert [one.tag for one in page.elements] == ["code"]
    assert page.elements[0].text == tex


def test_a_formula_carries_no_link():
    page = Page(formula(r"\href{javascript:x}{a}"))
    assert not [one for one in page.elements if one.attributes.keys() & {"href", "style"}]


def test_every_label_of_the_tables_can_be_read():
    assert label(r"$\mathbb{R}^{10}$") == "ℝ<sup>10</sup>"
    assert label(r"$\lambda=0.1$, MLP$(p,p-h)$") == "λ=0.1, MLP(p,p−h)"
    assert label("SE$^{128}$ <FAISS>") == Markup("SE<sup>128</sup> &lt;FAISS&gt;")
    assert plain(r"$\mathcal{P}^{10}$") == "P-10"
    for layout in LAYOUTS.values():
        for words in layout.rows.values():
            assert not set("$\\{^") & set(label(words) + plain(words))


def test_every_figure_has_a_title_a_caption_and_an_alternative_text():
    assert all(one.title and one.caption.endswith(".") and len(one.alt) > 40 for one in FIGURES.values())
