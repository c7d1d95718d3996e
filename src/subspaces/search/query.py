"""Logic over text: `a city street & ~at night` as a tree of terms, and the tree as one matrix (paper §4.6, last
figure).

    a | b     or     also ||, OR      binds loosest
    a & b     and    also &&, AND
    ~a        not    also !, NOT      binds tightest
    ( … )     as usual

A term is a run of words (`it's raining` is one) or a text in double quotes, which may hold any character (`\\"` and
`\\\\` for a quote and a backslash). Operators of the same kind group to the left. `str` of a tree is its canonical
form: `parse(str(tree)) == tree`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from subspaces.algebra import Subspace
from subspaces.errors import UserError

Conjunction = Literal["product", "sandwich-hard", "exact"]
_THRESHOLD = 0.1  # of sandwich-hard: eigenvalues above it count, as in the released evaluation
_HARD = 0.5  # of exact: a term keeps the directions that are more inside than outside
LENGTH = 10_000  # characters of a query
OPERATORS = 200  # operators and parentheses
DEPTH = 50  # nested parentheses and negations
TERMS = 64  # each is encoded
_WORDS = {"AND": "&", "OR": "|", "NOT": "~"}
_NEEDS_QUOTES = re.compile(r'[()&|~!"“”\\]|(?:^| )(?:AND|OR|NOT)(?= |$)')
_TOKEN = re.compile(r'\s*(?:(?P<bracket>[()])|(?P<operator>&&?|\|\|?|~|!)|(?P<quote>["“”])|(?P<word>[^\s()&|~"“”]+))')
_QUOTED = re.compile(r'((?:[^"“”\\]|\\.)*)["“”]', flags=re.DOTALL)


class SyntaxMistake(UserError):
    """A query that cannot be read: `reason`, and `at`, the position of the character that the caret points to."""

    def __init__(self, reason: str, text: str, at: int):
        shown = "".join(" " if character.isspace() else character for character in text)
        super().__init__(f"{reason}.\n  {shown}\n  {' ' * _columns(shown[:at])}^")
        self.reason, self.at = reason, at


@dataclass(frozen=True)
class Term:
    """A text; runs of spaces count as one."""

    text: str

    def __post_init__(self) -> None:
        text = " ".join(self.text.split())
        if not text:
            raise UserError("a term of a query needs at least one word.")
        object.__setattr__(self, "text", text)

    def __str__(self) -> str:
        if not _NEEDS_QUOTES.search(self.text):
            return self.text
        return '"' + re.sub(r'(["“”\\])', r"\\\1", self.text) + '"'


@dataclass(frozen=True)
class Not:
    of: Query

    def __str__(self) -> str:
        return f"~{_inside(self.of, And, Or)}"


@dataclass(frozen=True)
class And:
    left: Query
    right: Query

    def __str__(self) -> str:
        return f"{_inside(self.left, Or)} & {_inside(self.right, And, Or)}"


@dataclass(frozen=True)
class Or:
    left: Query
    right: Query

    def __str__(self) -> str:
        return f"{self.left} | {_inside(self.right, Or)}"


Query = Term | And | Or | Not


def parse(text: str) -> Query:
    """The tree of a query; a mistake is an error with a caret under its column. Queries beyond the limits above are
    refused."""
    if len(text) > LENGTH:
        raise UserError(f"the query has {len(text):,} characters, at most {LENGTH:,} are allowed.")
    return _Parser(text).whole()


def terms(query: Query) -> list[str]:
    """The distinct texts of a query, in the order in which they appear."""
    if isinstance(query, Term):
        return [query.text]
    parts = [query.of] if isinstance(query, Not) else [query.left, query.right]
    return list(dict.fromkeys(text for part in parts for text in terms(part)))


def evaluate(query: Query, subspaces: Mapping[str, Subspace], conjunction: Conjunction = "product") -> Tensor:
    """One symmetric matrix Q (d, d): a document P answers the query by Tr(P Q) / Tr(P), one inner product whatever the
    form.

    product        a & b is P_a P_b, a | b is P_a + P_b − P_a P_b (Table 1), symmetrised at the end: a trace sees no
    more. sandwich-hard  a & b is P_b P_a P_b, a | b is P_a + P_b, with eigenvalues above 0.1 set to 1 and the rest
    dropped. exact          terms keep their eigenvalues ≥ 0.5, set to 1; then the true intersection and the true sum of
    spaces.

    Negation is I − P in all three.
    """
    if conjunction not in get_args(Conjunction):
        raise UserError(f"unknown conjunction {conjunction!r}: choose {', '.join(get_args(Conjunction))}.")
    missing = [text for text in terms(query) if text not in subspaces]
    if missing:
        raise UserError(
            f"no subspace was given for {', '.join(map(repr, missing))}: encode every text of terms(query)."
        )
    chosen = {text: subspaces[text] for text in terms(query)}
    for text, subspace in chosen.items():
        if subspace.projector.ndim != 2:
            raise UserError(
                f"the subspace of {text!r} has shape {tuple(subspace.shape)}: each term needs one projector (d, d)."
            )
    if conjunction == "exact":
        chosen = {text: subspace.truncate(_HARD, hard=True) for text, subspace in chosen.items()}
    with torch.no_grad():
        return _compose(query, chosen, conjunction).symmetric().projector


def _compose(query: Query, subspaces: Mapping[str, Subspace], conjunction: Conjunction) -> Subspace:
    if isinstance(query, Term):
        return subspaces[query.text]
    if isinstance(query, Not):
        return ~_compose(query.of, subspaces, conjunction)
    left, right = _compose(query.left, subspaces, conjunction), _compose(query.right, subspaces, conjunction)
    if isinstance(query, And):
        both = left.meet(right, conjunction, threshold=_THRESHOLD)
        if conjunction == "exact" and float(both.rank) < 0.5:
            raise UserError(
                f"nothing lies exactly in both sides of «{query}»: ask with the conjunction product or sandwich-hard."
            )
        return both
    if conjunction == "product":
        return left | right
    return left.join(right, "span", tol=_THRESHOLD if conjunction == "sandwich-hard" else None)


def _inside(query: Query, *loose: type) -> str:
    return f"({query})" if isinstance(query, loose) else str(query)


@dataclass(frozen=True)
class _Token:
    kind: str  # one of ( ) & | ~ term end
    text: str
    at: int


class _Parser:
    """Recursive descent: one method per level of binding."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = self._read()
        self.place = self.depth = 0
        if self.tokens[0].kind == "end":
            raise self.error("the query is empty: write words, joined by & | ~ and parentheses", 0)
        for limit, name, kinds in (
            (OPERATORS, "operators and parentheses", ("&", "|", "~", "(")),
            (TERMS, "terms", ("term",)),
        ):
            count = sum(token.kind in kinds for token in self.tokens)
            if count > limit:
                raise UserError(f"the query has {count:,} {name}, at most {limit} are allowed.")

    def whole(self) -> Query:
        query = self.either()
        token = self.tokens[self.place]
        if token.kind == ")":
            raise self.error("this parenthesis was never opened", token.at)
        if token.kind != "end":
            raise self.error("an operator is missing before this: & | or &~", token.at)
        return query

    def either(self) -> Query:
        query = self.both()
        while self.took("|"):
            query = Or(query, self.both())
        return query

    def both(self) -> Query:
        query = self.one()
        while self.took("&"):
            query = And(query, self.one())
        return query

    def one(self) -> Query:
        token = self.tokens[self.place]
        self.place += 1
        if token.kind in "~(":
            self.depth += 1
            if self.depth > DEPTH:
                raise self.error(f"parentheses and negations are nested deeper than {DEPTH}", token.at)
        if token.kind == "~":
            query: Query = Not(self.one())
            self.depth -= 1
            return query
        if token.kind == "term":
            return Term(token.text)
        if token.kind == "(":
            query = self.either()
            following = self.tokens[self.place]
            if following.kind == "end":
                raise self.error("this parenthesis is never closed", token.at)
            if following.kind != ")":
                raise self.error("an operator is missing before this: & | or &~", following.at)
            self.place += 1
            self.depth -= 1
            return query
        before = self.tokens[self.place - 2] if self.place > 1 else None
        if before is not None and before.kind in "&|~":
            raise self.error(f"nothing follows the operator {before.text}", before.at)
        if before is not None and before.kind == "(":
            raise self.error("nothing is inside this parenthesis", before.at)
        if token.kind == ")":
            raise self.error("this parenthesis was never opened", token.at)
        raise self.error(f"nothing precedes the operator {token.text}", token.at)

    def took(self, kind: str) -> bool:
        if self.tokens[self.place].kind != kind:
            return False
        self.place += 1
        return True

    def _read(self) -> list[_Token]:
        tokens: list[_Token] = []
        position, joinable = 0, False  # joinable: the last token is a run of unquoted words
        while match := _TOKEN.match(self.text, position):
            group = match.lastgroup or 0
            at, piece, position = match.start(group), match[group], match.end()
            if match["quote"]:
                text, position = self._quoted(at)
                tokens.append(_Token("term", text, at))
            elif match["bracket"] or match["operator"] or piece in _WORDS:
                kind = _WORDS.get(piece, "~" if piece == "!" else piece[0])
                tokens.append(_Token(kind, piece, at))
            elif joinable:
                tokens[-1] = _Token("term", f"{tokens[-1].text} {piece}", tokens[-1].at)
            else:
                tokens.append(_Token("term", piece, at))
            joinable = bool(match["word"]) and piece not in _WORDS
        return [*tokens, _Token("end", "", len(self.text.rstrip()))]

    def _quoted(self, at: int) -> tuple[str, int]:
        """The text between quotes, and where it ends with its quote."""
        match = _QUOTED.match(self.text, at + 1)
        if match is None:
            raise self.error("this quote is never closed", at)
        text = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        if not text.strip():
            raise self.error("nothing is inside these quotes", at)
        return text, match.end()

    def error(self, reason: str, at: int) -> SyntaxMistake:
        return SyntaxMistake(reason, self.text, at)


def _columns(text: str) -> int:
    """How wide a terminal draws a text."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )
