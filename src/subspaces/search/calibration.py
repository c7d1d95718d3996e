"""Term-wise logic: each term of a query becomes a probability that a document shows it, and logic combines them.

Composing one matrix for a whole query (`evaluate` in query.py, §4.6) asks how much of a document lies in P_a P_b. A
caption lies only partly in each of its terms, so this product prefers documents of low rank that lie in almost
anything. Term-wise logic calibrates first: p(term | document) is a logistic function of the inclusion NIS(P_term | P_doc),
and then a & b is p·q, ~a is 1 − p, a | b is 1 − (1 − p)(1 − q).

The posterior of the Beta head (§3.3) is such a function of log s and log(1 − s), so every trained model has the method
`calibrated`. A model folder may bring its own weights in search.json, fitted to judged documents; they may use the hub
correction (a document's mean inclusion in generic texts: one number per document, stored in the index) and the cosine
of the plain backbone (method `hybrid`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from pydantic import Field, ValidationError, model_validator
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import read_json, write_json
from subspaces.search.query import And, Conjunction, Not, Or, Query, Term
from subspaces.settings import Strict

if TYPE_CHECKING:
    from subspaces.text.load import TextModel

Termwise = Literal["calibrated", "hybrid"]
Method = Literal["product", "sandwich-hard", "exact", "calibrated", "hybrid"]
Feature = Literal["inclusion", "log_inclusion", "log_rest", "hub", "cosine", "cosine_hub"]
PROFILE = "search.json"
_EDGE = 1e-4  # inclusions are kept this far from 0 and 1, as in the Beta head
GENERIC = (
    "Something is happening.",
    "This is a picture.",
    "There are things here.",
    "People are doing something.",
    "Somebody is somewhere.",
    "An object is in a place.",
    "It is a scene of daily life.",
    "Someone is outside or inside.",
    "There is something to see.",
    "A moment in time.",
)


class Calibration(Strict):
    """log p/(1 − p) = intercept + Σ weight·feature.

    inclusion, log_inclusion, log_rest: s = NIS(P_term | P_document), log s and log(1 − s); hub: the mean of s over
    generic texts; cosine: of the plain backbone's vectors; cosine_hub: the mean cosine with generic texts.
    """

    weights: dict[Feature, float] = Field(min_length=1)
    intercept: float = 0.0

    @property
    def vectors(self) -> bool:
        """Does it read the vectors of the plain backbone?"""
        return bool({"cosine", "cosine_hub"} & set(self.weights))

    @property
    def hub(self) -> bool:
        return "hub" in self.weights

    def log_odds(self, features: Mapping[str, Tensor]) -> Tensor:
        """From `inclusion` and the other features that have a weight, of any one shape; float64."""
        s = features["inclusion"].double()
        clamped = s.clamp(_EDGE, 1 - _EDGE)
        derived = {"inclusion": s, "log_inclusion": clamped.log(), "log_rest": torch.log1p(-clamped)}
        total = torch.full_like(s, self.intercept)
        for name, weight in self.weights.items():
            total = total + weight * (derived[name] if name in derived else features[name].double())
        return total


class SearchProfile(Strict):
    """How a model is searched best: the default method, and the calibrations of the term-wise ones."""

    method: Method = "product"
    calibrations: dict[Termwise, Calibration] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _method_has_its_calibration(self) -> SearchProfile:
        if self.method in get_args(Termwise) and self.method not in self.calibrations:
            raise ValueError(f"the default method {self.method} has no calibration")
        return self

    @property
    def vectors(self) -> bool:
        return any(one.vectors for one in self.calibrations.values())

    @property
    def hub(self) -> bool:
        return any(one.hub for one in self.calibrations.values())

    def calibration(self, method: Method) -> Calibration | None:
        """None for a method that composes one matrix."""
        if method in get_args(Conjunction):
            return None
        if method not in get_args(Method):
            raise UserError(f"unknown method {method!r}: choose {', '.join(get_args(Method))}.")
        if method not in self.calibrations:
            has = ", ".join([*get_args(Conjunction), *self.calibrations])
            raise UserError(f"this model has no calibration for the method {method}: choose {has}.")
        return self.calibrations[method]

    @classmethod
    def of_model(cls, model: TextModel) -> SearchProfile:
        """From search.json in the model's folder, with the posterior of the Beta head where that file says nothing."""
        from subspaces.text.heads import BetaHead

        path = model.folder / PROFILE
        try:
            profile = cls.model_validate(read_json(path)) if path.exists() else cls()
        except ValidationError as error:
            first = error.errors()[0]
            raise UserError(f"{path} is damaged ({first['msg']}): copy the model again, or delete the file.") from error
        beta = getattr(model.model, "beta", None)
        if not isinstance(beta, BetaHead) or getattr(model.spec.model, "squared", False):
            return profile
        known: dict[Termwise, Calibration] = {"calibrated": of_beta(beta.shapes)}
        return profile.model_copy(update={"calibrations": known | profile.calibrations})

    def write(self, folder: Path) -> None:
        write_json(folder / PROFILE, self.model_dump())


def of_beta(shapes: Tensor) -> Calibration:
    """log P(E | s)/P(C | s) from the shapes ((α_E, β_E), (α_C, β_C)) of the Beta head."""
    alpha, beta = shapes.detach().double().unbind(-1)
    volume = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
    weights: dict[Feature, float] = {
        "log_inclusion": float(alpha[0] - alpha[1]),
        "log_rest": float(beta[0] - beta[1]),
    }
    return Calibration(weights=weights, intercept=float(volume[1] - volume[0]))


def combine(query: Query, leaf: Callable[[str], Tensor]) -> Tensor:
    """Log-odds of a query from the log-odds of its terms.

    Computed from log p and log(1 − p): probabilities so close to 0 or 1 that floats cannot tell them apart keep their
    order.
    """
    yes, no = _logs(query, leaf)
    return yes - no


def _logs(query: Query, leaf: Callable[[str], Tensor]) -> tuple[Tensor, Tensor]:
    """log p and log(1 − p)."""
    match query:
        case Term(text):
            odds = leaf(text)
            return F.logsigmoid(odds), F.logsigmoid(-odds)
        case Not(of=inner):
            yes, no = _logs(inner, leaf)
            return no, yes
        case And(left, right):
            yes = _logs(left, leaf)[0] + _logs(right, leaf)[0]
            return yes, _log_rest(yes)
        case Or(left, right):
            no = _logs(left, leaf)[1] + _logs(right, leaf)[1]
            return _log_rest(no), no
    raise TypeError(query)


def _log_rest(log: Tensor) -> Tensor:
    """log(1 − exp(log)) of log ≤ 0; finite, so that differences are defined."""
    return torch.log((-torch.expm1(log)).clamp_min(torch.finfo(log.dtype).tiny))
