"""The straightforward way, written from the formulas: autograd through a batched solve, sparse Adam, a loop with a sort."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.negatives import PairBatch
from subspaces.hierarchy.sampling import Batch


def soft_projector(X: Tensor, lam: float) -> Tensor:
    """P = X(XᵀX+λI)⁻¹Xᵀ for X (…, d, n), term by term."""
    identity = torch.eye(X.shape[-1])
    return X @ torch.linalg.solve(X.mT @ X + lam * identity, X.mT)


class AutogradStep:
    """Training by autograd: an embedding table with sparse gradients and torch's SparseAdam."""

    def __init__(self, weights: Tensor, lam: float, lr: float):
        self.shape, self.lam = weights.shape[1:], lam
        self.table = nn.Embedding.from_pretrained(weights.flatten(1).clone(), freeze=False, sparse=True)
        self.optimiser = torch.optim.SparseAdam(self.table.parameters(), lr=lr)

    def projectors(self, nodes: Tensor) -> Tensor:
        return soft_projector(self.table(nodes).view(*nodes.shape, *self.shape), self.lam)

    def logits(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(scores of the candidates, which one is the parent)."""
        if batch.candidates is not None:
            P = self.projectors(batch.rows[torch.cat([batch.anchors[:, None], batch.candidates], dim=1)])
            return (P[:, :1] * P[:, 1:]).sum(dim=(-2, -1)), torch.zeros(len(P), dtype=torch.int64)
        P = self.projectors(batch.rows).flatten(1)
        out = batch.excluded.clone()
        out[torch.arange(len(out)), batch.positive] = False
        return (P[batch.anchors] @ P.T).masked_fill(out, float("-inf")), batch.positive

    def step(self, batch: Batch) -> float:
        logits, positive = self.logits(batch)
        loss = nn.functional.cross_entropy(logits, positive)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    @property
    def weights(self) -> Tensor:
        return self.table.weight.detach().view(-1, *self.shape)

    @property
    def mean(self) -> Tensor:
        return self.optimiser.state[self.table.weight]["exp_avg"].view(-1, *self.shape)


class AutogradLinkStep(AutogradStep):
    """The same for link prediction: NIS = Tr(P_c P_p)/Tr(P_c) of an edge and its corruptions, margin loss (paper §3.3)."""

    def __init__(self, weights: Tensor, lam: float, lr: float, positive: float, negative: float, weigh_as: float):
        super().__init__(weights, lam, lr)
        self.positive, self.negative, self.weigh_as = positive, negative, weigh_as

    def scores(self, batch: PairBatch) -> Tensor:
        """(B, 1+n): child and parent of an edge, then its other children and its other parents, each looked up for this edge."""
        half = (batch.children.shape[1] - 1) // 2
        below, above = batch.children[:, 1 : 1 + half], batch.parents[:, 1 + half :]
        P = self.projectors(batch.rows[torch.cat([batch.children[:, :1], batch.parents[:, :1], below, above], dim=1)])
        edge, other = P[:, :2], P[:, 2:]
        child = torch.cat([edge[:, :1], other[:, :half], edge[:, :1].expand_as(other[:, half:])], dim=1)
        parent = torch.cat([edge[:, 1:], edge[:, 1:].expand_as(other[:, :half]), other[:, half:]], dim=1)
        return (child * parent).sum(dim=(-2, -1)) / child.diagonal(dim1=-2, dim2=-1).sum(-1)

    def scores_of_shared(self, batch: PairBatch) -> Tensor:
        """(B, 1+n) for a batch whose edges share their corruptions: every node looked up once."""
        P = self.projectors(batch.rows)
        flat = P.flatten(1)
        return (flat @ flat.T)[batch.children, batch.parents] / P.diagonal(dim1=-2, dim2=-1).sum(-1)[batch.children]

    def step(self, batch: PairBatch, shared: bool = False) -> float:
        scores = self.scores_of_shared(batch) if shared else self.scores(batch)
        wrong = nn.functional.relu(scores[:, 1:] - self.negative) * batch.counts
        loss = (
            nn.functional.relu(self.positive - scores[:, 0]) + self.weigh_as * wrong.sum(1) / batch.counts.sum(1)
        ).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())


def rank_node(node: int, projectors: Tensor, graph: Taxonomy) -> tuple[np.ndarray, float]:
    """(ranks of a node's ancestors, the other ancestors left out; average precision) from one full sort of `projectors` (N, d²)."""
    scores = projectors @ projectors[node]
    scores[node] = float("-inf")
    order = torch.argsort(scores, descending=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(1, len(order) + 1)
    ancestors = graph.ancestors[graph.offsets[node] : graph.offsets[node + 1]].astype(np.int64)
    places = np.sort(place[torch.from_numpy(ancestors)].numpy())
    count = np.arange(1, len(places) + 1)
    return places - count + 1, float((count / places).mean())
