"""Adam that touches only the rows of a step, moments included ("lazy"): the tables have 82,115 rows and a step needs a thousand.

The moments are ordinary tensors, listed by `state`, so that a checkpoint is a list of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

# Rows are updated in slices of about this many numbers, so that weights, moments and gradient of a slice stay in the cache.
_SLICE = 1 << 17
_ON_GPU = 256  # times as many, where the cache plays no part and starting a kernel costs more than its work


class LazyAdam:
    """Adam on touched rows, as torch.optim.SparseAdam does it: one global step count, moments of absent rows stand still."""

    def __init__(self, weights: Tensor, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8):
        self.weights, self.betas, self.eps = weights, betas, eps
        self.mean = torch.zeros_like(weights)
        self.square = torch.zeros_like(weights)
        self.count = torch.zeros(1, dtype=torch.int64)

    def reset(self) -> None:
        for tensor in self.state().values():
            tensor.zero_()

    def state(self) -> dict[str, Tensor]:
        return {"adam.mean": self.mean, "adam.square": self.square, "adam.count": self.count}

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        """`rows` are distinct; `gradient` has one entry for each of them."""
        width = slice_width(self.weights)
        self.step_in_parts(zip(rows.split(width), gradient.split(width), strict=True), lr)

    def step_in_parts(self, parts: Iterable[tuple[Tensor, Tensor]], lr: float) -> None:
        """One step whose gradient comes in parts (some rows, their gradient): it need not exist as a whole."""
        self.count += 1
        count, (beta1, beta2) = int(self.count), self.betas
        correction = (1 - beta2**count) ** 0.5
        step_size = -lr * correction / (1 - beta1**count)
        for some, part in parts:
            mean = self.mean.index_select(0, some).lerp_(part, 1 - beta1)
            self.mean.index_copy_(0, some, mean)
            square = self.square.index_select(0, some).mul_(beta2).addcmul_(part, part, value=1 - beta2)
            self.square.index_copy_(0, some, square)
            weights = self.weights.index_select(0, some).addcdiv_(mean, square.sqrt_().add_(self.eps), value=step_size)
            self.weights.index_copy_(0, some, weights)


def slice_width(weights: Tensor) -> int:
    """Rows of a table (N, …) that are worked on together."""
    size = _SLICE if weights.device.type == "cpu" else _SLICE * _ON_GPU
    return max(1, size // max(1, weights[0].numel()))
