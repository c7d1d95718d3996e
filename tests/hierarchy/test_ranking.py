"""Ranking metrics against a reference that a reader can check by eye."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from subspaces.errors import UserError
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy import ranking
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.ranking import descendant_lists, evaluate_generality, evaluate_ranking, rank_block
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import binary_tree, random_dag, random_tree


class Table:
    """Only what an evaluation asks of a geometry: a score for every pair, from a table."""

    def __init__(self, scores: torch.Tensor):
        self.scores = scores

    def space(self) -> None:
        return None

    def all_features(self) -> torch.Tensor:
        return self.scores

    def score_block(self, sources: torch.Tensor, everyone: torch.Tensor) -> torch.Tensor:
        return sources.clone()


def slow(scores: list[list[float]], graph: Taxonomy) -> dict[str, float]:
    """The ranking rules of `evaluate_ranking`, one node after the other, with sorted lists and exact fractions."""
    above = {
        node: set(graph.ancestors[graph.offsets[node] : graph.offsets[node + 1]].tolist())
        for node in range(graph.nodes)
    }
    ranks, filtered, precisions = [], [], []
    for node in range(graph.nodes):
        if not above[node]:
            continue
        # best first; among equals a negative comes before a positive
        others = [other for other in range(graph.nodes) if other != node]
        listed = sorted(others, key=lambda other: (-scores[node][other], other in above[node]))
        found: list[Fraction] = []
        for place, other in enumerate(listed, start=1):
            if other in above[node]:
                found.append(Fraction(len(found) + 1, place))
                before = [one for one in listed[: place - 1] if one not in above[node]]
                ranks.append(1 + len(before))
                filtered.append(1 + len([one for one in before if node not in above[one]]))
        precisions.append(sum(found) / len(found))
    return {
        "mr": float(Fraction(sum(ranks), len(ranks))),
        "map": float(100 * sum(precisions) / len(precisions)),
        "edge_mrr": float(100 * sum(Fraction(1, rank) for rank in filtered) / len(filtered)),
        "sources": len(precisions),
        "edges": len(ranks),
    }


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(3, 18),
    density=st.floats(0.4, 3.0),
    levels=st.sampled_from([1, 2, 3, 6, 1000]),
    block=st.sampled_from([1, 2, 5, 1024]),
    double=st.booleans(),
)
def test_against_the_slow_reference(
    seed: int, nodes: int, density: float, levels: int, block: int, double: bool
) -> None:
    """Few levels of score make many ties, between positives, negatives and descendants."""
    graph = random_dag(nodes, seed, max(1, int(density * nodes)))
    scores = torch.randint(levels, (nodes, nodes), generator=torch.Generator().manual_seed(seed)).to(
        torch.float64 if double else torch.float32
    )
    scores = scores / 7 - 1
    found = evaluate_ranking(Table(scores.clone()), graph, block=block)
    assert found == pytest.approx(slow(scores.tolist(), graph), rel=1e-12)


def test_by_hand() -> None:
    """grandchild → child → root, a sibling of the child, and a stranger."""
    graph = build_hierarchy(["root", "child", "grandchild", "sibling", "stranger"], [(1, 0), (2, 1), (3, 0)])
    scores = torch.tensor(
        [
            [0.0, 0.0, 0.0, 0.0, 0.0],
            [3.0, 9.0, 5.0, 3.0, 1.0],  # child: the root ties with the sibling, and its own descendant is ahead
            [7.0, 2.0, 9.0, 1.0, 4.0],  # grandchild: root first, then the stranger, then child
            [8.0, 0.0, 0.0, 9.0, 0.0],  # sibling: perfect; its own score does not count
            [9.0, 0.0, 0.0, 0.0, 0.0],
        ]
    )
    found = evaluate_ranking(Table(scores), graph)
    assert found["mr"] == pytest.approx((3 + 1 + 2 + 1) / 4)
    assert found["map"] == pytest.approx(100 * (1 / 3 + (1 + 2 / 3) / 2 + 1) / 3)
    assert found["edge_mrr"] == pytest.approx(100 * (1 / 2 + 1 + 1 / 2 + 1) / 4)
    assert (found["sources"], found["edges"]) == (3, 4)


def test_one_block_by_hand() -> None:
    graph = build_hierarchy(["a", "b", "c", "d"], [(0, 1), (0, 2)])
    result = rank_block(torch.tensor([[9.0, 5.0, 3.0, 4.0]]), np.array([0]), graph, descendant_lists(graph))
    assert result["rank"].tolist() == result["rank_filtered"].tolist() == [1, 2]
    assert result["precision"].tolist() == pytest.approx([(1 / 1 + 2 / 3) / 2])


def test_a_model_that_scores_all_alike_is_the_worst() -> None:
    graph = random_tree(20, 1)
    found = evaluate_ranking(Table(torch.zeros(21, 21)), graph)
    sizes = np.diff(graph.offsets)
    negatives = np.repeat(20 - sizes, sizes)
    assert found["mr"] == pytest.approx(1 + negatives.mean())
    assert found == pytest.approx(slow([[0.0] * 21] * 21, graph))


def test_a_perfect_model() -> None:
    graph = random_dag(20, 3, 30)
    scores = torch.zeros(20, 20)
    scores[graph.closure[:, 0], graph.closure[:, 1]] = 1.0
    found = evaluate_ranking(Table(scores), graph)
    assert (found["mr"], found["map"], found["edge_mrr"]) == (1.0, 100.0, 100.0)


@pytest.mark.parametrize("where", ["everywhere", "in one node"])
def test_scores_that_are_not_numbers_are_refused(where: str) -> None:
    graph = random_tree(20, 1)
    scores = torch.rand(21, 21, generator=torch.Generator().manual_seed(0))
    scores[(slice(None), slice(None)) if where == "everywhere" else 5] = float("nan")
    with pytest.raises(UserError):
        evaluate_ranking(Table(scores), graph)


def test_scores_that_overflow_are_refused_too() -> None:
    geometry = make_geometry("euclidean", 21, 3, ranking=True, score="distance")
    geometry.table.normal_(0.0, 1e25, generator=torch.Generator().manual_seed(0))
    with pytest.raises(UserError):
        evaluate_ranking(geometry, random_tree(20, 1))


def test_some_sources_and_the_ticks() -> None:
    graph = random_tree(30, 4)
    scores = torch.rand(31, 31, generator=torch.Generator().manual_seed(0))
    ticks: list[tuple[int, int]] = []
    found = evaluate_ranking(
        Table(scores), graph, block=4, sources=np.array([3, 9, 20, 8, 5]), tick=lambda *numbers: ticks.append(numbers)
    )
    assert ticks == [(4, 5), (5, 5)]
    assert found["sources"] == 5 and found["edges"] == int(np.diff(graph.offsets)[[3, 9, 20, 8, 5]].sum())
    alone = [evaluate_ranking(Table(scores), graph, sources=np.array([node])) for node in (3, 9, 20, 8, 5)]
    assert found["map"] == pytest.approx(np.mean([one["map"] for one in alone]))
    assert found["mr"] == pytest.approx(
        np.average([one["mr"] for one in alone], weights=[one["edges"] for one in alone])
    )


# --- generality -------------------------------------------------------------------------------------------------------------------


def test_general_is_large_is_positive() -> None:
    """Generality that falls with depth and grows with the number of descendants is 100 in every variant, its opposite −100."""
    graph = binary_tree(3)
    shortest, longest = graph.depths
    assert longest[: 2**3 - 1].tolist() == [3, 2, 2, 1, 1, 1, 1]
    found = evaluate_generality(-shortest.astype(float), graph)
    opposite = evaluate_generality(shortest.astype(float), graph)
    for name in ("rho", "rho_depth", "rho_descendants", "rho_inner_nodes"):
        assert found[name] == pytest.approx(100) and opposite[name] == pytest.approx(-100)
    assert found["rho_nodes"] == 15  # the node beside the tree has no place in it


def test_each_variant_looks_at_its_own_thing() -> None:
    """A long arm and a short one: depth, taxonomy rank and descendants disagree.

    root ← a ← b ← c and root ← leaf; sp/(sp+lp) is 0, 1/3, 2/3, 1 and 1.
    """
    graph = build_hierarchy(["root", "a", "b", "c", "leaf", "alone"], [(1, 0), (2, 1), (3, 2), (4, 0)])
    by_rank = evaluate_generality(np.array([5.0, 4.0, 3.0, 1.0, 1.0, 99.0]), graph)
    assert by_rank["rho"] == pytest.approx(100) and by_rank["rho_depth"] < 90
    by_depth = evaluate_generality(-np.array([0.0, 1.0, 2.0, 3.0, 1.0, -99.0]), graph)
    assert by_depth["rho_depth"] == pytest.approx(100) and by_depth["rho"] < 90
    by_descendants = evaluate_generality(np.array([4.0, 2.0, 1.0, 0.0, 0.0, 99.0]), graph)
    assert by_descendants["rho_descendants"] == pytest.approx(100)
    leaves_wrong = evaluate_generality(np.array([5.0, 4.0, 3.0, 9.0, 8.0, 0.0]), graph)
    assert leaves_wrong["rho_inner_nodes"] == pytest.approx(100) and leaves_wrong["rho"] < 0


def test_generality_that_says_nothing_is_zero() -> None:
    found = evaluate_generality(np.ones(16), binary_tree(3))
    assert [found[name] for name in ("rho", "rho_depth", "rho_descendants", "rho_inner_nodes")] == [0.0] * 4


@pytest.mark.parametrize("name", ["poincare", "lorentz"])
def test_the_compiled_evaluation_is_that_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nodes lie on one point, so that scores tie."""
    graph = random_dag(90, 1, 200)
    geometry = make_geometry(name, graph.nodes, 3, start=0.3, ranking=True)
    geometry.initialise(generator_for(1))
    geometry.table[10:40] = geometry.table[50:80]
    assert ranking.has(ranking.nearness, geometry.space())
    seen: list[int] = []
    compiled = evaluate_ranking(geometry, graph, tick=lambda done, total: seen.append(done))
    monkeypatch.setattr(ranking, "has", lambda *_: False)
    assert compiled == pytest.approx(evaluate_ranking(geometry, graph), rel=1e-12)
    assert seen[-1] == compiled["sources"]
    geometry.table[3] = float("nan")
    monkeypatch.undo()
    with pytest.raises(UserError, match="NaN or infinite"):
        evaluate_ranking(geometry, graph)
