"""The loss over all pairs of a batch: its gradient, its labels, and the fault that it was made for."""

from __future__ import annotations

import torch

from subspaces.hierarchy.features import Features, write_features
from subspaces.hierarchy.graph import build_hierarchy
from subspaces.hierarchy.judging import judge_pairs
from subspaces.hierarchy.learning import InclusionTask
from subspaces.hierarchy.rule import settings_for
from subspaces.projector import soft_projector
from subspaces.training.checkpoint import write_tensors
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import random_dag


def test_the_step_follows_the_gradient_that_autograd_finds() -> None:
    graph = random_dag(12, seed=3, edges=16)
    task = InclusionTask(graph, settings_for(12, dim=5, batch=12))
    task.initialise(generator_for(0, 0))
    task.X.mul_(6)
    rows = torch.arange(12)
    edge, outside = task._labels(rows)
    X = task.X.clone().requires_grad_()
    P = soft_projector(X, task.settings.lam, closed_form=False)
    trace = P.diagonal(dim1=-2, dim2=-1).sum(-1)
    inclusion = torch.einsum("cij,pij->cp", P, P) / trace[:, None]
    weight = (edge.sum(0) / outside.sum(0).clamp_min(1)).clamp(1, task.settings.balance) * outside
    margin = task.settings.sharpness * (inclusion - task.settings.target)
    softplus = torch.nn.functional.softplus
    loss = (softplus(margin) * weight).sum() + softplus(-margin[edge]).sum()
    (loss / task.settings.sharpness + task.settings.rank_weight * trace.clamp_min(1).sum()).backward()

    seen = {}
    task.optimiser.step_in_parts = lambda parts, rate: seen.update(gradient=torch.cat([part for _, part in parts]))
    K, half = task.open(rows)
    own = half @ task.halves.identity
    mine = (half * task.halves.weight) @ half.T / own[:, None]
    value, upstream = task._loss(mine, edge, outside)
    task._update(rows, K, half, own, mine, upstream, 0.1)
    torch.testing.assert_close(mine, inclusion.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        torch.tensor(value), loss.detach() / (task.settings.sharpness * 12), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(seen["gradient"], X.grad, rtol=1e-3, atol=1e-4)


def test_labels_are_the_closure_and_without_it_the_given_edges() -> None:
    graph = build_hierarchy(["a", "b", "c", "d"], [(0, 1), (1, 2), (3, 2)])
    closed, given = (InclusionTask(graph, settings_for(4, dim=4), closed) for closed in (True, False))
    edge, outside = closed._labels(torch.arange(4))
    assert torch.nonzero(edge).tolist() == [[0, 1], [0, 2], [1, 2], [3, 2]]
    assert not (edge & outside).any() and int(edge.sum() + outside.sum()) == 12
    edge, still = given._labels(torch.arange(4))
    assert torch.nonzero(edge).tolist() == [[0, 1], [1, 2], [3, 2]]
    assert torch.equal(still, outside)


def test_a_node_with_nearly_everything_below_it_does_not_contain_the_rest(tmp_path) -> None:
    """The fault of the ranking loss: 120 nodes below `most`, eight beside it, all below `root`."""
    names = ["root", "most", *(f"in {i}" for i in range(120)), *(f"out {i}" for i in range(8))]
    edges = [(1, 0), *((2 + i, 1) for i in range(120)), *((122 + i, 0) for i in range(8))]
    graph = build_hierarchy(names, edges)
    task = InclusionTask(graph, settings_for(graph.nodes, dim=16))
    task.initialise(generator_for(0, 0))
    for epoch in range(task.settings.epochs):
        task.begin_epoch(epoch, generator_for(0, 1, epoch))
        for step in range(task.steps_per_epoch):
            task.step(epoch, step, generator_for(0, 2, epoch, step))
    write_tensors(tmp_path / "weights.safetensors", {"X": task.X})
    write_features(tmp_path / "weights.safetensors", task.settings.lam, tmp_path / "features.safetensors")
    features = Features(tmp_path / "features.safetensors")
    quality = judge_pairs(features, graph, seed=0)
    assert quality["all_pairs"] and quality["edges"] == 249 and quality["non_edges"] == 130 * 129 - 249
    most = next(node for node in quality["general"] if node["name"] == "most")
    assert most["precision"] >= 99 and most["recall"] >= 99
    assert quality["f1"] >= 98
    inside = features.inclusion(torch.arange(122, 130), torch.ones(8, dtype=torch.int64))
    assert bool((inside < quality["threshold"]).all())
