"""Indexes of tests note their checks in a cache folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
