"""The automatic settings, and the threshold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.hierarchy.rule import training_for
from subspaces.hierarchy.threshold import best_f1, in_closure
from tests.wordnet.toys import random_dag


@pytest.mark.parametrize("closure", [5, 1_999, 2_000, 20_000, 199_999, 200_000, 5_000_000])
@pytest.mark.parametrize("depth", [1, 4, 12])
def test_every_size_gets_enough_steps_and_visits(closure: int, depth: int) -> None:
    nodes = max(3, closure // depth)
    chosen = training_for(nodes, closure, 64, 0.2)
    steps_per_epoch = -(-closure // min(chosen["batch"], closure))
    assert chosen["epochs"] >= 8
    assert chosen["epochs"] * steps_per_epoch >= 300
    assert chosen["epochs"] * closure / nodes >= 40


def test_larger_hierarchies_get_larger_batches_and_smaller_rates() -> None:
    chosen = [training_for(size // 5, size, 64, 0.2) for size in (1_000, 10_000, 100_000, 1_000_000)]
    assert [one["batch"] for one in chosen] == [128, 256, 256, 512]
    assert [one["lr"] for one in chosen] == [0.01, 0.01, 0.005, 0.002]
    assert training_for(100, 400, 16, 0.2)["start"] == pytest.approx(0.05)
    assert training_for(100, 400, 64, 0.2)["start"] == pytest.approx(0.025)


def test_what_is_given_takes_the_place_of_the_rule_and_is_checked() -> None:
    chosen = training_for(100, 400, 16, 0.2, epochs=3, batch=10, lr=0.5)
    assert (chosen["epochs"], chosen["batch"], chosen["lr"]) == (3, 10, 0.5)
    for wrong in ({"epochs": 0}, {"batch": 0}, {"lr": 0.0}, {"lr": float("nan")}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            training_for(100, 400, 16, 0.2, **wrong)


def test_the_best_threshold_is_the_best_of_all() -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        positive = draw.integers(3, 12, size=draw.integers(1, 20)) / 10  # few values, so there are ties
        negative = draw.integers(0, 9, size=draw.integers(1, 60)) / 10
        threshold, f1 = best_f1(positive, negative)

        def f1_at(value: float, positive=positive, negative=negative) -> float:
            found = (positive >= value).sum()
            return 2 * found / (found + (negative >= value).sum() + len(positive))

        assert f1_at(threshold) == pytest.approx(f1)
        assert f1 == pytest.approx(max(f1_at(value) for value in np.concatenate([positive, negative])))


def test_a_clean_gap_is_cut_in_its_middle() -> None:
    assert best_f1(np.array([0.9, 0.8]), np.array([0.2, 0.1])) == (0.5, 1.0)
    assert best_f1(np.array([0.5]), np.array([0.5])) == pytest.approx((0.5, 2 / 3))


def test_closure_pairs_are_recognised() -> None:
    graph = random_dag(30, 2, 60)
    pairs = torch.cartesian_prod(torch.arange(30), torch.arange(30))
    closure = {tuple(pair) for pair in graph.closure.tolist()}
    assert in_closure(graph, pairs).tolist() == [tuple(pair) in closure for pair in pairs.tolist()]
