"""Scores of composites where the truth is known: subspaces along axes, boxes with corners, vectors with a net of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.experiments.composition.auc import auc
from subspaces.experiments.composition.scoring import (
    BoxScores,
    Scores,
    SubspaceScores,
    VectorScores,
    operator_of,
    scores_of,
)
from subspaces.text.load import TextModel, load_text_model
from subspaces.text.pair_model import PairModel
from tests.experiments.composition.models import tiny_model

P, H1, H2, H3 = (torch.tensor([row]) for row in range(4))
LAM = 0.05


@pytest.fixture
def subspaces(tmp_path: Path) -> TextModel:
    return load_text_model(tiny_model(tmp_path, "subspace"))


def axes(*chosen: int, value: float = 1.0, dim: int = 6) -> Tensor:
    diagonal = torch.zeros(dim)
    diagonal[list(chosen)] = value
    return diagonal.diag()


def scene(value: float = 1.0) -> Tensor:
    """p ⊂ h1, p ⊂ h2, h3 ⊥ p, and h1 shares a direction with each of h2 and h3."""
    return torch.stack(
        [axes(0, value=value), axes(0, 1, value=value), axes(0, 2, value=value), axes(1, 3, value=value)]
    )


def four(scores: Scores, operator: str) -> list[float | None]:
    """h1∧h2, h1∧h3, h1∧¬h3, h1∧¬h2."""
    found = [
        scores.conjunction(P, H1, right, negated, operator)
        for right, negated in ((H2, False), (H3, False), (H3, True), (H2, True))
    ]
    return [None if one is None else one.item() for one in found]


def random_projectors(count: int, dim: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return Subspace.from_vectors(torch.randn(count, dim, 3, generator=generator, dtype=torch.float64), LAM).projector


@pytest.mark.parametrize("operator", SubspaceScores.operators)
def test_hard_subspaces_along_axes_compose_exactly(subspaces: TextModel, operator: str) -> None:
    assert four(SubspaceScores(subspaces, scene()), operator) == pytest.approx([1, 0, 1, 0], abs=1e-6)


def test_soft_subspaces_along_axes(subspaces: TextModel) -> None:
    scores = SubspaceScores(subspaces, scene(0.9))
    assert four(scores, "product") == pytest.approx([0.81, 0, 0.9, 0.09], abs=1e-6)
    assert four(scores, "sandwich-hard") == pytest.approx([1, 0, 1, 0], abs=1e-6), "0.9·0.1² lies below the threshold"
    assert four(scores, "exact") == pytest.approx([1, 0, 1, 0], abs=1e-6), "made hard first, or all of them would be 0"


def test_exact_meets_of_small_subspaces_in_general_position_are_empty(subspaces: TextModel) -> None:
    scores = SubspaceScores(subspaces, random_projectors(4).float())
    assert four(scores, "exact")[:2] == [0, 0]


def test_scores_are_shares(subspaces: TextModel) -> None:
    rows = torch.arange(30)
    scores = SubspaceScores(subspaces, random_projectors(30))
    p, a, b = rows, rows.roll(1), rows.roll(7)
    found = [scores.plain(p, a), scores.disjunction(p, a, b, "span")]
    found += [
        scores.conjunction(p, a, b, negated, how) for negated in (False, True) for how in ("sandwich-hard", "exact")
    ]
    for one in found:
        assert one.shape == (30,) and one.min() >= -1e-9 and one.max() <= 1 + 1e-9
    assert (scores.disjunction(p, a, b, "span") >= scores.conjunction(p, a, b, False, "exact") - 1e-9).all()


def test_the_product_is_the_trace_of_three(subspaces: TextModel) -> None:
    encoded = random_projectors(4)
    p, a, b = encoded[0], encoded[1], encoded[2]
    scores = SubspaceScores(subspaces, encoded)
    eye = torch.eye(8, dtype=torch.float64)
    both = scores.conjunction(P, H1, H2, False, "product").item()
    assert both == pytest.approx((torch.trace(p @ a @ b) / torch.trace(p)).item())
    assert both == pytest.approx((torch.trace(p @ (a @ b + b @ a) / 2) / torch.trace(p)).item()), (
        "the symmetric part is all it sees"
    )
    without = scores.conjunction(P, H1, H2, True, "product").item()
    assert without == pytest.approx((torch.trace(p @ a @ (eye - b)) / torch.trace(p)).item())
    assert both + without == pytest.approx(scores.plain(P, H1).item()), "a = (a ∧ b) + (a ∧ ¬b)"


def test_disjunctions_of_subspaces(subspaces: TextModel) -> None:
    hard = SubspaceScores(subspaces, scene())
    assert hard.disjunction(P, H1, H3, "sum").item() == pytest.approx(1)
    assert hard.disjunction(P, H3, H3, "sum").item() == pytest.approx(0)
    assert hard.disjunction(P, H1, H3, "span").item() == pytest.approx(1 / (1 + LAM)), "soft with the model's λ"
    assert hard.disjunction(P, H1, H2, "span").item() == pytest.approx(2 / (2 + LAM))
    assert hard.disjunction(P, H3, H3, "span").item() == pytest.approx(0, abs=1e-6)


def test_double_negation_changes_nothing_but_rounding(subspaces: TextModel) -> None:
    rows = torch.arange(20)
    scores = SubspaceScores(subspaces, random_projectors(20).float())
    torch.testing.assert_close(
        scores.double_negation(rows, rows.roll(3)), scores.plain(rows, rows.roll(3)), atol=1e-6, rtol=0
    )


def test_boxes_compose_by_intersection_only(tmp_path: Path) -> None:
    def box(low: list[float], high: list[float]) -> Tensor:
        return torch.tensor([low, [b - a for a, b in zip(low, high, strict=True)]], dtype=torch.float32)

    text_model = load_text_model(tiny_model(tmp_path, "box"))
    encoded = torch.stack(
        [box([0, 0], [20, 20]), box([-5, -5], [25, 40]), box([-5, 0], [50, 20]), box([200, 200], [260, 260])]
    )
    scores = BoxScores(text_model, encoded)
    inside, outside, *negations = four(scores, "intersection")
    assert inside == pytest.approx(0, abs=1e-5), "all of the premise"
    assert outside < -100 and negations == [None, None]
    assert scores.disjunction(P, H1, H3, "sum") is None and scores.double_negation(P, H1) is None
    half = BoxScores(
        text_model, torch.stack([box([0, 0], [200, 200]), box([0, 0], [200, 100]), box([0, 0], [100, 200])])
    )
    assert half.plain(P, H1).exp().item() == pytest.approx(1 / 2, rel=1e-3)
    assert half.conjunction(P, H1, H2, False, "intersection").exp().item() == pytest.approx(1 / 4, rel=1e-3)


class Near(PairModel):
    """Entailment is nearness: a vector model that judges the atoms below without fault."""

    ways = 2

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        distance = (premise - hypothesis).square().sum(-1)
        return torch.stack([-distance, torch.full_like(distance, -0.5)], dim=-1)


def test_vectors_may_be_right_on_atoms_and_conjunctions_and_fail_on_negations(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, "vector")
    trained = load_text_model(folder)
    text_model = TextModel(Near(), trained.settings, trained.tokeniser, folder)
    generator = torch.Generator().manual_seed(0)
    count = 40
    premise = torch.nn.functional.normalize(torch.randn(count, 6, generator=generator), dim=-1)
    h1, h2 = (premise + 0.05 * torch.randn(count, 6, generator=generator) for _ in range(2))
    aside = torch.nn.functional.normalize(torch.randn(count, 6, generator=generator), dim=-1)
    h3 = -premise + aside
    scores = VectorScores(text_model, torch.cat([premise, h1, h2, h3]))
    p, a, b, c = torch.arange(4 * count).view(4, count)

    def measured(positive: Tensor, negative: Tensor) -> float:
        return auc(positive.numpy(), negative.numpy())

    assert measured(scores.plain(p, a), scores.plain(p, c)) == 100
    (how,) = scores.operators
    assert measured(scores.conjunction(p, a, b, False, how), scores.conjunction(p, a, c, False, how)) > 99
    assert measured(scores.conjunction(p, a, c, True, how), scores.conjunction(p, a, b, True, how)) < 20, (
        "h1 − h3 runs away from p"
    )
    assert scores.disjunction(p, a, c, "sum") is None and scores.double_negation(p, a) is None


def test_vectors_use_the_mean_the_difference_and_the_trained_net(tmp_path: Path) -> None:
    text_model = load_text_model(tiny_model(tmp_path, "vector"))
    encoded = text_model.represent(["A man runs.", "A man moves.", "Someone is outside.", "A man sleeps."])
    scores = VectorScores(text_model, encoded)
    p, a, b = encoded[0:1], encoded[1:2], encoded[2:3]
    for negated, composite in ((False, (a + b) / 2), (True, a - b)):
        probability = text_model.model.logits(p, composite).softmax(1)[0, 0].item()
        found = scores.conjunction(P, H1, H2, negated, "mean-difference")
        assert found.sigmoid().item() == pytest.approx(probability, rel=1e-5)


def test_models_that_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3-way model"):
        scores_of(load_text_model(tiny_model(tmp_path / "three", "vector", ways=3)))
    with pytest.raises(UserError, match="gru_order has no operators"):
        scores_of(load_text_model(tiny_model(tmp_path / "gru", "gru_order")))
    with pytest.raises(UserError, match="unknown operator 'and'"):
        operator_of(SubspaceScores, "and")
    assert operator_of(SubspaceScores, "exact") == "exact" and operator_of(BoxScores, "exact") == "intersection"
