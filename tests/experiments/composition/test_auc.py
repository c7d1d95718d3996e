"""AUC and its interval, against another implementation and against drawing premises one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from subspaces.errors import UserError
from subspaces.experiments.composition.auc import LEVEL, auc, interval

few_values = st.lists(st.integers(0, 6), min_size=1, max_size=40)  # few values, so that there are many ties


@settings(max_examples=40)
@given(few_values, few_values)
def test_auc_agrees_with_scikit_learn(positive: list[int], negative: list[int]) -> None:
    truth = [1] * len(positive) + [0] * len(negative)
    expected = 100 * roc_auc_score(truth, positive + negative)
    assert auc(np.array(positive, dtype=float), np.array(negative, dtype=float)) == pytest.approx(expected, abs=1e-9)


def test_auc_of_perfect_useless_and_reversed_scores() -> None:
    low, high = np.arange(5.0), np.arange(5.0) + 10
    assert auc(high, low) == 100 and auc(low, high) == 0 and auc(np.ones(4), np.ones(7)) == 50


def test_auc_refuses_what_is_no_score() -> None:
    with pytest.raises(UserError, match="one class is empty"):
        auc(np.array([]), np.ones(2))
    with pytest.raises(UserError, match="NaN or infinite"):
        auc(np.array([1.0, np.nan]), np.ones(2))
    with pytest.raises(UserError, match="one of each"):
        interval(np.ones(3), np.ones(2), np.random.default_rng(0))


def test_the_interval_draws_premises() -> None:
    """Both composites of a drawn premise come along: the same as repeating them and ranking anew."""
    rng = np.random.default_rng(1)
    positive, negative = np.round(rng.normal(0.5, 1, 12), 1), np.round(rng.normal(0, 1, 12), 1)
    drawn = np.random.default_rng(7).multinomial(12, np.full(12, 1 / 12), size=300)
    values = [auc(np.repeat(positive, count), np.repeat(negative, count)) for count in drawn]
    expected = np.percentile(values, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    assert interval(positive, negative, np.random.default_rng(7), draws=300) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.5])
def test_the_interval_contains_the_point_and_narrows_with_premises(shift: float) -> None:
    rng = np.random.default_rng(3)
    widths = []
    for count in (20, 100, 400):
        positive, negative = rng.normal(shift, 1, count), rng.normal(0, 1, count)
        low, high = interval(positive, negative, np.random.default_rng(0))
        assert 0 <= low <= auc(positive, negative) <= high <= 100
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)


def test_the_interval_of_perfect_scores_is_a_point_and_seeds_decide_the_rest() -> None:
    low, high = np.arange(6.0), np.arange(6.0) + 10
    assert interval(high, low, np.random.default_rng(0)) == (100, 100)
    mixed = np.random.default_rng(5).normal(size=(2, 30))
    same = [interval(*mixed, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert same[0] == same[1] != same[2]
