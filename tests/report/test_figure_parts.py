"""Words that fit, names and looks of rows, notes on the budget."""

from __future__ import annotations

import pytest

from subspaces.report.figures.parts import about, budget, finite, in_order, label, look, seeds, size_words, width, wrap
from subspaces.report.layouts import LAYOUTS
from tests.report.made_figures import evaluation


def test_wrapped_lines_fit_and_lose_no_word():
    text = "a quick brown fox jumps over the lazy dog " * 5
    lines = wrap(text, 100.0)
    assert all(width(line) <= 100.0 for line in lines) and len(lines) > 5
    assert " ".join(lines) == " ".join(text.split())


def test_a_word_that_is_too_long_is_cut_and_too_many_lines_end_in_dots():
    lines = wrap("i" + "m" * 60, 80.0)
    assert "".join(lines) == "i" + "m" * 60 and all(width(line) <= 80.0 for line in lines)
    short = wrap("word " * 50, 80.0, lines=2)
    assert len(short) == 2 and short[-1].endswith("…") and all(width(line) <= 80.0 for line in short)
    assert wrap("", 80.0) == [] and wrap("one", 80.0, lines=1) == ["one"]


def test_every_row_of_the_tables_has_its_own_look():
    for table in ("snli", "lambda_sensitivity"):
        looks = [tuple(map(str, look(row).values())) for row in LAYOUTS[table].rows]
        assert len(set(looks)) == len(looks)
    assert look("something-else")["marker"]


def test_names_and_order():
    assert label("minilm-subspace-64") == LAYOUTS["snli"].rows["minilm-subspace-64"]
    assert label("something-else") == "something-else"
    rows = ["zebra", "mpnet-mlp", "minilm-mlp", "lambda-0.05"]
    assert in_order(rows) == ["minilm-mlp", "mpnet-mlp", "lambda-0.05", "zebra"]


def test_the_budget_says_what_differs_from_the_paper():
    said = budget([evaluation(pairs=4_000), evaluation("minilm-mlp", pairs=16_000)])
    assert said == "laptop scale, 4,000–16,000 training pairs, all-MiniLM-L6-v2 in place of all-mpnet-base-v2"
    cut = evaluation("minilm-mlp")
    cut["settings"]["backbone"]["layers"] = 2
    assert "the first 2 layers only" in budget([cut])
    assert budget([]) == budget([{}]) == ""
    assert seeds([evaluation(seed=0), evaluation(seed=1), evaluation(ways=3, seed=1)]) == "2 seeds"


@pytest.mark.parametrize(
    ("value", "known"),
    [(1, True), (0.5, True), (None, False), (float("nan"), False), (float("inf"), False), ("1", False)],
)
def test_what_can_be_drawn(value, known):
    assert finite(value) is known


def test_sizes():
    assert [size_words(count) for count in (64, 16_512, 2.6e9)] == ["64 B", "16.5 kB", "2.6 GB"]


def test_a_foot_names_a_model_but_not_a_digest():
    assert (
        about({"model": "minilm-mlp", "scale": "laptop", "documents": 155070})
        == "minilm-mlp, laptop scale, 155,070 documents"
    )
    assert (
        about({"model": 8 * "0123abcd", "scale": "quick", "sample": True})
        == "quick scale, a small sample, not comparable"
    )
