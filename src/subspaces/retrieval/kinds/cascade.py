"""Three stages, ever more careful with ever fewer documents: a few coordinates of all, more of a thousand, everything of the last ones."""

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
    """Reduced coordinates in 8 bits (N, m₁) and (N, m − m₁), the value of one unit for each document (N,), how many documents pass on."""

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

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        answers = [self._search(some, top, effort) for some in queries.split(self._selector.batch)]
        return torch.cat([scores for scores, _ in answers]), torch.cat([rows for _, rows in answers])

    def _search(self, queries: Tensor, top: int, effort: float) -> Answer:
        last = min(self._selector.count, max(round(effort * self.stages.rerank), 2 * top))
        short = min(self._selector.count, max(round(effort * self.stages.shortlist), 4 * last))
        w, shared = self.reduction.ask(queries)
        first = self._block.shape[1]
        scores, rows = self._shortlist(w[:, :first].contiguous(), short)
        if self.stages.second.shape[1]:
            scores += self._second(w[:, first:].contiguous(), rows)
        scores, place = scores.topk(last, dim=1, sorted=False)
        rows, order = rows.gather(1, place).sort(dim=1)  # in the order of the file, which is the order of equal scores
        return keep_best(self.rows.scores(rows, queries, scores.gather(1, order) + shared.unsqueeze(1)), rows, top)

    def _shortlist(self, w: Tensor, short: int) -> Answer:
        """All documents by their first coordinates."""

        def fill(start: int, stop: int, out: Tensor) -> None:
            torch.mm(w, self._block[: stop - start].copy_(self.stages.first[start:stop]).T, out=out).mul_(self.stages.unit[start:stop])

        return self._selector.best(len(w), short, fill)

    def _second(self, w: Tensor, rows: Tensor) -> Tensor:
        """What the other coordinates add to the scores of some documents (B, c), chosen for each query."""
        second, more = self.stages.second, torch.empty(rows.shape)
        narrow = torch.empty(rows.shape[1], second.shape[1], dtype=second.dtype)
        wide = torch.empty(narrow.shape)
        for place, chosen in enumerate(rows):
            torch.index_select(second, 0, chosen, out=narrow)
            torch.mv(wide.copy_(narrow), w[place], out=more[place])
        return more.mul_(self.stages.unit[rows])
