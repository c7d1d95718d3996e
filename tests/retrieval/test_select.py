"""The best few of very many scores: exact, whatever their number and order."""

from __future__ import annotations

import pytest
import torch

from subspaces.retrieval.kinds.select import BLOCK, Selector, largest


@pytest.mark.parametrize("count", [1, 10, 47, 48, 300, 999, 1000])
def test_largest_is_topk_in_any_order(count):
    values = torch.randn(5, 1000, generator=torch.Generator().manual_seed(count))
    values[2] = values[2].round()  # ties
    values[3, 500:] = -torch.inf
    found = values.gather(1, largest(values, count)).sort(dim=1, descending=True).values
    assert torch.equal(found, values.topk(count, dim=1).values)
    assert all(len(set(row)) == count for row in largest(values, count).tolist())


@pytest.mark.parametrize("documents", [700, BLOCK, 3 * BLOCK + 17])
@pytest.mark.parametrize("top", [1, 10, 640])
def test_the_selector_finds_the_best_of_all_blocks(documents, top):
    scores = torch.randn(3, documents, generator=torch.Generator().manual_seed(documents))
    selector = Selector(documents)
    for _ in range(2):  # the second search uses the memory of the first
        values, rows = selector.best(3, top, lambda start, stop, out: out.copy_(scores[:, start:stop]))
        assert torch.equal(values.sort(dim=1, descending=True).values, scores.topk(top, dim=1).values)
        assert torch.equal(scores.gather(1, rows), values)
