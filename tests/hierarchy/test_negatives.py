"""Corrupted edges against the rule: what replaces what, what is left out, and that only training edges are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.hierarchy.negatives import Known, PairBatch, make_negatives
from subspaces.hierarchy.splits import Split, draw_split
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import random_dag

SPLITS = [draw_split(random_dag(40, seed, 110), coverage) for seed, coverage in ((3, 0), (4, 10), (5, 50))]
SAMPLINGS = ["per-edge", "weighted", "shared", "shared-weighted", "related"]


def sampler_of(split: Split, sampling: str, negatives: int = 10, pool: int = 8, corrupt: str = "both"):
    return make_negatives(Known(split.nodes, split.train), split.train, sampling, negatives, pool, corrupt)


def some_edges(split: Split, count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """With one of them twice."""
    order = torch.randperm(len(split.train), generator=generator_for(seed))[:count]
    order[-1] = order[0]
    return torch.from_numpy(split.train)[order].unbind(1)


def edges_of(*parts: np.ndarray) -> set[tuple[int, int]]:
    return {(child, parent) for part in parts for child, parent in part.tolist()}


def nodes_of(batch: PairBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Children and parents as nodes, after a look at the rows: each once, in order, none for nothing."""
    assert batch.rows.tolist() == sorted(set(batch.rows.tolist()))
    assert set(batch.children.flatten().tolist()) | set(batch.parents.flatten().tolist()) == set(range(len(batch.rows)))
    assert batch.children.shape == batch.parents.shape == (len(batch.counts), 1 + batch.counts.shape[1])
    assert batch.counts.dtype == torch.bool
    return batch.rows[batch.children], batch.rows[batch.parents]


def is_known(split: Split, below: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
    train = edges_of(split.train)
    pairs = zip(below.flatten().tolist(), above.flatten().tolist(), strict=True)
    return torch.tensor([child == parent or (child, parent) in train for child, parent in pairs]).view(below.shape)


# --- which pairs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_known_against_the_set_of_edges(split: Split) -> None:
    everyone = torch.arange(split.nodes)
    below, above = torch.meshgrid(everyone, everyone, indexing="ij")
    found = Known(split.nodes, split.train)(everyone[:, None], everyone[None])
    assert torch.equal(found, is_known(split, below, above))
    assert int(found.sum()) == split.nodes + len(edges_of(split.train))  # one way round only


@pytest.mark.parametrize("negatives", [2, 7, 10, 60])
@pytest.mark.parametrize("sampling", ["per-edge", "weighted"])
@pytest.mark.parametrize("split", SPLITS)
def test_half_the_children_and_half_the_parents_are_replaced(split: Split, sampling: str, negatives: int) -> None:
    children, parents = some_edges(split, 12)
    before = children.clone(), parents.clone()
    batch = sampler_of(split, sampling, negatives).draw(children, parents, generator_for(1))
    below, above = nodes_of(batch)
    half = negatives // 2
    assert below.shape == (12, 1 + negatives)
    assert torch.equal(below[:, 0], children) and torch.equal(above[:, 0], parents)
    assert (above[:, 1 : 1 + half] == parents[:, None]).all() and (below[:, 1 + half :] == children[:, None]).all()
    if negatives == 60:  # the other side is drawn
        assert all(len(set(line)) > 5 for line in below[:, 1 : 1 + half].tolist() + above[:, 1 + half :].tolist())
    assert torch.equal(children, before[0]) and torch.equal(parents, before[1])


@pytest.mark.parametrize("split", SPLITS)
def test_per_edge_leaves_out_known_edges_and_self_pairs_and_nothing_else(split: Split) -> None:
    children, parents = some_edges(split, 12)
    batch = sampler_of(split, "per-edge", 100).draw(children, parents, generator_for(2))
    below, above = nodes_of(batch)
    known = is_known(split, below[:, 1:], above[:, 1:])
    assert torch.equal(batch.counts, ~known)
    itself = below[:, 1:] == above[:, 1:]
    assert itself.any() and (known & ~itself).any() and batch.counts.any()  # every case occurred


@pytest.mark.parametrize("split", SPLITS)
def test_shared_pairs_every_edge_with_every_pool_node_on_both_sides(split: Split) -> None:
    children, parents = some_edges(split, 12)
    before = children.clone(), parents.clone()
    batch = sampler_of(split, "shared", pool=30).draw(children, parents, generator_for(3))
    below, above = nodes_of(batch)
    pool = torch.randint(split.nodes, (30,), generator=generator_for(3))
    assert len(set(pool.tolist())) < 30  # a node may be in the pool twice
    for line, (child, parent) in enumerate(zip(children.tolist(), parents.tolist(), strict=True)):
        assert below[line].tolist() == [child, *pool.tolist(), *[child] * 30]
        assert above[line].tolist() == [parent, *[parent] * 30, *pool.tolist()]
    assert torch.equal(batch.counts, ~is_known(split, below[:, 1:], above[:, 1:]))
    assert not batch.counts.all() and batch.counts.any()
    assert torch.equal(children, before[0]) and torch.equal(parents, before[1])


@pytest.mark.parametrize("split", SPLITS)
def test_a_weighted_pool_leaves_out_known_edges_like_a_uniform_one(split: Split) -> None:
    children, parents = some_edges(split, 12)
    batch = sampler_of(split, "shared-weighted", pool=24).draw(children, parents, generator_for(3))
    below, above = nodes_of(batch)
    pool = below[0, 1:25]
    assert (below[:, 1:25] == pool).all() and (above[:, 25:] == pool).all()
    assert (above[:, 1:25] == parents[:, None]).all() and (below[:, 25:] == children[:, None]).all()
    assert torch.equal(batch.counts, ~is_known(split, below[:, 1:], above[:, 1:]))


@pytest.mark.parametrize("corrupt", ["child", "parent"])
@pytest.mark.parametrize("sampling", ["per-edge", "weighted", "shared", "shared-weighted"])
@pytest.mark.parametrize("split", SPLITS)
def test_one_side_only(split: Split, sampling: str, corrupt: str) -> None:
    """The other side stays, and the drawn nodes are those that `both` would have drawn; known edges are left out as ever."""
    children, parents = some_edges(split, 12)
    batch = sampler_of(split, sampling, 30, 30, corrupt).draw(children, parents, generator_for(2))
    below, above = nodes_of(batch)
    assert below.shape == (12, 31)
    assert torch.equal(below[:, 0], children) and torch.equal(above[:, 0], parents)
    kept, drawn = (above, below) if corrupt == "child" else (below, above)
    assert (kept == kept[:, :1]).all() and all(len(set(line)) > 5 for line in drawn[:, 1:].tolist())
    both = sampler_of(split, sampling, 30, 30).draw(children, parents, generator_for(2))
    assert torch.equal(drawn[:, 1:16], nodes_of(both)[0][:, 1:16])
    known = is_known(split, below[:, 1:], above[:, 1:])
    assert known.any() and torch.equal(batch.counts, torch.ones_like(known) if sampling == "weighted" else ~known)


def test_one_negative_is_enough_for_one_side() -> None:
    below, above = nodes_of(
        sampler_of(SPLITS[0], "per-edge", 1, corrupt="child").draw(*some_edges(SPLITS[0], 5), generator_for(0))
    )
    assert below.shape == (5, 2) and torch.equal(above[:, 0], above[:, 1])


# --- random, reversed, siblings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_related_adds_the_edge_reversed_and_a_sibling_pair(split: Split) -> None:
    children, parents = torch.from_numpy(split.train).unbind(1)
    ancestors: dict[int, set[int]] = {}
    for child, parent in split.train.tolist():
        ancestors.setdefault(child, set()).add(parent)
    shared = {
        parent for parent, count in zip(*np.unique(split.train[:, 1], return_counts=True), strict=True) if count > 1
    }
    counted = 0
    for seed in range(20):
        batch = sampler_of(split, "related", 4).draw(children, parents, generator_for(seed))
        below, above = nodes_of(batch)
        assert below.shape == (len(children), 1 + 4 + 2)
        random = sampler_of(split, "per-edge", 4).draw(children, parents, generator_for(seed))
        assert torch.equal(below[:, :5], nodes_of(random)[0]) and torch.equal(above[:, :5], nodes_of(random)[1])
        assert torch.equal(below[:, 5], parents) and torch.equal(above[:, 5], children) and batch.counts[:, 4].all()
        for one, other in zip(below[:, 6].tolist(), above[:, 6].tolist(), strict=True):
            assert ancestors[one] & ancestors[other] & shared
        wanted = batch.counts[:, 5]
        assert not (wanted & is_known(split, below[:, 6], above[:, 6])).any()
        counted += int(wanted.sum())
    assert 0 < counted <= 20 * 1.3 * split.nodes  # about as many as nodes in an epoch, less those that are edges


def test_related_where_nobody_has_a_sibling() -> None:
    chain = np.array([[1, 0], [3, 2]])
    sampler = make_negatives(Known(4, chain), chain, "related", 2, 0)
    batch = sampler.draw(torch.tensor([1, 3]), torch.tensor([0, 2]), generator_for(0))
    assert batch.counts[:, 2].all() and not batch.counts[:, 3].any()


def test_weighted_leaves_nothing_out() -> None:
    """The released code's way: even a training edge may stand as a negative."""
    split = SPLITS[2]
    batch = sampler_of(split, "weighted", 100).draw(*some_edges(split, 12), generator_for(2))
    below, above = nodes_of(batch)
    assert batch.counts.all()
    assert is_known(split, below[:, 1:], above[:, 1:]).any()


# --- how often ----------------------------------------------------------------------------------------------------------------


def drawn_counts(split: Split, sampling: str) -> list[torch.Tensor]:
    """How often every node came in a child's place, and in a parent's, of 40,000 each."""
    children, parents = (one[:1].repeat(40) for one in some_edges(split, 2))
    batch = sampler_of(split, sampling, 2000, 1000).draw(children, parents, generator_for(7))
    below, above = nodes_of(batch)
    sides = below[:, 1:1001], above[:, 1001:]
    return [torch.bincount(side.flatten(), minlength=split.nodes).double() for side in sides]


def assert_shares(counts: torch.Tensor, share: torch.Tensor, draws: int) -> None:
    """Within five standard deviations of what chance gives, and never where there is no share."""
    expected = draws * share
    assert int(counts.sum()) == draws
    assert ((counts - expected).abs() <= 5 * (expected * (1 - share)).sqrt()).all()


@pytest.mark.parametrize("side", [0, 1], ids=["children", "parents"])
def test_uniform_over_all_nodes(side: int) -> None:
    """Also over nodes that are linked to the edge, and over the edge's own: they are left out afterwards."""
    counts = drawn_counts(SPLITS[1], "per-edge")[side]
    assert_shares(counts, torch.full_like(counts, 1 / len(counts)), 40_000)


def test_the_shared_pool_is_uniform() -> None:
    split = SPLITS[1]
    sampler, counts = sampler_of(split, "shared", pool=1000), torch.zeros(split.nodes, dtype=torch.float64)
    for seed in range(40):
        below, _ = nodes_of(sampler.draw(*some_edges(split, 2), generator_for(seed)))
        counts += torch.bincount(below[0, 1:1001], minlength=split.nodes)
    assert_shares(counts, torch.full_like(counts, 1 / split.nodes), 40_000)


def test_a_weighted_pool_is_uniform_in_one_of_eight_and_popular_in_the_rest() -> None:
    split = SPLITS[1]
    share = torch.bincount(torch.from_numpy(split.train)[:, 1], minlength=split.nodes).double() ** 0.75
    share[torch.bincount(torch.from_numpy(split.train)[:, 1], minlength=split.nodes) == 0] = 0
    sampler, counts = sampler_of(split, "shared-weighted", pool=1000), torch.zeros(split.nodes, dtype=torch.float64)
    for seed in range(40):
        below, _ = nodes_of(sampler.draw(*some_edges(split, 2), generator_for(seed)))
        counts += torch.bincount(below[0, 1:1001], minlength=split.nodes)
    assert_shares(counts, 1 / 8 / split.nodes + 7 / 8 * share / share.sum(), 40_000)
    below, _ = nodes_of(sampler_of(split, "shared-weighted", pool=1).draw(*some_edges(split, 2), generator_for(0)))
    assert below.shape == (2, 3)  # never without a uniform one


@pytest.mark.parametrize("side", [0, 1], ids=["children", "parents"])
def test_weighted_by_the_times_a_node_is_a_parent(side: int) -> None:
    split = SPLITS[1]
    share = torch.zeros(split.nodes, dtype=torch.float64)
    for _, parent in split.train.tolist():
        share[parent] += 1
    assert (share == 0).any() and share.max() > 5
    share = share**0.75 / (share**0.75).sum()
    counts = drawn_counts(split, "weighted")[side]
    assert_shares(counts, share, 40_000)
    uneven = torch.bincount(torch.from_numpy(split.train)[:, 1], minlength=split.nodes).double()
    with pytest.raises(AssertionError):  # the power can be told from no power
        assert_shares(counts, uneven / uneven.sum(), 40_000)


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-53], ids=["least", "greatest"])
def test_weighted_at_the_ends_of_the_unit_interval(monkeypatch: pytest.MonkeyPatch, uniform: float) -> None:
    """Nodes 0 and 5 are never a parent, so not even the extreme random numbers give them."""
    edges = np.array([[0, 1], [0, 2], [5, 2], [5, 3], [0, 3], [4, 3], [0, 4]])
    sampler = make_negatives(Known(6, edges), edges, "weighted", 4, 0)
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, uniform, dtype=torch.float64))
    below, _ = nodes_of(sampler.draw(torch.tensor([0]), torch.tensor([1]), generator_for(0)))
    assert below[0, 1:3].tolist() == [1 if uniform == 0 else 4] * 2


# --- nobody tells the answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("split", SPLITS)
def test_a_held_out_edge_may_be_drawn_and_then_counts(split: Split, sampling: str) -> None:
    held, met = edges_of(split.valid, split.test), 0
    children, parents = torch.from_numpy(split.train).unbind(1)
    for seed in range(3):
        batch = sampler_of(split, sampling, 40, 40).draw(children, parents, generator_for(seed))
        below, above = nodes_of(batch)
        pairs = zip(
            below[:, 1:].flatten().tolist(),
            above[:, 1:].flatten().tolist(),
            batch.counts.flatten().tolist(),
            strict=True,
        )
        for child, parent, counts in pairs:
            if (child, parent) in held:
                met += 1
                assert counts, "a held-out edge was recognised"
    assert met > 0


# --- repeatability, devices, refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_draws_depend_on_the_generator_only(sampling: str) -> None:
    split = SPLITS[1]
    sampler, edges = sampler_of(split, sampling), some_edges(split, 9)
    one = sampler.draw(*edges, generator_for(1))
    torch.rand(3)
    sampler.draw(*edges, generator_for(5))
    two, other = sampler.draw(*edges, generator_for(1)), sampler.draw(*edges, generator_for(2))
    assert all(torch.equal(vars(one)[name], vars(two)[name]) for name in vars(one))
    assert not all(torch.equal(one, other) for one, other in zip(nodes_of(one), nodes_of(other), strict=True))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_batch_moves_as_a_whole(sampling: str) -> None:
    batch = sampler_of(SPLITS[0], sampling).draw(*some_edges(SPLITS[0], 5), generator_for(1))
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(torch.device("meta"))
    assert {name: tensor.shape for name, tensor in vars(moved).items()} == {
        name: tensor.shape for name, tensor in vars(batch).items()
    }
    assert all(tensor.is_meta for tensor in vars(moved).values())


def test_refusals() -> None:
    with pytest.raises(UserError, match="unknown sampling 'hard': use per-edge, weighted, shared"):
        sampler_of(SPLITS[0], "hard")
    with pytest.raises(UserError, match="unknown side 'left' to corrupt: use both, child, parent"):
        sampler_of(SPLITS[0], "shared", corrupt="left")
    for sampling in ("per-edge", "weighted"):
        with pytest.raises(UserError, match="negatives must be at least 2"):
            sampler_of(SPLITS[0], sampling, negatives=1)
