"""Markdown, formulas and markup of the page, piece by piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.page import captions
from subspaces.paper.page.markdown import inline, markdown, split_title
from subspaces.paper.page.markup import Html, join, tag, text
from subspaces.paper.page.mathml import formula, label
from subspaces.recipes import FIGURES
from tests.paper.elements import Page

KNOWN = {"p", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "pre", "code", "strong", "em", "div"}
KNOWN |= {"table", "thead", "tbody", "tr", "th", "td"}
KNOWN |= {"math", "mi", "mn", "mo", "mrow", "msub", "msup", "msubsup"}  # and no link: the alphabet spells no address


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "<b>", Html("<i></i>"), None, title='"', hidden=True, id=None) == '<p title="&quot;" hidden>&lt;b&gt;<i></i></p>'
    assert join(["<", Html("<br>")], "&") == "&lt;&amp;<br>"
    assert tag("img", alt="x") == '<img alt="x">'


@given(st.text())
def test_any_text_comes_back_as_text(content):
    shown = Page(tag("p", text(content), title=content))
    assert len(shown.elements) == 1
    kept = "".join(letter for letter in content if letter.isprintable())
    assert [letter for letter in shown.elements[0].text if letter in kept] == [letter for letter in content if letter in kept]


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
1. in the same list

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
    assert page.all("p")[0].text == "A line and its end."
    assert [one.text for one in page.all("li")] == ["one goes on", "two", "in the same list"]
    assert page.one("pre").text == "<b> & **c**"
    assert [one.text for one in page.all("th")] == ["a", "b", "x | y", "short"]
    assert [one.text for one in page.all("td")] == ["z", ""]
    assert page.all("td")[0].attributes["data-label"] == "b"
    assert "gone" not in page.source


def test_spans():
    assert inline("a_b_c 2*3*4 **b *i*** `x*y*`") == "a_b_c 2*3*4 <strong>b <em>i</em></strong> <code>x*y*</code>"
    assert inline("[here](https://a.example/b)") == '<a href="https://a.example/b" rel="noopener noreferrer">here</a>'
    assert inline("[rho.md](rho.md), [there](../x.md)") == "rho.md, there (<code>../x.md</code>)"
    assert "<a" not in inline("[x](javascript:void) [y](data:text/html,z) [z](http://a.example)")
    assert inline("costs $5 and $6") == "costs $5 and $6"


def test_title():
    assert split_title("<!-- k -->\n# A *b*\n\nrest") == ("A *b*", "\nrest")
    assert split_title("rest") == (None, "rest")


@pytest.mark.parametrize(
    ("tex", "said", "element"),
    [
        (r"\epsilon(\sigma_r,\lambda)", "ε(σr,λ)", "msub"),
        (r"\tilde P_i\tilde P_j", "P˜iP˜j", "mover"),
        (r"\sqrt{r_ir_j}\left(\tfrac{\sigma_r^2}{\sigma_r^2+\lambda}\right)", "rirj(σr2σr2+λ)", "msubsup"),
        (r"\lVert P\rVert_F", "‖P‖F", "msub"),
        (r"\mathrm{Tr}(P)-1", "Tr(P)−1", "mi"),
        (r"\min(a,b)\leq 0.5", "min(a,b)≤0.5", "mn"),
    ],
)
def test_formulas(tex, said, element):
    page = Page(formula(tex))
    assert page.one("math").text == said
    assert page.all(element)


@pytest.mark.parametrize("tex", [r"\unknown x", "{", "x_", "}", r"\frac{a}", r"\mathrm", "a & b", ""])
def test_formulas_that_cannot_be_read_are_shown_as_written(tex):
    page = Page(formula(tex))
    assert page.elements[0].tag == ("code" if tex else "math")
    assert page.elements[0].text == tex


def test_every_label_of_the_tables_can_be_read():
    assert label(r"$\mathbb{R}^{10}$") == "ℝ<sup>10</sup>"
    assert label(r"$\lambda=0.1$, MLP$(p,p-h)$") == "λ=0.1, MLP(p,p−h)"
    assert label(r"$x^2$").startswith("<math>")
    assert label("SE$^{128}$ (FAISS)") == "SE<sup>128</sup> (FAISS)"
    for layout in LAYOUTS.values():
        for words in layout.rows.values():
            assert not [piece for piece in ("<code>", "<math>", "$", "\\") if piece in label(words)]


def test_every_figure_has_a_title_a_caption_and_words_for_those_who_cannot_see_it():
    assert set(captions.KNOWN) == set(FIGURES)
    assert all(title and caption.endswith(".") and len(seen) > 40 for title, caption, seen in captions.KNOWN.values())
