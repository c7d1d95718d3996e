"""A fit: how well it learns, what it leaves behind, and what happens when it is killed, repeated or aimed at the wrong folder."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import subspaces.hierarchy.fit as module
from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json
from subspaces.hierarchy import Hierarchy, fit_hierarchy
from subspaces.hierarchy.fit import Paused
from subspaces.training.progress import Silent
from tests.hierarchy.trees import fit_slowly, tree_edges, write_edges

SMALL = {"dim": 8, "epochs": 2}


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    return write_edges(tmp_path / "edges.tsv", tree_edges(40))


def content(folder: Path) -> dict[str, bytes]:
    """All files but the one with the clock in it."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "timing.json"}


def test_a_tree_of_300_nodes_is_learnt(tree: Hierarchy) -> None:
    quality = tree.record["quality"]
    assert quality["all_pairs"] and quality["edges"] == tree.record["counts"]["closure"]
    assert quality["f1"] >= 98 and quality["precision"] >= 97
    assert all(node["precision"] >= 95 for node in quality["general"])
    assert quality["ancestor_larger"] >= 99
    assert quality["rho_descendants"] >= 70  # three quarters are leaves, tied at none: a perfect order has about 76
    rank, descendants = tree.features.trace.numpy(), tree.graph.descendants
    assert (
        rank[descendants == 0].mean()
        < rank[(descendants > 0) & (descendants < 10)].mean()
        < rank[descendants >= 10].mean()
    )


def test_the_true_ancestors_of_nearly_every_leaf_come_first(tree: Hierarchy) -> None:
    leaves = np.flatnonzero(tree.graph.descendants == 0)[::5]
    right = 0
    for leaf in leaves:
        true = tree.graph.ancestors[tree.graph.offsets[leaf] : tree.graph.offsets[leaf + 1]]
        found = tree.ancestors(tree.names[leaf], top=len(true))
        right += {one.name for one in found} == {tree.names[node] for node in true}
    assert right >= 0.9 * len(leaves)


def test_small_trees_beside_a_large_one_are_not_lost(tmp_path: Path) -> None:
    """From the paper's start near zero they are: their nodes end with rank 0."""
    pairs = tree_edges(60) + [
        (f"leaf {tree} {leaf}", f"root {tree}") for tree in range(12) for leaf in range(1 + tree % 2)
    ]
    record, _ = fit_hierarchy(write_edges(tmp_path / "edges.tsv", pairs), tmp_path / "out", dim=16)
    hierarchy = Hierarchy.load(tmp_path / "out")
    assert float(hierarchy.features.trace.min()) > 0.5
    assert record["quality"]["f1"] > 95


def test_the_folder_holds_what_it_says_and_nothing_else(fitted: Path) -> None:
    record = read_json(fitted / "hierarchy.json")
    for name, sha256 in record["sha256"].items():
        assert sha256_file(fitted / name) == sha256
    names = {
        "weights.safetensors",
        "features.safetensors",
        "hierarchy.npz",
        "training.json",
        "timing.json",
        "hierarchy.json",
    }
    assert {path.name for path in fitted.iterdir()} == names
    assert record["counts"] == {"nodes": 300, "edges": 299, "closure": 1087}


def test_the_same_fit_gives_the_same_files_and_is_not_repeated(tmp_path: Path, edges: Path) -> None:
    record, worked = fit_hierarchy(edges, tmp_path / "one", **SMALL)
    assert worked
    shuffled = write_edges(tmp_path / "shuffled.tsv", list(reversed(tree_edges(40))))
    fit_hierarchy(shuffled, tmp_path / "two", **SMALL)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "one").iterdir()}
    again, worked = fit_hierarchy(shuffled, tmp_path / "one", **SMALL)
    assert not worked and again == record
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "one").iterdir()} == before


@pytest.mark.parametrize("ruined", ["weights.safetensors", "features.safetensors", "hierarchy.npz"])
def test_a_damaged_fit_is_not_called_done(tmp_path: Path, edges: Path, ruined: str) -> None:
    fit_hierarchy(edges, tmp_path / "out", **SMALL)
    (tmp_path / "out" / ruined).write_bytes(b"ruined")
    with pytest.raises(UserError, match=f"{ruined} is damaged or missing: delete"):
        fit_hierarchy(edges, tmp_path / "out", **SMALL)


def test_other_settings_or_other_edges_are_refused_and_named(tmp_path: Path, edges: Path) -> None:
    fit_hierarchy(edges, tmp_path / "out", **SMALL)
    before = content(tmp_path / "out")
    with pytest.raises(UserError, match=r"holds another fit \(seed: 0 → 1; settings\.epochs: 2 → 3\)"):
        fit_hierarchy(edges, tmp_path / "out", dim=8, epochs=3, seed=1)
    with pytest.raises(UserError, match=r"another fit \(other edges\)"):
        fit_hierarchy(
            write_edges(tmp_path / "more.tsv", [*tree_edges(40), ("more", "node 0")]), tmp_path / "out", **SMALL
        )
    assert content(tmp_path / "out") == before


def test_a_foreign_folder_is_left_alone(tmp_path: Path, edges: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="holds something else"):
        fit_hierarchy(edges, foreign, **SMALL)
    write_json(foreign / "hierarchy.json", {"format": "something of another program"})
    with pytest.raises(UserError, match="holds something else"):
        fit_hierarchy(edges, foreign, **SMALL)
    assert sorted(path.name for path in foreign.iterdir()) == ["hierarchy.json", "thesis.txt"]
    with pytest.raises(UserError, match="is a file"):
        fit_hierarchy(edges, edges, **SMALL)


def test_impossible_requests_are_refused_before_anything_is_written(
    tmp_path: Path, edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with pytest.raises(UserError, match="one chain"):
        fit_hierarchy(write_edges(tmp_path / "chain.tsv", [("a", "b"), ("b", "c")]), out)
    wrongs = [
        {"dim": 1},
        {"lam": 0.0},
        {"lam": float("nan")},
        {"seed": -1},
        {"threads": 0},
        {"minutes": 0.0},
        {"epochs": 0},
    ]
    for wrong in wrongs:
        with pytest.raises(UserError, match=next(iter(wrong)).replace("lam", "lambda")):
            fit_hierarchy(edges, out, **wrong)
    monkeypatch.setattr(module.os, "sysconf", lambda name: 100)
    with pytest.raises(UserError, match=r"need 0\.0 GB .* this machine has 0 GB: --dim"):
        fit_hierarchy(edges, out)
    assert not out.exists()


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path: Path, edges: Path) -> None:
    fit_hierarchy(edges, tmp_path / "whole", dim=8, epochs=30)
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=fit_slowly, args=(edges, tmp_path / "killed"))
    process.start()
    while process.is_alive() and not list((tmp_path / "killed").glob("checkpoints/*/step-*.json")):
        time.sleep(0.005)
    with pytest.raises(UserError, match="another fit is at work"):
        fit_hierarchy(edges, tmp_path / "killed", dim=8, epochs=30)
    process.kill()
    process.join()
    assert process.exitcode == -9
    assert not read_json(tmp_path / "killed/hierarchy.json")["finished"]
    with pytest.raises(UserError, match="not finished: run the same"):
        Hierarchy.load(tmp_path / "killed")
    with pytest.raises(UserError, match="holds another fit"):
        fit_hierarchy(edges, tmp_path / "killed", dim=8, epochs=31)
    fit_hierarchy(edges, tmp_path / "killed", dim=8, epochs=30)
    assert read_json(tmp_path / "killed/timing.json")["resumed"]
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_fit_stopped_after_its_training_does_not_train_again(
    tmp_path: Path, edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_hierarchy(edges, tmp_path / "whole", **SMALL)

    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_features", stop)
        with pytest.raises(KeyboardInterrupt):
            fit_hierarchy(edges, tmp_path / "out", **SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(module, "train", stop)
        fit_hierarchy(edges, tmp_path / "out", **SMALL)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_ctrl_c_saves_a_checkpoint_and_the_same_call_resumes(tmp_path: Path, edges: Path) -> None:
    fit_hierarchy(edges, tmp_path / "whole", dim=8, epochs=30)

    class Interrupting(Silent):
        def update(self, done: int, metrics: dict[str, float]) -> None:
            if done == 3:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Paused, match=r"paused at step 3: interrupted.*the same command resumes"):
        fit_hierarchy(edges, tmp_path / "out", dim=8, epochs=30, progress=Interrupting())
    fit_hierarchy(edges, tmp_path / "out", dim=8, epochs=30)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_budget_pauses_and_the_rest_follows(tmp_path: Path, edges: Path) -> None:
    fit_hierarchy(edges, tmp_path / "whole", **SMALL)
    with pytest.raises(Paused, match="paused at step 1: "):
        fit_hierarchy(edges, tmp_path / "out", **SMALL, minutes=1e-9)
    fit_hierarchy(edges, tmp_path / "out", **SMALL)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_pairs_of_the_user_set_the_threshold_without_a_new_training(
    tmp_path: Path, edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = fit_hierarchy(edges, tmp_path / "out", dim=8)
    free = record["quality"]["threshold"]
    pairs = [(f"node {child}", "node 0", 1) for child in range(1, 20)]
    pairs += [(f"node {child}", f"node {child + 1}", 0) for child in range(10, 30)]
    valid = tmp_path / "valid.tsv"
    valid.write_text("".join(f"{child}\t{parent}\t{label}\n" for child, parent, label in pairs))
    monkeypatch.setattr(module, "train", None)
    record, worked = fit_hierarchy(edges, tmp_path / "out", dim=8, valid=valid)
    assert worked and record["valid"]["pairs"] == 39 and record["valid"]["f1"] > 90
    assert record["quality"]["threshold"] == record["valid"]["threshold"] == Hierarchy.load(tmp_path / "out").threshold
    assert fit_hierarchy(edges, tmp_path / "out", dim=8, valid=valid) == (record, False)
    record, worked = fit_hierarchy(edges, tmp_path / "out", dim=8)
    assert worked and record["quality"]["threshold"] == free and record["valid"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("node 1\tnode 0\t1\n", "pairs that hold .1. and pairs that do not"),
        ("node 1\tnode 0\t1\nnode 1\tnode 2\tmaybe\n", "line 2: the label must be 1 or 0, not 'maybe'"),
        ("node 1\tnode 0\t1\nnode 1\tnothing\t0\n", "line 2: 'nothing' is no node"),
        ("node 1\tnode 0\n", "expected child TAB parent TAB label, found 2 fields"),
    ],
)
def test_wrong_validation_pairs_are_refused(tmp_path: Path, edges: Path, content: str, message: str) -> None:
    (tmp_path / "valid.tsv").write_text(content)
    with pytest.raises(UserError, match=message):
        fit_hierarchy(edges, tmp_path / "out", **SMALL, valid=tmp_path / "valid.tsv")
    assert not (tmp_path / "out").exists()


def test_doubts_about_the_input_are_warnings(tmp_path: Path) -> None:
    turned = [pair[::-1] for pair in tree_edges(40)]
    with pytest.warns(UserWarning, match="look reversed"):
        fit_hierarchy(turned, tmp_path / "out", **SMALL)


def test_without_the_closure_only_given_edges_count(tmp_path: Path, edges: Path) -> None:
    record, _ = fit_hierarchy(edges, tmp_path / "out", dim=8, closure=False)
    assert record["quality"]["edges"] == record["counts"]["edges"] < record["counts"]["closure"]
    assert record["quality"]["f1"] > 95
