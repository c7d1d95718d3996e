"""The best few of very many scores, faster than looking for them one by one.

Scores are made block by block. Of each group of neighbours only the best one is compared at first; the groups with the best ones hold
everything that is wanted, so the answer is exact. Memory for scores is taken once and used again: asking the system for it in every
search would take longer than the product that fills it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer

BLOCK = 8192  # documents scored together
_GROUP = 8
_SCORES = 1 << 26  # floats held at a time: 256 MB


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
        groups = torch.empty(batch, self.blocks, BLOCK // _GROUP)
        for place, start in enumerate(range(0, self.count, BLOCK)):
            stop = min(start + BLOCK, self.count)
            if stop - start < BLOCK:
                part = torch.empty(batch, stop - start)
                fill(start, stop, part)
                scores[place].fill_(-torch.inf)[:, : stop - start] = part
            else:
                fill(start, stop, scores[place])
            torch.amax(scores[place].view(batch, -1, _GROUP), dim=2, out=groups[:, place])
        groups = groups.flatten(1)
        chosen = groups.topk(min(top, groups.shape[1]), dim=1, sorted=False).indices
        inside = BLOCK // _GROUP
        found = scores.view(self.blocks, batch, inside, _GROUP)[chosen // inside, torch.arange(batch).unsqueeze(1), chosen % inside]
        values, place = found.flatten(1).topk(top, dim=1, sorted=False)
        return values, chosen.gather(1, place // _GROUP) * _GROUP + place % _GROUP
