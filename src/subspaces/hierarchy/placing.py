"""A place for a new node in a fitted hierarchy: its subspace is learnt against all others, which stay as they are.

The loss is that of the fit (`learning`), in both roles: as a child the node must lie in its ancestors and in nothing else; as a parent it
must contain its descendants and nothing else. Of N nodes a few thousand matter at a time: its relatives, and those that it is closest to
getting wrong; these are chosen again while the place moves. Several random starts inside the parents are moved together, and the best
one is kept.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.hierarchy.edges import normalise
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.projector import soft_projector
from subspaces.training.loop import generator_for

if TYPE_CHECKING:
    from subspaces.hierarchy.model import Hierarchy

_STARTS = 4
_STEPS = 60  # of a round, after which the nodes that matter are chosen again
_RATE = 0.03
_MATTER = 4096
WEIGHTS = (
    0.1,
    0.1,
    0.3,
    0.3,
    1.0,
    1.0,
)  # of a non-relative, by round: thousands of them must not outweigh a few relatives at the start


@dataclass(frozen=True)
class Placement:
    """How well a new node lies: its rank, the relatives that the threshold misses, and the nodes that it takes for relatives."""

    name: str
    rank: float
    missed: list[str]
    wrong: list[str]

    @property
    def exact(self) -> bool:
        """Does the threshold decide every pair with the new node as the edges say?"""
        return not self.missed and not self.wrong


def add_node(hierarchy: Hierarchy, name: str, parents: Tensor, children: Tensor, seed: int) -> Placement:
    """Place the node, append it to `hierarchy`, and say how well it lies there."""
    name = normalise(name)
    if not name or "\n" in name:
        raise UserError("the new node needs a name of one line.")
    if name in hierarchy:
        raise UserError(f"{name!r} is a node already.")
    if not len(parents) and not len(children):
        raise UserError(f"{name!r} needs at least one parent or child: without any it has no place.")
    graph = _extended(hierarchy.graph, name, parents.tolist(), children.tolist())
    node = graph.nodes - 1
    above = torch.zeros(node, dtype=torch.bool)
    above[torch.from_numpy(graph.ancestors[graph.offsets[node] : graph.offsets[node + 1]].astype(np.int64))] = True
    below = torch.zeros(node, dtype=torch.bool)
    below[np.searchsorted(graph.offsets, np.flatnonzero(graph.ancestors == node), side="right") - 1] = True
    X = _learn(hierarchy, above, below, parents, children, seed)
    P = soft_projector(X, hierarchy.lam)
    half, trace = half_vector(P).to(torch.float16), P.diagonal().sum()
    as_child, as_parent = _inclusions(hierarchy, half.float(), trace)
    hierarchy._grow(graph, X, half, trace)
    at = hierarchy.threshold
    missed = (above & (as_child < at)) | (below & (as_parent < at))
    wrong = (~above & (as_child >= at)) | (~below & (as_parent >= at))
    placement = Placement(name, float(trace), _names(hierarchy, missed), _names(hierarchy, wrong))
    if placement.missed:
        shown = ", ".join(map(repr, placement.missed[:5]))
        warnings.warn(
            f"no place for {name!r} reaches the threshold with {shown}: fit the larger hierarchy.", stacklevel=3
        )
    return placement


def _names(hierarchy: Hierarchy, chosen: Tensor) -> list[str]:
    return [hierarchy.names[place] for place in torch.nonzero(chosen)[:, 0].tolist()]


def _extended(graph: Taxonomy, name: str, parents: list[int], children: list[int]) -> Taxonomy:
    node = graph.nodes
    edges = [*graph.edges.tolist(), *((node, parent) for parent in parents), *((child, node) for child in children)]
    return build_hierarchy([*graph.names, name], edges)


def _inclusions(hierarchy: Hierarchy, half: Tensor, trace: Tensor) -> tuple[Tensor, Tensor]:
    """NIS(P_x | P_new) and NIS(P_new | P_x) for all nodes x; half (k,) or a batch (m, k), trace () or (m,)."""
    similarity = hierarchy.features.score_block(half.reshape(-1, half.shape[-1]), hierarchy.features.half)
    similarity = similarity.reshape(*half.shape[:-1], -1)
    return similarity / trace[..., None].clamp_min(1e-30), similarity / hierarchy.features.trace.clamp_min(1e-30)


def _learn(hierarchy: Hierarchy, above: Tensor, below: Tensor, parents: Tensor, children: Tensor, seed: int) -> Tensor:
    """X (d, d) of the new node."""
    settings = hierarchy.record["asked"]["settings"]
    s, t, dim = settings["sharpness"], settings["target"], hierarchy.dim
    X = _start(hierarchy, parents, children, generator_for(seed, 11)).requires_grad_()
    optimiser = torch.optim.Adam([X], lr=_RATE)
    i, j = torch.triu_indices(dim, dim)
    scale = half_vector(torch.ones(dim, dim))
    last = len(WEIGHTS) * _STEPS
    for step in range(last + 1):
        if step % _STEPS == 0:
            weight = WEIGHTS[min(step // _STEPS, len(WEIGHTS) - 1)]
            rows = _matter(hierarchy, X.detach(), above, below)
            half, trace = hierarchy.features.half[rows].float(), hierarchy.features.trace[rows].clamp_min(1e-6)
        P = soft_projector(X, hierarchy.lam)
        own = P.diagonal(dim1=-2, dim2=-1).sum(-1)
        similarity = (P[:, i, j] * scale) @ half.T
        loss = _pairs_loss(similarity / own[:, None].clamp_min(1e-6), above[rows], s, t, weight)
        loss = loss + _pairs_loss(similarity / trace, below[rows], s, t, weight)
        loss = loss + s * settings["rank_weight"] * (own - 1).clamp_min(0)
        if step < last:
            optimiser.param_groups[0]["lr"] = _RATE * (1 - step / last)
            optimiser.zero_grad()
            loss.sum().backward()
            optimiser.step()
    return X.detach()[loss.detach().argmin()].clone()


def _pairs_loss(inclusion: Tensor, edge: Tensor, s: float, t: float, weight: float) -> Tensor:
    """Logistic, (starts, M) → (starts,)."""
    margin = s * (inclusion - t)
    softplus = torch.nn.functional.softplus
    return torch.where(edge, softplus(-margin), weight * softplus(margin)).sum(-1)


def _start(hierarchy: Hierarchy, parents: Tensor, children: Tensor, generator: torch.Generator) -> Tensor:
    """Random vectors inside the parents, and all of the children: (starts, d, d)."""
    dim = hierarchy.dim
    X = torch.randn(_STARTS, dim, dim, generator=generator) * (hierarchy.lam / dim) ** 0.5
    for P in soft_projector(hierarchy.vectors(parents), hierarchy.lam):
        X = P @ X
    if len(children):
        joint = soft_projector(hierarchy.vectors(children), hierarchy.lam).sum(0)  # the span: YYᵀ = ΣP
        values, directions = torch.linalg.eigh(joint)
        X = X + directions * (3 * hierarchy.lam * values.clamp_min(0)).sqrt()
    return X.contiguous()


def _matter(hierarchy: Hierarchy, X: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """The relatives, and the nodes with the largest inclusion in either direction that are none."""
    nodes = len(hierarchy)
    if nodes <= _MATTER:
        return torch.arange(nodes)
    P = soft_projector(X, hierarchy.lam)
    as_child, as_parent = _inclusions(hierarchy, half_vector(P), P.diagonal(dim1=-2, dim2=-1).sum(-1))
    danger = torch.maximum(as_child.masked_fill(above, 0.0), as_parent.masked_fill(below, 0.0)).amax(0)
    chosen = torch.zeros(nodes, dtype=torch.bool)
    chosen[danger.topk(_MATTER).indices] = True
    return torch.nonzero(chosen | above | _thinned(below))[:, 0]


def _thinned(below: Tensor) -> Tensor:
    """At most `_MATTER` of many descendants, evenly."""
    places = torch.nonzero(below)[:, 0]
    kept = torch.zeros_like(below)
    kept[places[:: max(1, -(-len(places) // _MATTER))]] = True
    return kept
