"""When is a pair entailed? The threshold on NIS(parent | child) with the best F1 on the training closure against pairs outside it."""

from __future__ import annotations

import numpy as np
import torch

from subspaces.hierarchy.features import Features
from subspaces.training.loop import generator_for
from subspaces.wordnet.graph import Hierarchy

_POSITIVES = 20_000
_RANDOM = 9  # random pairs for each edge, besides the edge turned round: ten negatives, as in link prediction (PROTOCOL §2)


def best_f1(positive: np.ndarray, negative: np.ndarray) -> tuple[float, float]:
    """(threshold, F1) by an exact scan: every distinct score is tried as the smallest that counts as entailed.

    The threshold lies half way to the next smaller score, so that the last bits of a product decide nothing. Equal F1: the larger one.
    """
    scores = np.concatenate([positive, negative])
    order = np.argsort(-scores, kind="stable")
    scores, true = scores[order], (order < len(positive))
    found = np.cumsum(true)
    ends = np.flatnonzero(np.append(np.diff(scores) != 0, True))
    f1 = 2 * found[ends] / (ends + 1 + len(positive))
    best = int(np.argmax(f1))
    last = ends[best]
    below = scores[last + 1] if last + 1 < len(scores) else scores[last]
    return float((scores[last] + below) / 2), float(f1[best])


def calibrate(features: Features, graph: Hierarchy, seed: int) -> dict[str, float]:
    """Up to 20,000 random closure edges, each turned round, and nine uniform pairs for each that are not in the closure."""
    generator = generator_for(seed, 4)
    edges = torch.from_numpy(graph.closure)
    edges = edges[torch.randperm(len(edges), generator=generator)[:_POSITIVES]]
    drawn = torch.randint(graph.nodes, (_RANDOM * len(edges), 2), generator=generator)
    outside = torch.cat([edges.flip(1), drawn[~in_closure(graph, drawn) & (drawn[:, 0] != drawn[:, 1])]])
    positive = features.inclusion(edges[:, 0], edges[:, 1]).numpy()
    negative = features.inclusion(outside[:, 0], outside[:, 1]).numpy()
    threshold, f1 = best_f1(positive, negative)
    return {
        "threshold": threshold,
        "f1": 100 * f1,
        "edges": len(positive),
        "non_edges": len(negative),
        "reversed_refused": 100 * float((negative[: len(edges)] < threshold).mean()),
    }


def in_closure(graph: Hierarchy, pairs: torch.Tensor) -> torch.Tensor:
    """(m,) bool: is the second of each pair an ancestor of the first?"""
    keys = graph.closure[:, 0] * graph.nodes + graph.ancestors  # sorted: by node, then ancestor
    wanted = (pairs[:, 0] * graph.nodes + pairs[:, 1]).numpy()
    return torch.from_numpy(keys[np.searchsorted(keys, wanted).clip(max=len(keys) - 1)] == wanted)
