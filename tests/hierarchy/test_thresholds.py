"""Average precision, F1 and the threshold against slow references in fractions, with many ties; and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subspaces.errors import UserError
from subspaces.hierarchy.thresholds import average_precision, best_threshold, judge

GRID = np.linspace(0.0, 1.0, 100).tolist()
# Quarters from −0.75 to 1.25: few different values, so ties everywhere, zeros of both signs, and scores on both sides of the grid.
SCORES = st.lists(
    st.integers(-4, 5).map(lambda quarter: -0.0 if quarter == -4 else quarter / 4), min_size=1, max_size=12
)
FINE = st.lists(st.floats(-1.5, 1.5, allow_nan=False), min_size=1, max_size=12)


def confusion(positive: list[float], negative: list[float], threshold: float) -> tuple[int, int]:
    return sum(score >= threshold for score in positive), sum(score >= threshold for score in negative)


def f1(positive: list[float], negative: list[float], threshold: float) -> Fraction:
    """From precision and recall, as in a textbook."""
    hits, false = confusion(positive, negative, threshold)
    if not hits:
        return Fraction(0)
    precision, recall = Fraction(hits, hits + false), Fraction(hits, len(positive))
    return 2 * precision * recall / (precision + recall)


def slow_average_precision(positive: list[float], negative: list[float]) -> Fraction:
    """Σ (recall gained) × precision, from the strictest threshold to the loosest."""
    area, before = Fraction(0), Fraction(0)
    for level in sorted({*positive, *negative}, reverse=True):
        hits, false = confusion(positive, negative, level)
        recall = Fraction(hits, len(positive))
        area += (recall - before) * Fraction(hits, hits + false)
        before = recall
    return area


def slow_best(positive: list[float], negative: list[float], candidates: list[float]) -> float:
    """Of the thresholds with the largest F1 the highest."""
    values = {one: f1(positive, negative, one) for one in candidates}
    largest = max(values.values())
    return max(one for one, value in values.items() if value == largest)


def arrays(*lists: list[float]) -> list[np.ndarray]:
    return [np.array(one, dtype=np.float64) for one in lists]


# --- against slow references --------------------------------------------------------------------------------------------------


@given(SCORES | FINE, SCORES | FINE)
def test_average_precision(positive: list[float], negative: list[float]) -> None:
    assert average_precision(*arrays(positive, negative)) == pytest.approx(
        100 * float(slow_average_precision(positive, negative))
    )


@given(SCORES | FINE, SCORES | FINE)
def test_average_precision_is_that_of_scikit_learn(positive: list[float], negative: list[float]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels = [1] * len(positive) + [0] * len(negative)
    expected = 100 * metrics.average_precision_score(labels, positive + negative)
    assert average_precision(*arrays(positive, negative)) == pytest.approx(expected)


@given(SCORES, SCORES, st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.25, 1.25, 2.0]))
def test_f1_precision_and_recall(positive: list[float], negative: list[float], threshold: float) -> None:
    found = judge(*arrays(positive, negative), threshold)
    hits, false = confusion(positive, negative, threshold)
    assert found["f1"] == pytest.approx(100 * float(f1(positive, negative, threshold)))
    assert found["precision"] == pytest.approx(100 * hits / max(1, hits + false))
    assert found["recall"] == pytest.approx(100 * hits / len(positive))
    assert set(found) == {"f1", "precision", "recall"}


@given(SCORES | FINE, SCORES | FINE)
def test_the_exact_threshold(positive: list[float], negative: list[float]) -> None:
    """Judged by fractions, so that a tie is a tie."""
    assert best_threshold(*arrays(positive, negative)) == slow_best(positive, negative, positive + negative)


@given(SCORES | FINE, SCORES | FINE)
def test_the_threshold_of_the_grid(positive: list[float], negative: list[float]) -> None:
    assert best_threshold(*arrays(positive, negative), "grid") == slow_best(positive, negative, GRID)


@given(SCORES | FINE, SCORES | FINE)
def test_exact_is_never_worse_than_the_grid(positive: list[float], negative: list[float]) -> None:
    both = arrays(positive, negative)
    assert judge(*both, best_threshold(*both))["f1"] >= judge(*both, best_threshold(*both, "grid"))["f1"]


@given(SCORES, SCORES, st.randoms(use_true_random=False))
def test_order_does_not_matter(positive: list[float], negative: list[float], random) -> None:
    before = average_precision(*arrays(positive, negative)), best_threshold(*arrays(positive, negative))
    random.shuffle(positive)
    random.shuffle(negative)
    assert (average_precision(*arrays(positive, negative)), best_threshold(*arrays(positive, negative))) == before


# --- by hand ------------------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    positive, negative = arrays([0.9, 0.5, 0.5], [0.7, 0.5, 0.1])
    # 0.9: 1 of 1; 0.7: 1 of 2; 0.5: 3 of 5, two edges gained at once
    assert average_precision(positive, negative) == pytest.approx(100 * (1 / 3 * 1 + 2 / 3 * 3 / 5))
    assert judge(positive, negative, 0.5) == pytest.approx({"f1": 75.0, "precision": 60.0, "recall": 100.0})
    assert judge(positive, negative, 0.6) == pytest.approx({"f1": 40.0, "precision": 50.0, "recall": 100 / 3})
    assert judge(positive, negative, 2.0) == {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    assert best_threshold(positive, negative) == 0.5


def test_a_perfect_score() -> None:
    positive, negative = arrays([0.8, 0.6], [0.5, -3.0])
    assert average_precision(positive, negative) == 100.0 and best_threshold(positive, negative) == 0.6
    assert judge(positive, negative, 0.6)["f1"] == 100.0


@pytest.mark.parametrize("scan", ["exact", "grid"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_is_a_threshold(scan: str, zero: float) -> None:
    positive, negative = arrays([zero, 0.3], [-0.001, -0.7])
    threshold = best_threshold(positive, negative, scan)
    assert threshold == 0.0
    assert judge(positive, negative, threshold) == {"f1": 100.0, "precision": 100.0, "recall": 100.0}


def test_negative_thresholds_are_only_for_the_exact_scan() -> None:
    """Energies with a minus lie below every point of the grid."""
    positive, negative = arrays([-0.2, -0.4], [-0.9, -0.5])
    assert best_threshold(positive, negative) == -0.4
    assert judge(positive, negative, best_threshold(positive, negative, "grid"))["f1"] == 0.0


def test_of_two_equally_good_thresholds_the_higher() -> None:
    positive, negative = arrays([0.75, 0.25], [0.5, 0.5])
    assert judge(positive, negative, 0.75)["f1"] == judge(positive, negative, 0.25)["f1"] == pytest.approx(200 / 3)
    assert best_threshold(positive, negative) == 0.75
    assert best_threshold(positive, negative, "grid") == max(point for point in GRID if point <= 0.75)


# --- what is refused ----------------------------------------------------------------------------------------------------------

MEASURES = {
    "average precision": average_precision,
    "judge": lambda positive, negative: judge(positive, negative, 0.5),
    "exact": best_threshold,
    "grid": lambda positive, negative: best_threshold(positive, negative, "grid"),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_no_numbers(measure: str, side: int, bad: float) -> None:
    both = arrays([0.9, 0.8], [0.1, 0.2])
    both[side][1] = bad
    with pytest.raises(UserError, match="NaN or infinite: train it again with a lower learning rate"):
        MEASURES[measure](*both)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("side", [0, 1])
def test_nothing_to_judge(measure: str, side: int) -> None:
    both = arrays([0.9, 0.8], [0.1, 0.2])
    both[side] = both[side][:0]
    with pytest.raises(UserError, match="both edges and non-edges are needed"):
        MEASURES[measure](*both)


def test_an_unknown_scan() -> None:
    with pytest.raises(UserError, match="unknown scan 'fast': use exact or grid"):
        best_threshold(*arrays([0.9], [0.1]), "fast")
