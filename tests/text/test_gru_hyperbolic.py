"""The Möbius GRU: operations against hand-computed values, identities and geoopt; then the model as a whole."""

from __future__ import annotations

import math
from pathlib import Path

import geoopt
import pytest
import torch
from geoopt.manifolds.stereographic import math as reference
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.autograd import gradcheck

from subspaces.errors import UserError
from subspaces.text.encoders.gru_hyperbolic import (
    HyperbolicGRU,
    Settings,
    add,
    clip,
    exp0,
    log0,
    plane_scores,
    squared_distance,
)
from subspaces.text.pair_model import make_model
from subspaces.text.texts import Tokens
from tests.text.subsets import WORDS, accuracy, batch, scores, slopes, subset_pairs, train

K = torch.tensor(-1.0, dtype=torch.float64)
EDGE = 1 - 1e-5


def points(count: int, dim: int = 3, largest: float = 0.95, seed: int = 0) -> Tensor:
    """Random directions, norms spread evenly up to `largest`."""
    found = torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return found / found.norm(dim=-1, keepdim=True) * torch.linspace(0.05, largest, count, dtype=torch.float64)[:, None]


def small(seed: int = 0, ways: int = 2, **options: float) -> HyperbolicGRU:
    return Settings(**options).build(ways, None, WORDS, torch.Generator().manual_seed(seed))


def lively(seed: int = 0, ways: int = 2, **options: float) -> HyperbolicGRU:
    """A model as after some training: no bias at 0, words all over the ball."""
    model = small(seed, ways, **options)
    with torch.no_grad():
        for place, one in enumerate(
            (model.words, model.gate_bias, model.joint_bias, model.distance_bias, model.points)
        ):
            one.copy_(points(one.numel() // one.shape[-1], one.shape[-1], 0.6, seed + place).view(one.shape))
        model.words[0] = 0.0
    return model


# --- operations ----------------------------------------------------------------------------------------------------------------


def test_addition_by_hand() -> None:
    x, y = torch.tensor([0.5, 0.0], dtype=torch.float64), torch.tensor([0.0, 0.5], dtype=torch.float64)
    assert torch.allclose(add(x, y), torch.tensor([0.625, 0.375], dtype=torch.float64) / 1.0625)
    assert torch.allclose(add(y, x), torch.tensor([0.375, 0.625], dtype=torch.float64) / 1.0625)  # it does not commute
    assert torch.allclose(add(x, x), x * 1.6)


def test_addition_obeys_the_laws() -> None:
    x, y = points(40), points(40, seed=1).flip(0)
    zero = torch.zeros_like(x)
    assert torch.equal(add(x, zero), x) and torch.equal(add(zero, x), x)
    assert torch.allclose(add(-x, x), zero)
    assert torch.allclose(add(-x, add(x, y)), y)  # left cancellation
    assert torch.allclose(add(-x, -y), -add(x, y))
    assert bool((add(x, y).norm(dim=-1) < 1).all())


def test_on_a_line_points_add_as_velocities() -> None:
    u, v = torch.linspace(-2, 2, 9, dtype=torch.float64), torch.linspace(1.5, -1, 9, dtype=torch.float64)
    assert torch.allclose(add(u.tanh()[:, None], v.tanh()[:, None]), (u + v).tanh()[:, None])
    assert torch.allclose(exp0(u[:, None]), u.tanh()[:, None])


def test_distance_by_hand() -> None:
    x, y = torch.tensor([0.5, 0.0], dtype=torch.float64), torch.tensor([-0.5, 0.0], dtype=torch.float64)
    assert squared_distance(torch.zeros_like(x), x).item() == pytest.approx(math.log(3) ** 2)
    assert squared_distance(x, y).item() == pytest.approx((2 * math.log(3)) ** 2)
    assert squared_distance(x, x).item() == 0.0


def test_operations_are_those_of_geoopt() -> None:
    x, y = points(40), points(40, seed=1).flip(0)
    tangent, matrix, gate = 2 * points(40, seed=2), 2 * points(4, seed=3), points(40, seed=4).abs()
    assert torch.allclose(add(x, y), reference.mobius_add(x, y, k=K))
    assert torch.allclose(exp0(tangent), reference.expmap0(tangent, k=K))
    assert torch.allclose(log0(x), reference.logmap0(x, k=K))
    assert torch.allclose(exp0(log0(x)), x)
    assert torch.allclose(exp0(log0(x) @ matrix.T), reference.mobius_matvec(matrix, x, k=K))
    assert torch.allclose(exp0(gate * log0(x)), reference.mobius_pointwise_mul(gate, x, k=K))
    assert torch.allclose(
        exp0(1.7 * log0(x)), reference.mobius_scalar_mul(torch.tensor(1.7, dtype=torch.float64), x, k=K)
    )
    assert torch.allclose(squared_distance(x, y), reference.dist(x, y, k=K, keepdim=True) ** 2)
    normals, bases = 3 * points(5, seed=5), points(5, largest=0.8, seed=6)
    wanted = 2 * reference.dist2plane(x[:, None], bases, normals, k=K, signed=True, scaled=True)
    assert torch.allclose(plane_scores(x, bases, normals), wanted)


def test_planes_by_hand() -> None:
    """On a line the plane is a point: at p with normal a the score is 2|a| times the signed distance, twice the rapidity."""
    u, base = (
        torch.linspace(-2, 2, 5, dtype=torch.float64),
        torch.tensor([[0.0], [math.tanh(0.5)]], dtype=torch.float64),
    )
    found = plane_scores(u.tanh()[:, None], base, torch.tensor([[3.0], [-1.0]], dtype=torch.float64))
    assert torch.allclose(found, torch.stack([2 * 3 * 2 * u, -2 * 2 * (u - 0.5)], dim=1))


def test_clipped_points_stay_inside() -> None:
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(
        clip(x), torch.tensor([[0.6 * EDGE, 0.8 * EDGE], [0.3, 0.4], [0.0, 0.0]], dtype=torch.float64)
    )
    assert torch.equal(clip(x)[1:], x[1:])
    assert exp0(1000 * x).norm(dim=-1).max() <= EDGE + 1e-12
    assert bool(torch.isfinite(log0(x)).all())


@pytest.mark.parametrize("largest", [0.9, 0.999])
def test_gradients_of_operations_against_finite_differences(largest: float) -> None:
    x, y = (
        points(6, largest=largest).requires_grad_(),
        points(6, largest=largest, seed=1).flip(0).contiguous().requires_grad_(),
    )
    bases, normals = points(2, largest=0.7, seed=2).requires_grad_(), points(2, seed=3).requires_grad_()
    for function, inputs in (
        (add, (x, y)),
        (squared_distance, (x, y)),
        (log0, (x,)),
        (exp0, (x,)),
        (plane_scores, (x, bases, normals)),
    ):
        assert gradcheck(function, inputs, eps=1e-8, atol=1e-3, rtol=1e-4)


def test_gradients_at_the_centre_and_where_points_meet() -> None:
    zero, x = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True), points(1).requires_grad_()
    assert gradcheck(log0, (zero,)) and gradcheck(exp0, (zero,)) and gradcheck(add, (zero, x))
    assert gradcheck(lambda one: squared_distance(one, x.detach()), (x,))
    assert torch.autograd.grad(squared_distance(x, x.detach()).sum(), x)[0].abs().max() < 1e-15


# --- the recurrent step --------------------------------------------------------------------------------------------------------


def literal_step(model: HyperbolicGRU, cell: int, state: Tensor, word: Tensor) -> Tensor:
    """The equations of the Möbius GRU one by one, with geoopt's operations."""
    dim = state.shape[-1]
    W, U = (one[cell].T.reshape(3, dim, dim) for one in (model.W, model.U))

    def affine(gate: int, h: Tensor) -> Tensor:
        both = reference.mobius_add(
            reference.mobius_matvec(W[gate], h, k=K), reference.mobius_matvec(U[gate], word, k=K), k=K
        )
        return reference.mobius_add(both, model.gate_bias[cell, 0, gate], k=K)

    r, z = (reference.logmap0(affine(gate, state), k=K).sigmoid() for gate in (0, 1))
    candidate = affine(2, reference.mobius_pointwise_mul(r, state, k=K))
    way = reference.mobius_add(-state, candidate, k=K)
    return reference.mobius_add(state, reference.mobius_pointwise_mul(z, way, k=K), k=K)


@pytest.mark.parametrize("cells", [1, 2])
def test_sentences_follow_the_equations(cells: int) -> None:
    model, rows = lively(cells=cells), [[3, 5, 2], [4, 9, 6]]
    with torch.no_grad():
        found = model.encode(batch(rows))
        assert found.shape == (2, cells, 5)
        for cell in range(cells):
            state = torch.zeros(2, 5, dtype=torch.float64)
            for place in range(3):
                state = literal_step(model, cell, state, model.words[torch.tensor([row[place] for row in rows])])
            assert torch.allclose(found[:, cell], state)


@pytest.mark.parametrize("cells", [1, 2])
def test_padding_has_no_influence(cells: int) -> None:
    model, rows = lively(cells=cells), [[3, 5], [4, 2, 9, 6, 3], [7], [5, 5, 5]]
    with torch.no_grad():
        together = model.encode(batch(rows))
        assert torch.equal(together, model.encode(batch(rows, width=11, junk=8)))
        assert torch.allclose(together, torch.cat([model.encode(batch([row])) for row in rows]))
    assert not torch.allclose(together[0], together[2])


def test_each_side_has_its_own_cell_unless_shared() -> None:
    data = (batch([[3, 5], [4, 2]]), batch([[3, 5], [4, 2]]), torch.tensor([0, 1]))
    for cells in (1, 2):
        model = lively(cells=cells)
        before = scores(model, data)
        with torch.no_grad():
            found = model.encode(data[0])
            assert bool(squared_distance(found[:, 0], found[:, -1]).any()) == (cells == 2)
            model.logits(found, found)
            model.W[-1].mul_(0.5)
        assert not torch.allclose(before, scores(model, data))


def test_gradients_of_the_model_against_finite_differences() -> None:
    for ways in (2, 3):
        for name, (gradient, difference) in slopes(lively(ways=ways), subset_pairs(20)).items():
            assert abs(gradient) > 1e-6, name
            assert gradient == pytest.approx(difference, rel=1e-5), name


# --- steps ---------------------------------------------------------------------------------------------------------------------


def test_words_follow_the_exponential_map() -> None:
    """From the centre: a gradient g moves a word to −tanh(lr·‖g‖/4)·g/‖g‖; long gradients count as 1; other words stay."""
    for length, counted in ((0.5, 0.5), (40.0, 1.0)):
        model = small(lr_words=2.0, lr_ball=0.0)
        with torch.no_grad():
            model.words[4] = 0.0
        before = model.words.detach().clone()
        _, curved = model.optimisers(0.001)
        model.words.grad = torch.zeros_like(model.words)
        model.words.grad[4, 1] = length
        curved.step()
        expected = before.clone()
        expected[4, 1] = -math.tanh(2.0 * counted / 4)
        assert torch.allclose(model.words.detach(), expected, atol=1e-12)
        assert torch.equal(model.words[:4], before[:4])


def test_every_parameter_has_one_optimiser() -> None:
    model = small(lr_words=0.3, lr_ball=0.02)
    flat, curved = model.optimisers(0.005)
    assert isinstance(flat, torch.optim.Adam) and isinstance(curved, geoopt.optim.RiemannianSGD)
    assert [group["lr"] for one in (flat, curved) for group in one.param_groups] == [0.005, 0.3, 0.02]
    held = [id(parameter) for one in (flat, curved) for group in one.param_groups for parameter in group["params"]]
    assert sorted(held) == sorted(map(id, model.parameters()))
    assert all(
        isinstance(parameter, geoopt.ManifoldParameter)
        for group in curved.param_groups
        for parameter in group["params"]
    )
    assert not any(
        isinstance(parameter, geoopt.ManifoldParameter) for group in flat.param_groups for parameter in group["params"]
    )


def test_settling_brings_points_back() -> None:
    model = lively()
    with torch.no_grad():
        model.words[3] = 2.0
        model.points[1] = -1.0
        kept = model.words[5].clone()
        model.settle()
    for one in (model.words, model.points):
        assert one.norm(dim=-1).max().item() == pytest.approx(EDGE, abs=1e-12)
    assert torch.equal(model.words[5], kept)


@pytest.mark.parametrize("lr", [1.0, 1e4])
def test_nothing_breaks_with_long_sentences_and_wild_steps(lr: float) -> None:
    """35 tokens, no effective bound on gradients, absurd rates: everything stays finite and in the ball."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(2, WORDS, (2, 16, 35), generator=generator)
    whole = torch.ones(16, 35, dtype=torch.bool)
    data = (Tokens(ids[0], whole), Tokens(ids[1], whole), torch.arange(16) % 2)
    model = small(lr_words=lr, lr_ball=lr, longest=1e9, start=0.5)
    losses = train(model, data, lr=lr, steps=5)
    assert all(map(math.isfinite, losses))
    for name, one in model.named_parameters():
        assert bool(torch.isfinite(one).all()) and bool(torch.isfinite(one.grad).all()), name
        if isinstance(one, geoopt.ManifoldParameter):
            assert one.norm(dim=-1).max() <= EDGE + 1e-12, name
    assert model.words.norm(dim=-1).max() > 0.9  # the steps did throw words about
    with torch.no_grad():
        assert model.encode(data[0]).norm(dim=-1).max() <= EDGE + 1e-12
    assert bool(torch.isfinite(scores(model, data)).all())
    assert not model.words[0].any()


# --- as a whole ----------------------------------------------------------------------------------------------------------------


def test_it_learns_and_a_saved_model_decides_the_same(tmp_path: Path) -> None:
    options = {"start": 0.1, "lr_words": 2.0, "lr_ball": 0.1, "longest": 5.0}
    model, data = small(**options), subset_pairs()
    train(model, data, lr=0.02, steps=80)
    assert accuracy(model, data) >= 0.9
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    again = small(seed=1, **options)
    assert not torch.equal(scores(again, data), scores(model, data))
    again.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert torch.equal(scores(again, data), scores(model, data))


def test_three_classes_and_representations_in_single_precision() -> None:
    model, data = lively(ways=3), subset_pairs(10)
    found = scores(model, data)
    assert found.shape == (10, 3)
    with torch.no_grad():
        single = model.logits(model.encode(data[0]).float(), model.encode(data[1]).float())
    assert torch.allclose(single, found, rtol=1e-4, atol=1e-4)


def test_the_start() -> None:
    """It depends on the generator only; words are near the centre, of the norm that was asked for."""
    data = subset_pairs(10)
    assert torch.equal(scores(small(), data), scores(small(), data))
    assert not torch.equal(scores(small(), data), scores(small(seed=1), data))
    with torch.random.fork_rng():
        torch.manual_seed(5)
        one = scores(make_model(Settings(), 2, None, WORDS), data)
        torch.manual_seed(5)
        assert torch.equal(one, scores(make_model(Settings(), 2, None, WORDS), data))
    many = Settings(start=0.01).build(2, None, 5000, torch.Generator().manual_seed(0))
    assert many.words[1:].square().sum(-1).mean().sqrt().item() == pytest.approx(0.01, rel=0.02)
    assert not many.words[0].any()


def test_what_cannot_be_built() -> None:
    with pytest.raises(UserError, match="at least 2 words"):
        Settings().build(2, None, 1)
    for wrong in ({"dim": 0}, {"cells": 3}, {"start": 1.0}, {"lr_words": -1.0}, {"longest": 0.0}, {"backbone": "x"}):
        with pytest.raises(ValidationError):
            Settings(**wrong)
