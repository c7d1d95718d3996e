"""Brute force in the Poincaré ball, and the selection of the best of many scores."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.efficiency.poincare import (
    _BLOCK,
    ObviousPoincareSearcher,
    PoincareSearcher,
    Selector,
    any_points,
    largest,
)


@pytest.mark.parametrize("count", [1, 10, 47, 48, 300, 999, 1000])
def test_largest_is_topk_in_any_order(count):
    values = torch.randn(5, 1000, generator=torch.Generator().manual_seed(count))
    values[2] = values[2].round()  # ties
    values[3, 500:] = -torch.inf
    found = values.gather(1, largest(values, count)).sort(dim=1, descending=True).values
    assert torch.equal(found, values.topk(count, dim=1).values)
    assert all(len(set(row)) == count for row in largest(values, count).tolist())


@pytest.mark.parametrize("documents", [700, _BLOCK, 3 * _BLOCK + 17])
@pytest.mark.parametrize("top", [1, 10, 640])
def test_the_selector_finds_the_best_of_all_blocks(documents, top):
    scores = torch.randn(3, documents, generator=torch.Generator().manual_seed(documents))
    selector = Selector(documents)
    for _ in range(2):  # the second search uses the memory of the first
        values, rows = selector.best(3, top, lambda start, stop, out: out.copy_(scores[:, start:stop]))
        assert torch.equal(values.sort(dim=1, descending=True).values, scores.topk(top, dim=1).values)
        assert torch.equal(scores.gather(1, rows), values)


def test_poincare_answers_by_hyperbolic_distance() -> None:
    points = any_points(5000, 10, torch.Generator().manual_seed(0)).double()
    assert points.norm(dim=1).max() < 1
    queries = any_points(20, 10, torch.Generator().manual_seed(1)).double()
    difference = (queries.unsqueeze(1) - points).square().sum(2)
    both = (1 - queries.square().sum(1)).unsqueeze(1) * (1 - points.square().sum(1))
    near = torch.arccosh(1 + 2 * difference / both).topk(10, largest=False)
    for searcher in (PoincareSearcher(points.float()), ObviousPoincareSearcher(points.float(), block=1000)):
        scores, rows = searcher.search(queries.float(), 10)
        assert torch.allclose(-scores.double(), near.values, rtol=1e-3)
        assert (rows == near.indices).float().mean() > 0.99  # single precision may swap two that are equally near
    with pytest.raises(UserError, match="norms below 1"):
        PoincareSearcher(torch.ones(2, 3))
