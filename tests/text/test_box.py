"""Boxes: volumes, shares and gradients where boxes contain each other, touch, or are far apart."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from subspaces.errors import UserError
from subspaces.text.encoders.box import intersection, log_share, log_volume
from tests.text.small import sentences, small_model


def box(lower: list[float], side: list[float]) -> torch.Tensor:
    return torch.tensor([lower, side])


def test_volume_and_share_by_hand():
    a, b = box([0.0, 0.0], [2.0, 3.0]), box([1.0, -1.0], [4.0, 2.0])
    assert intersection(a, b).tolist() == [[1.0, 0.0], [1.0, 1.0]]
    soft = math.log(math.log1p(math.e)) * 2
    assert log_volume(intersection(a, b)).item() == pytest.approx(soft, rel=1e-6)
    whole = math.log(math.log1p(math.exp(2.0))) + math.log(math.log1p(math.exp(3.0)))
    assert log_share(a, b).item() == pytest.approx(soft - whole, rel=1e-5)


def test_a_premise_inside_is_covered_wholly():
    inner, outer = box([0.2, 0.3], [0.5, 0.1]), box([0.0, 0.0], [1.0, 1.0])
    assert log_share(inner, outer).exp().item() == 1.0
    assert log_share(outer, inner).exp().item() < 1.0
    assert log_share(inner, inner).exp().item() == 1.0


@pytest.mark.parametrize("gap", [1.0, 20.0, 500.0])
def test_boxes_apart_share_next_to_nothing_but_are_drawn_together(gap):
    model = small_model("box", dim=16)
    premise = torch.stack([torch.zeros(16), torch.ones(16)])[None].requires_grad_()
    hypothesis = torch.stack([torch.full((16,), 1.0 + gap), torch.ones(16)])[None].requires_grad_()
    assert model.inclusion(premise, hypothesis).item() < 1e-3
    loss = model.loss(premise, hypothesis, torch.tensor([0]), 0.0)
    loss.backward()
    assert math.isfinite(loss.item())
    for one in (premise, hypothesis):
        assert torch.isfinite(one.grad).all()
    assert (premise.grad[0, 0] < -0.1).all() and (
        hypothesis.grad[0, 0] > 0.1
    ).all()  # a step moves the corners towards each other


def test_volume_is_smooth_where_the_formula_changes():
    side = torch.linspace(-17, -13, 4001, dtype=torch.float64)
    found = log_volume(torch.stack([torch.zeros_like(side), side], dim=-1)[:, :, None])
    assert torch.allclose(found, F.softplus(side).log(), atol=1e-6)
    assert torch.isfinite(log_volume(box([0.0], [-1e4])))


def test_intersections_of_several():
    generator = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn(7, 2, 5, generator=generator) for _ in range(3))
    assert torch.allclose(intersection(a, b), intersection(b, a))
    assert torch.allclose(intersection(intersection(a, b), c), intersection(a, intersection(b, c)), atol=1e-6)
    assert torch.allclose(intersection(a, a), a, atol=1e-6)
    assert (log_share(a, intersection(b, c)) <= log_share(a, b) + 1e-6).all()


def test_encoded_boxes():
    model = small_model("box", dim=6).eval()
    tokens, wide = sentences([5, 3, 8]), sentences([5, 3, 8], width=20)
    with torch.no_grad():
        boxes = model.encode(tokens)
        assert boxes.shape == (3, 2, 6) and (boxes[:, 1] > 0).all()
        assert torch.allclose(boxes, model.encode(wide), atol=1e-5)
        logits, score = model.logits(boxes, boxes.roll(1, 0)), model.inclusion(boxes, boxes.roll(1, 0))
        assert logits.shape == (3, 2) and (score > 0).all() and (score <= 1).all()
        assert torch.allclose(logits, model.beta(score), atol=1e-4)
        squared = small_model("box", dim=6, squared=True).eval()
        assert torch.allclose(squared.logits(boxes, boxes.roll(1, 0)), squared.beta(score.square()), atol=1e-4)


def test_unmasked_boxes_see_the_padding():
    model = small_model("box", dim=6, masked=False).eval()
    with torch.no_grad():
        assert (model.encode(sentences([5])) - model.encode(sentences([5], width=20))).abs().max() > 1e-4


def test_boxes_have_two_classes_only():
    with pytest.raises(UserError, match="2-way"):
        small_model("box", 3, dim=6)


def test_parameters_are_settled():
    model = small_model("box", dim=6)
    with torch.no_grad():
        model.beta.shapes.add_(100)
        model.settle()
    assert (model.beta.shapes <= 20).all()
