"""Samplers against the rule: a negative of u is never u nor anything linked to u, in either direction."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.sampling import Links, PerEdge, Shared, make_sampler
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import binary_tree, linked, random_dag, random_tree

GRAPHS = [random_dag(25, seed, 40) for seed in range(4)] + [random_tree(30, 1)]


def edges(graph: Taxonomy, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    order = torch.randperm(len(graph.closure), generator=generator_for(seed))[:count]
    children, parents = torch.from_numpy(graph.closure)[order].unbind(1)
    return children, parents


@pytest.mark.parametrize("graph", GRAPHS)
def test_links_against_the_set_of_pairs(graph: Taxonomy) -> None:
    pairs, links = linked(graph), Links(graph)
    everyone = torch.arange(graph.nodes)
    expected = torch.tensor(
        [[one == other or (one, other) in pairs for other in range(graph.nodes)] for one in range(graph.nodes)]
    )
    assert torch.equal(links.linked(everyone[:, None], everyone[None]), expected)
    for seed in range(5):  # again and again: `among` keeps a table between calls
        some = torch.randperm(graph.nodes, generator=generator_for(seed))[: 3 + 4 * seed]
        assert torch.equal(links.among(some), expected[some][:, some])


@pytest.mark.parametrize("graph", GRAPHS)
def test_per_edge_negatives(graph: Taxonomy) -> None:
    pairs = linked(graph)
    children, parents = edges(graph, 20, 0)
    batch = PerEdge(Links(graph), 40).draw(children, parents, generator_for(1))
    assert torch.equal(batch.rows[batch.anchors], children)
    assert torch.equal(batch.rows[batch.candidates[:, 0]], parents)
    assert batch.candidates.shape == (len(children), 41)
    assert batch.rows.unique().tolist() == batch.rows.tolist()
    for child, some in zip(children.tolist(), batch.rows[batch.candidates[:, 1:]].tolist(), strict=True):
        free = {node for node in range(graph.nodes) if node != child and (child, node) not in pairs}
        assert set(some) <= free


def test_per_edge_negatives_are_uniform() -> None:
    graph = random_tree(12, 3)
    children = torch.from_numpy(graph.closure)[:1, 0].repeat(50)
    parents = torch.from_numpy(graph.closure)[:1, 1].repeat(50)
    batch = PerEdge(Links(graph), 200).draw(children, parents, generator_for(2))
    counts = torch.bincount(batch.rows[batch.candidates[:, 1:]].flatten(), minlength=graph.nodes)
    free = [
        node
        for node in range(graph.nodes)
        if node != int(children[0]) and (int(children[0]), node) not in linked(graph)
    ]
    assert counts.nonzero().flatten().tolist() == free
    assert (counts[free] / (10_000 / len(free)) - 1).abs().max() < 0.15


@pytest.mark.parametrize("in_batch", [True, False])
@pytest.mark.parametrize("graph", GRAPHS)
def test_shared_candidates(graph: Taxonomy, in_batch: bool) -> None:
    """Excluded is exactly: the anchor itself, whatever is linked to it, and without `in_batch` whatever is not in the pool."""
    pairs = linked(graph)
    children, parents = edges(graph, 10, 3)
    sampler = Shared(Links(graph), 8, in_batch)
    batch = sampler.draw(children, parents, generator_for(4))
    pool = set(torch.randint(graph.nodes, (8,), generator=generator_for(4)).tolist())
    assert set(batch.rows.tolist()) == set(children.tolist()) | set(parents.tolist()) | pool
    assert batch.rows.unique().tolist() == batch.rows.tolist()
    assert torch.equal(batch.rows[batch.anchors], children) and torch.equal(batch.rows[batch.positive], parents)
    assert batch.candidates is None
    for line, child in enumerate(children.tolist()):
        for place, node in enumerate(batch.rows.tolist()):
            expected = node == child or (child, node) in pairs or (not in_batch and node not in pool)
            assert bool(batch.excluded[line, place]) == expected


@pytest.mark.parametrize("sampling", ["per-edge", "shared"])
def test_draws_depend_on_the_generator_only(sampling: str) -> None:
    graph = GRAPHS[-1]
    sampler = make_sampler(Links(graph), sampling, negatives=5, pool=9, in_batch=True)
    children, parents = edges(graph, 6, 0)

    def rows(word: int) -> list[int]:
        return sampler.draw(children, parents, generator_for(word)).rows.tolist()

    assert rows(1) == rows(1)
    assert len({tuple(rows(word)) for word in range(6)}) > 1


def test_an_anchor_without_negatives_is_refused() -> None:
    """a → b → c: a is below everybody else."""
    chain = build_hierarchy(["a", "b", "c"], [(0, 1), (1, 2)])
    with pytest.raises(UserError, match=r"linked to every other node.*sampling: shared"):
        PerEdge(Links(chain), 3)
    children, parents = torch.tensor([0, 0]), torch.tensor([1, 2])
    assert bool(Shared(Links(chain), 3, True).draw(children, parents, generator_for(0)).excluded.all())


def test_a_root_above_everybody_needs_no_negatives() -> None:
    graph = binary_tree(3, beside=0)
    children, parents = torch.from_numpy(graph.closure).unbind(1)
    batch = PerEdge(Links(graph), 4).draw(children, parents, generator_for(0))
    assert batch.candidates.shape == (len(children), 5)


def test_an_unknown_sampling() -> None:
    with pytest.raises(UserError, match="unknown sampling 'hard': use per-edge or shared"):
        make_sampler(Links(GRAPHS[0]), "hard", 1, 1, True)
