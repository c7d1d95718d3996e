"""The Subspace Projection Head: a sentence is the soft projector onto the span of n vectors (paper §3.2).

Learnt queries attend to the hidden states, a small MLP maps what they gather to X ∈ R^{d×n}, and P = X(XᵀX+λI)⁻¹Xᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.projector import complement, gradient, projector_of, soft_projector
from subspaces.settings import Positive, Strict
from subspaces.text.backbone import Backbone
from subspaces.text.heads import BetaHead, NeutralMLP, with_neutral
from subspaces.text.pair_model import EncoderSettings, PairModel
from subspaces.text.texts import Tokens

_ROUNDING = 1e-3  # largest eps·‖X‖²/λ, an upper bound of the rounding error in P, that a training step accepts
_QUERIES, _GAIN, _GAIN_NORM = 2.0, 0.25, 0.1  # sizes at the start: queries, last layer, last layer after a norm


class SubspaceProjectionHead(nn.Module):
    """Hidden states (B, m, h) to X (B, d, n): n queries, multi-head attention, rank expansion by an MLP h → h → d."""

    def __init__(
        self, size: int, dim: int, vectors: int = 0, heads: int = 8, layer_norm: bool = False, spread: float = 1.0
    ):
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
            hidden = self.up(
                self.joined(_joined([self._attend(one, mask, query) for one, mask in zip(batches, masks, strict=True)]))
            )
        else:
            # No activation stands between these two layers: their product, made once for all, is the same function.
            weight = self.up.weight @ self.joined.weight
            bias = F.linear(self.joined.bias, self.up.weight, self.up.bias)
            hidden = _joined(
                [self._expand(one, mask, query, weight, bias) for one, mask in zip(batches, masks, strict=True)]
            )
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
        gathered = F.scaled_dot_product_attention(
            query, key, value, attn_mask=None if mask is None else mask[:, None, None, :]
        )
        return gathered.transpose(1, 2).reshape(batch, self.vectors, size)

    def _attend_few(self, states: Tensor, mask: Tensor | None, query: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """`linear(_attend(states), weight, bias)` in another order, for short sentences.

        All that n queries gather from m tokens are combinations of heads·m values, which is why its rank is bounded (§3.2). So the layer
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


class Adapters(Strict):
    """LoRA: the backbone stays as it is, and low-rank changes of its linear layers are learnt."""

    r: int = Field(16, ge=1, description="rank of a change")
    alpha: float = Field(32.0, gt=0, description="its size is alpha/r")
    targets: str | list[str] = Field("all-linear", description="names of the layers")
    rate: Positive = Field(1e-3, description="learning rate of the adapters; that of the head is lr")


class Settings(EncoderSettings):
    encoder: Literal["subspace"] = "subspace"
    backbone: str = Field(min_length=1)
    dim: int = Field(64, ge=2)
    vectors: int = Field(0, ge=0, description="queries, columns of X; 0: as many as dim")
    heads: int = Field(8, ge=1)
    last: int = Field(1, ge=1, description="hidden layers that the head reads: 1 in the paper, 3 in the released code")
    masked: bool = Field(True, description="false: padding counts, as in the released code")
    lam: Positive = Field(0.05, description="λ of the soft projector")
    layer_norm: bool = Field(False, description="in the MLP of the head, as in the released code")
    squared: bool = Field(False, description="square the inclusion score, as the released code does")
    neutral_width: int = Field(1024, ge=8, description="of the neutral net, 3-way only")
    adapters: Adapters | None = Field(None, description="train LoRA adapters instead of the whole backbone")
    three_way: bool = Field(False, description="a 2-way model that learns a 3-way head as well")
    unrelated: float = Field(
        0.0, ge=0, description="weight of unrelated pairs of the batch, which count as not entailed"
    )
    contrastive: float = Field(0.0, ge=0, description="weight of a contrastive loss on the NIS of entailed pairs")
    sharpness: Positive = Field(20.0, description="factor of the NIS in the contrastive loss")

    def build(self, ways: int, backbone: Backbone | None, words: int = 0) -> SubspaceModel:
        return SubspaceModel(ways, self.required(backbone), self)

    def for_ways(self, ways: int) -> Settings:
        return self if ways == 3 or self.three_way else self.model_copy(update={"neutral_width": 1024})

    @property
    def makes_subspaces(self) -> bool:
        return True

    def memory_mb(self, weights_mb: float, pairs: int) -> float:
        return super().memory_mb(weights_mb, pairs) + 2 * pairs * 20 * self.dim**2 * 4 / 1e6


class SubspaceModel(PairModel):
    """Sentences as subspaces; S = NIS(P_h | P_p) goes to the Beta head, all of P_p and P_h to the neutral net of the 3-way model.

    With `three_way` a 2-way model has both heads: they are trained together, and `ways` may be set to 3 afterwards.
    """

    def __init__(self, ways: int, backbone: Backbone, settings: Settings):
        super().__init__()
        self.ways, self.backbone, self.settings = ways, backbone, settings
        self.dim, self.last, self.masked, self.lam = settings.dim, settings.last, settings.masked, settings.lam
        if settings.adapters:
            _add_adapters(backbone, settings.adapters)
        self.head = SubspaceProjectionHead(
            backbone.size, settings.dim, settings.vectors, settings.heads, settings.layer_norm, backbone.spread
        )
        self.beta = BetaHead()
        self.both = settings.three_way and ways == 2
        self.beta_three = BetaHead() if self.both else None
        self.neutral = NeutralMLP(settings.dim, settings.neutral_width) if ways == 3 or self.both else None

    @property
    def label_ways(self) -> int:
        return 3 if self.both else self.ways

    def vectors(self, tokens: Tokens) -> Tensor:
        """X (B, d, n) of each sentence."""
        return self.vectors_together([tokens])

    def vectors_together(self, batches: Sequence[Tokens]) -> Tensor:
        masks = [tokens.mask.repeat(1, self.last) if self.masked and not tokens.full else None for tokens in batches]
        return self.head.together(self.backbone.together(batches, self.last), masks)

    def encode_together(self, batches: Sequence[Tokens]) -> Tensor:
        """Projectors (B, d, d)."""
        return projector(self.vectors_together(batches), self.lam, self.training)

    def logits(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return self._logits(premise, hypothesis, self.ways)

    def _logits(self, premise: Tensor, hypothesis: Tensor, ways: int) -> Tensor:
        score = self._score(self.inclusion(premise, hypothesis))
        if ways == 2:
            return self.beta(score)
        assert self.neutral is not None
        posteriors = (self.beta_three or self.beta)(score)
        return with_neutral(posteriors, self.neutral(premise, hypothesis).float())

    def _score(self, inclusion: Tensor) -> Tensor:
        return inclusion.square() if self.settings.squared else inclusion

    def loss(
        self, premise: Tensor, hypothesis: Tensor, labels: Tensor, smoothing: float, premise_ids: Tensor | None = None
    ) -> Tensor:
        """Cross-entropy of the heads; with `unrelated` or `contrastive`, also of the pairs that the batch has by chance."""
        if not self.both:
            loss = F.cross_entropy(self.logits(premise, hypothesis), labels, label_smoothing=smoothing)
            entailed = labels == 0
        else:
            entailed = labels == 0
            two = F.cross_entropy(self._logits(premise, hypothesis, 2), (~entailed).long(), label_smoothing=smoothing)
            loss = two + F.cross_entropy(self._logits(premise, hypothesis, 3), labels, label_smoothing=smoothing)
        if premise_ids is not None and (self.settings.unrelated or self.settings.contrastive):
            loss = loss + self._unrelated_loss(premise, hypothesis, entailed, premise_ids)
        return loss

    def _unrelated_loss(self, premise: Tensor, hypothesis: Tensor, entailed: Tensor, premise_ids: Tensor) -> Tensor:
        """Pairs (i, j) of a premise and the hypothesis of another premise: −log P(not E), and a softmax over them for each entailed pair.

        SNLI shows no unrelated pairs, so without these terms a few general captions have a high NIS with every text.
        """
        first, rows = np.unique(premise_ids.cpu().numpy(), return_index=True)
        chosen = torch.from_numpy(rows).to(premise.device)
        scores = premise[chosen].flatten(1) @ hypothesis.flatten(1).mT
        scores = scores / premise[chosen].diagonal(dim1=-2, dim2=-1).sum(
            -1, keepdim=True
        )  # NIS(P_h | P_p), (distinct p, h)
        other = torch.from_numpy(first).to(premise.device)[:, None] != premise_ids[None, :]
        loss = scores.new_zeros(())
        if not bool(other.any()):
            return loss
        if self.settings.unrelated:
            loss = loss - self.settings.unrelated * self.beta(self._score(scores[other]))[:, 1].mean()
        if self.settings.contrastive and bool(entailed.any()):
            place = torch.searchsorted(torch.from_numpy(first).to(premise.device), premise_ids)[entailed]
            rivals = scores[place].masked_fill(~other[place], -torch.inf)
            own = self.inclusion(premise[entailed], hypothesis[entailed])
            joint = torch.cat([own[:, None], rivals], dim=1) * self.settings.sharpness
            loss = loss + self.settings.contrastive * F.cross_entropy(joint, joint.new_zeros(len(joint)).long())
        return loss

    def inclusion(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """NIS(P_h | P_p) = Tr(P_pP_h)/Tr(P_p), shape (B,). P_p is symmetric, so the trace is a sum of products of entries."""
        return (premise * hypothesis).sum(dim=(-2, -1)) / premise.diagonal(dim1=-2, dim2=-1).sum(-1)

    def optimisers(self, lr: float) -> list[torch.optim.Optimizer]:
        adapters = self.settings.adapters
        if adapters is None:
            return super().optimisers(lr)
        low_rank = [part for part in self.backbone.parameters() if part.requires_grad]
        known = {id(part) for part in low_rank}
        rest = [part for part in self.parameters() if part.requires_grad and id(part) not in known]
        groups = [{"params": rest, "lr": lr}, {"params": low_rank, "lr": adapters.rate}]
        return [torch.optim.Adam(groups, lr=lr, fused=True)]

    def settle(self) -> None:
        for head in (self.beta, self.beta_three):
            if head is not None:
                head.settle()


def _add_adapters(backbone: Backbone, settings: Adapters) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=settings.r,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]  # used as a factor only
        target_modules=settings.targets,
        lora_dropout=0.0,
        bias="none",
    )
    try:
        inject_adapter_in_model(config, backbone.model)
    except ValueError as error:
        raise UserError(f"the adapters fit no layer of this backbone: {error}") from error
    for name, parameter in backbone.model.named_parameters():
        parameter.requires_grad_("lora_" in name)
