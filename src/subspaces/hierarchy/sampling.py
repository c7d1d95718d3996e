"""Negatives for contrastive training (paper App. C.1): shared negatives and in-batch candidates.

A negative of u is never u nor anything linked to u in the closure, in either direction; fresh negatives of an edge may be descendants
where `exclude: known` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.hierarchy.graph import Taxonomy


@dataclass
class Batch:
    """One step's nodes and who is compared with whom; everything below `rows` indexes into `rows`.

    `candidates` is (B, C), one list per edge whose first column is the positive, or None: then all rows are candidates for every anchor,
    `positive` (B,) says which one is right and `excluded` (B, M) which ones are linked to the anchor and must not count.
    """

    rows: Tensor
    anchors: Tensor
    candidates: Tensor | None = None
    positive: Tensor | None = None
    excluded: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """The same batch where the geometry is; drawing it is work for the host."""
        if device.type == "cpu":
            return self
        return replace(self, **{name: one.to(device) for name, one in vars(self).items() if one is not None})


class Links:
    """Answers "are u and v linked in the closure?" for many pairs at once; not `both`: only "is v an ancestor of u?"."""

    def __init__(self, graph: Taxonomy, both: bool = True):
        self.nodes = graph.nodes
        pairs = graph.closure
        keys = [pairs[:, 0] * self.nodes + pairs[:, 1], pairs[:, 1] * self.nodes + pairs[:, 0]]
        self.keys = torch.from_numpy(np.unique(np.concatenate(keys if both else keys[:1])))
        self.offsets = torch.from_numpy(graph.offsets)
        self.ancestors = torch.from_numpy(graph.ancestors.astype(np.int64))
        self._place = torch.full((self.nodes,), -1, dtype=torch.int64)

    def linked(self, one: Tensor, other: Tensor) -> Tensor:
        """Elementwise, with broadcasting: linked in either direction, or the same node."""
        key = one * self.nodes + other
        found = self.keys[torch.searchsorted(self.keys, key).clamp_max_(len(self.keys) - 1)] == key
        return found | (one == other)

    def among(self, rows: Tensor) -> Tensor:
        """(M, M) bool: linked, or the same, for distinct `rows`. Walks the ancestor lists, which are short, not all pairs."""
        count = len(rows)
        self._place[rows] = torch.arange(count)
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        owner = torch.repeat_interleave(torch.arange(count), sizes)
        within = torch.arange(len(owner)) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
        place = self._place[self.ancestors[self.offsets[rows][owner] + within]]
        here = place >= 0
        mask = torch.eye(count, dtype=torch.bool)
        mask[owner[here], place[here]] = True
        mask[place[here], owner[here]] = True
        self._place[rows] = -1
        return mask


class PerEdge:
    """The paper's sampler: fresh uniform negatives for every edge."""

    def __init__(self, links: Links, negatives: int):
        anchors = links.offsets.diff() > 0  # a root is never an anchor, so it may be linked to everyone
        most = int(torch.bincount(links.keys // links.nodes, minlength=links.nodes)[anchors].max()) + 1
        if links.nodes - most < 1:
            raise UserError(
                "a node is linked to every other node, so it has no negatives: use `sampling: shared`, or a larger graph."
            )
        self.links, self.negatives = links, negatives

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> Batch:
        shape = (len(children), self.negatives)
        drawn = torch.randint(self.links.nodes, shape, generator=generator)
        bad = self.links.linked(children[:, None], drawn)
        while bool(bad.any()):
            again = torch.randint(self.links.nodes, (int(bad.sum()),), generator=generator)
            drawn[bad] = again
            bad[bad.clone()] = self.links.linked(children[:, None].expand(shape)[bad], again)
        everyone = torch.cat([children[:, None], parents[:, None], drawn], dim=1)
        rows, places = torch.unique(everyone, return_inverse=True)
        return Batch(rows, anchors=places[:, 0], candidates=places[:, 1:])


class Shared:
    """One uniform pool for the whole batch; with `in_batch`, every node of the batch is a candidate for every anchor too."""

    def __init__(self, links: Links, pool: int, in_batch: bool):
        self.links, self.pool, self.in_batch = links, pool, in_batch

    def draw(self, children: Tensor, parents: Tensor, generator: Generator) -> Batch:
        pool = torch.randint(self.links.nodes, (self.pool,), generator=generator)
        rows, places = torch.unique(torch.cat([children, parents, pool]), return_inverse=True)
        anchors, positive, drawn = places.split([len(children), len(parents), self.pool])
        excluded = self.links.among(rows)[anchors]
        if not self.in_batch:
            pooled = torch.zeros(len(rows), dtype=torch.bool)
            pooled[drawn] = True
            excluded |= ~pooled
        return Batch(rows, anchors, positive=positive, excluded=excluded)


def make_sampler(links: Links, sampling: str, negatives: int, pool: int, in_batch: bool) -> PerEdge | Shared:
    if sampling == "per-edge":
        return PerEdge(links, negatives)
    if sampling == "shared":
        return Shared(links, pool, in_batch)
    raise UserError(f"unknown sampling {sampling!r}: use per-edge or shared.")
