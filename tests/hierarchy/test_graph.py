"""Hierarchies against slow and obvious references."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subspaces.errors import UserError
from subspaces.files import sha256_file
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from tests.hierarchy.toys import binary_tree, random_dag, random_tree


@st.composite
def dags(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Nodes and edges (child, parent) without a cycle, in any order, some edges twice."""
    nodes = draw(st.integers(2, 14))
    order = draw(st.permutations(range(nodes)))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = draw(st.lists(pairs, min_size=1, max_size=40))
    return nodes, [(order[max(pair)], order[min(pair)]) for pair in edges]


def parents_of(edges: list[tuple[int, int]], node: int) -> set[int]:
    return {parent for child, parent in edges if child == node}


def ancestors_of(edges: list[tuple[int, int]], node: int) -> set[int]:
    found: set[int] = set()
    todo = list(parents_of(edges, node))
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += parents_of(edges, one)
    return found


def shortest_from_root(edges: list[tuple[int, int]], node: int) -> int:
    level, steps = {node}, 0
    while all(parents_of(edges, one) for one in level):
        level = set().union(*(parents_of(edges, one) for one in level))
        steps += 1
    return steps


def longest_to_leaf(edges: list[tuple[int, int]], node: int) -> int:
    return max((1 + longest_to_leaf(edges, child) for child, parent in set(edges) if parent == node), default=0)


@settings(max_examples=80)
@given(dags())
def test_closure_and_depths_against_walking(dag: tuple[int, list[tuple[int, int]]]) -> None:
    nodes, edges = dag
    graph = build_hierarchy([f"n{node}" for node in range(nodes)], edges)
    above = [ancestors_of(edges, node) for node in range(nodes)]
    assert [graph.ancestors[graph.offsets[node] : graph.offsets[node + 1]].tolist() for node in range(nodes)] == [
        sorted(some) for some in above
    ]
    assert graph.closure.tolist() == [[node, one] for node in range(nodes) for one in sorted(above[node])]
    assert graph.descendants.tolist() == [sum(node in some for some in above) for node in range(nodes)]
    assert graph.counts() == {"nodes": nodes, "edges": len(set(edges)), "closure": sum(map(len, above))}
    assert graph.connected.tolist() == [any(node in edge for edge in edges) for node in range(nodes)]
    shortest, longest = graph.depths
    assert shortest.tolist() == [shortest_from_root(edges, node) for node in range(nodes)]
    assert longest.tolist() == [longest_to_leaf(edges, node) for node in range(nodes)]


def test_a_diamond_by_hand() -> None:
    """bottom → left, right → top, and a short cut bottom → top."""
    graph = build_hierarchy(["top", "left", "right", "bottom"], [(1, 0), (2, 0), (3, 1), (3, 2), (3, 0)])
    assert graph.closure.tolist() == [[1, 0], [2, 0], [3, 0], [3, 1], [3, 2]]
    assert [part.tolist() for part in graph.depths] == [[0, 1, 1, 1], [2, 1, 1, 0]]


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([(0, 1), (1, 2), (2, 0)], {"a → b → c → a", "b → c → a → b", "c → a → b → c"}),
        ([(3, 0), (0, 1), (1, 0), (2, 3)], {"a → b → a", "b → a → b"}),
        ([(0, 1), (1, 2), (2, 3), (3, 2)], {"c → d → c", "d → c → d"}),
        ([(0, 1), (2, 2)], {"c → c"}),
    ],
    ids=["ring", "below a cycle", "into a cycle", "loop"],
)
def test_a_cycle_is_shown(edges: list[tuple[int, int]], cycle: set[str]) -> None:
    with pytest.raises(UserError, match=r"the hierarchy has a cycle: .* Remove one of these edges") as caught:
        build_hierarchy(["a", "b", "c", "d"], edges)
    assert str(caught.value).split(": ")[1].split(". ")[0] in cycle


@settings(max_examples=40)
@given(dags(), st.data())
def test_every_closed_ring_is_found(dag: tuple[int, list[tuple[int, int]]], data: st.DataObject) -> None:
    """An edge from an ancestor back down closes a cycle; the one shown consists of edges that are there."""
    nodes, edges = dag
    child = data.draw(st.sampled_from([child for child, _ in edges]))
    back = data.draw(st.sampled_from(sorted(ancestors_of(edges, child))))
    names = [f"n{node}" for node in range(nodes)]
    with pytest.raises(UserError, match="cycle") as caught:
        build_hierarchy(names, [*edges, (back, child)])
    shown = [names.index(name) for name in str(caught.value).split(": ")[1].split(". ")[0].split(" → ")]
    assert shown[0] == shown[-1] and len(set(shown)) == len(shown) - 1
    assert set(pairwise(shown)) <= {*edges, (back, child)}


@pytest.mark.parametrize(("names", "edges"), [([], []), (["a", "b"], []), ([], [(0, 1)])])
def test_an_empty_hierarchy(names: list[str], edges: list[tuple[int, int]]) -> None:
    with pytest.raises(UserError, match="the hierarchy is empty"):
        build_hierarchy(names, edges)


def test_a_foreign_index() -> None:
    with pytest.raises(UserError, match="an edge names node 3, but there are nodes 0 to 2 only"):
        build_hierarchy(["a", "b", "c"], [(0, 1), (3, 1)])


def test_a_negative_index() -> None:
    with pytest.raises(UserError, match="an edge names node -1, but there are nodes 0 to 2 only"):
        build_hierarchy(["a", "b", "c"], [(0, 2), (-1, 1)])


def test_two_nodes_of_one_name() -> None:
    with pytest.raises(UserError, match="same name"):
        build_hierarchy(["a", "b", "a"], [(0, 1)])


def same(one: Taxonomy, other: Taxonomy) -> bool:
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("edges", "offsets", "ancestors"))
    return one.names == other.names and arrays and one.ancestors.dtype == other.ancestors.dtype


def test_save_and_load(tmp_path: Path) -> None:
    graph = random_dag(30, 1, 60)
    graph.names[3] = "größe.n.01"
    sha256 = graph.save(tmp_path / "one.npz")
    assert sha256 == sha256_file(tmp_path / "one.npz")
    loaded = Taxonomy.load(tmp_path / "one.npz")
    assert same(loaded, graph)
    assert loaded.save(tmp_path / "two.npz") == sha256
    assert random_dag(30, 2, 60).save(tmp_path / "three.npz") != sha256


def test_the_same_bytes_tomorrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    first = random_tree(20, 1).save(tmp_path / "one.npz")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 1e8)
    assert random_tree(20, 1).save(tmp_path / "two.npz") == first


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.npz does not exist: build it with"):
        Taxonomy.load(tmp_path / "absent.npz")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("not at all")
    np.savez(tmp_path / "other.npz", names=np.zeros(3))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(UserError, match=f"{name} is not a hierarchy file.*delete it"):
            Taxonomy.load(tmp_path / name)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_cut_file(tmp_path: Path, share: float) -> None:
    random_tree(20, 1).save(tmp_path / "a.npz")
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match="is not a hierarchy file"):
        Taxonomy.load(tmp_path / "a.npz")


@pytest.mark.parametrize("seed", range(5))
def test_a_subtree_is_what_is_below_and_what_is_above_that(seed: int) -> None:
    graph = random_dag(30, seed, 45)
    pairs = {(graph.names[one], graph.names[other]) for one, other in graph.closure}
    for root in (graph.names[int(node)] for node in np.flatnonzero(graph.connected)):
        small = graph.subtree(root)
        below = {root} | {one for one, other in pairs if other == root}
        inside = below | {other for one, other in pairs if one in below}
        assert set(small.names) == inside
        assert {(small.names[one], small.names[other]) for one, other in small.closure} == {
            pair for pair in pairs if set(pair) <= inside
        }
        assert [name for name in graph.names if name in inside] == small.names


def test_a_subtree_of_nothing() -> None:
    with pytest.raises(UserError, match="no node is called 'cat'"):
        random_tree(5, 1).subtree("cat")
    with pytest.raises(UserError, match="empty"):
        binary_tree(1).subtree("node-3")
