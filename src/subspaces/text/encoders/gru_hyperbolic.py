"""Hyperbolic neural networks (Ganea et al. 2018): the row "HNN (GRU)" of the SNLI table.

A sentence is the last state of a Möbius GRU in the Poincaré ball of curvature −1; a hyperbolic layer joins premise, hypothesis and
their squared distance; hyperbolic hyperplanes tell the classes apart.

The operations are written out here because a recurrent step is dozens of tiny ones: with geoopt's, which cover every curvature and with
which the tests compare them, a batch of 64 pairs takes six times as long. Everything is float64, as in the authors' code. It costs
nothing at five coordinates, and −x ⊕ (x ⊕ y) stays y up to the border, while float32 is off by 0.4 at norm 0.999 and NaN at 0.9999.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Generator, Tensor, nn

from subspaces.errors import UserError
from subspaces.settings import Positive
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import EncoderSettings, PairModel
from subspaces.text.texts import Tokens

_EDGE = 1 - 1e-5  # the largest norm of a point
_TINY = 1e-15  # keeps 0/0 away; tanh(x)/x and artanh(x)/x are 1 there


@cache
def _ball() -> Any:
    """The manifold, made when the first model is: the settings of this encoder are read where geoopt is not installed."""
    import geoopt

    return geoopt.PoincareBallExact(c=1.0).double()  # exact: its step follows the exponential map


def _norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(_TINY)


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


def clip(x: Tensor) -> Tensor:
    """Points (…, d) brought back to norm ≤ 1 − 1e-5."""
    return x * (_EDGE / _norm(x).clamp_min(_EDGE))


def exp0(v: Tensor) -> Tensor:
    """Tangent vectors at 0 to points: tanh(‖v‖)·v/‖v‖."""
    norm = _norm(v)
    return v * (norm.tanh().clamp_max(_EDGE) / norm)


def log0(x: Tensor) -> Tensor:
    """Points to tangent vectors at 0: artanh(‖x‖)·x/‖x‖. So M ⊗ x = exp0(M·log0(x)), for a matrix, a diagonal or a number M."""
    norm = _norm(x)
    return x * (norm.clamp_max(_EDGE).atanh() / norm)


def add(x: Tensor, y: Tensor) -> Tensor:
    """Möbius addition x ⊕ y. Not clipped: operands of norm ≤ 1 − 1e-5 keep the denominator above 1e-10, and `log0` clips what it reads."""
    xy, xx, yy = 2 * _dot(x, y), _dot(x, x), _dot(y, y)
    return ((1 + xy + yy) * x + (1 - xx) * y) / (1 + xy + xx * yy)


def squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """d(x, y)² = (2·artanh‖−x ⊕ y‖)², shape (…, 1); differentiable where the points meet."""
    tangent = log0(add(-x, y))
    return 4 * _dot(tangent, tangent)


def plane_scores(x: Tensor, points: Tensor, normals: Tensor) -> Tensor:
    """Hyperbolic multinomial logistic regression (Ganea et al. 2018, §3.1): x (B, d) to 2‖a‖ times the signed distance to the
    hyperplane through each point p (K, d) with normal a (K, d), which is arsinh(2⟨−p ⊕ x, a⟩ / ((1 − ‖−p ⊕ x‖²)‖a‖)); (B, K)."""
    shifted, length = clip(add(-points, x.unsqueeze(-2))), _norm(normals)
    inside = 2 * _dot(shifted, normals / length) / (1 - _dot(shifted, shifted))
    return (2 * length * inside.asinh()).squeeze(-1)


class HyperbolicGRU(PairModel):
    """`cells` 2 gives premises and hypotheses a GRU each, as the authors do; 1 lets them share it.

    A text does not know its part, so it goes through both at once. That costs about an eighth more: small steps are mostly overhead.
    """

    def __init__(self, ways: int, words: int, dim: int, cells: int, lr_words: float, lr_ball: float, longest: float):
        from geoopt import ManifoldParameter

        super().__init__()
        self.ways, self.lr_words, self.lr_ball, self.longest = ways, lr_words, lr_ball, longest
        matrix = (cells, dim, 3 * dim)  # reset, update, candidate
        self.W, self.U = (nn.Parameter(torch.zeros(matrix, dtype=torch.float64)) for _ in range(2))
        self.joining = nn.Parameter(torch.zeros(2, dim, dim, dtype=torch.float64))
        self.normals = nn.Parameter(torch.zeros(ways, dim, dtype=torch.float64))
        self.words, self.gate_bias, self.joint_bias, self.distance_bias, self.points = (
            ManifoldParameter(torch.zeros(shape, dtype=torch.float64), manifold=_ball())
            for shape in ((words, dim), (cells, 1, 3, dim), (dim,), (dim,), (ways, dim))
        )

    @torch.no_grad()
    def initialise(self, generator: Generator | None, start: float) -> None:
        """Words near the centre, of norm about `start`; matrices by Glorot's rule, biases at 0."""
        dim = self.words.shape[-1]
        self.words.uniform_(-1.0, 1.0, generator=generator).mul_(start * (3 / dim) ** 0.5)
        self.words[0] = 0.0
        for matrix, outputs in ((self.W, dim), (self.U, dim), (self.joining, dim), (self.normals, 1)):
            matrix.uniform_(-1.0, 1.0, generator=generator).mul_((6 / (dim + outputs)) ** 0.5)
        for bias in (self.gate_bias, self.joint_bias, self.distance_bias, self.points):
            bias.zero_()

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        return torch.cat([self._states(tokens) for tokens in batches])

    def _states(self, tokens: Tokens) -> Tensor:
        """The state after the last token (B, cells, d): as a premise first, as a hypothesis last."""
        rows, length = tokens.ids.shape
        cells, dim = len(self.W), self.words.shape[-1]
        words = log0(F.embedding(tokens.ids, self.words, padding_idx=0)).reshape(1, rows * length, dim)
        inputs = exp0((words @ self.U).view(cells, rows, length, 3, dim)).unbind(2)
        state = self.words.new_zeros(cells, rows, dim)
        for word, there in zip(inputs, tokens.mask.T[:, :, None], strict=True):
            state = torch.where(there, self._step(state, word), state)
        return state.transpose(0, 1)

    def _step(self, state: Tensor, word: Tensor) -> Tensor:
        """One step of the Möbius GRU (Ganea et al. 2018, §3.3), states (cells, B, d), the word as U ⊗ x (cells, B, 3, d):

        r, z = σ(log0(W ⊗ h ⊕ U ⊗ x ⊕ b)),  h̃ = (W·diag(r)) ⊗ h ⊕ U ⊗ x ⊕ b,  h ⊕ diag(z) ⊗ (−h ⊕ h̃).
        """
        dim = state.shape[-1]
        tangent = log0(state)
        gates = exp0((tangent @ self.W[..., : 2 * dim]).unflatten(-1, (2, dim)))
        gates = add(add(gates, word[..., :2, :]), self.gate_bias[..., :2, :])
        reset, update = log0(gates).sigmoid().unbind(-2)
        candidate = exp0((reset * tangent) @ self.W[..., 2 * dim :])
        candidate = add(add(candidate, word[..., 2, :]), self.gate_bias[..., 2, :])
        return clip(add(state, exp0(update * log0(add(-state, candidate)))))

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """The joining layer M₁ ⊗ p ⊕ M₂ ⊗ h ⊕ b ⊕ d(p, h)² ⊗ b′, then the hyperplanes; (B, ways)."""
        premise, hypothesis = (one.to(self.joining.dtype) for one in (premise[:, 0], hypothesis[:, -1]))
        joint = add(exp0(log0(premise) @ self.joining[0]), exp0(log0(hypothesis) @ self.joining[1]))
        joint = clip(add(clip(joint), self.joint_bias))
        joint = clip(add(joint, exp0(squared_distance(premise, hypothesis) * log0(self.distance_bias))))
        return plane_scores(joint, self.points, self.normals)

    def optimisers(self, lr: float) -> list[torch.optim.Optimizer]:
        """Adam for matrices and normals; Riemannian SGD for points: words, which few pairs touch, and biases, at a rate each."""
        from geoopt.optim import RiemannianSGD

        words, biases = [self.words], [self.gate_bias, self.joint_bias, self.distance_bias, self.points]
        flat = torch.optim.Adam([self.W, self.U, self.joining, self.normals], lr=lr)
        groups = [{"params": words, "lr": self.lr_words}, {"params": biases, "lr": self.lr_ball}]
        curved = RiemannianSGD(groups, lr=self.lr_ball)
        for one in (flat, curved):
            one.register_step_pre_hook(self._shorten)
        return [flat, curved]

    def _shorten(self, optimiser: torch.optim.Optimizer, *_: Any) -> None:
        """Before a step: no parameter's gradient is longer than `longest`, as in the authors' code."""
        for group in optimiser.param_groups:
            for one in group["params"]:
                nn.utils.clip_grad_norm_([one], self.longest)

    def settle(self) -> None:
        for one in (self.words, self.gate_bias, self.joint_bias, self.distance_bias, self.points):
            one.copy_(clip(one))


class Settings(EncoderSettings):
    encoder: Literal["gru_hyperbolic"] = "gru_hyperbolic"
    dim: int = Field(5, ge=1)
    cells: Literal[1, 2] = Field(2, description="1: premises and hypotheses share one GRU")
    start: float = Field(0.001, gt=0, le=0.5, description="norm of the words at the start")
    lr_words: float = Field(0.1, ge=0, description="Riemannian SGD, word embeddings")
    lr_ball: float = Field(0.01, ge=0, description="Riemannian SGD, other points of the ball")
    longest: Positive = Field(1.0, description="norm to which the gradient of a parameter is clipped")

    def build(
        self, ways: int, backbone: Backbone | None, words: int, generator: Generator | None = None
    ) -> HyperbolicGRU:
        """`generator` draws the initial weights; without one it is torch's own, as in the layers of the other encoders."""
        if words < 2:
            raise UserError(f"gru_hyperbolic needs a vocabulary of at least 2 words, not {words}.")
        model = HyperbolicGRU(ways, words, self.dim, self.cells, self.lr_words, self.lr_ball, self.longest)
        model.initialise(generator, self.start)
        return model

    def memory_mb(self, weights_mb: float, pairs: int) -> float:
        """Hundreds of small float64 states per step of the recurrence."""
        return 100 + pairs * 0.2 * self.dim
