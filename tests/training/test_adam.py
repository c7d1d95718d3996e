"""Lazy Adam against torch's own for sparse gradients."""

from __future__ import annotations

import pytest
import torch

from subspaces.training import adam as adam_module
from subspaces.training.adam import LazyAdam


@pytest.mark.parametrize("shape", [(3,), (4, 5)])
@pytest.mark.parametrize("slice_size", [1 << 17, 7])
def test_it_is_torchs_sparse_adam(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], slice_size: int) -> None:
    """Several steps on changing rows, at changing rates, rows in slices of every kind; absent rows stand still."""
    monkeypatch.setattr(adam_module, "_SLICE", slice_size)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(12, *shape, generator=generator)
    reference = torch.nn.Parameter(weights.clone())
    theirs = torch.optim.SparseAdam([reference], lr=0.1)
    ours = LazyAdam(weights)
    touched: set[int] = set()
    start = weights.clone()
    for number in range(15):
        rows = torch.randperm(9, generator=generator)[: 1 + number % 6]
        touched |= set(rows.tolist())
        gradient = torch.randn(len(rows), *shape, generator=generator) * 10.0 ** (number % 4 - 2)
        lr = 0.1 / (1 + number)
        theirs.param_groups[0]["lr"] = lr
        reference.grad = torch.sparse_coo_tensor(rows[None], gradient, reference.shape, check_invariants=True)
        theirs.step()
        ours.step(rows, gradient.clone(), lr)
        assert (weights - reference.detach()).abs().max() < 1e-6
    assert int(ours.count) == 15
    for row in range(12):
        assert torch.equal(weights[row], start[row]) == (row not in touched)


def test_its_state_is_all_it_remembers() -> None:
    """Copies of weights and state go on in step: that is what a checkpoint relies on."""
    one, other = torch.randn(5, 3), torch.zeros(5, 3)
    first, second = LazyAdam(one), LazyAdam(other)
    first.step(torch.tensor([1, 3]), torch.randn(2, 3), 0.1)
    other.copy_(one)
    for name, tensor in first.state().items():
        second.state()[name].copy_(tensor)
    gradient = torch.randn(3, 3)
    for optimiser in (first, second):
        optimiser.step(torch.tensor([0, 1, 4]), gradient, 0.1)
    assert torch.equal(one, other)
