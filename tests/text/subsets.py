"""Made-up pairs for the recurrent baselines: a hypothesis is entailed when its words are among those of its premise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from subspaces.text.pair_model import PairModel
from subspaces.text.texts import Tokens

WORDS = 14


def batch(rows: Sequence[Sequence[int]], width: int = 0, junk: int = 0) -> Tokens:
    """Padded to the longest row or to `width`; what stands in the padding is `junk`."""
    width = max(width, *map(len, rows))
    ids = torch.tensor([[*row, *[junk] * (width - len(row))] for row in rows])
    return Tokens(ids, torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None])


def subset_pairs(pairs: int = 60, seed: int = 0) -> tuple[Tokens, Tokens, Tensor]:
    """Premises of 3 to 5 words and hypotheses of 1 or 2, ids 2 to 13. Every hypothesis stands once with a premise that entails it and
    once with one that does not, so neither side alone tells the label."""
    generator = torch.Generator().manual_seed(seed)
    premises, hypotheses = [], []
    for number in range(pairs // 2):
        drawn = (torch.randperm(WORDS - 2, generator=generator) + 2).tolist()
        hypothesis, others = drawn[: 1 + number % 2], drawn[2:]
        with_it = hypothesis + others[:3]
        order = torch.randperm(len(with_it), generator=generator).tolist()
        premises += [[with_it[place] for place in order], [*hypothesis[1:], *others[4 : 7 + number % 2]]]
        hypotheses += [hypothesis, hypothesis]
    return batch(premises), batch(hypotheses), torch.arange(pairs) % 2


def train(model: PairModel, data: tuple[Tokens, Tokens, Tensor], lr: float, steps: int) -> list[float]:
    """Full batches, as the training of the table does it: step, then settle. Returns the losses."""
    premises, hypotheses, labels = data
    optimisers, losses = model.optimisers(lr), []
    for _ in range(steps):
        loss = model.loss(model.encode(premises), model.encode(hypotheses), labels, 0.0)
        losses.append(loss.item())
        for one in optimisers:
            one.zero_grad()
        loss.backward()
        for one in optimisers:
            one.step()
        with torch.no_grad():
            model.settle()
    return losses


@torch.no_grad()
def scores(model: PairModel, data: tuple[Tokens, Tokens, Tensor]) -> Tensor:
    return model.logits(model.encode(data[0]), model.encode(data[1]))


def accuracy(model: PairModel, data: tuple[Tokens, Tokens, Tensor]) -> float:
    return float((scores(model, data).argmax(1) == data[2]).double().mean())


def slopes(model: PairModel, data: tuple[Tokens, Tokens, Tensor], step: float = 1e-6) -> dict[str, tuple[float, float]]:
    """For each parameter, the loss's slope along a random direction: by its gradient, and by a central difference."""
    generator = torch.Generator().manual_seed(9)

    def loss() -> Tensor:
        return model.loss(model.encode(data[0]), model.encode(data[1]), data[2], 0.0)

    model.zero_grad()
    loss().backward()
    found = {}
    for name, one in model.named_parameters():
        direction = torch.randn(one.shape, dtype=one.dtype, generator=generator)
        by_gradient = float((one.grad * direction).sum())
        with torch.no_grad():
            start = one.detach().clone()
            one.copy_(start + step * direction)
            above = loss()
            one.copy_(start - step * direction)
            below = loss()
            one.copy_(start)
        found[name] = (by_gradient, float((above - below) / (2 * step)))
    return found
