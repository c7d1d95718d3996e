"""Questions to a fitted hierarchy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from subspaces import Subspace
from subspaces.errors import UserError
from subspaces.hierarchy import SubspaceHierarchy


def test_inclusion_is_the_paper_s_within_the_rounding_of_the_features(tree: SubspaceHierarchy) -> None:
    draw = np.random.default_rng(1)
    for child, parent in draw.integers(300, size=(40, 2)):
        one, other = tree.names[child], tree.names[parent]
        exact = float(tree.subspace(one).inclusion(tree.subspace(other)))
        assert tree.inclusion(one, other) == pytest.approx(exact, abs=1e-4)
        assert tree.rank(one) == pytest.approx(float(tree.subspace(one).rank), abs=1e-4)
        assert tree.entails(one, other) == (tree.inclusion(one, other) >= tree.threshold)


def test_relatives_are_sorted_marked_and_on_the_right_side_of_the_rank(tree: SubspaceHierarchy) -> None:
    above, below = tree.ancestors("node 5", top=None), tree.descendants("node 5", top=None)
    rank = tree.rank("node 5")
    assert all(one.rank > rank for one in above) and all(one.rank < rank for one in below)
    assert len(above) + len(below) == 299  # no two ranks are equal here, and the node itself is in neither list
    for some in (above, below):
        assert [one.inclusion for one in some] == sorted((one.inclusion for one in some), reverse=True)
    for one in above[:5]:
        assert one.inclusion == pytest.approx(tree.inclusion("node 5", one.name), abs=1e-5)
    for one in below[:5]:
        assert one.inclusion == pytest.approx(tree.inclusion(one.name, "node 5"), abs=1e-5)
    graph, place = tree.graph, tree.place("node 5")
    given = {tree.names[parent] for child, parent in graph.edges if child == place}
    children = {tree.names[child] for child, parent in graph.edges if parent == place}
    deeper = {tree.names[child] for child, parent in graph.closure if parent == place} - children
    assert {one.name for one in above if one.known == "given"} == given
    assert {one.name for one in above if one.known == "closure"} == {"node 0"}
    assert {one.name for one in below if one.known == "given"} == children
    assert {one.name for one in below if one.known == "closure"} == deeper != set()


def test_equal_scores_are_listed_by_name_and_equal_ranks_not_at_all(tree: SubspaceHierarchy) -> None:
    tree.features.half, tree.features.trace = torch.ones(300, 136, dtype=torch.float16), torch.ones(300)
    tree.features.trace[:2] = 2.0
    assert [one.name for one in tree.ancestors(tree.names[5])] == tree.names[:2]
    assert tree.descendants(tree.names[5]) == []
    assert [one.name for one in tree.descendants(tree.names[0], top=4)] == tree.names[2:6]


def test_composed_subspaces_are_asked_what_lies_in_them(tree: SubspaceHierarchy) -> None:
    graph = tree.graph
    one, other = "node 1", "node 2"
    inside = {tree.names[child] for child, parent in graph.closure if tree.names[parent] in (one, other)}
    found = tree.nearest(tree.subspace(one) | tree.subspace(other), top=20)
    assert sum(relative.name in inside for relative in found) >= 18
    around = tree.nearest(tree.subspace("node 299"), top=4, side="around")
    assert [relative.name for relative in around] == [relative.name for relative in tree.ancestors("node 299", top=4)]
    without = tree.nearest(tree.subspace(one) & ~tree.subspace("node 5"), top=None)
    place = {relative.name: position for position, relative in enumerate(without)}
    below = [tree.names[child] for child, parent in graph.closure if tree.names[parent] == "node 5"]
    beside = [tree.names[child] for child, parent in graph.closure if tree.names[parent] == "node 6"]
    assert np.mean([place[name] for name in beside]) < np.mean([place[name] for name in below])


def test_what_cannot_be_asked(tree: SubspaceHierarchy) -> None:
    with pytest.raises(UserError, match=r"no node 'nod 17': did you mean .*'node 17'"):
        tree.rank("nod 17")
    with pytest.raises(UserError, match="did you mean 'node 17'"):
        tree.ancestors("NODE 17")
    with pytest.raises(UserError, match="no name of the 300 is close"):
        tree.subspace("§§§")
    with pytest.raises(UserError, match="top must be at least 1"):
        tree.descendants("node 1", top=0)
    with pytest.raises(UserError, match="one Subspace of dimension 16"):
        tree.nearest(Subspace.from_vectors(torch.eye(8)[:, :2], lam=0.1))
    with pytest.raises(UserError, match="inside or around"):
        tree.nearest(tree.subspace("node 1"), side="beside")
    assert "node 17" in tree and "nod 17" not in tree and len(tree) == 300


def test_a_copied_folder_works_and_a_damaged_one_is_refused(tmp_path: Path, fitted: Path, tree: SubspaceHierarchy) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(fitted, copy)
    assert SubspaceHierarchy.load(copy).ancestors("node 9") == tree.ancestors("node 9")
    weights = bytearray((copy / "weights.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "weights.safetensors").write_bytes(weights)
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged"):
        SubspaceHierarchy.load(copy).subspace("node 1")
    (copy / "features.safetensors").unlink()
    with pytest.raises(UserError, match=r"features\.safetensors is damaged or missing"):
        SubspaceHierarchy.load(copy)
    with pytest.raises(UserError, match="is no fitted hierarchy: make one with"):
        SubspaceHierarchy.load(tmp_path / "nothing")
    with pytest.raises(UserError, match="holds something else"):
        SubspaceHierarchy.load(tmp_path)
