"""The Subspace Projection Head: a sentence is the soft projector onto the span of n vectors (paper §3.3).

Learnt queries attend to the hidden states, a small MLP maps what they gather to X ∈ R^{d×n}, and P = X(XᵀX+λI)⁻¹Xᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.nli.backbone import Backbone
from subspaces.nli.encoders.vector import needed
from subspaces.nli.heads import BetaHead, NeutralMLP, with_neutral
from subspaces.nli.pair_model import PairModel
from subspaces.nli.texts import Tokens
from subspaces.projector import complement, gradient, projector_of, soft_projector

_ROUNDING = 1e-3  # largest eps·‖X‖²/λ, an upper bound of the rounding error in P, that a training step accepts
_QUERIES, _GAIN, _GAIN_NORM = 2.0, 0.25, 0.1  # sizes at the start: queries, last layer, last layer after a norm


class SubspaceProjectionHead(nn.Module):
    """Hidden states (B, m, h) to X (B, d, n): n queries, multi-head attention, rank expansion by an MLP h → h → d."""

    def __init__(self, size: int, dim: int, vectors: int = 0, heads: int = 8, layer_norm: bool = False, spread: float = 1.0):
        super().__init__()
        if size % heads:
            raise UserError(f"{heads} attention heads do not divide a hidden size of {size}: choose a divisor of it.")
        self.size, self.dim, self.vectors, self.heads = size, dim, vectors or dim, heads
        self.queries = nn.Parameter(torch.empty(self.vectors, size))
        self.query = nn.Linear(size, size)
        self.key_value = nn.Linear(size, 2 * size)
        self.joined = nn.Linear(size, size)
        self.up = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size) if layer_norm else None
        self.down = nn.Linear(size, dim)
        self._start(spread)

    def _start(self, spread: float) -> None:
        """Start values for states whose entries are of size `spread`: a mean Tr(P) between a quarter and a half of d, at λ = 0.05.

        Small or equal queries would all gather the mean of the sentence, and X would have rank one. Keys of unit size make each query
        prefer some tokens; without biases the columns of X have no part in common that the sentence has not.
        """
        for layer in (self.query, self.key_value, self.joined, self.up, self.down):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.queries, std=_QUERIES)
        with torch.no_grad():
            self.key_value.weight.div_(spread)
            self.down.weight.mul_(_GAIN if self.norm is None else _GAIN_NORM)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """X (B, d, n). `mask` (B, m) is true where there is a token; without it every state counts."""
        return self.together([states], [mask])

    def together(self, batches: Sequence[Tensor], masks: Sequence[Tensor | None]) -> Tensor:
        """The same of several batches of states, one after the other in one tensor."""
        query = self.query(self.queries)
        if sum(map(len, batches)) * self.vectors <= self.size:
            hidden = self.up(self.joined(_joined([self._attend(one, mask, query) for one, mask in zip(batches, masks, strict=True)])))
        else:
            # No activation stands between these two layers: their product, made once for all, is the same function.
            weight = self.up.weight @ self.joined.weight
            bias = F.linear(self.joined.bias, self.up.weight, self.up.bias)
            hidden = _joined([self._expand(one, mask, query, weight, bias) for one, mask in zip(batches, masks, strict=True)])
        hidden = F.leaky_relu(hidden, inplace=True)
        return self.down(hidden if self.norm is None else self.norm(hidden)).mT

    def _expand(self, states: Tensor, mask: Tensor | None, query: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """linear(what the queries gather, weight, bias), in the order that costs less."""
        length = states.shape[1]
        if 2 * length <= self.vectors and 2 * length * self.heads <= self.size:
            return self._attend_few(states, mask, query, weight, bias)
        return F.linear(self._attend(states, mask, query), weight, bias)

    def _attend(self, states: Tensor, mask: Tensor | None, query: Tensor) -> Tensor:
        """What the queries gather (B, n, h), before the layer that joins the heads."""
        batch, length, size = states.shape
        query = query.view(1, self.vectors, self.heads, -1).transpose(1, 2).expand(batch, -1, -1, -1)
        key, value = self.key_value(states).view(batch, length, 2, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        gathered = F.scaled_dot_product_attention(query, key, value, attn_mask=None if mask is None else mask[:, None, None, :])
        return gathered.transpose(1, 2).reshape(batch, self.vectors, size)

    def _attend_few(self, states: Tensor, mask: Tensor | None, query: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """`linear(_attend(states), weight, bias)` in another order, for short sentences.

        All that n queries gather from m tokens are combinations of heads·m values, which is why its rank is bounded (§3.3). So the layer
        is applied to those values, each by its head's columns, and not to the n vectors: half the work and less for a sentence of SNLI.
        """
        batch, length, size = states.shape
        each = size // self.heads
        query = (query * each**-0.5).view(self.vectors, self.heads, each)
        key, value = self.key_value(states).view(batch * length, 2, self.heads, each).permute(1, 2, 0, 3).unbind(0)
        scores = torch.bmm(key, query.permute(1, 2, 0)).view(self.heads, batch, length, self.vectors)
        if mask is not None:
            scores = scores.masked_fill(~mask[None, :, :, None], torch.finfo(scores.dtype).min)
        shares = scores.softmax(dim=2).transpose(0, 1).reshape(batch, self.heads * length, self.vectors)
        values = torch.bmm(value, weight.view(size, self.heads, each).permute(1, 2, 0))
        values = values.view(self.heads, batch, length, size).transpose(0, 1).reshape(batch, self.heads * length, size)
        return torch.baddbmm(bias.expand(batch, self.vectors, size), shares.mT, values)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if len(parts) > 1 else parts[0]


class _Projector(torch.autograd.Function):
    """P of X (B, d, n) in its own precision, with the closed-form gradient; `soft_projector` without its checks."""

    @staticmethod
    def forward(ctx, X: Tensor, lam: float) -> Tensor:
        K = complement(X, lam)
        ctx.save_for_backward(K, K @ X)
        ctx.lam = lam
        return projector_of(K)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, G: Tensor):
        K, KX = ctx.saved_tensors
        return gradient(K, KX, (G + G.mT).div_(ctx.lam)), None


def projector(X: Tensor, lam: float, training: bool) -> Tensor:
    """P (B, d, d) in float32, whatever the precision around it.

    `soft_projector` turns to float64 as soon as rounding could reach 1e-6, which the vectors of a sentence always pass. A training
    step stays in float32 while the error is below `_ROUNDING`; an evaluation is careful.
    """
    with torch.autocast(X.device.type, enabled=False):
        X = X.float()
        if training:
            largest = X.detach().square().sum(dim=(-2, -1)).amax()
            if bool(largest * torch.finfo(torch.float32).eps <= _ROUNDING * lam):
                return _Projector.apply(X, lam)
        return soft_projector(X, lam)


class SubspaceModel(PairModel):
    """Sentences as subspaces; S = NIS(P_h | P_p) goes to the Beta head, all of P_p and P_h to the neutral net of the 3-way model.

    `last` hidden layers are read (the paper: 1; the released code: 3), with padding `masked` out (not in the released code), and S may
    be `squared` (in the released code).
    """

    def __init__(
        self,
        ways: int,
        backbone: Backbone,
        dim: int,
        vectors: int = 0,
        heads: int = 8,
        last: int = 1,
        masked: bool = True,
        lam: float = 0.05,
        layer_norm: bool = False,
        squared: bool = False,
        neutral_width: int = 1024,
    ):
        super().__init__()
        self.ways, self.dim, self.last, self.masked, self.lam, self.squared = ways, dim, last, masked, lam, squared
        self.backbone = backbone
        self.head = SubspaceProjectionHead(backbone.size, dim, vectors, heads, layer_norm, _spread(backbone, last))
        self.beta = BetaHead()
        self.neutral = NeutralMLP(dim, neutral_width) if ways == 3 else None

    def vectors(self, tokens: Tokens) -> Tensor:
        """X (B, d, n) of each sentence."""
        return self.vectors_together([tokens])

    def vectors_together(self, batches: Sequence[Tokens]) -> Tensor:
        masks = [tokens.mask.repeat(1, self.last) if self.masked else None for tokens in batches]
        return self.head.together(self.backbone.together(batches, self.last), masks)

    def encode(self, tokens: Tokens) -> Tensor:
        """Projectors (B, d, d)."""
        return self.encode_together([tokens])

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        return projector(self.vectors_together(batches), self.lam, self.training)

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        score = self.inclusion(premise, hypothesis)
        posteriors = self.beta(score.square() if self.squared else score)
        return posteriors if self.neutral is None else with_neutral(posteriors, self.neutral(premise, hypothesis).float())

    def inclusion(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """NIS(P_h | P_p) = Tr(P_pP_h)/Tr(P_p), shape (B,). P_p is symmetric, so the trace is a sum of products of entries."""
        return (premise * hypothesis).sum(dim=(-2, -1)) / premise.diagonal(dim1=-2, dim2=-1).sum(-1)

    def settle(self) -> None:
        self.beta.settle()


def _spread(backbone: Backbone, last: int) -> float:
    """Size of the entries of the last hidden states, as the norms that make them tell: √(mean of weight² + bias²)."""
    norms = [layer.norm_output for layer in backbone.layers[-last:]]
    sizes = torch.stack([one.weight.detach().square() + one.bias.detach().square() for one in norms])
    return float(sizes.mean().sqrt().clamp(min=1e-3))


def build(
    ways: int,
    backbone: Backbone | None,
    words: int = 0,
    dim: int = 64,
    vectors: int = 0,
    heads: int = 8,
    last: int = 1,
    masked: bool = True,
    lam: float = 0.05,
    layer_norm: bool = False,
    squared: bool = False,
    neutral_width: int = 1024,
) -> SubspaceModel:
    backbone = needed(backbone, "subspace")
    return SubspaceModel(ways, backbone, dim, vectors, heads, last, masked, lam, layer_norm, squared, neutral_width)
