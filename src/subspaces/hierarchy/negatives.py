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

SAMPLERS = ("per-edge", "weighted", "shared", "shared-weighted", "related")
SIDES = ("both", "child", "parent")
_UNIFORM = 8  # a weighted pool has one uniform node per this number of nodes: without any, leaves would have no negatives far away


@dataclass
class PairBatch:
    """One step: `children` and `parents` (B, 1+n) index `rows`. Column 0 is the edge, the rest are corrupted; `counts` (B, n): which do."""

    rows: Tensor
    children: Tensor
    parents: Tensor
    counts: Tensor

    def to(self, device: torch.device) -> PairBatch:
        return self if device.type == "cpu" else PairBatch(*(one.to(device) for one in vars(self).values()))


class Known:
    """Answers "is this a training edge?" for many pairs at once.

    Almost no corrupted pair is one, and a small table of keys cut short says so at once; only what it lets through is looked up.
    """

    def __init__(self, nodes: int, edges: np.ndarray):
        self.nodes = nodes
        self.keys = torch.from_numpy(np.unique(edges[:, 0].astype(np.int64) * nodes + edges[:, 1]))
        self.cut = (1 << (16 * len(self.keys)).bit_length()) - 1
        self.perhaps = torch.zeros(self.cut + 1, dtype=torch.bool)
        self.perhaps[self.keys & self.cut] = True

    def __call__(self, children: Tensor, parents: Tensor) -> Tensor:
        key = children * self.nodes + parents
        found = self.perhaps[key & self.cut]
        asked = key[found]
        found[found.clone()] = self.keys[torch.searchsorted(self.keys, asked).clamp_max_(len(self.keys) - 1)] == asked
        return found | (children == parents)


class Popular:
    """Draws nodes in proportion to (times a parent in training)^0.75, as the released code does."""

    def __init__(self, nodes: int, edges: np.ndarray):
        steps = np.cumsum(np.bincount(edges[:, 1], minlength=nodes).astype(float) ** 0.75)
        self.steps = torch.from_numpy(steps / steps[-1])  # ends at 1 exactly, so that no uniform number lies beyond

    def draw(self, shape: tuple[int, ...], generator: Generator) -> Tensor:
        uniform = torch.rand(shape, dtype=torch.float64, generator=generator)
        return torch.searchsorted(
            self.steps, uniform, right=True
        )  # right: a node that is never a parent has no share, not even 0.0


class PerEdgeNegatives:
    """Fresh negatives for every edge; uniform (the paper) or `weighted`.

    Of `corrupt: both` half have another child and half another parent. Weighted is the released code's way: nodes in proportion to (times
    a parent in training)^0.75, and nothing is left out.
    """

    def __init__(
        self,
        known: Known,
        edges: np.ndarray,
        negatives: int,
        weighted: bool,
        corrupt: str = "both",
        exclude: str | None = None,
    ):
        if corrupt == "both" and negatives < 2:
            raise UserError("negatives must be at least 2: one with another child, one with another parent.")
        self.known, self.negatives, self.exclude = known, negatives, exclude or ("none" if weighted else "known")
        self.below = {"both": negatives // 2, "child": negatives, "parent": 0}[corrupt]  # the number with another child
        self.popular = Popular(known.nodes, edges) if weighted else None

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> PairBatch:
        shape = (len(children), self.negatives)
        popular = self.popular
        drawn = (
            popular.draw(shape, generator) if popular else torch.randint(self.known.nodes, shape, generator=generator)
        )
        drawn = drawn.split([self.below, self.negatives - self.below], dim=1)
        counts = torch.ones(shape, dtype=torch.bool)
        if self.exclude != "none":
            below, above = (drawn[0], parents[:, None]), (children[:, None], drawn[1])
            counts = ~torch.cat([self.known(*below), self.known(*above)], dim=1)
            if self.exclude == "linked":
                counts &= ~torch.cat([self.known(*below[::-1]), self.known(*above[::-1])], dim=1)
        rows, places = torch.unique(
            torch.cat([children[:, None], parents[:, None], *drawn], dim=1), return_inverse=True
        )
        one, other, low, high = places.split([1, 1, self.below, self.negatives - self.below], dim=1)
        return PairBatch(
            rows,
            torch.cat([one, low, one.expand_as(high)], dim=1),
            torch.cat([other, other.expand_as(low), high], dim=1),
            counts,
        )


class Related:
    """What density order embeddings learn from (Athiwaratkun & Wilson 2018, §3.4): random negatives, the edge reversed, and siblings.

    Siblings are two nodes below one ancestor, the first not below the second; the ancestor is uniform over those of two or more. As in the
    authors' code there are as many in an epoch as there are nodes, so that an edge has one only now and then.
    """

    def __init__(self, known: Known, edges: np.ndarray, negatives: int, corrupt: str = "both"):
        self.known, self.random = known, PerEdgeNegatives(known, edges, negatives, False, corrupt)
        self.descendants = torch.from_numpy(edges[np.argsort(edges[:, 1], kind="stable"), 0].astype(np.int64))
        sizes = torch.from_numpy(np.bincount(edges[:, 1], minlength=known.nodes))
        self.first, self.sizes = (sizes.cumsum(0) - sizes)[sizes > 1], sizes[sizes > 1]
        self.share = known.nodes / len(edges)

    def siblings(self, count: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """A child and a parent for `count` edges, and which of these pairs count."""
        if not len(self.sizes):
            return (nobody := torch.zeros(count, dtype=torch.int64)), nobody, nobody > 0
        ancestors = torch.randint(len(self.sizes), (count,), generator=generator)
        places = (torch.rand(2, count, dtype=torch.float64, generator=generator) * self.sizes[ancestors]).long()
        one, other = self.descendants[self.first[ancestors] + places]
        return one, other, (torch.rand(count, generator=generator) < self.share) & ~self.known(one, other)

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> PairBatch:
        random = self.random.draw(children, parents, generator)
        one, other, wanted = self.siblings(len(children), generator)
        below = torch.cat([random.rows[random.children], torch.stack([parents, one], dim=1)], dim=1)
        above = torch.cat([random.rows[random.parents], torch.stack([children, other], dim=1)], dim=1)
        counts = torch.cat([random.counts, torch.stack([~self.known(parents, children), wanted], dim=1)], dim=1)
        rows, places = torch.unique(torch.stack([below, above]), return_inverse=True)
        return PairBatch(rows, places[0], places[1], counts)


class SharedNegatives:
    """One pool for the whole batch: every edge meets every pool node once as its child and once as its parent, or on one side only.

    The pool is uniform, or one in eight of it is and the others are drawn by how often they are parents. A random child lies below a very
    general parent far too often to be a good negative for it; general nodes in the parent's place are the ones that teach.
    """

    def __init__(self, known: Known, pool: int, popular: Popular | None = None, corrupt: str = "both"):
        self.known, self.pool, self.popular, self.corrupt = known, pool, popular, corrupt
        self.uniform = pool if popular is None else max(1, pool // _UNIFORM)

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> PairBatch:
        pool = torch.randint(self.known.nodes, (self.uniform,), generator=generator)
        if self.popular:
            pool = torch.cat([pool, self.popular.draw((self.pool - self.uniform,), generator)])
        rows, places = torch.unique(torch.cat([children, parents, pool]), return_inverse=True)
        one, other, drawn = places.split([len(children), len(parents), self.pool])
        shape = (len(children), self.pool)
        one, other, drawn = one[:, None], other[:, None], drawn[None, :]
        below, above, counts = [one], [other], []
        if self.corrupt != "parent":
            below, above = [*below, drawn.expand(shape)], [*above, other.expand(shape)]
            counts.append(~self.known(pool[None, :], parents[:, None]))
        if self.corrupt != "child":
            below, above = [*below, one.expand(shape)], [*above, drawn.expand(shape)]
            counts.append(~self.known(children[:, None], pool[None, :]))
        return PairBatch(rows, torch.cat(below, dim=1), torch.cat(above, dim=1), torch.cat(counts, dim=1))


def make_negatives(
    known: Known,
    edges: np.ndarray,
    sampling: str,
    negatives: int,
    pool: int,
    corrupt: str = "both",
    exclude: str | None = None,
) -> PerEdgeNegatives | SharedNegatives | Related:
    if corrupt not in SIDES:
        raise UserError(f"unknown side {corrupt!r} to corrupt: use {', '.join(SIDES)}.")
    if sampling in ("per-edge", "weighted"):
        return PerEdgeNegatives(known, edges, negatives, sampling == "weighted", corrupt, exclude)
    if exclude is not None:
        raise UserError(
            f"`exclude` is for negatives of single edges: sampling is {sampling}, not per-edge or weighted."
        )
    if sampling in ("shared", "shared-weighted"):
        return SharedNegatives(
            known, pool, Popular(known.nodes, edges) if sampling == "shared-weighted" else None, corrupt
        )
    if sampling == "related":
        return Related(known, edges, negatives, corrupt)
    raise UserError(f"unknown sampling {sampling!r}: use {', '.join(SAMPLERS)}.")
