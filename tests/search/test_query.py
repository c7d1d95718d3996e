"""The query language: what binds tighter, what is refused and where, and that a tree is one inner product."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError
from subspaces.search.query import And, Not, Or, Query, Term, evaluate, parse, terms

A, B, C = Term("a"), Term("b"), Term("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a city street & ~at night", And(Term("a city street"), Not(Term("at night")))),
        ('"an umbrella" & ~"it\'s raining"', And(Term("an umbrella"), Not(Term("it's raining")))),
        ("an umbrella&~it's raining", And(Term("an umbrella"), Not(Term("it's raining")))),
        ("a | b & c", Or(A, And(B, C))),
        ("a & b | c", Or(And(A, B), C)),
        ("~a & b", And(Not(A), B)),
        ("~(a & b)", Not(And(A, B))),
        ("a & b & c", And(And(A, B), C)),
        ("a & (b & c)", And(A, And(B, C))),
        ("a || b && !c", Or(A, And(B, Not(C)))),
        ("a OR b AND NOT c", Or(A, And(B, Not(C)))),
        ("not a and b", Term("not a and b")),
        ("~~a", Not(Not(A))),
        ("  people\tplaying   chess ", Term("people playing chess")),
        ("“rock & roll”", Term("rock & roll")),
        (r'"say \"no\" \\ yes"', Term(r'say "no" \ yes')),
        ("stop! & 3-2-1... go", And(Term("stop!"), Term("3-2-1... go"))),
        ("人々 & ~夜", And(Term("人々"), Not(Term("夜")))),
    ],
)
def test_parses(text: str, tree: Query) -> None:
    assert parse(text) == tree
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "empty", 0),
        ("   ", "empty", 0),
        ("(a & b", "never closed", 0),
        ("a & (b | (c)", "never closed", 4),
        ("a & b)", "never opened", 5),
        (")", "never opened", 0),
        ("a & ", "nothing follows the operator &", 2),
        ("a & | b", "nothing follows the operator &", 2),
        ("& a", "nothing precedes the operator &", 0),
        ("a & ~", "nothing follows the operator ~", 4),
        ("a NOT", "operator is missing", 2),
        ("a OR", "nothing follows the operator OR", 2),
        ("a & ()", "nothing is inside this parenthesis", 4),
        ('a & "b', "quote is never closed", 4),
        ('a & " "', "nothing is inside these quotes", 4),
        ('"a" b', "operator is missing", 4),
        ('a "b"', "operator is missing", 2),
        ("(a b ~ c)", "operator is missing", 5),
        ("夜 & (b", "never closed", 5),  # a wide character takes two columns
    ],
)
def test_refuses_and_points_at_the_place(text: str, message: str, column: int) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse(text)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"  {text}" and caret == " " * (2 + column) + "^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000 + "a" + ")" * 10_000, "has 20,001 characters, at most 10,000"),
        ("~" * 5_000 + "a", "5,000 operators and parentheses, at most 200"),
        (" & ".join(["a"] * 100), "100 terms, at most 64"),
        ("(" * 51 + "a" + ")" * 51, "nested deeper than 50"),
        ("~(" * 26 + "a" + ")" * 26, "nested deeper than 50"),
    ],
)
def test_limits_of_a_query(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(text)


def test_queries_within_the_limits() -> None:
    long = parse(" & ".join(f"word {number}" for number in range(64)))
    assert len(terms(long)) == 64 and parse(str(long)) == long
    assert parse("(" * 50 + "a" + ")" * 50 + " & " + "(" * 3 + "b" + ")" * 3) == parse("a & b")


def test_terms_are_distinct_and_in_order() -> None:
    assert terms(parse("b & (a | ~b) & c")) == ["b", "a", "c"]


texts = st.text(min_size=1).filter(lambda text: text.strip()) | st.sampled_from(
    ["NOT", "a AND b", '"', "\\", "!", "(x)", "it's"]
)
trees = st.recursive(
    texts.map(Term),
    lambda inner: st.builds(Not, inner) | st.builds(And, inner, inner) | st.builds(Or, inner, inner),
    max_leaves=12,
)


@given(trees)
def test_the_canonical_form_reads_back(tree: Query) -> None:
    assert parse(str(tree)) == tree


@given(st.text(alphabet="ab &|~!()\"'\\ANDORT ", max_size=30))
def test_any_text_is_a_query_or_a_clear_error(text: str) -> None:
    try:
        tree = parse(text)
    except UserError as error:
        assert str(error).splitlines()[-1].strip() == "^"
    else:
        assert parse(str(tree)) == tree


# --- evaluation ---------------------------------------------------------------------------------------------------------------


def subspace(seed: int, d: int = 8, n: int = 2, lam: float | None = 0.05) -> Subspace:
    return Subspace.from_vectors(
        torch.randn(d, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), lam
    )


FOUND = {name: subspace(seed) for seed, name in enumerate("abc")}
Pa, Pb, Pc = (FOUND[name].projector for name in "abc")
I8 = torch.eye(8, dtype=torch.float64)


@pytest.mark.parametrize(
    ("text", "matrix"),
    [
        ("a", Pa),
        ("~a", I8 - Pa),
        ("a & b", Pa @ Pb),
        ("a & ~b", Pa @ (I8 - Pb)),
        ("a | b", Pa + Pb - Pa @ Pb),
        ("a & b & c", Pa @ Pb @ Pc),
        ("~(a | b) & c", (I8 - Pa) @ (I8 - Pb) @ Pc),
    ],
)
def test_a_query_is_one_inner_product(text: str, matrix: torch.Tensor) -> None:
    Q = evaluate(parse(text), FOUND)
    assert torch.equal(Q, Q.mT)
    document = subspace(9)
    assert torch.isclose(document.half_vector() @ half_vector(Q), torch.trace(document.projector @ matrix))


def axes(*which: int) -> Subspace:
    return Subspace(torch.diag(torch.tensor([1.0 if i in which else 0.0 for i in range(4)])))


@pytest.mark.parametrize("conjunction", ["product", "sandwich-hard", "exact"])
def test_all_conjunctions_agree_on_commuting_subspaces(conjunction) -> None:
    found = {"a": axes(0, 1), "b": axes(1, 2)}
    expected = {"a & b": axes(1), "a | b": axes(0, 1, 2), "a & ~b": axes(0), "~a & ~b": axes(3), "~(a | b)": axes(3)}
    for text, one in expected.items():
        assert torch.allclose(evaluate(parse(text), found, conjunction), one.projector, atol=1e-6), text


def test_sandwich_hard_cuts_at_a_tenth() -> None:
    def line(cosine: float) -> Subspace:
        return Subspace.from_vectors(torch.tensor([[cosine], [(1 - cosine**2) ** 0.5], [0.0]]), None)

    found = {"x": line(1.0), "near": line(0.32), "far": line(0.31)}  # squared cosines just above and below 0.1
    assert torch.allclose(evaluate(parse("x & near"), found, "sandwich-hard"), found["near"].projector, atol=1e-6)
    assert torch.count_nonzero(evaluate(parse("x & far"), found, "sandwich-hard")) == 0


def test_exact_says_when_nothing_is_left() -> None:
    with pytest.raises(UserError, match=r"nothing lies exactly in both sides of «a & b».*product"):
        evaluate(parse("a & b"), FOUND, "exact")
    assert torch.allclose(evaluate(parse("a & a"), FOUND, "exact"), FOUND["a"].truncate(0.5, hard=True).projector)


def test_bad_arguments() -> None:
    with pytest.raises(UserError, match="no subspace was given for 'b'"):
        evaluate(parse("a & b"), {"a": FOUND["a"]})
    with pytest.raises(UserError, match="unknown conjunction 'maybe': choose product"):
        evaluate(parse("a"), FOUND, "maybe")
    with pytest.raises(UserError, match="one projector"):
        evaluate(parse("a"), {"a": Subspace(Pa.expand(3, 8, 8))})
    with pytest.raises(UserError, match="at least one word"):
        Term(" ")
