"""Draws of the training loop: they depend on their words only."""

from __future__ import annotations

import pytest
import torch

from subspaces.training.loop import generator_for


def draws(*words: int) -> tuple[int, ...]:
    return tuple(torch.randint(2**62, (4,), generator=generator_for(*words)).tolist())


def test_the_same_words_give_the_same_draws() -> None:
    torch.manual_seed(1)
    first = draws(3, 2, 5, 7)
    torch.rand(10)
    assert draws(3, 2, 5, 7) == first


def test_other_words_give_other_draws() -> None:
    words = [
        (),
        (0,),
        (1,),
        (0, 0),
        (0, 1),
        (1, 0),
        (2**40,),
        (-1,),
        (0, 0, 0),
        (1, 2),
        (2, 1),
        (3, 2, 5, 7),
        (3, 2, 7, 5),
    ]
    words += [(seed, 2, epoch, step) for seed in range(4) for epoch in range(8) for step in range(30)]
    assert len({draws(*some) for some in words}) == len(set(words))


def test_draws_of_neighbouring_steps_are_unrelated() -> None:
    means = torch.stack(
        [torch.rand(64, generator=generator_for(0, 2, epoch, step)) for epoch in range(10) for step in range(30)]
    )
    assert means.mean().item() == pytest.approx(0.5, abs=0.01)
    correlation = torch.corrcoef(means) - torch.eye(len(means))
    assert correlation.abs().max() < 0.65  # 300 rows of 64: chance alone gives about 0.55
