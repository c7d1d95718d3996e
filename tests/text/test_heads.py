"""Beta posteriors, the neutral net and the net of the vector baselines (paper §3.3)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from subspaces.algebra import half_vector
from subspaces.projector import soft_projector
from subspaces.text.heads import EDGE, HIGHEST, LOWEST, START, BetaHead, NeutralMLP, PairMLP, with_neutral


def projectors(count: int, dim: int, seed: int) -> torch.Tensor:
    return soft_projector(torch.randn(count, dim, dim // 2, generator=torch.Generator().manual_seed(seed)), 0.5)


@pytest.mark.parametrize("shapes", [START, ((3.5, 1.2), (2.0, 9.0)), ((20.0, 20.0), (1.0, 1.0))])
def test_log_densities_are_those_of_scipy(shapes):
    head = BetaHead()
    head.shapes.data = torch.tensor(shapes, dtype=torch.float64)
    score = torch.linspace(0.001, 0.999, 41, dtype=torch.float64)
    found = head.log_densities(score.log(), torch.log1p(-score)).detach().numpy()
    for column, (alpha, beta) in enumerate(shapes):
        assert np.allclose(found[:, column], stats.beta(alpha, beta).logpdf(score.numpy()), rtol=1e-6, atol=1e-6)


def test_posteriors_are_bayes_with_equal_priors():
    score = torch.tensor([0.05, 0.4, 0.5, 0.93])
    densities = np.stack([stats.beta(*pair).pdf(score.numpy()) for pair in START], axis=1)
    found = BetaHead()(score).exp().detach().numpy()
    assert np.allclose(found, densities / densities.sum(axis=1, keepdims=True), atol=1e-5)


def test_the_start_is_the_papers():
    assert BetaHead().shapes.tolist() == [[6.0, 1.0], [1.0, 6.0]]


@pytest.mark.parametrize("score", [0.0, 1.0, 1e-9, 1 - 1e-7])
def test_the_ends_of_the_interval_are_finite(score):
    head, value = BetaHead(), torch.tensor([score], requires_grad=True)
    found = head(value)
    edge = head(torch.tensor([min(max(score, EDGE), 1 - EDGE)]))
    assert torch.isfinite(found).all() and torch.allclose(found, edge)
    found[0, 0].backward()
    assert torch.isfinite(value.grad).all() and torch.isfinite(head.shapes.grad).all()


def test_from_log_agrees_and_goes_on_where_the_score_underflows():
    head = BetaHead()
    score = torch.tensor([0.01, 0.3, 0.7, 0.999])
    assert torch.allclose(head(score), head.from_log(score.log()), atol=1e-4)
    tiny = torch.tensor([-300.0], requires_grad=True)
    head.from_log(tiny)[0, 0].backward()
    assert tiny.grad.item() == pytest.approx(5.0)  # α_E − α_C: still pulls with full strength
    assert torch.isfinite(head.from_log(torch.zeros(1))).all()


def test_parameters_at_the_bound_can_leave_it():
    """β_E starts at 1. Entailed pairs with low scores ask for a larger one, and get it."""
    head = BetaHead()
    optimiser = torch.optim.Adam(head.parameters(), lr=0.05)
    score = torch.from_numpy(np.random.default_rng(0).beta(8, 4, 400)).float()
    other = torch.from_numpy(np.random.default_rng(1).beta(2, 5, 400)).float()
    for _ in range(60):
        optimiser.zero_grad()
        (-(head(score)[:, 0].mean() + head(other)[:, 1].mean())).backward()
        optimiser.step()
        head.settle()
    assert (head.shapes[0, 1] > 1.05) or (head.shapes[1, 0] > 1.05)


@pytest.mark.parametrize("seed", range(5))
def test_wild_steps_stay_within_the_bounds(seed):
    head, generator = BetaHead(), torch.Generator().manual_seed(seed)
    for size in (1.0, 30.0, 1e6, float("inf")):
        with torch.no_grad():
            head.shapes.add_(torch.randn(2, 2, generator=generator) * size)
            head.settle()
        alpha, beta = head.shapes.unbind(-1)
        assert (head.shapes >= LOWEST).all() and (head.shapes <= HIGHEST).all()
        assert alpha[0] >= beta[0] and alpha[1] <= beta[1]


def test_settling_leaves_what_is_allowed():
    head = BetaHead()
    head.shapes.data = torch.tensor([[7.5, 2.0], [1.0, 19.0]])
    head.settle()
    assert head.shapes.tolist() == [[7.5, 2.0], [1.0, 19.0]]
    head.shapes.data = torch.tensor([[2.0, 4.0], [0.5, 25.0]])
    head.settle()
    assert head.shapes.tolist() == [[3.0, 3.0], [1.0, 20.0]]


def test_three_classes_follow_the_papers_equations():
    posteriors, neutral = BetaHead()(torch.tensor([0.2, 0.8])), torch.tensor([0.7, -1.3])
    found = with_neutral(posteriors, neutral).softmax(-1)
    share = torch.sigmoid(neutral)
    assert torch.allclose(found[:, 1], share)
    assert torch.allclose(found[:, [0, 2]], (1 - share)[:, None] * posteriors.exp(), atol=1e-6)


def test_the_neutral_net_sees_what_the_paper_says():
    """Half-vectors of P_p and P_h and both products, each with a tower of its own."""
    torch.manual_seed(0)
    net, P, Q = NeutralMLP(6, width=16), projectors(5, 6, 0), projectors(5, 6, 1)
    towers = [
        net.premise(half_vector(P)),
        net.hypothesis(half_vector(Q)),
        net.forwards((P @ Q).flatten(1)),
        net.backwards((Q @ P).flatten(1)),
    ]
    assert torch.allclose(net(P, Q), net.joined(torch.cat(towers, dim=-1)).squeeze(-1), atol=1e-5)
    assert net(P, Q).shape == (5,)
    assert not torch.allclose(net(P, Q), net(Q, P), atol=1e-4)


def test_the_neutral_net_has_the_papers_widths_by_default():
    net = NeutralMLP(4)
    widths = [(one.in_features, one.out_features) for one in net.forwards if isinstance(one, torch.nn.Linear)]
    assert widths == [(16, 1024), (1024, 512), (512, 512)]
    assert [(one.in_features, one.out_features) for one in net.joined if isinstance(one, torch.nn.Linear)] == [
        (2048, 1024),
        (1024, 1),
    ]
    assert net.premise[0].in_features == 10


def test_a_pair_is_judged_alone():
    """No statistics of the batch: one pair by itself has the logit that it has in company."""
    torch.manual_seed(0)
    net, P, Q = NeutralMLP(6, width=16).train(), projectors(5, 6, 0), projectors(5, 6, 1)
    assert torch.allclose(net(P, Q), torch.cat([net(P[i : i + 1], Q[i : i + 1]) for i in range(5)]), atol=1e-5)


@pytest.mark.parametrize(("difference", "inputs"), [(False, 10), (True, 15)])
def test_vectors_meet_with_or_without_their_difference(difference, inputs):
    torch.manual_seed(0)
    net, p, h = PairMLP(5, 3, difference), torch.randn(4, 5), torch.randn(4, 5)
    joined = torch.cat([p, h, p - h] if difference else [p, h], dim=-1)
    assert net.layers[0].in_features == inputs
    assert [type(one).__name__ for one in net.layers] == ["Linear", "LeakyReLU", "Linear", "LeakyReLU", "Linear"]
    assert torch.equal(net(p, h), net.layers(joined)) and net(p, h).shape == (4, 3)
