"""The judge: all ordered pairs, counted one by one; a sample that keeps the general nodes exact; scores that are no inclusions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subspaces.hierarchy import judging
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.judging import judge_pairs
from tests.hierarchy.toys import random_tree


class Table:
    """Scores from a matrix, child by parent."""

    def __init__(self, scores: torch.Tensor, bounded: bool):
        self.scores, self.bounded = scores, bounded

    def inclusion(self, child: torch.Tensor, parent: torch.Tensor) -> torch.Tensor:
        return self.scores[child, parent]

    def block(self, children: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
        return self.scores[children][:, parents]


def noisy(graph: Taxonomy, seed: int) -> torch.Tensor:
    """Edges score high, other pairs low, and the two overlap. Multiples of 1/1000: in the middle of no bin."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(graph.nodes, graph.nodes, generator=generator, dtype=torch.float64) * 0.7
    scores[graph.closure[:, 0], graph.closure[:, 1]] += 0.3
    return (scores * 1000).round() / 1000 + 0.00005


def by_hand(graph: Taxonomy, scores: torch.Tensor, threshold: float) -> tuple[float, float]:
    """Precision and recall over all ordered pairs."""
    edge = np.zeros((graph.nodes, graph.nodes), dtype=bool)
    edge[graph.closure[:, 0], graph.closure[:, 1]] = True
    said = (scores.numpy() >= threshold) & ~np.eye(graph.nodes, dtype=bool)
    return 100 * (said & edge).sum() / said.sum(), 100 * (said & edge).sum() / edge.sum()


@pytest.mark.parametrize("bounded", [True, False])
def test_all_ordered_pairs_as_counted_by_hand(bounded: bool) -> None:
    graph = random_tree(60, 1)
    scores = noisy(graph, 2) if bounded else 40 * noisy(graph, 2) - 100
    found = judge_pairs(Table(scores, bounded), graph, 0)
    assert found["all_pairs"] and found["edges"] + found["non_edges"] == 61 * 60
    precision, recall = by_hand(graph, scores, found["threshold"])
    assert (found["precision"], found["recall"]) == pytest.approx((precision, recall))
    tried = [by_hand(graph, scores, float(value)) for value in torch.unique(scores)]
    assert found["f1"] == pytest.approx(max(2 * p * r / (p + r) for p, r in tried if p + r))
    root = next(node for node in found["general"] if node["name"] == "node-0")
    outside = scores[60, 0] >= found["threshold"]  # the one node beside the tree
    inside = int((scores[1:60, 0] >= found["threshold"]).sum())
    assert root["precision"] == pytest.approx(100 * inside / (inside + int(outside)))


def test_a_sample_stands_for_all_and_general_parents_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_tree(400, 1)
    table = Table(noisy(graph, 2), True)
    exact = judge_pairs(table, graph, 0)
    monkeypatch.setattr(judging, "_GENERAL", 40)
    sampled = judge_pairs(table, graph, 0, sample=200)
    assert not sampled["all_pairs"] and sampled["non_edges"] < exact["non_edges"]
    assert sampled["f1"] == pytest.approx(exact["f1"], abs=1.5)
    at_the_same = judge_pairs(table, graph, 0, threshold=exact["threshold"], sample=200)
    assert at_the_same["recall"] == pytest.approx(exact["recall"])
    assert at_the_same["general"] == exact["general"]  # against all nodes, not against a sample


def test_a_general_node_that_is_said_to_contain_nothing_is_not_precise() -> None:
    graph = random_tree(60, 1)
    found = judge_pairs(Table(torch.zeros(61, 61, dtype=torch.float64), True), graph, 0, threshold=0.5)
    assert found["precision"] == 0
    for node in found["general"]:
        assert (node["precision"], node["recall"]) == ((0, 0) if node["descendants"] else (100, 100))
