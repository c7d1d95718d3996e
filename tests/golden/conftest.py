"""`pytest tests/golden --record` records the results of computations whose version was raised."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.process import compute


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="record golden results whose version was raised")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of all computations, made in a folder of their own with nothing but the samples."""
    return compute(tmp_path_factory.mktemp("golden"))
