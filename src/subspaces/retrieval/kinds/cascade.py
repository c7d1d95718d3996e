"""Three stages, ever more careful with ever fewer documents: short codes of all, coordinates of hundreds, everything of the last ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subspaces.retrieval.kinds.base import Answer, keep_best
from subspaces.retrieval.kinds.codes import Codes
from subspaces.retrieval.kinds.reduction import Reduction
from subspaces.retrieval.kinds.rows import Rows


@dataclass(frozen=True)
class Stages:
    """Codes of all documents, coordinates in 8 bits (N, m), the value of one unit for each document (N,), factors of the coordinates for
    choosing by them (m,), how many documents pass on."""

    codes: Codes
    digits: Tensor
    unit: Tensor
    emphasis: Tensor
    shortlist: int
    rerank: int


class CascadeSearcher:
    def __init__(self, reduction: Reduction, stages: Stages, rows: Rows):
        self.reduction, self.stages, self.rows = reduction, stages, rows

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        count = len(self.stages.codes)
        last = min(count, max(round(effort * self.stages.rerank), 2 * top))
        short = min(count, max(round(effort * self.stages.shortlist), 4 * last))
        w = self.reduction.ask(queries)
        rows = self.stages.codes.best(w, short)[1].sort(dim=1).values  # in the order of the file, which memory likes
        place = self._reduced(w * self.stages.emphasis, rows).topk(last, dim=1, sorted=False).indices
        rows = rows.gather(1, place).sort(dim=1).values  # once more: it is the order of equal scores

        def reduced() -> Tensor:
            return self._reduced(w, rows) + self.reduction.shared(queries).unsqueeze(1)

        return keep_best(self.rows.scores(rows, queries, reduced), rows, top)

    def _reduced(self, w: Tensor, rows: Tensor) -> Tensor:
        """Scores by all coordinates of some documents (B, c), chosen for each query."""
        digits, scores = self.stages.digits, torch.empty(rows.shape)
        narrow = torch.empty(rows.shape[1], digits.shape[1], dtype=digits.dtype)
        wide = torch.empty(narrow.shape)
        for place, chosen in enumerate(rows):
            torch.index_select(digits, 0, chosen, out=narrow)
            torch.mv(wide.copy_(narrow), w[place], out=scores[place])
        return scores.mul_(self.stages.unit[rows])
