"""How a verdict looks and what it means. A sign goes with every colour, so that neither print nor eyes need the colour."""

from __future__ import annotations

from subspaces.paper.page.facts import Number, fixed
from subspaces.paper.page.markup import Html, tag

SIGNS = {"reproduced": "=", "better": "+", "short": "−", "other scale": "~", "not run": "○"}
MEANINGS = {
    "reproduced": "within the tolerance: max(2·√(sd² + paper’s sd²), 0.5 % of the paper’s value)",
    "better": "on the good side of the paper’s value by more than the tolerance",
    "short": "on the bad side of the paper’s value by more than the tolerance",
    "other scale": "other data, or a part of it: not comparable with the paper’s value",
    "not run": "not computed; the number says why",
}


def style_of(verdict: str) -> str:
    """The class that colours a verdict."""
    return "is-" + verdict.replace(" ", "-")


def sign(verdict: str) -> Html:
    return tag("span", SIGNS[verdict], class_=f"sign {style_of(verdict)}", aria_hidden="true")


def badge(verdict: str) -> Html:
    return tag("span", sign(verdict), verdict, class_=f"badge {style_of(verdict)}")


def explanation(number: Number) -> str:
    """Why this number has its verdict, with the tolerance in its own unit."""
    if number.verdict == "not run":
        return "no value has been computed at this scale."
    if number.verdict == "other scale":
        return f"{MEANINGS[number.verdict]}."
    allowed = fixed(number.tolerance, max(2, number.digits + 1))
    return f"{MEANINGS[number.verdict]}. Here that is ±{allowed}; the difference is {number.change()}."
