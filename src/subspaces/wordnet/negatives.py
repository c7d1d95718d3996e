"""Corrupted edges for link prediction (paper App. C.2): the child or the parent of a training edge replaced by another node.

Only training edges are known here. A corrupted pair that is one of them, or a node with itself, does not count; a pair that is an
unseen true edge may be drawn, and for a very general parent often is: looking it up in the closure would tell the model the answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.errors import UserError

SAMPLERS = ("per-edge", "weighted", "shared", "shared-weighted")
_UNIFORM = 8  # a weighted pool has one uniform node in so many: without any, leaves would never be told where they do not belong


@dataclass
class Pairs:
    """One step: `children` and `parents` (B, 1+n) index `rows`. Column 0 is the edge, the rest are corrupted; `counts` (B, n): which do."""

    rows: Tensor
    children: Tensor
    parents: Tensor
    counts: Tensor

    def to(self, device: torch.device) -> Pairs:
        return self if device.type == "cpu" else Pairs(*(one.to(device) for one in vars(self).values()))


class Known:
    """Answers "is this a training edge?" for many pairs at once."""

    def __init__(self, nodes: int, edges: np.ndarray):
        self.nodes = nodes
        self.keys = torch.from_numpy(np.unique(edges[:, 0].astype(np.int64) * nodes + edges[:, 1]))

    def __call__(self, children: Tensor, parents: Tensor) -> Tensor:
        key = children * self.nodes + parents
        found = self.keys[torch.searchsorted(self.keys, key).clamp_max_(len(self.keys) - 1)] == key
        return found | (children == parents)


class Popular:
    """Draws nodes in proportion to (times a parent in training)^0.75, as the released code does."""

    def __init__(self, nodes: int, edges: np.ndarray):
        steps = np.cumsum(np.bincount(edges[:, 1], minlength=nodes).astype(float) ** 0.75)
        self.steps = torch.from_numpy(steps / steps[-1])  # ends at 1 exactly, so that no uniform number lies beyond

    def draw(self, shape: tuple[int, ...], generator: Generator) -> Tensor:
        uniform = torch.rand(shape, dtype=torch.float64, generator=generator)
        return torch.searchsorted(self.steps, uniform, right=True)  # right: a node that is never a parent has no share, not even 0.0


class PerEdge:
    """Fresh negatives for every edge, half with another child and half with another parent; uniform (the paper) or `weighted`.

    Weighted is the released code's way: nodes in proportion to (times a parent in training)^0.75, and nothing is left out.
    """

    def __init__(self, known: Known, edges: np.ndarray, negatives: int, weighted: bool):
        if negatives < 2:
            raise UserError("negatives must be at least 2: one with another child, one with another parent.")
        self.known, self.negatives = known, negatives
        self.popular = Popular(known.nodes, edges) if weighted else None

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> Pairs:
        shape = (len(children), self.negatives)
        popular = self.popular
        drawn = popular.draw(shape, generator) if popular else torch.randint(self.known.nodes, shape, generator=generator)
        half = self.negatives // 2
        below, above = children[:, None].repeat(1, self.negatives), parents[:, None].repeat(1, self.negatives)
        below[:, :half], above[:, half:] = drawn[:, :half], drawn[:, half:]
        counts = torch.ones(shape, dtype=torch.bool) if popular else ~self.known(below, above)
        rows, places = torch.unique(
            torch.cat([children, parents, below[:, :half].flatten(), above[:, half:].flatten()]), return_inverse=True
        )
        one, other, low, high = places.split([len(children), len(parents), len(children) * half, len(children) * (self.negatives - half)])
        low, high = low.view(len(children), -1), high.view(len(children), -1)
        return Pairs(
            rows,
            torch.cat([one[:, None], low, one[:, None].expand_as(high)], dim=1),
            torch.cat([other[:, None], other[:, None].expand_as(low), high], dim=1),
            counts,
        )


class Shared:
    """One pool for the whole batch: every edge meets every pool node once as its child and once as its parent.

    The pool is uniform, or one in eight of it is and the others are drawn by how often they are parents. A random child lies below a very
    general parent far too often to be a good negative for it; general nodes in the parent's place are the ones that teach.
    """

    def __init__(self, known: Known, pool: int, popular: Popular | None = None):
        self.known, self.pool, self.popular = known, pool, popular
        self.uniform = pool if popular is None else max(1, pool // _UNIFORM)

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> Pairs:
        pool = torch.randint(self.known.nodes, (self.uniform,), generator=generator)
        if self.popular:
            pool = torch.cat([pool, self.popular.draw((self.pool - self.uniform,), generator)])
        rows, places = torch.unique(torch.cat([children, parents, pool]), return_inverse=True)
        one, other, drawn = places.split([len(children), len(parents), self.pool])
        shape = (len(children), self.pool)
        counts = torch.cat([~self.known(pool[None, :], parents[:, None]), ~self.known(children[:, None], pool[None, :])], dim=1)
        one, other, drawn = one[:, None], other[:, None], drawn[None, :]
        return Pairs(
            rows,
            torch.cat([one, drawn.expand(shape), one.expand(shape)], dim=1),
            torch.cat([other, other.expand(shape), drawn.expand(shape)], dim=1),
            counts,
        )


def make_negatives(known: Known, edges: np.ndarray, sampling: str, negatives: int, pool: int) -> PerEdge | Shared:
    if sampling in ("per-edge", "weighted"):
        return PerEdge(known, edges, negatives, weighted=sampling == "weighted")
    if sampling in ("shared", "shared-weighted"):
        return Shared(known, pool, Popular(known.nodes, edges) if sampling == "shared-weighted" else None)
    raise UserError(f"unknown sampling {sampling!r}: use {', '.join(SAMPLERS)}.")
