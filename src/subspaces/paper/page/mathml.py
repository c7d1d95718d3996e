"""The little TeX of the paper's labels and bounds as MathML, which browsers set by themselves."""

from __future__ import annotations

import re

from subspaces.paper.page.markup import Html, join, tag, text

_LETTERS = {"epsilon": "ε", "sigma": "σ", "lambda": "λ", "eta": "η", "rho": "ρ", "tau": "τ", "alpha": "α", "gamma": "γ"}
_OPERATORS = {"lVert": "‖", "rVert": "‖", "leq": "≤", "geq": "≥", "times": "×", "cdot": "·", "uparrow": "↑", "downarrow": "↓"}
_NAMES = {"min", "max", "log"}
_ALPHABETS = {"mathbb": {"R": "ℝ"}, "mathcal": {"P": "𝒫", "H": "ℋ"}}
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|\d+(?:\.\d+)?|.", re.DOTALL)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_PART = re.compile(r"\$([^$]+)\$")
_RAISED = re.compile(r"(?:\\(mathbb|mathcal)\{(\w)\})?\^\{(\w+)\}")


class _Unknown(Exception):
    """A command that this small language does not have."""


def label(latex: str) -> Html:
    """A label of the tables: text with formulas between dollars. Ordinary text where that will do: a formula has no name for the ear."""
    pieces = _PART.split(latex)
    return join(piece if place % 2 == 0 else _formula_or_raised(piece) for place, piece in enumerate(pieces))


def formula(tex: str) -> Html:
    """MathML for a formula; what cannot be read is shown as it is written."""
    try:
        content, rest = _row(_tokens(tex), until=None)
        if rest:
            raise _Unknown(rest[0])
    except _Unknown:
        return tag("code", tex)
    return tag("math", content)


def _formula_or_raised(tex: str) -> Html:
    raised = _RAISED.fullmatch(tex)
    if not raised:
        flat = _COMMAND.sub(lambda found: _LETTERS.get(found[1], found[0]), tex)
        return formula(tex) if set(flat) & set("\\^_{") else text(flat.replace("-", "−"))
    letter = _ALPHABETS[raised[1]].get(raised[2], raised[2]) if raised[1] else ""
    return join([letter, tag("sup", raised[3])])


def _tokens(tex: str) -> list[str]:
    return [token for token in _TOKEN.findall(tex) if not token.isspace()]


def _row(tokens: list[str], until: str | None) -> tuple[Html, list[str]]:
    """Atoms with their scripts up to `until`; returns them as one row, and what follows."""
    parts: list[Html] = []
    while tokens and tokens[0] != until:
        base, tokens = _atom(tokens)
        scripts: dict[str, Html] = {}
        while tokens and tokens[0] in "_^" and tokens[0] not in scripts:
            mark = tokens[0]
            scripts[mark], tokens = _atom(tokens[1:])
        parts.append(_with_scripts(base, scripts))
    if until is not None:
        if not tokens:
            raise _Unknown(until)
        tokens = tokens[1:]
    return (parts[0] if len(parts) == 1 else tag("mrow", *parts)), tokens


def _with_scripts(base: Html, scripts: dict[str, Html]) -> Html:
    if len(scripts) == 2:
        return tag("msubsup", base, scripts["_"], scripts["^"])
    if "_" in scripts:
        return tag("msub", base, scripts["_"])
    return tag("msup", base, scripts["^"]) if scripts else base


def _atom(tokens: list[str]) -> tuple[Html, list[str]]:
    if not tokens:
        raise _Unknown("an end where something should be")
    first, rest = tokens[0], tokens[1:]
    if first == "{":
        return _row(rest, until="}")
    if first.startswith("\\"):
        return _command(first[1:], rest)
    if first in "}_^&%#$~":
        raise _Unknown(first)
    if first[0].isdigit():
        return tag("mn", first), rest
    return tag("mi" if first.isalpha() else "mo", "−" if first == "-" else first), rest


def _command(name: str, rest: list[str]) -> tuple[Html, list[str]]:
    if name in _LETTERS:
        return tag("mi", _LETTERS[name]), rest
    if name in _OPERATORS:
        return tag("mo", _OPERATORS[name]), rest
    if name in _NAMES:
        return tag("mi", name), rest
    if name == ",":
        return tag("mspace", width="0.17em"), rest
    if name in ("left", "right") and rest and rest[0] in "()[]|":
        return tag("mo", rest[0], stretchy="true"), rest[1:]
    if name in ("mathrm", "mathbb", "mathcal"):
        word, rest = _word(rest)
        return tag("mi", _ALPHABETS.get(name, {}).get(word, word)), rest
    if name == "sqrt":
        inside, rest = _atom(rest)
        return tag("msqrt", inside), rest
    if name == "tilde":
        inside, rest = _atom(rest)
        # not declared an accent: where there is no mathematical font, an accent runs into its letter
        return tag("mover", inside, tag("mo", "˜", stretchy="false")), rest
    if name in ("frac", "tfrac"):
        above, rest = _atom(rest)
        below, rest = _atom(rest)
        return tag("mfrac", above, below), rest
    raise _Unknown(name)


def _word(tokens: list[str]) -> tuple[str, list[str]]:
    """Letters between braces."""
    if not tokens or tokens[0] != "{" or "}" not in tokens:
        raise _Unknown("{")
    end = tokens.index("}")
    return "".join(tokens[1:end]), tokens[end + 1 :]
