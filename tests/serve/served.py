"""A service with a real (untrained, tiny) model, the sentences that ship, and a small fitted tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

from subspaces.hierarchy import fit_hierarchy
from subspaces.serve.app import make_app
from subspaces.serve.service import Service
from subspaces.text.subspace_encoder import SubspaceEncoder
from tests.experiments.composition.models import tiny_model
from tests.hierarchy.trees import tree_edges, write_edges


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("served") / "tiny-model", "subspace", ways=3)


@pytest.fixture(scope="session")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taxonomy")
    torch.set_num_threads(1)
    fit_hierarchy(write_edges(folder / "edges.tsv", tree_edges(60)), folder / "tree", dim=8, epochs=40)
    torch.use_deterministic_algorithms(False)
    return folder / "tree"


@pytest.fixture(scope="session")
def service(model: Path, taxonomy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Service.open(SubspaceEncoder.from_pretrained(model), hierarchy=taxonomy)


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(make_app(service), raise_server_exceptions=False) as client:
        yield client
