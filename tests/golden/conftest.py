"""`pytest tests/golden --record` records the results of computations whose version was raised."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.instances import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="record golden results whose version was raised")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Golden]:
    """The graph of the golden instances in a folder of its own, with nothing but the samples."""
    folder = tmp_path_factory.mktemp("golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SUBSPACES_MIRROR", str(folder / "no-mirror"))
        patch.setenv("SUBSPACES_OFFLINE", "1")
        yield Golden()
