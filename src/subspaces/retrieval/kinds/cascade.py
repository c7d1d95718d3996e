"""Three stages, ever more careful with ever fewer documents: a few coordinates of all, more of a thousand, everything of a hundred."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer, keep_best
from subspaces.retrieval.kinds.reduction import Reduction
from subspaces.retrieval.kinds.rows import Rows

_BLOCK = 8192  # documents scored together in the first stage
_GROUP = 8  # neighbours of which only the best is looked at when the shortlist is made
_SCORES = 1 << 26  # floats of first-stage scores held at a time: 256 MB


@dataclass(frozen=True)
class Stages:
    """Reduced coordinates in 8 bits (N, m₁) and (N, m − m₁), the value of one unit in each column, and how many documents pass on."""

    first: Tensor
    second: Tensor
    unit: Tensor
    shortlist: int
    rerank: int


class CascadeSearcher:
    def __init__(self, reduction: Reduction, stages: Stages, rows: Rows):
        self.reduction, self.stages, self.rows = reduction, stages, rows
        self._scores = torch.empty(0)
        self._block = torch.empty(_BLOCK, stages.first.shape[1])

    def search(self, queries: Tensor, top: int) -> Answer:
        count = len(self.stages.first)
        last = min(count, max(self.stages.rerank, 2 * top))
        short = min(count, max(self.stages.shortlist, 4 * last))
        w, shared = self.reduction.ask(queries)
        w = w * self.stages.unit
        prepared = self.rows.prepare(queries)
        together = max(1, _SCORES // (-(-count // _BLOCK) * _BLOCK))
        answers = []
        for some in torch.arange(len(queries)).split(together):
            scores, rows = self._shortlist(w[some, : self._block.shape[1]], short)
            scores += shared[some].unsqueeze(1)
            answers += [self._finish(prepared[q], w[q], scores[i], rows[i], last, top) for i, q in enumerate(some.tolist())]
        return torch.stack([values for values, _ in answers]), torch.stack([rows for _, rows in answers])

    def _shortlist(self, w: Tensor, short: int) -> Answer:
        """The best `short` by the first coordinates: scores and rows (B, short), in no order.

        Only the best score of each group of neighbours is compared at first. The groups with the best ones hold all that is wanted.
        """
        first = self.stages.first
        count, batch, blocks = len(first), len(w), -(-len(first) // _BLOCK)
        scores = self._room(blocks * batch * _BLOCK).view(blocks, batch, _BLOCK)
        groups = torch.empty(batch, blocks, _BLOCK // _GROUP)
        for place, start in enumerate(range(0, count, _BLOCK)):
            some = first[start : start + _BLOCK]
            if len(some) == _BLOCK:
                torch.mm(w, self._block.copy_(some).T, out=scores[place])
            else:
                scores[place].fill_(-torch.inf)[:, : len(some)] = w @ some.float().T
            torch.amax(scores[place].view(batch, -1, _GROUP), dim=2, out=groups[:, place])
        chosen = groups.flatten(1).topk(min(short, groups.shape[1] * groups.shape[2]), dim=1, sorted=False).indices
        grouped = scores.view(blocks, batch, -1, _GROUP)
        inside = _BLOCK // _GROUP
        found = grouped[chosen // inside, torch.arange(batch).unsqueeze(1), chosen % inside].flatten(1)
        values, place = found.topk(short, dim=1, sorted=False)
        return values, chosen.gather(1, place // _GROUP) * _GROUP + place % _GROUP

    def _finish(self, query: Tensor, w: Tensor, scores: Tensor, rows: Tensor, last: int, top: int) -> Answer:
        """Second and third stage for one query."""
        if self.stages.second.shape[1] and len(rows) > 0:
            more = self.stages.second.index_select(0, rows).float()
            scores = scores.addmv(more, w[-more.shape[1] :])
        scores, place = scores.topk(last, sorted=False)
        rows = rows[place].sort()  # in the order of the file, which is the order of equal scores
        values = self.rows.scores(rows.values, query, scores[rows.indices])
        best, where = keep_best(values.unsqueeze(0), rows.values.unsqueeze(0), top)
        return best[0], where[0]

    def _room(self, size: int) -> Tensor:
        """The same memory for every search: asking the system for 80 MB each time would take longer than the product."""
        if len(self._scores) < size:
            self._scores = torch.empty(size)
        return self._scores[:size]
