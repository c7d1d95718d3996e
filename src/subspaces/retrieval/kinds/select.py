"""The best few of very many scores, faster than looking for them one by one.

Scores are made block by block. Of each group only the best one is compared at first; the groups with the best ones hold everything that
is wanted, so the answer is exact. A group is spread over its block, every n-th score: then the best ones of all groups of a block are
found by comparing whole stretches of memory. Memory for scores is taken once and used again: asking the system for it in every search
would take longer than the product that fills it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer

BLOCK = 4096  # documents scored together
_GROUP = 16
_GROUPS = BLOCK // _GROUP  # of a block
_SCORES = 1 << 26  # floats held at a time: 256 MB


_MANY = 48  # from so many on a partition of the whole row is faster than keeping the best of it in order


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
        self.blocks = -(-count // BLOCK)
        self._scores = torch.empty(0)

    @property
    def batch(self) -> int:
        """How many queries may be asked together."""
        return max(1, _SCORES // (self.blocks * BLOCK))

    def best(self, batch: int, top: int, fill: Callable[[int, int, Tensor], None]) -> Answer:
        """Scores and rows (batch, top), in no order; top ≤ count."""
        size = self.blocks * batch * BLOCK
        if len(self._scores) < size:
            self._scores = torch.empty(size)
        scores = self._scores[:size].view(self.blocks, batch, BLOCK)
        groups = torch.empty(batch, self.blocks, _GROUPS)
        for place, start in enumerate(range(0, self.count, BLOCK)):
            stop = min(start + BLOCK, self.count)
            if stop - start < BLOCK:
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
        places = ((block * batch + torch.arange(batch).unsqueeze(1)) * BLOCK + group).unsqueeze(2) + members
        found = scores.view(-1).index_select(0, places.view(-1)).view(batch, -1)
        place = largest(found, top)
        which, member = place // _GROUP, place % _GROUP
        return found.gather(1, place), block.gather(1, which) * BLOCK + member * _GROUPS + group.gather(1, which)
