"""The dependency rule, read from the imports of every module: library <- experiments <- report and pipeline; and names of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src/subspaces"
MATHEMATICS = {"algebra", "projector", "bounds"}
PLAIN = {"errors", "files"}  # no mathematics, no torch
LIBRARY = {"settings", "geometries", "hierarchy", "text", "search", "training", "sources", "serve"}
MODULES = sorted(path for path in ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[list[str]]:
    """The modules of this package that a file imports when it runs, as lists of names below `subspaces`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_types = [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    ]
    for node in ast.walk(tree):
        if node in only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "subspaces":
            yield node.module.split(".")[1:] or [node.names[0].name]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1:] for name in node.names if name.name.startswith("subspaces."))


def allowed(importer: tuple[str, ...], imported: list[str]) -> bool:
    home, target = importer[0], imported[0]
    if home in PLAIN:
        return target in PLAIN
    if home in MATHEMATICS:
        return target in MATHEMATICS | PLAIN
    if home in LIBRARY:
        return target in MATHEMATICS | PLAIN | LIBRARY
    if home == "report":  # reads result files only
        return target not in {"experiments", "pipeline"}
    if home == "experiments" and target == "experiments" and len(importer) > 2 and len(imported) > 2:
        return importer[1] == imported[1]  # experiments do not import each other
    return True


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    importer = path.relative_to(ROOT).with_suffix("").parts
    if importer in {("__init__",), ("__main__",), ("cli",)}:
        return
    wrong = [".".join(imported) for imported in imports(path) if not allowed(importer, imported)]
    assert wrong == [], f"{'/'.join(importer)} must not import {', '.join(wrong)}"


def test_the_rule_can_be_broken(tmp_path: Path) -> None:
    path = tmp_path / "graph.py"
    path.write_text("def late():\n    from subspaces.pipeline.params import load_params\n")
    (imported,) = imports(path)
    assert not allowed(("hierarchy", "graph"), imported)
    assert not allowed(("experiments", "snli", "task"), ["experiments", "composition", "auc"])
    assert allowed(("experiments", "snli", "task"), ["experiments", "pairs"])


def test_no_two_public_classes_share_a_name() -> None:
    """`Settings` is what an encoder's file must call its options: the file names the encoder."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            encoder = path.parent.name == "encoders" and getattr(node, "name", "") == "Settings"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not encoder:
                homes.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
