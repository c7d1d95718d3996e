"""Gradients against finite differences, also near the borders; and the steps that follow them."""

from __future__ import annotations

import math

import geoopt
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from subspaces.geometries.base import VectorGeometry, geometry_names, make_geometry
from subspaces.geometries.poincare import ball_distance, ball_follow, ball_unit
from subspaces.geometries.umbral import follow, half_space_distance
from subspaces.training.loop import generator_for
from subspaces.training.riemannian import ConformalDescent

VECTORS = [name for name in geometry_names() if name != "subspace"]
CURVED = ["poincare", "cones", "disk", "umbral"]


def normals(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=generator_for(seed))


def on_spheres(points: Tensor, *norms: float) -> Tensor:
    """Points (M, w) moved to the norms, one after the other and round again."""
    wanted = torch.tensor(norms, dtype=torch.float64)[torch.arange(len(points)) % len(norms), None]
    return points / points.norm(dim=-1, keepdim=True) * wanted


def pairs(name: str, where: str) -> tuple[Tensor, Tensor]:
    """(child, parent), (12, w) each: well inside, or near a border of the geometry."""
    child, parent = normals(12, 4), normals(12, 4, seed=2)
    if name == "gaussian" and where == "border":  # narrow, as at the start, and as wide as can be
        return child + torch.tensor([0.0, 0.0, -9.9, 2.3]), parent + torch.tensor([0.0, 0.0, -9.9, 2.3])
    if name in ("euclidean", "order", "gaussian"):
        scale = 1.0 if where == "inside" else 1e-3
        return (child * scale, parent * scale) if name != "order" else (child.abs() * scale, parent.abs() * scale)
    if name == "umbral":
        heights = (0.5, 1.0, 2.0) if where == "inside" else (1e-3, 30.0, 1.0, 1e-2)
        for points in (child, parent):
            points[:, -1] = torch.tensor(heights, dtype=torch.float64)[
                torch.randperm(12, generator=generator_for(3)) % len(heights)
            ]
        if where == "border":  # half of the children right at the border of the shadow, a little inside or outside
            child[::2, :-1] = parent[::2, :-1] + 0.05 * parent[::2, -1:] * on_spheres(
                normals(6, 3, seed=4), 0.999, 1.001
            )
        return child, parent
    norms = (0.3, 0.6, 0.8) if where == "inside" else (0.999, 0.11, 0.5)
    if name == "disk":
        return torch.cat([on_spheres(child[:, :3], *norms), child[:, 3:]], 1), torch.cat(
            [on_spheres(parent[:, :3], *norms[::-1]), parent[:, 3:]], 1
        )
    child, parent = on_spheres(child, *norms), on_spheres(parent, *norms[::-1])
    if name == "cones" and where == "border":  # half of the children nearly on the axis of their parent's cone
        child[::2] = on_spheres(parent[::2] + 0.02 * normals(6, 4, seed=5), 0.9)
    return child, parent


@pytest.mark.parametrize("where", ["inside", "border"])
@pytest.mark.parametrize("name", VECTORS)
def test_the_gradient_is_that_of_finite_differences(name: str, where: str) -> None:
    geometry = make_geometry(name, 2, 2 if name == "gaussian" else 4)
    if name == "gaussian":
        geometry.tau = 3.0
    child, parent = (points.requires_grad_() for points in pairs(name, where))
    assert geometry.directed(child, parent).unique().numel() > 2
    if name == "cones":  # without the clip there is a gradient inside, too
        assert gradcheck(geometry.outside, (child, parent), eps=1e-7, atol=1e-4, rtol=1e-3)
    assert gradcheck(geometry.directed, (child, parent), eps=1e-7, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", ["cones", "disk"])
def test_the_gradient_of_the_start_phase(name: str) -> None:
    geometry = make_geometry(name, 2, 4)
    geometry.begin_phase("start")
    assert gradcheck(
        geometry.directed, tuple(points.requires_grad_() for points in pairs(name, "inside")), eps=1e-7, atol=1e-5
    )


def hardest(geometry: VectorGeometry) -> tuple[Tensor, Tensor]:
    """All pairs of: the random start, points twice, and the farthest points that training can reach."""
    geometry.initialise(generator_for(3))
    rows = geometry.table[:6].clone()
    extreme = geometry.table[6:10].clone()
    if geometry.name in ("poincare", "cones"):
        extreme = on_spheres(extreme, 1 - 1e-5, 1e-300, 0.0991)
    elif geometry.name == "disk":
        extreme = torch.cat(
            [on_spheres(extreme[:, :-1], 1 - 1e-5, 1e-300), torch.full((4, 1), 50.0, dtype=extreme.dtype)], 1
        )
    elif geometry.name == "umbral":
        extreme = extreme * torch.tensor([1e-12, 1e-6, 1e3, 1e12], dtype=extreme.dtype)[:, None]
    elif geometry.name == "gaussian":
        extreme[:, 3:] = torch.tensor([math.log(1e-8), math.log(10.0)] * 2)[:, None]
    else:
        extreme = extreme.abs() * 1e6
    zero = torch.zeros_like(rows[:1]) if geometry.name not in ("umbral", "gaussian") else rows[:1]
    points = torch.cat([rows, extreme, zero])
    one, other = torch.meshgrid(torch.arange(len(points)), torch.arange(len(points)), indexing="ij")
    return points[one.flatten()], points[other.flatten()]


@pytest.mark.parametrize("phase", ["start", "main"])
@pytest.mark.parametrize("name", VECTORS)
def test_nothing_is_ever_infinite(name: str, phase: str) -> None:
    """At coinciding points, at the start, at the border: finite scores, finite gradients, finite points after a step."""
    geometry = make_geometry(name, 30, 3)
    geometry.begin_phase(phase)
    child, parent = (points.requires_grad_() for points in hardest(geometry))
    scores = geometry.directed(child, parent)
    gradients = torch.autograd.grad(scores.sum(), (child, parent))
    for found in (scores, geometry.decide(child, parent), *gradients):
        assert bool(torch.isfinite(found).all())
    rows = torch.arange(30)
    geometry.table.copy_(child[:30].detach())
    geometry.optimiser.step(rows, gradients[0][:30], 0.1)
    assert bool(torch.isfinite(geometry.table).all())


class Recorder:
    """In the optimiser's place: keeps the gradient, moves nothing."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def step(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        self.rows, self.gradient, self.lr = rows, gradient, lr


@pytest.mark.parametrize("name", VECTORS)
def test_a_step_gathers_the_gradients_of_its_pairs(name: str) -> None:
    """A node that is in several pairs, as a child and as a parent, gets their sum; `scores` are those of `directed`."""
    geometry = make_geometry(name, 9, 2 if name == "gaussian" else 4)
    geometry.table = torch.cat(pairs(name, "inside"))[:9].contiguous()
    geometry.dtype, geometry.optimiser = torch.float64, Recorder()
    rows, children, parents = torch.tensor([7, 2, 4, 0]), torch.tensor([0, 1, 1, 3, 2]), torch.tensor([1, 0, 2, 1, 3])
    upstream = normals(5, seed=8)
    opened = geometry.open(rows)
    found = geometry.pair_scores(opened, children, parents)
    geometry.update_pairs(opened, upstream, 0.25)
    leaf = geometry.table.clone().requires_grad_()
    expected = torch.stack(
        [geometry.directed(leaf[c], leaf[p]) for c, p in zip(rows[children], rows[parents], strict=True)]
    )
    assert torch.allclose(found, expected.detach()) and not found.requires_grad
    (total,) = torch.autograd.grad((expected * upstream).sum(), leaf)
    assert torch.equal(geometry.optimiser.rows, rows) and geometry.optimiser.lr == 0.25
    assert torch.allclose(geometry.optimiser.gradient, total[rows])


# --- steps ------------------------------------------------------------------------------------------------------------------------


def test_a_step_in_the_ball_by_hand() -> None:
    """From the centre: gradient × (1−‖θ‖²)²/4, then the exponential map, tanh of half the length; long steps are cut to length 1."""
    geometry = make_geometry("poincare", 2, 2)
    geometry.table[1, 0] = 0.5
    for lr, length in ((0.4, 0.4), (7.0, 1.0)):
        geometry.table[0] = 0.0
        geometry.optimiser.step(torch.tensor([0]), torch.tensor([[-2.0, 0.0]], dtype=torch.float64), lr)
        expected = torch.tensor([[math.tanh(length / 2), 0.0], [0.5, 0.0]], dtype=torch.float64)
        assert torch.allclose(geometry.table, expected)


def test_a_step_in_the_half_space_by_hand() -> None:
    points = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], dtype=torch.float64)
    tangent = torch.tensor([[0.0, 1.0], [0.0, 0.0], [3.0, 0.0]], dtype=torch.float64)
    expected = [[1.0, 2 * math.exp(0.5)], [1.0, 2.0], [1 + 2 * math.tanh(1.5), 2 / math.cosh(1.5)]]
    assert torch.allclose(follow(points, tangent), torch.tensor(expected, dtype=torch.float64))


def test_the_map_of_the_half_space_keeps_lengths() -> None:
    """The way along a tangent vector is as long as the vector, and goes on straight: halves add up to the whole."""
    points, tangent = normals(40, 3), normals(40, 3, seed=2)
    points[:, -1] = points[:, -1].exp()
    tangent *= points[:, -1:]
    moved, middle = follow(points, tangent), follow(points, tangent / 2)
    length = tangent.norm(dim=-1) / points[:, -1]
    assert torch.allclose(half_space_distance(points, moved), length)
    assert torch.allclose(half_space_distance(points, middle) + half_space_distance(middle, moved), length)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("name", CURVED)
def test_a_step_goes_downhill(name: str, optimiser: str) -> None:
    geometry = make_geometry(name, 12, 4, optimiser=optimiser)
    child, parent = pairs(name, "inside")
    geometry.table.copy_(child)
    rows = torch.arange(12)
    leaf = geometry.table.clone().requires_grad_()
    before = geometry.directed(leaf, parent)
    geometry.optimiser.step(rows, torch.autograd.grad(-before.sum(), leaf)[0], 1e-3)
    after = geometry.directed(geometry.table, parent)
    still = torch.isclose(before, torch.zeros_like(before))  # inside a cone there is nothing to gain
    assert bool((after > before)[~still].all()) and not bool(still.all())


def test_adam_steps_have_the_length_of_the_rate_whatever_the_gradient() -> None:
    """The first step, and every later one along a constant gradient; also close to the border, where coordinates are small."""
    table = on_spheres(normals(6, 3), 0.0, 0.5, 0.999)
    before = table.clone()
    descent = ConformalDescent(table, ball_unit, ball_follow, "adam")
    gradient = normals(6, 3, seed=2) * torch.tensor([1e-5, 1e5, 1.0, 10.0, 1e-3, 1.0], dtype=torch.float64)[:, None]
    for _ in range(3):
        descent.step(torch.arange(6), gradient, 0.01)
        assert torch.allclose(ball_distance(table, before), torch.tensor(0.01, dtype=torch.float64), rtol=1e-2)
        before.copy_(table)


@pytest.mark.parametrize("length", [0.0, 1e-12, 1e-3, 1.0, 30.0])
def test_the_exponential_map_of_the_ball_is_geoopts(length: float) -> None:
    points = on_spheres(normals(9, 4), 0.0, 0.5, 1 - 1e-5)
    tangent = on_spheres(normals(9, 4, seed=2), length) * ball_unit(points)
    moved = ball_follow(points, tangent)
    assert torch.allclose(moved, geoopt.PoincareBall(c=1.0).expmap(points, tangent), atol=1e-7)
    assert bool((moved.norm(dim=-1) <= 1 - 1e-5 + 1e-12).all())


def test_turning_the_space_turns_the_step() -> None:
    turn = torch.linalg.qr(normals(3, 3))[0]
    table = on_spheres(normals(8, 3), 0.4, 0.9)
    turned = table @ turn
    one, other = (ConformalDescent(points, ball_unit, ball_follow, "adam") for points in (table, turned))
    for seed in range(5):
        gradient = normals(8, 3, seed=seed)
        one.step(torch.arange(8), gradient, 0.05)
        other.step(torch.arange(8), gradient @ turn, 0.05)
    assert torch.allclose(table @ turn, turned)


def test_points_at_the_inner_border_of_the_cones_stay_outside_it() -> None:
    geometry = make_geometry("cones", 20, 3)
    geometry.table.copy_(on_spheres(normals(20, 3), geometry.inner))
    geometry.optimiser.step(
        torch.arange(20), geometry.table * 100, 1.0
    )  # everybody straight to the origin, and past it
    assert torch.allclose(
        geometry.table.norm(dim=-1).clamp_max(geometry.inner), torch.tensor(geometry.inner, dtype=torch.float64)
    )
