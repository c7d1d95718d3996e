"""Copies, exports and imports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from subspaces.errors import UserError
from subspaces.hierarchy import Hierarchy
from tests.hierarchy.trees import tree_edges


def test_an_export_is_plain_and_comes_back_the_same(tmp_path: Path, fitted: Path, tree: Hierarchy) -> None:
    folder = tree.export(tmp_path / "plain")
    assert sorted(path.name for path in folder.iterdir()) == ["export.json", "subspaces.safetensors"]
    content = json.loads((folder / "export.json").read_text())
    assert content["names"] == tree.names and content["threshold"] == tree.threshold
    assert load_file(folder / "subspaces.safetensors")["X"].shape == (300, 16, 16)
    again = Hierarchy.from_export(folder, tmp_path / "again")
    for name in ("features.safetensors", "weights.safetensors", "hierarchy.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (fitted / name).read_bytes()
    assert again.ancestors("node 9") == tree.ancestors("node 9")
    assert again.record["quality"]["f1"] == tree.record["quality"]["f1"]


def test_subspaces_of_another_program_are_imported_and_judged(tmp_path: Path) -> None:
    """Two columns per node, no threshold."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    X = torch.zeros(4, 4, 2)
    X[0, 0, 0] = X[1, 1, 0] = X[2, 0, 0] = X[2, 1, 1] = X[3, 3, 0] = 10.0
    save_file({"X": X}, folder / "subspaces.safetensors")
    content = {"format": "subspaces hierarchy export 1", "lambda": 0.2, "names": ["cat", "dog", "animal", "oak"]}
    (folder / "export.json").write_text(json.dumps(content | {"edges": [[0, 2], [1, 2]]}))
    hierarchy = Hierarchy.from_export(folder, tmp_path / "out")
    assert hierarchy.record["quality"]["f1"] == 100 and hierarchy.entails("cat", "animal")
    assert not hierarchy.entails("oak", "animal") and hierarchy.rank("animal") == pytest.approx(2, abs=0.01)


def test_what_is_no_export_is_refused(tmp_path: Path, tree: Hierarchy) -> None:
    with pytest.raises(UserError, match=r"no exported hierarchy: it needs export\.json and subspaces\.safetensors"):
        Hierarchy.from_export(tmp_path, tmp_path / "out")
    folder = tree.export(tmp_path / "plain")
    with pytest.raises(UserError, match="is not empty: choose a new folder"):
        tree.export(folder)
    with pytest.raises(UserError, match="is not empty"):
        tree.save(folder)
    for change, message in [({"names": ["a"]}, r"X must have the shape \(1, d, n\)"), ({"format": "x"}, "no exported")]:
        content = json.loads((folder / "export.json").read_text())
        shutil.copytree(folder, tmp_path / "changed", dirs_exist_ok=True)
        (tmp_path / "changed/export.json").write_text(json.dumps(content | change))
        with pytest.raises(UserError, match=message):
            Hierarchy.from_export(tmp_path / "changed", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_fit_without_a_folder_can_be_saved(tmp_path: Path) -> None:
    hierarchy = Hierarchy.fit(tree_edges(30), dim=8, epochs=2)
    temporary = hierarchy.folder
    assert temporary.exists()
    saved = Hierarchy.load(hierarchy.save(tmp_path / "kept"))
    names = hierarchy.names
    del hierarchy
    assert not temporary.exists()
    assert saved.names == names and saved.subspace("node 3").dim == 8
