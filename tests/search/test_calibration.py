"""Calibrated terms: features to log-odds, logic on log-odds, the profile of a model."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from pydantic import ValidationError

from subspaces.errors import UserError
from subspaces.search.calibration import PROFILE, Calibration, SearchProfile, combine, of_beta
from subspaces.search.query import parse
from subspaces.text.heads import BetaHead


def test_the_beta_head_is_a_calibration() -> None:
    head = BetaHead()
    with torch.no_grad():
        head.shapes.copy_(torch.tensor([[5.0, 1.5], [2.0, 7.0]]))
    scores = torch.linspace(0, 1, 101)
    odds = of_beta(head.shapes).log_odds({"inclusion": scores})
    assert torch.allclose(torch.sigmoid(odds), head(scores)[:, 0].exp().double(), atol=1e-5)


def test_logic_is_that_of_probabilities() -> None:
    p = {"a": torch.tensor([0.5, 0.9]).double(), "b": torch.tensor([0.2, 0.999]).double()}
    leaf = {text: torch.logit(value) for text, value in p.items()}.__getitem__
    a, b = p["a"], p["b"]
    for text, expected in (
        ("a & b", a * b),
        ("a & ~b", a * (1 - b)),
        ("a | b", 1 - (1 - a) * (1 - b)),
        ("~(a & b) | b", 1 - a * b * (1 - b)),
    ):
        assert torch.allclose(torch.sigmoid(combine(parse(text), leaf)), expected), text


def test_probabilities_that_round_to_one_keep_their_order() -> None:
    leaf = {
        "a": torch.tensor([90.0, 100.0, 400.0]).double(),
        "b": torch.tensor([95.0, 95.0, 95.0]).double(),
    }.__getitem__
    both, neither = combine(parse("a & b"), leaf), combine(parse("~a & ~b"), leaf)
    assert both.isfinite().all() and neither.isfinite().all()
    assert both.argsort().tolist() == [0, 1, 2] and neither.argsort().tolist() == [2, 1, 0]


def test_features_and_their_weights() -> None:
    calibration = Calibration(weights={"inclusion": 2.0, "hub": -1.0, "cosine": 3.0}, intercept=0.5)
    features = {name: torch.tensor([value]) for name, value in (("inclusion", 0.5), ("hub", 0.25), ("cosine", 0.1))}
    assert calibration.log_odds(features).tolist() == pytest.approx([0.5 + 1 - 0.25 + 0.3])
    assert calibration.vectors and calibration.hub
    with pytest.raises(ValidationError):
        Calibration(weights={"length": 1.0})  # type: ignore[dict-item]


def test_the_profile_of_a_model(tmp_path: Path) -> None:
    model = SimpleNamespace(
        folder=tmp_path,
        model=SimpleNamespace(beta=BetaHead()),
        spec=SimpleNamespace(model=SimpleNamespace(squared=False)),
    )
    assert SearchProfile.of_model(model).method == "product"
    fitted = Calibration(weights={"cosine": 10.0})
    SearchProfile(method="hybrid", calibrations={"hybrid": fitted}).write(tmp_path)
    profile = SearchProfile.of_model(model)
    assert (
        profile.method == "hybrid" and profile.calibration("hybrid") == fitted and profile.vectors and not profile.hub
    )
    assert profile.calibration("calibrated") == of_beta(model.model.beta.shapes)
    assert profile.calibration("exact") is None
    model.spec.model.squared = True  # no function of log s and log(1 − s)
    with pytest.raises(UserError, match="no calibration for the method calibrated: choose product"):
        SearchProfile.of_model(model).calibration("calibrated")
    (tmp_path / PROFILE).write_text(json.dumps({"method": "hybrid"}))
    with pytest.raises(UserError, match="has no calibration"):
        SearchProfile.of_model(model)
