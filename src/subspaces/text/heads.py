"""From two representations to the scores of the classes: Beta posteriors and the neutral net of §3.3, the net of the vector baselines."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EDGE = 1e-4  # scores are kept this far from 0 and 1, where a Beta density may vanish
LOWEST, HIGHEST = 1.0, 20.0  # where the Beta parameters may be: from 1 on a density is bounded
START = ((6.0, 1.0), (1.0, 6.0))  # (α, β) of entailment, then of contradiction


class BetaHead(nn.Module):
    """S | E ~ Beta(α_E, β_E) and S | C ~ Beta(α_C, β_C), with equal priors (§3.3).

    Two of the four parameters start exactly at the lower bound. A sigmoid between the bounds would be flat there and they would never
    move; so the parameters are stored as they are, and `settle` brings them back to the bounds after each step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shapes = nn.Parameter(torch.tensor(START))

    def log_densities(self, log_score: Tensor, log_rest: Tensor) -> Tensor:
        """log p(s | E) and log p(s | C), shape (B, 2), from log s and log(1 − s), both (B,)."""
        alpha, beta = self.shapes.unbind(-1)
        volume = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
        return (alpha - 1) * log_score[:, None] + (beta - 1) * log_rest[:, None] - volume

    def forward(self, score: Tensor) -> Tensor:
        """log P(E | s, not N) and log P(C | s, not N), shape (B, 2), of scores (B,) in [0, 1]."""
        score = score.clamp(EDGE, 1 - EDGE)
        return F.log_softmax(self.log_densities(score.log(), torch.log1p(-score)), dim=-1)

    def from_log(self, log_score: Tensor) -> Tensor:
        """The same of log s (B,) ≤ 0. There is no lower edge: a tiny score keeps its gradient, which in the score itself would be lost."""
        log_score = log_score.clamp(max=math.log1p(-EDGE))
        return F.log_softmax(self.log_densities(log_score, torch.log(-torch.expm1(log_score))), dim=-1)

    @torch.no_grad()
    def settle(self) -> None:
        """Back into [1, 20], and α ≥ β for entailment, α ≤ β for contradiction (§3.3): the nearest point where both hold."""
        self.shapes.nan_to_num_(nan=LOWEST).clamp_(LOWEST, HIGHEST)
        alpha, beta = self.shapes.unbind(-1)
        crossed = torch.stack([alpha[0] < beta[0], alpha[1] > beta[1]])
        middle = self.shapes.mean(dim=-1, keepdim=True)
        self.shapes.copy_(torch.where(crossed[:, None], middle, self.shapes))


def with_neutral(posteriors: Tensor, neutral: Tensor) -> Tensor:
    """Scores (B, 3) of E, N, C from the log posteriors (B, 2) and the neutral net's output (B,).

    The posteriors sum to one, so the softmax of (log E, ν, log C) is P(N) = σ(ν) and P(y) = (1 − σ(ν))·P(y | s, not N): the paper's
    two equations of §3.3.
    """
    return torch.stack([posteriors[:, 0], neutral, posteriors[:, 1]], dim=-1)


class NeutralMLP(nn.Module):
    """The logit of P(N | P_p, P_h): a tower on each of P_p, P_h, P_pP_h and P_hP_p, then joined (§3.3).

    LayerNorm instead of the released code's BatchNorm: with the statistics of a micro-batch, accumulated gradients would differ from
    those of the whole batch. P_p and P_h are symmetric and enter as half-vectors: the same information, half the parameters.
    """

    upper: Tensor
    scale: Tensor

    def __init__(self, dim: int, width: int = 1024, inner: int = 0, joined: int = 0):
        super().__init__()
        inner, joined = inner or max(width // 2, 1), joined or width
        half = dim * (dim + 1) // 2
        self.premise, self.hypothesis = _tower(half, width, inner), _tower(half, width, inner)
        self.forwards, self.backwards = _tower(dim * dim, width, inner), _tower(dim * dim, width, inner)
        self.joined = nn.Sequential(*_step(4 * inner, joined), nn.Linear(joined, 1))
        row, column = torch.triu_indices(dim, dim)
        self.register_buffer("upper", row * dim + column, persistent=False)
        self.register_buffer("scale", torch.where(row == column, 1.0, math.sqrt(2.0)), persistent=False)

    def forward(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """(B,) of projectors (B, d, d)."""
        product = premise @ hypothesis
        parts = [
            self.premise(self._half(premise)),
            self.hypothesis(self._half(hypothesis)),
            self.forwards(product.flatten(1)),
            self.backwards(product.mT.flatten(1)),  # P_hP_p = (P_pP_h)ᵀ
        ]
        return self.joined(torch.cat(parts, dim=-1)).squeeze(-1)

    def _half(self, projector: Tensor) -> Tensor:
        return projector.flatten(1).index_select(1, self.upper) * self.scale


def _step(before: int, after: int) -> tuple[nn.Module, ...]:
    return nn.Linear(before, after), nn.LayerNorm(after), nn.GELU()


def _tower(size: int, width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(*_step(size, width), *_step(width, inner), *_step(inner, inner))


class PairMLP(nn.Module):
    """Three layers with LeakyReLU on [p, h] or [p, h, p − h] (App. D, the vector baselines)."""

    def __init__(self, size: int, ways: int, difference: bool = False):
        super().__init__()
        self.difference = difference
        self.layers = nn.Sequential(
            nn.Linear((3 if difference else 2) * size, size),
            nn.LeakyReLU(),
            nn.Linear(size, size),
            nn.LeakyReLU(),
            nn.Linear(size, ways),
        )

    def forward(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """(B, ways) of vectors (B, h)."""
        parts = [premise, hypothesis, premise - hypothesis] if self.difference else [premise, hypothesis]
        return self.layers(torch.cat(parts, dim=-1))
