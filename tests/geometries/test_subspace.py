"""Subspaces in link prediction: scores and steps against autograd through the textbook projector, and scores against the algebra."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.fx.experimental import _config

from subspaces.algebra import Subspace
from subspaces.geometries import subspace as module
from subspaces.geometries.base import make_geometry
from subspaces.geometries.subspace import SubspaceGeometry
from subspaces.hierarchy.link_prediction import margin_loss
from subspaces.hierarchy.negatives import Known, PairBatch, make_negatives
from subspaces.hierarchy.splits import draw_split
from subspaces.training.loop import generator_for
from tests.geometries.test_ranking import Recorder
from tests.hierarchy.test_link_prediction import task_of
from tests.hierarchy.toys import random_dag
from tests.test_projector import textbook

LAM = 0.2
SPLIT = draw_split(random_dag(40, 3, 110), 10)
ROWS = torch.tensor([7, 2, 9, 4, 0])
# Places in ROWS: a pair twice, a pair and its reverse, pairs that share a child or a parent, and a node with itself.
PAIRS = torch.tensor([[0, 1], [0, 1], [1, 0], [0, 2], [3, 2], [3, 4], [2, 2], [4, 0], [1, 4]])


def started(nodes: int = 11, dim: int = 6, start: float = 0.3, **options) -> SubspaceGeometry:
    geometry = make_geometry("subspace", nodes, dim, start=start, lam=LAM, **options)
    geometry.state()
    geometry.initialise(generator_for(1))
    return geometry


def nis(X: Tensor, children: Tensor, parents: Tensor) -> Tensor:
    """Tr(P_c P_p) / Tr(P_c) of nodes with X (N, d, n), by the formulas of the paper."""
    P = textbook(X, LAM)
    below, above = P[children], P[parents]
    return torch.einsum("kij,kji->k", below, above) / torch.einsum("kii->k", below)


def batch_of(sampling: str) -> tuple[Tensor, Tensor, Tensor]:
    """(rows, children, parents): the pairs above, or what a sampler gives for six edges, one of them twice."""
    if sampling == "chosen":
        return ROWS, *PAIRS.unbind(1)
    children, parents = torch.from_numpy(SPLIT.train)[[0, 5, 9, 14, 20, 5]].unbind(1)
    batch = make_negatives(Known(SPLIT.nodes, SPLIT.train), SPLIT.train, sampling, 8, 9).draw(
        children, parents, generator_for(4)
    )
    return batch.rows, batch.children.flatten(), batch.parents.flatten()


BATCHES = ["chosen", "per-edge", "weighted", "shared"]


# --- training -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", [3, 6, 9])
@pytest.mark.parametrize("sampling", BATCHES)
def test_training_scores(sampling: str, vectors: int) -> None:
    geometry = started(SPLIT.nodes, vectors=vectors)
    rows, children, parents = batch_of(sampling)
    found = geometry.pair_scores(geometry.open(rows), children, parents)
    assert found.shape == children.shape and not found.requires_grad
    assert torch.allclose(found.double(), nis(geometry.X.double(), rows[children], rows[parents]), atol=1e-5)
    assert torch.allclose(found, geometry.score_pairs(rows[children], rows[parents]), atol=1e-5)


@pytest.mark.parametrize("width", [1, 4, None], ids=["row by row", "in slices", "at once"])
@pytest.mark.parametrize("vectors", [3, 6, 9])
@pytest.mark.parametrize("sampling", BATCHES)
def test_the_gradient_is_autograds(
    monkeypatch: pytest.MonkeyPatch, sampling: str, vectors: int, width: int | None
) -> None:
    """The closed form in float32 against autograd through a solve in float64."""
    if width:
        monkeypatch.setattr(module, "slice_width", lambda weights: width)
        monkeypatch.setattr(module, "_SOME", width)
    geometry = started(SPLIT.nodes, vectors=vectors)
    rows, children, parents = batch_of(sampling)
    upstream = torch.randn(len(children), generator=generator_for(5))
    leaf = geometry.X[rows].double().requires_grad_()
    (expected,) = torch.autograd.grad((nis(leaf, children, parents) * upstream.double()).sum(), leaf)
    geometry.optimiser = Recorder()
    opened = geometry.open(rows)
    geometry.pair_scores(opened, children, parents)
    geometry.update_pairs(opened, upstream, 0.25)
    assert torch.equal(geometry.optimiser.rows, rows) and geometry.optimiser.lr == 0.25
    assert (geometry.optimiser.gradient.double() - expected).abs().max() < 2e-5 * expected.abs().max()


@pytest.mark.parametrize("sampling", ["per-edge", "shared"])
def test_a_step_of_the_task_is_the_gradient_of_the_whole_loss(sampling: str) -> None:
    geometry = started(SPLIT.nodes)
    geometry.optimiser = Recorder()
    task = task_of(geometry, None, SPLIT, sampling=sampling, weigh_as=6.0)
    task.begin_epoch(0, generator_for(1))
    reported = task.step(0, 1, generator_for(2))
    edges = task.edges[task.order[16:32]]
    batch = task.sampler.draw(edges[:, 0], edges[:, 1], generator_for(2))
    leaf = geometry.X.double().requires_grad_()
    scores = nis(leaf, batch.rows[batch.children].flatten(), batch.rows[batch.parents].flatten()).view(
        batch.children.shape
    )
    loss = margin_loss(scores, batch.counts, 0.9, 0.3, 6.0)
    (expected,) = torch.autograd.grad(loss, leaf)
    assert reported["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert torch.equal(geometry.optimiser.rows, batch.rows) and geometry.optimiser.lr == 0.02
    assert (geometry.optimiser.gradient.double() - expected[batch.rows]).abs().max() < 2e-5 * expected.abs().max()
    assert not expected[[node for node in range(SPLIT.nodes) if node not in batch.rows.tolist()]].any()


def test_a_step_goes_downhill_and_touches_its_rows_only() -> None:
    geometry = started()
    before, first = geometry.X.clone(), geometry.score_pairs(*ROWS[PAIRS].unbind(1))
    opened = geometry.open(ROWS)
    geometry.pair_scores(opened, *PAIRS.unbind(1))
    geometry.update_pairs(opened, -torch.ones(len(PAIRS)), 0.01)  # raise all scores
    assert geometry.score_pairs(*ROWS[PAIRS].unbind(1)).sum() > first.sum()
    still = [node for node in range(11) if node not in ROWS.tolist()]
    assert torch.equal(geometry.X[still], before[still])
    assert all(not torch.equal(geometry.X[node], before[node]) for node in ROWS.tolist())


def test_pairs_with_and_without_a_hub_occur_here() -> None:
    """A hub meets at least half of the rows. The tests above are about both ways to compute."""
    met = {}
    for sampling in BATCHES:
        rows, children, parents = batch_of(sampling)
        times = torch.bincount(torch.cat([children, parents]), minlength=len(rows))
        hub = 2 * times >= len(rows)
        met[sampling] = {bool(one) for one in hub[children] | hub[parents]}
    assert {True, False} <= set().union(*met.values()) and True in met["shared"] and False in met["per-edge"]


def test_an_empty_subspace_gives_numbers() -> None:
    """Nothing of it lies anywhere, and a step beside it is an ordinary step."""
    geometry = started()
    geometry.X[ROWS[3]] = 0.0
    opened = geometry.open(ROWS)
    scores = geometry.pair_scores(opened, *PAIRS.unbind(1))
    assert torch.isfinite(scores).all() and (scores[PAIRS[:, 0] == 3].abs() < 1e-3).all()
    assert torch.allclose(geometry.score_pairs(*ROWS[PAIRS].unbind(1)), scores, atol=1e-5)
    geometry.update_pairs(opened, torch.ones(len(PAIRS)), 0.1)
    assert torch.isfinite(geometry.X).all()


@pytest.mark.parametrize("sampling", ["per-edge", "shared"])
@_config.patch(meta_nonzero_assume_all_nonzero=True)
def test_a_step_stays_on_its_device(sampling: str) -> None:
    """Meta tensors have a device of their own that does not mix with the host's; they hold nothing, so every choice takes all."""
    geometry = make_geometry("subspace", SPLIT.nodes, 8, "meta")
    state = geometry.state()
    geometry.initialise(generator_for(1))
    assert {tensor.device.type for key, tensor in state.items() if key != "adam.count"} == {"meta"}
    assert state["adam.count"].device.type == "cpu"  # read by the host at every step
    rows, children, parents = batch_of(sampling)
    counts = torch.ones(6, len(children) // 6 - 1, dtype=torch.bool)
    batch = PairBatch(rows, children, parents, counts).to(geometry.device)
    opened = geometry.open(batch.rows)
    scores = geometry.pair_scores(opened, batch.children, batch.parents)
    assert scores.is_meta and scores.shape == children.shape
    leaf = scores.view(6, -1).detach().requires_grad_()
    (upstream,) = torch.autograd.grad(margin_loss(leaf, batch.counts, 0.9, 0.3, 1.0), leaf)
    geometry.update_pairs(opened, upstream.flatten(), 0.1)
    assert (
        geometry.projectors(slice(0, 5)).is_meta
        and geometry.halves(batch.rows).is_meta
        and geometry.generality().is_meta
    )


# --- decisions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize("vectors", [3, 6, 9])
def test_decision_scores_are_inclusions_of_the_algebra(vectors: int, block: int, monkeypatch) -> None:
    """In the order that was asked for, with repeated pairs, also for few of the nodes."""
    monkeypatch.setattr("subspaces.geometries.subspace._PAIRS", block)
    geometry = started(vectors=vectors)
    children, parents = torch.randint(11, (2, 50), generator=generator_for(3))
    X = geometry.X.double()
    expected = Subspace.from_vectors(X[children], LAM).inclusion(Subspace.from_vectors(X[parents], LAM))
    assert torch.allclose(geometry.score_pairs(children, parents).double(), expected, atol=1e-5)
    assert torch.allclose(geometry.score_pairs(children[:2], parents[:2]).double(), expected[:2], atol=1e-5)
    assert len(geometry.score_pairs(children[:0], parents[:0])) == 0


def test_a_score_has_a_direction() -> None:
    """A line in a plane: all of the line lies in the plane, half of the plane in the line."""
    geometry = make_geometry("subspace", 2, 4, lam=LAM)
    geometry.X[0, 0, 0] = geometry.X[1, 0, 0] = geometry.X[1, 1, 1] = 1000.0
    assert geometry.score_pairs(torch.tensor([0, 1]), torch.tensor([1, 0])).tolist() == pytest.approx(
        [1.0, 0.5], abs=1e-5
    )
    assert geometry.generality().tolist() == pytest.approx([1.0, 2.0], abs=1e-5)


def test_half_vectors_and_ranks() -> None:
    geometry = started()
    P = textbook(geometry.X.double(), LAM)
    for block in (4, 4096):
        half = geometry.halves(ROWS, block).double()
        assert half.shape == (5, 21)
        assert torch.allclose(half @ half.T, torch.einsum("uij,vji->uv", P[ROWS], P[ROWS]), atol=1e-5)
        assert torch.allclose(geometry.generality(block).double(), P.diagonal(dim1=1, dim2=2).sum(-1), atol=1e-5)
    assert torch.allclose(geometry.projectors(ROWS).double(), P[ROWS], atol=1e-6)


def test_a_decision_needs_no_moments() -> None:
    """They are twice the weights."""
    geometry = make_geometry("subspace", 11, 6)
    geometry.initialise(generator_for(1))
    geometry.score_pairs(ROWS, ROWS.flip(0))
    geometry.generality()
    assert geometry.optimiser is None and set(geometry.weights()) == {"X"}
    assert set(geometry.state()) == {"X", "adam.mean", "adam.square", "adam.count"}


# --- start --------------------------------------------------------------------------------------------------------------------


def test_the_start_is_random_small_and_repeatable() -> None:
    one, two, other = started(200, start=0.01), started(200, start=0.01), started(200, start=0.01)
    other.initialise(generator_for(2))
    assert torch.equal(one.X, two.X) and not torch.equal(one.X, other.X)
    assert float(one.X.std()) == pytest.approx(0.01, rel=0.05) and abs(float(one.X.mean())) < 1e-3


def test_a_new_start_forgets_the_old_run() -> None:
    geometry = started()
    opened = geometry.open(ROWS)
    geometry.pair_scores(opened, *PAIRS.unbind(1))
    geometry.update_pairs(opened, torch.ones(len(PAIRS)), 0.1)
    geometry.initialise(generator_for(1))
    fresh = started().state()
    assert all(torch.equal(tensor, fresh[key]) for key, tensor in geometry.state().items())


def test_scores_at_the_papers_start() -> None:
    """X ~ N(0, 1e-4²): the projectors are a few millionths, and float32 still tells a pair from a node with itself."""
    geometry = started(20, 64, start=1e-4)
    children = torch.arange(20).repeat_interleave(20)
    parents = torch.arange(20).repeat(20)
    expected = nis(geometry.X.double(), children, parents)
    found = geometry.score_pairs(children, parents).double()
    assert torch.isfinite(found).all()
    assert ((found - expected) / expected).abs().max() < 0.1
