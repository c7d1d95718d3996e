"""Three stages, ever more careful with ever fewer documents: a few coordinates of all, more of a thousand, everything of a hundred."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer, keep_best
from subspaces.retrieval.kinds.reduction import Reduction
from subspaces.retrieval.kinds.rows import Rows
from subspaces.retrieval.kinds.select import BLOCK, Selector


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
        self._selector = Selector(len(stages.first))
        self._block = torch.empty(BLOCK, stages.first.shape[1])

    def search(self, queries: Tensor, top: int) -> Answer:
        last = min(self._selector.count, max(self.stages.rerank, 2 * top))
        short = min(self._selector.count, max(self.stages.shortlist, 4 * last))
        w, shared = self.reduction.ask(queries)
        w = w * self.stages.unit
        prepared = self.rows.prepare(queries)
        answers = []
        for some in torch.arange(len(queries)).split(self._selector.batch):
            scores, rows = self._shortlist(w[some, : self._block.shape[1]], short)
            scores += shared[some].unsqueeze(1)
            answers += [self._finish(prepared[q], w[q], scores[i], rows[i], last, top) for i, q in enumerate(some.tolist())]
        return torch.stack([values for values, _ in answers]), torch.stack([rows for _, rows in answers])

    def _shortlist(self, w: Tensor, short: int) -> Answer:
        """First stage: all documents by their first coordinates."""

        def fill(start: int, stop: int, out: Tensor) -> None:
            torch.mm(w, self._block[: stop - start].copy_(self.stages.first[start:stop]).T, out=out)

        return self._selector.best(len(w), short, fill)

    def _finish(self, query: Tensor, w: Tensor, scores: Tensor, rows: Tensor, last: int, top: int) -> Answer:
        """Second and third stage for one query."""
        if self.stages.second.shape[1]:
            more = self.stages.second.index_select(0, rows).float()
            scores = scores.addmv(more, w[-more.shape[1] :])
        scores, place = scores.topk(last, sorted=False)
        ordered = rows[place].sort()  # in the order of the file, which is the order of equal scores
        values = self.rows.scores(ordered.values, query, scores[ordered.indices])
        best, where = keep_best(values.unsqueeze(0), ordered.values.unsqueeze(0), top)
        return best[0], where[0]
