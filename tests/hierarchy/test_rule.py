"""The automatic settings."""

from __future__ import annotations

import pytest

from subspaces.errors import UserError
from subspaces.hierarchy.rule import settings_for


@pytest.mark.parametrize("nodes", [3, 255, 256, 6_000, 19_999, 20_000, 1_000_000])
def test_every_size_gets_enough_steps(nodes: int) -> None:
    chosen = settings_for(nodes)
    assert chosen.epochs * -(-nodes // chosen.batch) >= 200
    assert chosen.epochs >= 20


def test_given_values_replace_the_rule_and_impossible_ones_are_refused() -> None:
    chosen = settings_for(100, 16, 0.2, epochs=3, batch=10, lr=0.5)
    assert (chosen.epochs, chosen.batch, chosen.lr) == (3, 10, 0.5)
    assert chosen.start == pytest.approx(0.05)
    for wrong in ({"epochs": 0}, {"batch": 0}, {"lr": 0.0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            settings_for(100, 16, 0.2, **wrong)
