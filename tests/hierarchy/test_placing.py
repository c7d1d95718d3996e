"""New nodes in a fitted hierarchy."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from subspaces.errors import UserError
from subspaces.hierarchy import Hierarchy


def test_a_new_leaf_lies_in_its_ancestors_and_in_nothing_else(tree: Hierarchy) -> None:
    before = tree.subspace("node 5").projector
    placement = tree.add("new leaf", "node 20")
    assert placement.exact and placement.rank < tree.rank("node 20")
    above = {"node 20"} | {tree.names[node] for node in tree.known_above(tree.place("node 20"))}
    decided = {name for name in tree if name != "new leaf" and tree.entails("new leaf", name)}
    assert decided == above
    assert not any(tree.entails(tree.names, "new leaf")[:-1])
    assert torch.equal(tree.subspace("node 5").projector, before)
    assert {one.name for one in tree.ancestors("new leaf") if one.known} == above
    assert "301 nodes" in repr(tree) and "1 added" in repr(tree)


def test_a_new_node_between_contains_its_children(tree: Hierarchy) -> None:
    children = [one.name for one in tree.descendants("node 1", None) if one.known == "given"][:2]
    placement = tree.add("between", ["node 1"], children)
    assert not placement.missed and len(placement.wrong) <= 2
    assert tree.entails(children, "between").all() and tree.entails("between", "node 1")
    assert tree.rank("between") > max(tree.rank(children))
    assert tree.graph.descendants[tree.place("between")] > 2  # what is below the children follows


def test_a_node_without_a_possible_place_is_said_to_have_none(tree: Hierarchy) -> None:
    leaves = [tree.names[node] for node in (tree.graph.descendants == 0).nonzero()[0]]
    one = leaves[0]
    other = next(leaf for leaf in leaves if tree.inclusion(one, leaf) < 0.1 and tree.inclusion(leaf, one) < 0.1)
    with pytest.warns(UserWarning, match="reaches the threshold"):
        placement = tree.add("both", [one, other])
    assert placement.missed


def test_saved_with_its_new_nodes_it_is_loaded_and_judged_again(tmp_path: Path, tree: Hierarchy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree.add("new leaf", "node 20")
    again = Hierarchy.load(tree.save(tmp_path / "grown"))
    assert len(again) == 301 and again.record["added"] == ["new leaf"] and again.threshold == tree.threshold
    assert again.inclusion("new leaf", "node 20") == pytest.approx(tree.inclusion("new leaf", "node 20"), abs=1e-4)
    assert again.subspace("new leaf").isclose(tree.subspace("new leaf"))
    quality = again.record["quality"]
    assert quality["edges"] == len(again.graph.closure) > tree.record["quality"]["edges"] and quality["f1"] > 97


def test_what_cannot_be_added(tree: Hierarchy) -> None:
    with pytest.raises(UserError, match="is a node already"):
        tree.add("node 5", "node 1")
    with pytest.raises(UserError, match="at least one parent or child"):
        tree.add("alone", [])
    with pytest.raises(UserError, match="no node 'nothing'"):
        tree.add("x", "nothing")
    with pytest.raises(UserError, match="cycle"):
        tree.add("x", "node 20", min(tree.names[node] for node in tree.known_above(tree.place("node 20"))))
    with pytest.raises(UserError, match="one line"):
        tree.add("", "node 1")
    assert len(tree) == 300
