"""How well a premise entails a composite hypothesis, in each kind of representation (paper §4.4).

Zero-shot: nothing is trained here. `encoded` holds the representation of every sentence once, and a score takes rows of it. Scores of
different kinds only rank; where a monotone function of the score ranks the same without rounding it to ties (the logarithm of a volume, the
log-odds of a probability), that function is returned.
"""

from __future__ import annotations

from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from subspaces.algebra import Join, Meet, Subspace
from subspaces.errors import UserError
from subspaces.text.encoders.box import intersection, log_share
from subspaces.text.load import TextModel

_HALF = 0.5  # a direction with at least this eigenvalue belongs to the hard subspace: σ² ≥ λ


class Scores:
    """Scores of one model. Arguments are rows (n,) of `encoded`; results are (n,), or None for what the geometry cannot express."""

    operators: tuple[str, ...] = ()
    """Of ∧ and ∧¬; the first is the usual one."""
    joins: tuple[str, ...] = ()
    """Of ∨."""

    def __init__(self, text_model: TextModel, encoded: Tensor):
        self.text_model, self.encoded = text_model, encoded

    def plain(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """An ordinary hypothesis."""
        raise NotImplementedError

    def conjunction(self, premise: Tensor, left: Tensor, right: Tensor, negated: bool, operator: str) -> Tensor | None:
        """left ∧ right, or left ∧ ¬right."""
        raise NotImplementedError

    def disjunction(self, premise: Tensor, left: Tensor, right: Tensor, how: str) -> Tensor | None:
        """left ∨ right."""
        return None

    def double_negation(self, premise: Tensor, hypothesis: Tensor) -> Tensor | None:
        """¬¬hypothesis."""
        return None


class SubspaceScores(Scores):
    """NIS(P_composite | P_p) = Tr(P_pP_composite)/Tr(P_p), with the operators of `subspaces.algebra` (§3.1, Table 1).

    product        P_aP_b; against the symmetric P_p the trace sees its symmetric part
    sandwich-hard  P_bP_aP_b, singular values above 0.1 set to 1, the rest dropped: the released evaluation
    exact          lim (P_aP_b)^k. For soft projectors the limit is zero, so a and b are first made hard: eigenvalues of at least 1/2 become
                   1, the rest 0. The premise stays soft. Hard subspaces of small rank in general position still meet in nothing but
                   zero; such composites score 0.

    Negation is I − P, disjunction P_a + P_b − P_aP_b (`sum`) or the span of both bases, soft with the model's λ (`span`).
    """

    operators = ("product", "sandwich-hard", "exact")
    joins = ("sum", "span")

    @cached_property
    def soft(self) -> Subspace:
        return Subspace(self.encoded)

    @cached_property
    def hard(self) -> Subspace:
        return self.soft.truncate(_HALF, hard=True)

    def plain(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self.soft[premise].inclusion(self.soft[hypothesis])

    def conjunction(self, premise: Tensor, left: Tensor, right: Tensor, negated: bool, operator: str) -> Tensor:
        operands = self.hard if operator == "exact" else self.soft
        a, b = operands[left], operands[right]
        return self.soft[premise].inclusion(a.meet(~b if negated else b, cast(Meet, operator)))

    def disjunction(self, premise: Tensor, left: Tensor, right: Tensor, how: str) -> Tensor:
        lam = self.text_model.settings["model"]["lam"] if how == "span" else None
        return self.soft[premise].inclusion(self.soft[left].join(self.soft[right], cast(Join, how), lam=lam))

    def double_negation(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self.soft[premise].inclusion(~~self.soft[hypothesis])


class BoxScores(Scores):
    """log of vol(p ∩ a ∩ b)/vol(p). The complement and the union of boxes are no boxes: no negation, no disjunction."""

    operators = ("intersection",)

    def plain(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return log_share(self.encoded[premise], self.encoded[hypothesis])

    def conjunction(self, premise: Tensor, left: Tensor, right: Tensor, negated: bool, operator: str) -> Tensor | None:
        if negated:
            return None
        return log_share(self.encoded[premise], intersection(self.encoded[left], self.encoded[right]))


class VectorScores(Scores):
    """log-odds of entailment by the trained net, of the mean for ∧ and of the difference for ∧¬. Vectors have no usual ∨, nor ¬ alone."""

    operators = ("mean-difference",)

    @torch.no_grad()
    def _odds(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        device = self.text_model.device
        logits = self.text_model.model.logits(premise.to(device), hypothesis.to(device)).float().cpu()
        return logits[:, 0] - logits[:, 1]

    def plain(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self._odds(self.encoded[premise], self.encoded[hypothesis])

    def conjunction(self, premise: Tensor, left: Tensor, right: Tensor, negated: bool, operator: str) -> Tensor:
        a, b = self.encoded[left], self.encoded[right]
        return self._odds(self.encoded[premise], a - b if negated else (a + b) / 2)


KINDS: dict[str, type[Scores]] = {"subspace": SubspaceScores, "box": BoxScores, "vector": VectorScores}


def scores_of(text_model: TextModel) -> type[Scores]:
    """The scores for a model; 2-way models of the three kinds of Table 6 only."""
    encoder, ways = text_model.settings["model"]["encoder"], text_model.settings["ways"]
    if encoder not in KINDS:
        raise UserError(
            f"{encoder} has no operators to compose hypotheses with: choose a model with one of {', '.join(KINDS)}."
        )
    if ways != 2:
        raise UserError(
            f"this is a {ways}-way model; composites are scored by 2-way models (paper §4.4). Give the folder of the 2-way one."
        )
    return KINDS[encoder]


def operator_of(kind: type[Scores], asked: str) -> str:
    """The operator of a kind: what is asked for where there is a choice, else its only one."""
    if asked not in SubspaceScores.operators:
        raise UserError(f"unknown operator {asked!r}: choose one of {', '.join(SubspaceScores.operators)}.")
    return asked if asked in kind.operators else kind.operators[0]
