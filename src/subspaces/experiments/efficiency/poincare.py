"""Brute force in the Poincaré ball (Table 8), written twice: as one product of matrices, and the obvious way.

arcosh is monotone, so the nearest points to u are those with the smallest ‖u − v‖² / (1 − ‖v‖²). That is an inner
product of (−2u, 1, ‖u‖²) with (v, ‖v‖², 1) / (1 − ‖v‖²): one product of matrices, and the distance itself is computed
for the answers only. The obvious way computes all distances with arcosh and then takes the best: the factor of the
paper may refer to it.

`Selector` finds the best of very many scores. Scores are made block by block; of each group only the maximum is
compared first, and the groups with the largest maxima contain all answers. A group takes every n-th score of its block,
so that the maxima of all groups are element-wise maxima of long rows. The memory for scores is allocated once:
allocating it per search takes longer than the product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.search.kinds.base import Answer, keep_best

_BLOCK = 4096  # documents scored together
_GROUP = 16
_GROUPS = _BLOCK // _GROUP  # of a block
_SCORES = 1 << 26  # floats held at a time: 256 MB
_MANY = 48  # from this count on, a partition of the row is faster than topk


def largest(values: Tensor, count: int) -> Tensor:
    """Places (B, count) of the largest values of each row (B, n), in no order."""
    width = values.shape[1]
    if count < _MANY:
        return values.topk(count, dim=1, sorted=False).indices
    if count == width:
        return torch.arange(width).expand(len(values), -1)
    return torch.from_numpy(np.argpartition(values.numpy(), width - count, axis=1)[:, width - count :])


class Selector:
    """For `count` documents; `fill(start, stop, out)` writes the scores (B, stop − start) of some of them."""

    def __init__(self, count: int):
        self.count = count
        self.blocks = -(-count // _BLOCK)
        self._scores = torch.empty(0)

    @property
    def batch(self) -> int:
        """How many queries may be asked together."""
        return max(1, _SCORES // (self.blocks * _BLOCK))

    def best(self, batch: int, top: int, fill: Callable[[int, int, Tensor], object]) -> Answer:
        """Scores and rows (batch, top), in no order; top ≤ count."""
        size = self.blocks * batch * _BLOCK
        if len(self._scores) < size:
            self._scores = torch.empty(size)
        scores = self._scores[:size].view(self.blocks, batch, _BLOCK)
        groups = torch.empty(batch, self.blocks, _GROUPS)
        for place, start in enumerate(range(0, self.count, _BLOCK)):
            stop = min(start + _BLOCK, self.count)
            if stop - start < _BLOCK:
                part = torch.empty(batch, stop - start)
                fill(start, stop, part)
                scores[place].fill_(-torch.inf)[:, : stop - start] = part
            else:
                fill(start, stop, scores[place])
            torch.amax(scores[place].view(batch, _GROUP, _GROUPS), dim=1, out=groups[:, place])
        groups = groups.flatten(1)
        chosen = largest(groups, min(top, groups.shape[1]))
        block, group = chosen // _GROUPS, chosen % _GROUPS
        members = torch.arange(_GROUP) * _GROUPS
        places = ((block * batch + torch.arange(batch).unsqueeze(1)) * _BLOCK + group).unsqueeze(2) + members
        found = scores.view(-1).index_select(0, places.view(-1)).view(batch, -1)
        best = largest(found, top)
        which, member = best // _GROUP, best % _GROUP
        return found.gather(1, best), block.gather(1, which) * _BLOCK + member * _GROUPS + group.gather(1, which)


def any_points(count: int, dims: int, generator: torch.Generator) -> Tensor:
    """Points in the ball (count, dims), uniform directions, most of them near the border as in a trained embedding. How
    long a search takes does not depend on where the points are, so any will do to measure it."""
    directions = torch.nn.functional.normalize(torch.randn(count, dims, generator=generator), dim=1)
    return directions * torch.rand(count, 1, generator=generator).pow(1 / dims) * 0.999


class PoincareSearcher:
    """The nearest of points v (N, k) by hyperbolic distance; scores are negative distances."""

    def __init__(self, points: Tensor):
        squares = points.square().sum(1, keepdim=True)
        if float(squares.max()) >= 1:
            raise UserError("points of the Poincaré ball must have norms below 1.")
        self._lifted = (torch.cat([points, squares, torch.ones_like(squares)], dim=1) / (1 - squares)).T.contiguous()
        self._selector = Selector(len(points))

    def search(self, points: Tensor, top: int) -> Answer:
        """Negative distances, nearest first, and rows (B, top)."""
        squares = points.square().sum(1, keepdim=True)
        lifted = torch.cat([2 * points, -torch.ones_like(squares), -squares], dim=1)
        answers = []
        for some in lifted.split(self._selector.batch):
            answers.append(self._selector.best(len(some), top, partial(self._fill, some)))
        scores, rows = keep_best(torch.cat([one for one, _ in answers]), torch.cat([one for _, one in answers]), top)
        return -torch.arccosh((1 - 2 * scores / (1 - squares)).clamp_min(1)), rows

    def _fill(self, lifted: Tensor, start: int, stop: int, out: Tensor) -> None:
        torch.mm(lifted, self._lifted[:, start:stop], out=out)


class ObviousPoincareSearcher:
    """The same answers: all distances with arcosh, in blocks of points, then the smallest."""

    def __init__(self, points: Tensor, block: int = 16_384):
        self._points, self._squares, self._block = points, points.square().sum(1), block

    def search(self, points: Tensor, top: int) -> Answer:
        squares = points.square().sum(1, keepdim=True)
        parts = []
        for start in range(0, len(self._points), self._block):
            block = slice(start, start + self._block)
            difference = torch.cdist(points, self._points[block]).square()
            parts.append(torch.arccosh(1 + 2 * difference / ((1 - squares) * (1 - self._squares[block]))))
        distances, rows = torch.cat(parts, dim=1).topk(top, dim=1, largest=False)
        return -distances, rows
