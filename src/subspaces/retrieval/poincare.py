"""Brute force in the Poincaré ball, written well: the opponent of Table 8.

arcosh is monotone, so the nearest points to u are those with the smallest ‖u − v‖² / (1 − ‖v‖²). That is an inner product of (−2u, 1, ‖u‖²)
with (v, ‖v‖², 1) / (1 − ‖v‖²): one product of matrices, and the distance itself is computed for the few that are returned.
"""

from __future__ import annotations

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.retrieval.kinds.base import Answer, keep_best
from subspaces.retrieval.kinds.select import Selector


def any_points(count: int, dims: int, generator: torch.Generator) -> Tensor:
    """Points in the ball (count, dims), uniform directions, most of them near the border as in a trained embedding. How long a search
    takes does not depend on where the points are, so any will do to measure it."""
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
            answers.append(self._selector.best(len(some), top, lambda a, b, out, some=some: torch.mm(some, self._lifted[:, a:b], out=out)))
        scores, rows = keep_best(torch.cat([one for one, _ in answers]), torch.cat([one for _, one in answers]), top)
        return -torch.arccosh((1 - 2 * scores / (1 - squares)).clamp_min(1)), rows
