"""Learning a known hierarchy: every ordered pair of a batch is an edge or not, and the loss sees all of them (paper §3.3, fitted).

A step takes some nodes and all their ancestors, M nodes in all. One product gives NIS(P_p | P_c) = Tr(P_c P_p)/Tr(P_c) of all M² pairs,
which costs less than the M inverses. The closure says which pairs are edges, so no edge is ever a negative, and every general node
meets nodes outside it in every step. The loss of a pair is logistic, softplus(∓s·(NIS − t)), with three additions:

- A parent with more nodes below it than beside it in the batch has the weight of its non-edges raised, up to `balance` times, until both
  sides count alike. Without it a node that contains 94 % of a taxonomy learns to contain the rest as well.
- The rank above 1 is part of the loss with a small weight, so that specific nodes stay small but keep a direction of their own.
- Every other epoch takes nodes that are neighbours in the tree, so that siblings meet in hierarchies larger than a batch; in large ones
  every fourth takes half a batch of neighbours, so that cousins meet. Such a batch has few ancestors beside it and costs a quarter of
  one of random nodes: 14,190 mammals of the NCBI, ten epochs, F1 97.7 with it.

Measured on WordNet's mammals (1,170 nodes, d = 64, 40 epochs, all ordered pairs): F1 99.58 without the first two and precision 95.7 for
the worst general node; 99.96 and 99.1 with the first; 99.95 and 99.6 with the second; 100.0 and 100.0 with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.rule import FitSettings
from subspaces.projector import complement, gradient
from subspaces.training.adam import LazyAdam, slice_width

EMPTY = 1e-6  # a smaller trace is rounding
_WIDE = 4  # slices of the optimiser that are inverted together


class Lists:
    """Rows of numbers of different lengths, concatenated: `of(rows)` returns (position in `rows`, value) of all their entries."""

    def __init__(self, offsets: Tensor, values: Tensor):
        self.offsets, self.values = offsets, values

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        first, count = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        line = torch.repeat_interleave(torch.arange(len(rows)), count)
        start = torch.repeat_interleave(first - (count.cumsum(0) - count), count)
        return line, self.values[torch.arange(len(line)) + start]

    @classmethod
    def ancestors(cls, graph: Taxonomy) -> Lists:
        return cls(torch.from_numpy(graph.offsets), torch.from_numpy(graph.ancestors.astype(np.int64)))

    @classmethod
    def parents(cls, graph: Taxonomy) -> Lists:
        """Direct parents; edges are sorted by child."""
        count = np.bincount(graph.edges[:, 0], minlength=graph.nodes)
        offsets = np.concatenate([[0], np.cumsum(count)])
        return cls(torch.from_numpy(offsets), torch.from_numpy(graph.edges[:, 1].astype(np.int64)))


class HalfVectors:
    """Upper triangles of symmetric d × d matrices, and the index that brings them back."""

    def __init__(self, dim: int):
        row, column = torch.triu_indices(dim, dim)
        self.upper = row * dim + column
        self.identity = (row == column).float()
        self.weight = 2.0 - self.identity  # ⟨a·weight, b⟩ = Tr(AB)
        index = torch.empty(dim, dim, dtype=torch.int64)
        index[row, column] = index[column, row] = torch.arange(len(self.upper))
        self.full = index.flatten()


class InclusionTask:
    """Trains X (N, d, d) so that NIS(P_p | P_c) decides every pair. `closed=False`: the given edges are the positive pairs, and pairs
    that only follow from them count neither way."""

    def __init__(self, graph: Taxonomy, settings: FitSettings, closed: bool = True):
        self.graph, self.settings, self.closed = graph, settings, closed
        self.X = torch.zeros(graph.nodes, settings.dim, settings.dim)
        self.optimiser = LazyAdam(self.X)
        self.halves = HalfVectors(settings.dim)
        self.ancestors, self.parents = Lists.ancestors(graph), Lists.parents(graph)
        self.steps_per_epoch = -(-graph.nodes // settings.batch)
        self.total = settings.epochs * self.steps_per_epoch
        self._order = torch.from_numpy(depth_first(graph))
        self._position = torch.full((graph.nodes,), -1)
        self._batches: tuple[Tensor, ...] = ()

    def weights(self) -> dict[str, Tensor]:
        return {"X": self.X}

    def state(self) -> dict[str, Tensor]:
        return {**self.weights(), **self.optimiser.state()}

    def initialise(self, generator: Generator) -> None:
        for part in self.X.split(4096):
            part.copy_(torch.empty(part.shape).normal_(0.0, self.settings.start, generator=generator))
        self.optimiser.reset()

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        """Runs of neighbours in depth-first order (runs of one: single nodes); each run goes to a random batch."""
        run = self.settings.runs[epoch % len(self.settings.runs)]
        shifted = self._order.roll(int(torch.randint(self.graph.nodes, (1,), generator=generator)))
        runs = shifted.split(run)
        shuffled = torch.cat([runs[i] for i in torch.randperm(len(runs), generator=generator).tolist()])
        self._batches = shuffled.split(self.settings.batch)

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        chosen = self._batches[step]
        rows = torch.unique(torch.cat([chosen, self.ancestors.of(chosen)[1]]))
        K, half = self.open(rows)
        trace = (half @ self.halves.identity).clamp_min(EMPTY)
        inclusion = (half * self.halves.weight) @ half.T / trace[:, None]
        loss, upstream = self._loss(inclusion, *self._labels(rows))
        self._update(rows, K, half, trace, inclusion, upstream, self._rate(epoch, step))
        return {"loss": loss}

    def open(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Complements (M, d, d) and the upper triangles of the projectors (M, d(d+1)/2)."""
        width, size = _WIDE * slice_width(self.X), self.settings.dim
        K, half = torch.empty(len(rows), size, size), torch.empty(len(rows), len(self.halves.upper))
        for some, into, out in zip(rows.split(width), K.split(width), half.split(width), strict=True):
            complement(self.X.index_select(0, some), self.settings.lam, out=into)
            torch.index_select(into.flatten(1), 1, self.halves.upper, out=out)
            torch.sub(self.halves.identity, out, out=out)
        return K, half

    def _labels(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(M, M) bool, child by parent: is an edge; is not an edge. Neither: the diagonal, and what is not known."""
        self._position[rows] = torch.arange(len(rows))
        above = torch.zeros(len(rows), len(rows), dtype=torch.bool)
        line, parent = self.ancestors.of(rows)
        above[line, self._position[parent]] = True  # every ancestor of a row is a row
        outside = ~above
        outside.fill_diagonal_(False)
        if not self.closed:
            above = torch.zeros_like(above)
            line, parent = self.parents.of(rows)
            above[line, self._position[parent]] = True
        self._position[rows] = -1
        return above, outside

    def _loss(self, inclusion: Tensor, edge: Tensor, outside: Tensor) -> tuple[float, Tensor]:
        """The loss per node and its gradient with respect to the inclusions."""
        s, t = self.settings.sharpness, self.settings.target
        margin = s * (inclusion - t)
        inside_count, outside_count = edge.sum(0), outside.sum(0)
        ratio = (inside_count / outside_count.clamp_min(1)).clamp(1.0, self.settings.balance)
        weight = outside * ratio
        probability = torch.sigmoid(margin)
        upstream = torch.where(edge, probability - 1.0, probability * weight)
        total = (torch.nn.functional.softplus(margin) * weight).sum()
        total += torch.nn.functional.softplus(-margin[edge]).sum()
        return float(total) / (s * len(inclusion)), upstream

    def _update(
        self, rows: Tensor, K: Tensor, half: Tensor, trace: Tensor, inclusion: Tensor, upstream: Tensor, rate: float
    ) -> None:
        """∂NIS/∂P_p = P_c/Tr P_c and ∂NIS/∂P_c = (P_p − NIS·I)/Tr P_c, then the closed form of the projector."""
        scale, width, dim = 2.0 / self.settings.lam, slice_width(self.X), self.settings.dim
        share = upstream * (scale / trace[:, None])
        sums = ((share + share.T) @ half).split(width)
        pull = scale * self.settings.rank_weight * (trace > 1.0)
        diagonal = (pull - (share * inclusion).sum(1)).split(width)

        def gradients() -> Iterator[tuple[Tensor, Tensor]]:
            for some, k, part, shift in zip(rows.split(width), K.split(width), sums, diagonal, strict=True):
                G = part.index_select(1, self.halves.full).view(-1, dim, dim)
                G.diagonal(dim1=-2, dim2=-1).add_(shift[:, None])
                yield some, gradient(k, k @ self.X.index_select(0, some), G)

        self.optimiser.step_in_parts(gradients(), rate)

    def _rate(self, epoch: int, step: int) -> float:
        done = (epoch * self.steps_per_epoch + step) / self.total
        last = self.settings.lr_final
        return self.settings.lr * (last + (1 - last) * 0.5 * (1 + math.cos(math.pi * done)))


def depth_first(graph: Taxonomy) -> np.ndarray:
    """All nodes in depth-first order from the roots; a node with several parents stands below the first that is reached."""
    below: list[list[int]] = [[] for _ in range(graph.nodes)]
    for child, parent in graph.edges.tolist():
        below[parent].append(child)
    waiting = np.flatnonzero(np.diff(graph.offsets) == 0).tolist()[::-1]
    order, seen = [], bytearray(graph.nodes)
    while waiting:
        node = waiting.pop()
        if not seen[node]:
            seen[node] = 1
            order.append(node)
            waiting.extend(below[node])
    return np.array(order)
