"""Adam that touches only the rows of a step, moments included ("lazy"): the tables have 82,115 rows and a step needs a thousand.

The moments are ordinary tensors, listed by `state`, so that a checkpoint is a list of tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Rows are updated in slices of about this many numbers, so that weights, moments and gradient of a slice stay in the cache.
_SLICE = 1 << 17


class LazyAdam:
    """Adam on touched rows, as torch.optim.SparseAdam does it: one global step count, moments of absent rows stand still."""

    def __init__(self, weights: Tensor, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8):
        self.weights, self.betas, self.eps = weights, betas, eps
        self.mean = torch.zeros_like(weights)
        self.square = torch.zeros_like(weights)
        self.count = torch.zeros(1, dtype=torch.int64)

    def state(self) -> dict[str, Tensor]:
        return {"adam.mean": self.mean, "adam.square": self.square, "adam.count": self.count}

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        """`rows` are distinct; `gradient` has one entry for each of them."""
        self.count += 1
        count, (beta1, beta2) = int(self.count), self.betas
        correction = (1 - beta2**count) ** 0.5
        step_size = -lr * correction / (1 - beta1**count)
        width = max(1, _SLICE // max(1, self.weights[0].numel()))
        for some, part in zip(rows.split(width), gradient.split(width), strict=True):
            mean = self.mean[some].lerp_(part, 1 - beta1)
            square = self.square[some].mul_(beta2).addcmul_(part, part, value=1 - beta2)
            self.mean[some] = mean
            self.square[some] = square
            self.weights[some] = self.weights[some].addcdiv_(mean, square.sqrt_().add_(self.eps), value=step_size)
