"""Does a number hold? Tolerance and direction."""

from __future__ import annotations

import pytest

from subspaces.report.verdicts import VERDICTS, tolerance, verdict


def test_the_tolerance_is_the_larger_of_spread_and_half_a_percent():
    assert tolerance(200.0, None, None) == pytest.approx(1.0)
    assert tolerance(200.0, 3.0, 4.0) == pytest.approx(10.0)
    assert tolerance(-200.0, None, None) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("value", "better", "expected"),
    [
        (90.0, "up", "reproduced"),
        (90.44, "up", "reproduced"),
        (89.56, "up", "reproduced"),
        (90.46, "up", "better"),
        (89.54, "up", "short"),
        (90.46, "down", "short"),
        (89.54, "down", "better"),
    ],
)
def test_direction_and_edges(value, better, expected):
    assert verdict(value, None, 90.0, None, better) == expected
    assert expected in VERDICTS


def test_a_wide_spread_reproduces_what_a_narrow_one_does_not():
    assert verdict(92.0, 0.1, 90.0, 0.1, "up") == "better"
    assert verdict(92.0, 1.0, 90.0, 0.5, "up") == "reproduced"
