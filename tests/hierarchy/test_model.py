"""Questions to a fitted hierarchy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from subspaces import Subspace
from subspaces.errors import UserError
from subspaces.hierarchy import Hierarchy


def test_inclusion_is_the_paper_s_within_the_rounding_of_the_features(tree: Hierarchy) -> None:
    draw = np.random.default_rng(1)
    for child, parent in draw.integers(300, size=(40, 2)):
        one, other = tree.names[child], tree.names[parent]
        exact = float(tree.subspace(one).inclusion(tree.subspace(other)))
        assert tree.inclusion(one, other) == pytest.approx(exact, abs=1e-4)
        assert tree.rank(one) == pytest.approx(float(tree.subspace(one).rank), abs=1e-4)
        assert tree.entails(one, other) == (tree.inclusion(one, other) >= tree.threshold)


def test_relatives_are_sorted_marked_and_on_the_right_side_of_the_rank(tree: Hierarchy) -> None:
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


def test_equal_scores_are_listed_by_name_and_equal_ranks_not_at_all(tree: Hierarchy) -> None:
    tree.features.half, tree.features.trace = torch.ones(300, 136, dtype=torch.float16), torch.ones(300)
    tree.features.trace[:2] = 2.0
    assert [one.name for one in tree.ancestors(tree.names[5])] == tree.names[:2]
    assert tree.descendants(tree.names[5]) == []
    assert [one.name for one in tree.descendants(tree.names[0], top=4)] == tree.names[2:6]


def test_composed_subspaces_are_asked_what_lies_in_them(tree: Hierarchy) -> None:
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


def test_what_cannot_be_asked(tree: Hierarchy) -> None:
    with pytest.raises(UserError, match=r"no node 'nod 17': did you mean .*'node 17'"):
        tree.rank("nod 17")
    with pytest.raises(UserError, match=r"^11 nodes fit 'de 17': 'node 17', 'node 170', .* and 6 more\. Give one"):
        tree.ancestors("de 17")
    with pytest.raises(UserError, match="by its name, not by 17"):
        tree.rank(17)
    with pytest.raises(UserError, match="2 children and 3 parents"):
        tree.inclusion(["node 1"] * 2, ["node 2"] * 3)
    with pytest.raises(UserError, match="a list of names"):
        tree.common_ancestor("node 1")
    with pytest.raises(UserError, match="no name of the 300 is close"):
        tree.subspace("§§§")
    with pytest.raises(UserError, match="top must be at least 1"):
        tree.descendants("node 1", top=0)
    with pytest.raises(UserError, match="one Subspace of dimension 16"):
        tree.nearest(Subspace.from_vectors(torch.eye(8)[:, :2], lam=0.1))
    with pytest.raises(UserError, match="inside or around"):
        tree.nearest(tree.subspace("node 1"), side="beside")
    assert "node 17" in tree and "nod 17" not in tree and len(tree) == 300


def test_a_copied_folder_works_and_a_damaged_one_is_refused(tmp_path: Path, fitted: Path, tree: Hierarchy) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(fitted, copy)
    assert Hierarchy.load(copy).ancestors("node 9") == tree.ancestors("node 9")
    weights = bytearray((copy / "weights.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "weights.safetensors").write_bytes(weights)
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged"):
        Hierarchy.load(copy).subspace("node 1")
    (copy / "features.safetensors").unlink()
    with pytest.raises(UserError, match=r"features\.safetensors is damaged or missing"):
        Hierarchy.load(copy)
    with pytest.raises(UserError, match="nothing holds no fitted hierarchy: give the folder of one, or make one"):
        Hierarchy.load(tmp_path / "nothing")
    with pytest.raises(UserError, match="holds no fitted hierarchy"):
        Hierarchy.load(tmp_path)


def test_names_are_found_without_case_and_by_part(tree: Hierarchy) -> None:
    assert tree.place("NODE 17") == tree.place(" node 17 ") == tree.place("node 17")
    assert tree.place("E 299") == tree.place("node 299")  # no other name has it
    assert tree.find("DE 17")[:2] == ["node 17", "node 170"] and len(tree.find("17", None)) == 13
    named = Hierarchy.fit([("Toys > Dogs", "Toys"), ("hotdog.n.01", "Toys"), ("dog.n.01", "Toys")], dim=4, epochs=1)
    assert named.names[named.place("dogs")] == "Toys > Dogs"
    assert named.names[named.place("DOG")] == "dog.n.01"
    for wrong, meant in (("dgo", "'dog.n.01'"), ("Dosg", "'Toys > Dogs'")):
        with pytest.raises(UserError, match=f"did you mean .*{meant}"):
            named.place(wrong)


def test_several_at_once_are_the_same_as_one_by_one(tree: Hierarchy) -> None:
    some, others = ["node 5", "node 17", "node 299"], ["node 1", "node 0", "node 7"]
    assert tree.inclusion(some, others) == pytest.approx(
        [tree.inclusion(*pair) for pair in zip(some, others, strict=True)]
    )
    assert tree.inclusion(some, "node 0") == pytest.approx([tree.inclusion(one, "node 0") for one in some])
    assert tree.entails("node 299", others).tolist() == [tree.entails("node 299", other) for other in others]
    assert tree.rank(some) == pytest.approx([tree.rank(one) for one in some])
    many = tree.names[:150]  # more than are compared at once
    for ask in (tree.ancestors, tree.descendants, tree.nearest):
        answers = ask(many, top=3)
        assert len(answers) == 150
        for name, answer in list(zip(many, answers, strict=True))[::40]:
            single = ask(name, top=3)
            assert [one.name for one in answer] == [one.name for one in single]
            assert [one.inclusion for one in answer] == pytest.approx([one.inclusion for one in single], abs=1e-5)
    assert tree.inclusion([], "node 0").shape == (0,) and tree.ancestors([]) == []


def test_the_hierarchy_is_a_batch_of_subspaces(tree: Hierarchy) -> None:
    batch = tree[tree.names[:7]]
    assert batch.shape == (7, 16, 16) and batch[3].isclose(tree[tree.names[3]])
    assert len(tree.nearest(batch, top=2)) == 7
    rest = tree["node 1"] & ~tree["node 5"]
    assert float(tree["node 5"].inclusion(rest)) < 0.3 < float(tree["node 6"].inclusion(rest))


def test_the_closest_common_ancestor(tree: Hierarchy) -> None:
    for names in (["node 20", "node 21"], ["node 5", "node 299", "node 40"], ["node 20", "node 5"], ["node 9"]):
        sets = [{tree.names[node] for node in tree.known_above(tree.place(name))} | {name} for name in names]
        lowest = min(set.intersection(*sets), key=lambda name: tree.graph.descendants[tree.place(name)])
        found = tree.common_ancestor(names)
        assert found is not None and found.name == lowest and found.known
        smallest = min(1.0 if name == lowest else tree.inclusion(name, lowest) for name in names)
        assert found.inclusion == pytest.approx(smallest, abs=1e-4)


def test_nodes_without_a_common_ancestor() -> None:
    forest = Hierarchy.fit([("cat", "animal"), ("dog", "animal"), ("oak", "tree"), ("elm", "tree")], dim=8)
    assert forest.common_ancestor(["cat", "oak"]) is None
    found = forest.common_ancestor(["cat", "dog"])
    assert found is not None and found.name == "animal"


def test_a_table_of_all_nodes(tree: Hierarchy) -> None:
    table = tree.to_dataframe().set_index("name")
    assert list(table.columns) == ["rank", "depth", "parents", "children", "descendants"]
    assert len(table) == 300 and table.loc["node 0", "descendants"] == 299 and table.loc["node 0", "parents"] == []
    assert table.loc["node 5", "parents"] == ["node 1"] and table.loc["node 5", "depth"] == 2
    assert table.loc["node 5", "rank"] == pytest.approx(tree.rank("node 5"))


def test_it_introduces_itself(tree: Hierarchy) -> None:
    assert "300 nodes, 299 edges, d=16, F1 " in repr(tree) and "threshold 0." in repr(tree)
    assert list(tree) == tree.names
