"""Link-prediction splits: the source's files, damaged files, and drawn splits against slow references."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file
from subspaces.hierarchy import splits
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.splits import (
    COVERAGES,
    PARTS,
    Split,
    check_counts,
    draw_split,
    read_split,
    transitive_reduction,
    write_split,
)
from tests.hierarchy.toys import binary_tree, pairs_of, random_dag, random_tree

ROOT = Path(__file__).resolve().parents[2]
FILES = {"valid": "valid", "valid_neg": "valid_negatives", "test": "test", "test_neg": "test_negatives"}


def same(one: Split, other: Split) -> bool:
    arrays = all(np.array_equal(getattr(one, part), getattr(other, part)) for part in PARTS)
    return arrays and (one.names, one.coverage, one.train_origin) == (other.names, other.coverage, other.train_origin)


def write_rows(path: Path, pairs: np.ndarray) -> None:
    path.write_text("".join(f"{parent}\t{child}\n" for child, parent in pairs.reshape(-1, 2)))


@pytest.fixture
def graph() -> Taxonomy:
    return random_dag(40, 3, 110)


@pytest.fixture
def folder(graph: Taxonomy, tmp_path: Path) -> Path:
    """A drawn split in the form of the source's files."""
    for coverage in (0, 10, 25):
        split = draw_split(graph, coverage)
        write_rows(tmp_path / f"noun_closure.tsv.train_{coverage}percent", split.train)
    (tmp_path / "noun_closure.tsv.vocab").write_text(
        "".join(f"{node}\t{name}\n" for node, name in enumerate(split.names))
    )
    for ending, part in FILES.items():
        write_rows(tmp_path / f"noun_closure.tsv.{ending}", getattr(split, part))
    return tmp_path


def change(folder: Path, ending: str, edit: Callable[[list[str]], list[str]]) -> None:
    path = folder / f"noun_closure.tsv.{ending}"
    path.write_text("\n".join(edit(path.read_text().splitlines())) + "\n")


# Reading


@pytest.mark.parametrize("coverage", [0, 10, 25])
def test_files_hold_parent_and_child_and_are_turned(graph: Taxonomy, folder: Path, coverage: int) -> None:
    split, drawn = read_split(folder, coverage), draw_split(graph, coverage)
    assert same(split, dataclasses.replace(drawn, train_origin="original file"))
    assert all(getattr(split, part).dtype == np.int64 and getattr(split, part).flags.c_contiguous for part in PARTS)
    assert split.valid_negatives.shape == (len(split.valid), 10, 2) and split.test_negatives.shape == (
        len(split.test),
        10,
        2,
    )


def test_order_of_the_vocabulary_and_a_last_line_without_end(folder: Path) -> None:
    before = read_split(folder, 10)
    change(folder, "vocab", lambda lines: lines[::-1])
    for path in folder.iterdir():
        path.write_text(path.read_text().removesuffix("\n"))
    assert same(read_split(folder, 10), before)


def test_fifty_per_cent_drawn(graph: Taxonomy, folder: Path) -> None:
    split, basic = read_split(folder, 50), pairs_of(read_split(folder, 0).train)
    closure = pairs_of(build_hierarchy(split.names, sorted(basic)).closure)
    train = pairs_of(split.train)
    assert split.train_origin == "seeded draw"
    assert len(train) == len(split.train) == len(basic) + (len(closure) - len(basic)) // 2
    assert basic < train < closure
    assert not train & (pairs_of(split.valid) | pairs_of(split.test))
    assert same(read_split(folder, 50, seed=0), split)
    assert pairs_of(read_split(folder, 50, seed=1).train) != train
    assert np.array_equal(read_split(folder, 50, seed=1).valid, split.valid)


def test_fifty_per_cent_of_the_original(graph: Taxonomy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifty = folder / "fifty"
    with pytest.raises(
        UserError, match=r"cannot read .*fifty .*put the original noun_closure\.tsv\.train_50percent there"
    ):
        read_split(folder, 50, fifty)
    fifty.write_bytes(b"hello\n")  # whose git blob everybody knows
    with pytest.raises(
        UserError, match=r"is not the original.* its git blob is ce013625030ba8dba906f756967f9e9ca394464a, not d91962e5"
    ):
        read_split(folder, 50, fifty)
    write_rows(fifty, draw_split(graph, 50).train)
    with pytest.raises(UserError, match="is not the original") as caught:
        read_split(folder, 50, fifty)
    monkeypatch.setattr(splits, "FIFTY_BLOB", str(caught.value).split("git blob is ")[1].split(",")[0])
    assert same(read_split(folder, 50, fifty), dataclasses.replace(draw_split(graph, 50), train_origin="original file"))
    assert read_split(folder, 25, folder / "absent").coverage == 25  # of no concern elsewhere


def test_no_room_for_fifty_per_cent(folder: Path) -> None:
    closure = build_hierarchy(read_split(folder, 0).names, read_split(folder, 0).train)
    others = sorted(
        pairs_of(closure.closure) - pairs_of(read_split(folder, 0).train) - pairs_of(read_split(folder, 0).test)
    )
    write_rows(folder / "noun_closure.tsv.valid", np.array(others))
    write_rows(folder / "noun_closure.tsv.valid_neg", np.repeat(np.array(others), 10, axis=0))
    with pytest.raises(UserError, match=r"non-basic edges are needed for 50 %, but only 0 are outside"):
        read_split(folder, 50)


def put(line: int, text: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[: line - 1], text, *lines[line:]]


@pytest.mark.parametrize(
    ("ending", "edit", "message"),
    [
        (
            "train_10percent",
            put(5, "3 4"),
            r"train_10percent, line 5: expected a parent's id, a tab and a child's id, found '3 4'",
        ),
        ("train_10percent", put(5, "3\t4\t5"), r"line 5: .* found '3\\t4\\t5'"),
        ("train_10percent", put(5, "3"), r"line 5: .* found '3'"),
        ("train_10percent", put(5, "3\t"), r"line 5: .* found '3\\t'"),
        ("train_10percent", put(5, "3\t\n\t4"), r"line 5: .* found '3\\t'"),
        ("train_10percent", put(1, "\t3"), r"line 1: .* found '\\t3'"),
        ("train_10percent", put(5, ""), r"line 5: .* found an empty line"),
        ("train_10percent", put(5, "3\t-4"), r"line 5: .* found '3\\t-4'"),
        ("train_10percent", put(5, "3\t4.0"), r"line 5: .* found '3\\t4\.0'"),
        ("train_10percent", put(5, "3\tä"), r"line 5: .* found '3\\tä'"),
        ("train_10percent", put(5, "3\t" + "9" * 30), r"line 5: .* found '3\\t9{30}'"),
        ("train_10percent", lambda lines: [*lines, ""], r"train_10percent, line \d+: .* found an empty line"),
        ("test_neg", put(17, "a\tb"), r"test_neg, line 17: .* found 'a\\tb'"),
        ("valid", put(2, "40\t1"), r"valid, line 2: 40 is not in the vocabulary, whose ids are 0 to 39"),
        ("test_neg", put(12, "1\t77777"), r"test_neg, line 12: 77777 is not in the vocabulary"),
        ("vocab", put(3, "2 dog"), r"vocab, line 3: expected a node's id, a tab and its name, found '2 dog'"),
        ("vocab", put(3, "2\t"), r"vocab, line 3: expected"),
        ("vocab", put(3, "2\thot dog"), r"vocab, line 3: expected"),
        ("vocab", put(3, "1\tdog"), r"vocab, line 3: the id 1 is there twice"),
        ("vocab", put(3, "50\tdog"), r"vocab: 40 nodes need the ids 0 to 39, but 2 is missing"),
        ("vocab", put(3, "2\tnode-0"), r"vocab: two nodes have the same name"),
        (
            "valid_neg",
            lambda lines: lines[:-1],
            r"valid_neg has \d+ rows, but \d+ edges with 10 negatives each need \d+",
        ),
        ("test_neg", lambda lines: [*lines, lines[0]], r"test_neg has \d+ rows, but"),
        ("test_neg", lambda lines: lines[10:], r"test_neg has \d+ rows, but"),
        (
            "valid_neg",
            lambda lines: lines[10:] + lines[:10],
            r"valid_neg, line \d+: the negative .* must share its child or its parent",
        ),
        (
            "valid",
            lambda lines: [lines[1], lines[0], *lines[2:]],
            r"valid_neg, line \d+: the negative .* with line [12] of .*\.valid ",
        ),
    ],
)
def test_a_damaged_file(folder: Path, ending: str, edit: Callable[[list[str]], list[str]], message: str) -> None:
    change(folder, ending, edit)
    with pytest.raises(UserError, match=message + ".*Fetch the files again: `subspaces fetch wordnet_link_prediction`"):
        read_split(folder, 10)


def test_a_name_that_is_not_text(folder: Path) -> None:
    (folder / "noun_closure.tsv.vocab").write_bytes(b"0\tcat\n1\t\xff\xfe\n")
    with pytest.raises(UserError, match="vocab, line 2: expected a node's id"):
        read_split(folder, 10)


def test_a_negative_that_is_its_edge(folder: Path) -> None:
    edge = (folder / "noun_closure.tsv.test").read_text().splitlines()[1]
    change(folder, "test_neg", put(14, edge))
    with pytest.raises(UserError, match=r"test_neg, line 14: the negative .* not both, with line 2 of"):
        read_split(folder, 10)


@pytest.mark.parametrize(
    ("held", "other"), [("valid", "train_10percent"), ("test", "train_10percent"), ("test", "valid")]
)
def test_a_leak(folder: Path, held: str, other: str) -> None:
    split = read_split(folder, 10)
    child, parent = getattr(split, held)[1]
    change(folder, other, put(2, f"{parent}\t{child}"))
    shown = rf"{split.names[child]} → {split.names[parent]} \(line 2\)"
    with pytest.raises(UserError, match=rf"1 of the edges in .*{held} are also in .*{other}, the first is {shown}"):
        read_split(folder, 10)


@pytest.mark.parametrize("ending", ["vocab", "train_10percent", "test_neg"])
def test_an_absent_and_an_empty_file(folder: Path, ending: str) -> None:
    path = folder / f"noun_closure.tsv.{ending}"
    path.write_text("")
    with pytest.raises(UserError, match=f"{ending} is empty.*Fetch"):
        read_split(folder, 10)
    path.unlink()
    with pytest.raises(UserError, match=f"cannot read .*{ending}.*Fetch"):
        read_split(folder, 10)


@pytest.mark.parametrize("coverage", [5, 100, -10])
def test_another_coverage(graph: Taxonomy, folder: Path, coverage: int) -> None:
    for make in (lambda: read_split(folder, coverage), lambda: draw_split(graph, coverage)):
        with pytest.raises(UserError, match=f"coverage {coverage} % is not one of 0, 10, 25, 50"):
            make()


# Drawing


@pytest.mark.parametrize("seed", range(20))
def test_reduction_against_taking_edges_away(seed: int) -> None:
    """The slow way: an edge is not needed when the closure stays the same without it."""
    graph = random_dag(14, seed, 10 + 2 * seed)
    closure, kept = pairs_of(graph.closure), pairs_of(graph.edges)
    for edge in sorted(kept):
        if len(kept) > 1 and pairs_of(build_hierarchy(graph.names, sorted(kept - {edge})).closure) == closure:
            kept.remove(edge)
    assert pairs_of(transitive_reduction(graph)) == kept
    assert len(transitive_reduction(graph)) == len(kept)


@pytest.mark.parametrize(
    "graph",
    [random_dag(40, 3, 110), random_dag(60, 5, 90), random_tree(80, 2), binary_tree(4)],
    ids=["dag", "sparse", "tree", "binary"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_drawn_split_is_what_it_says(graph: Taxonomy, seed: int) -> None:
    drawn = [draw_split(graph, coverage, seed) for coverage in COVERAGES]
    names = drawn[0].names
    inside = {(graph.names[one], graph.names[other]) for one, other in graph.closure}
    closure = {(names.index(one), names.index(other)) for one, other in inside if one in names and other in names}
    basic = {
        (one, other)
        for one, other in closure
        if not any((one, node) in closure and (node, other) in closure for node in range(len(names)))
    }
    others = len(closure) - len(basic)
    before: set[tuple[int, int]] = set()
    for split in drawn:
        train, valid, test = pairs_of(split.train), pairs_of(split.valid), pairs_of(split.test)
        assert len(split.valid) == len(split.test) == len(valid) == len(test) == max(1, others // 20)
        assert len(split.train) == len(train) == len(basic) + others * split.coverage // 100
        assert basic <= train <= closure and valid | test <= closure
        assert not train & (valid | test) and not valid & test
        assert before <= train
        before = train
        for part in ("valid", "valid_negatives", "test", "test_negatives"):
            assert np.array_equal(getattr(split, part), getattr(drawn[0], part))
        assert split.train_origin == "drawn from WordNet"
    for edges, negatives in ((split.valid, split.valid_negatives), (split.test, split.test_negatives)):
        for edge, block in zip(edges.tolist(), negatives.tolist(), strict=True):
            assert [pair[1] == edge[1] for pair in block] == [True] * 5 + [False] * 5
            assert [pair[0] == edge[0] for pair in block] == [False] * 5 + [True] * 5
            assert len({tuple(pair) for pair in block}) == 10
            assert not any(tuple(pair) in closure or pair[0] == pair[1] for pair in block)


def test_seeds_differ_and_repeat(graph: Taxonomy) -> None:
    assert same(draw_split(graph, 10, 7), draw_split(graph, 10, 7))
    assert pairs_of(draw_split(graph, 10, 7).valid) != pairs_of(draw_split(graph, 10, 8).valid)


def test_negatives_are_uniform_over_what_is_free() -> None:
    """Node 2 may not meet 0, 4 and itself: each of the six others comes equally often, five at a time."""
    links = np.array([[2, 0], [2, 4], [1, 3], [8, 2]])
    drawn = splits._draw_unlinked(np.full(6000, 2), links, 9, np.random.Generator(np.random.PCG64(1)))
    counts = np.bincount(drawn.ravel(), minlength=9)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0] and counts.sum() == 30_000
    assert np.abs(counts[[1, 3, 5, 6, 7, 8]] - 5000).max() < 4 * np.sqrt(6000 * 5 / 6 / 6)
    assert np.abs(np.bincount(drawn[:, 0], minlength=9)[[1, 3, 5, 6, 7, 8]] - 1000).max() < 4 * np.sqrt(
        6000 / 6 * 5 / 6
    )


def test_tops_and_lonely_nodes_are_left_out() -> None:
    """A chain above a tree, and one node beside it: only the two halves under the root remain."""
    tree = binary_tree(4)
    names = [*tree.names, "top", "summit"]
    graph = build_hierarchy(names, [*tree.edges.tolist(), (0, len(names) - 2), (len(names) - 2, len(names) - 1)])
    assert draw_split(graph, 0).names == names[1:31]
    assert same(draw_split(graph, 25), draw_split(tree, 25))


@pytest.mark.parametrize("seed", range(5))
def test_an_edge_without_five_negatives_is_not_held_out(seed: int) -> None:
    """Beside the tree stand three nodes only: the root stays, but just these could be its other children."""
    tree = binary_tree(4, beside=3)
    split = draw_split(build_hierarchy(tree.names, [*tree.edges.tolist(), (31, 32), (32, 33)]), 50, seed)
    assert split.names == tree.names
    assert not (split.valid[:, 1] == 0).any() and not (split.test[:, 1] == 0).any()
    assert (split.train[:, 1] == 0).sum() > 2


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1)],
        [(node, node + 1) for node in range(30)],
        [(node, 0) for node in range(1, 30)],
        [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (8, 9), (10, 11)],
    ],
    ids=["one edge", "chain", "star", "two non-basic edges"],
)
def test_too_small(edges: list[tuple[int, int]]) -> None:
    graph = build_hierarchy([f"n{node}" for node in range(31)], edges)
    with pytest.raises(UserError, match=r"too small for a link-prediction split.*Use a larger one"):
        draw_split(graph, 0)


# Files of our own


def test_save_and_load(graph: Taxonomy, tmp_path: Path) -> None:
    split = draw_split(graph, 25)
    split.names[3] = "größe.n.01"
    sha256 = split.save(tmp_path / "one.npz")
    assert sha256 == sha256_file(tmp_path / "one.npz")
    loaded = Split.load(tmp_path / "one.npz")
    assert same(loaded, split) and all(getattr(loaded, part).dtype == np.int64 for part in PARTS)
    assert loaded.save(tmp_path / "two.npz") == sha256
    assert draw_split(graph, 25, 1).save(tmp_path / "three.npz") != sha256


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.npz does not exist: build it with"):
        Split.load(tmp_path / "absent.npz")


def test_a_file_of_another_kind(graph: Taxonomy, tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("not at all")
    graph.save(tmp_path / "graph.npz")
    for name in ("text.npz", "graph.npz"):
        with pytest.raises(UserError, match=f"{name} is not a split file.*delete it"):
            Split.load(tmp_path / name)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_cut_file(graph: Taxonomy, tmp_path: Path, share: float) -> None:
    draw_split(graph, 0).save(tmp_path / "a.npz")
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match="is not a split file"):
        Split.load(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda split: {"train": np.concatenate([split.train, split.test[:1]])},
            "1 of the edges in .*test.* are also in .*train",
        ),
        (lambda split: {"valid_negatives": split.valid_negatives[1:]}, "10 negatives each need"),
        (lambda split: {"valid_negatives": split.valid_negatives[:, :9]}, "reshape"),
        (lambda split: {"names": split.names[:-1]}, "not in the vocabulary"),
        (lambda split: {"coverage": 30}, "coverage 30 % is not one of"),
    ],
    ids=["leak", "block missing", "nine negatives", "name missing", "coverage"],
)
def test_a_file_whose_content_does_not_fit(graph: Taxonomy, tmp_path: Path, edit: Callable, message: str) -> None:
    split = draw_split(graph, 10)
    dataclasses.replace(split, **edit(split)).save(tmp_path / "a.npz")
    with pytest.raises(UserError, match=f"is not a split file .*{message}.*delete it"):
        Split.load(tmp_path / "a.npz")


def test_write_split_writes_the_record_last(graph: Taxonomy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split, out = draw_split(graph, 10), tmp_path / "deep" / "split"
    record = write_split(split, out, "key", {"sample": True, "source": {"a": "b"}, "seed": 0})
    assert read_json(tmp_path / "deep" / "split.json") == record
    assert record["sha256"] == sha256_file(tmp_path / "deep" / "split.npz")
    assert {**record, "sha256": ""} == {
        "key": "key",
        "coverage": 10,
        "counts": split.counts(),
        "train_origin": "drawn from WordNet",
        "sample": True,
        "source": {"a": "b"},
        "seed": 0,
        "sha256": "",
    }
    monkeypatch.setattr(Split, "save", lambda *_: (_ for _ in ()).throw(UserError("disk full")))
    with pytest.raises(UserError, match="disk full"):
        write_split(split, tmp_path / "other", "key", {})
    assert not (tmp_path / "other.json").exists()


def test_counts(graph: Taxonomy) -> None:
    split = draw_split(graph, 10)
    counts = split.counts()
    held = len(split.valid)
    assert counts == {
        "nodes": 40,
        "train": len(split.train),
        "valid": held,
        "valid negatives": 10 * held,
        "test": held,
        "test negatives": 10 * held,
    }
    check_counts(split, counts)
    check_counts(split, {"nodes": 40})
    with pytest.raises(
        UserError, match=r"coverage 10 %: nodes: expected 82,114, found 40\. These are not the paper's files"
    ):
        check_counts(split, {**counts, "nodes": 82_114})
