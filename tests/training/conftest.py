"""Processes that can be killed: forked from a server that has torch in memory already, so that each starts at once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

import pytest


@pytest.fixture(scope="session")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["subspaces.geometries.subspace", "subspaces.geometries.poincare"])
    return context
