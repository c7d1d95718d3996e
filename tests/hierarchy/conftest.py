"""One fitted tree for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from subspaces.hierarchy import Hierarchy, fit_hierarchy
from tests.hierarchy.trees import tree_edges, write_edges


@pytest.fixture(autouse=True)
def global_switches():
    """A fit sets determinism for its process; the next test gets its own back."""
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hierarchy")
    torch.set_num_threads(1)
    fit_hierarchy(write_edges(folder / "edges.tsv", tree_edges(300)), folder / "tree", dim=16)
    return folder / "tree"


@pytest.fixture
def tree(fitted: Path) -> Hierarchy:
    return Hierarchy.load(fitted)
