"""The losses of link prediction by hand, and against slow references."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from subspaces.hierarchy.link_prediction import (
    margin_loss,
    shadow_loss,
    softmax_loss,
)
from subspaces.training.loop import generator_for


def random_scores(seed: int) -> tuple[Tensor, Tensor]:
    scores = torch.randn(7, 6, dtype=torch.float64, generator=generator_for(seed))
    return scores, torch.rand(7, 5, generator=generator_for(seed, 1)) < 0.6


def gradient(loss: Any, scores: Tensor) -> Tensor:
    leaf = scores.clone().requires_grad_()
    return torch.autograd.grad(loss(leaf), leaf)[0]


def test_margin_loss_by_hand() -> None:
    scores = torch.tensor([[0.9, 0.2, 0.6], [0.5, 0.9, 0.1]], dtype=torch.float64)
    counts = torch.tensor([[True, True], [True, False]])
    # first edge: 0 and 2·(0.1 + 0.5)/2, second: 0.3 and 2·0.8
    assert float(margin_loss(scores, counts, 0.8, 0.1, 2.0)) == pytest.approx((0.6 + 1.9) / 2)
    expected = torch.tensor([[0.0, 0.5, 0.5], [-0.5, 1.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(gradient(lambda leaf: margin_loss(leaf, counts, 0.8, 0.1, 2.0), scores), expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_energy_form_of_the_margin_loss(seed: int) -> None:
    """E⁺ + Σ [γ − E⁻]₊ for energies that are at least 0 (order embeddings, cones)."""
    energies = torch.randn(7, 6, dtype=torch.float64, generator=generator_for(seed)).abs()
    everything = torch.ones(7, 5, dtype=torch.bool)
    expected = energies[:, 0].mean() + (1.0 - energies[:, 1:]).clamp_min(0).sum(1).mean()
    assert float(margin_loss(-energies, everything, 0.0, -1.0, 5.0)) == pytest.approx(float(expected))


@pytest.mark.parametrize("weigh_as", [1.0, 5.0, 10.0])
def test_negatives_weigh_together_as_so_many(weigh_as: float) -> None:
    """Whatever their number: 1 is the mean, their number is the sum."""
    scores, counts = random_scores(1)
    lines = []
    for line, some in zip(scores.tolist(), counts.tolist(), strict=True):
        wrong = [max(0.0, score - 0.1) for score, one in zip(line[1:], some, strict=True) if one]
        lines.append(max(0.0, 0.8 - line[0]) + weigh_as * sum(wrong) / max(1, len(wrong)))
    assert float(margin_loss(scores, counts, 0.8, 0.1, weigh_as)) == pytest.approx(sum(lines) / 7)
    twice = torch.cat([scores, scores[:, 1:]], dim=1)
    assert float(margin_loss(twice, counts.repeat(1, 2), 0.8, 0.1, weigh_as)) == pytest.approx(sum(lines) / 7)


@pytest.mark.parametrize("margin", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_softmax_loss_is_cross_entropy_with_a_lowered_edge(seed: int, margin: float) -> None:
    scores, counts = random_scores(seed)

    def slow(leaf: Tensor) -> Tensor:
        lines = [torch.cat([leaf[i, :1] - margin, leaf[i, 1:][counts[i]]]) for i in range(7)]
        return torch.stack([cross_entropy(line[None], torch.tensor([0])) for line in lines]).mean()

    assert torch.allclose(softmax_loss(scores, counts, margin), slow(scores))
    assert torch.allclose(gradient(lambda leaf: softmax_loss(leaf, counts, margin), scores), gradient(slow, scores))


@pytest.mark.parametrize("negatives", [2, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_shadow_loss_is_two_cross_entropies_of_scores_that_are_cut_off(seed: int, negatives: int) -> None:
    """One against other children, the first half as the samplers have it, and one against other parents."""
    scores, counts = random_scores(seed)
    scores, counts = scores[:, : 1 + negatives], counts[:, :negatives]

    def slow(leaf: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for line, some in zip(leaf, counts, strict=True):
            for side in (range(negatives // 2), range(negatives // 2, negatives)):
                logits = [line[0].clamp_max(0)] + [(line[1 + i].clamp_min(-0.3) + 0.3) for i in side if some[i]]
                total = total + torch.logsumexp(torch.stack(logits), 0) - logits[0]
        return total / len(leaf)

    assert torch.allclose(shadow_loss(scores, counts, 0.3), slow(scores))
    assert torch.allclose(gradient(lambda leaf: shadow_loss(leaf, counts, 0.3), scores), gradient(slow, scores))


LOSSES = {
    "margin": lambda *both: margin_loss(*both, 0.8, 0.1, 3.0),
    "softmax": lambda *both: softmax_loss(*both, 0.2),
    "shadow": lambda *both: shadow_loss(*both, 0.2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_negative_that_does_not_count_has_no_influence(name: str) -> None:
    scores, counts = random_scores(2)
    assert not counts.all()
    before = LOSSES[name](scores, counts), gradient(lambda leaf: LOSSES[name](leaf, counts), scores)
    for far in (-1e6, 1e6):
        changed = scores.clone()
        changed[:, 1:][~counts] = far
        after = LOSSES[name](changed, counts), gradient(lambda leaf: LOSSES[name](leaf, counts), changed)
        assert torch.equal(before[0], after[0]) and torch.equal(before[1], after[1])
    assert not before[1][:, 1:][~counts].any() and before[1][:, 1:][counts].any()


@pytest.mark.parametrize("name", LOSSES)
def test_an_edge_without_negatives(name: str) -> None:
    """Costs what it lacks itself, and in a softmax of one nothing."""
    scores, nothing = torch.tensor([[0.3, 5.0, 7.0]]), torch.zeros(1, 2, dtype=torch.bool)
    assert float(LOSSES[name](scores, nothing)) == pytest.approx(0.5 if name == "margin" else 0.0)
    assert gradient(lambda leaf: LOSSES[name](leaf, nothing), scores).tolist() == [
        [-1.0 if name == "margin" else 0.0, 0.0, 0.0]
    ]
