"""What users bring in Python, its shape, and what looks wrong with it."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from subspaces.errors import UserError
from subspaces.hierarchy.relation import read_relation, read_taxonomy, shape
from tests.hierarchy.trees import tree_edges, write_edges

EDGES = [("cat", "mammal"), ("dog", "mammal"), ("mammal", "animal"), ("wren", "animal")]


def same(source, **options) -> bool:
    wanted, found = read_taxonomy(EDGES), read_taxonomy(source, **options)
    return wanted.names == found.names and np.array_equal(wanted.edges, found.edges)


def test_pairs_frames_and_graphs_give_the_same_relation(tmp_path: Path) -> None:
    turned = [pair[::-1] for pair in EDGES]
    assert same(np.array(EDGES)) and same(iter(EDGES)) and same(turned, parent_first=True)
    assert same(write_edges(tmp_path / "edges.tsv", EDGES)) and same(str(tmp_path / "edges.tsv"))
    assert same(nx.DiGraph(EDGES)) and same(nx.DiGraph(turned), parent_first=True)
    frame = pd.DataFrame(EDGES, columns=["child", "parent"])
    assert same(frame) and same(frame[["parent", "child"]].assign(weight=1.0))
    assert same(frame.set_axis(["a", "b"], axis=1)) and same(
        frame.iloc[:, ::-1].set_axis([0, 1], axis=1), parent_first=True
    )
    roots = pd.concat([frame, pd.DataFrame({"child": ["animal"], "parent": [None]})])
    assert same(roots)
    assert same(read_taxonomy(EDGES))


def test_names_are_made_of_numbers_too() -> None:
    assert read_taxonomy([(1, 3), (2, 3)]).names == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([("a", "b", "c")], r"the list, pair 1: expected \(child, parent\)"),
        (["ab"], "pair 1: expected"),
        ([("a", "b"), ("b", "b")], "the list, pair 2: 'b' is its own parent"),
        ([("a", " ")], "pair 1: the parent's name is empty"),
        ([], "the list has no edges"),
        (nx.Graph(EDGES), "not directed"),
        (pd.DataFrame({"child": ["a"]}), "one column"),
        (7, "a int is no hierarchy: give a path, pairs"),
    ],
)
def test_what_is_no_hierarchy(source, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_taxonomy(source)


def test_the_shape_in_one_line() -> None:
    assert shape(read_taxonomy(EDGES)) == (
        "5 nodes, 4 edges, 6 in the closure; 1 root, 3 leaves, depth 2; "
        "largest: animal (4 below), mammal (2 below), cat (0 below)"
    )


def test_reversed_columns_and_headers_are_suspected() -> None:
    assert read_relation(EDGES)[1] == []
    (reversed_columns,) = read_relation(EDGES, parent_first=True)[1]
    assert "look reversed" in reversed_columns and "--parent-first" in reversed_columns
    (header,) = read_relation([("Unterbegriff", "Oberbegriff"), *EDGES])[1]
    assert "('Unterbegriff', 'Oberbegriff') is connected to nothing else" in header
    assert read_relation([("node 0", "top"), *tree_edges(20)])[1] == []
