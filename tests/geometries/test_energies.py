"""The energy of each geometry at points whose value can be worked out by hand, and what its formula is equal to."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence

from subspaces.geometries.base import VectorGeometry, make_geometry
from subspaces.geometries.poincare import ball_distance
from subspaces.geometries.umbral import half_space_distance
from subspaces.training.loop import generator_for


def tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def energy(geometry: VectorGeometry, child: list[float], parent: list[float]) -> float:
    return -float(geometry.directed(tensor(child), tensor(parent))[0])


# --- points -----------------------------------------------------------------------------------------------------------------------


def test_euclidean_by_hand() -> None:
    geometry = make_geometry("euclidean", 2, 2)
    assert energy(geometry, [3.0, 4.0], [0.0, 0.0]) == pytest.approx(5.0)
    child, parent = tensor([3.0, 4.0]), tensor([0.0, 2.0])
    assert float(geometry.decide(child, parent, alpha=0.1)[0]) == pytest.approx(-math.sqrt(13) * (1 + 0.1 * (2 - 5)))


def test_order_by_hand() -> None:
    geometry = make_geometry("order", 2, 3)
    assert energy(geometry, [1.0, 2.0, 3.0], [1.0, 0.0, 3.0]) == 0.0  # the parent is nowhere above the child
    assert energy(geometry, [1.0, 0.0, 3.0], [1.0, 2.0, 3.0]) == 4.0
    assert energy(geometry, [0.0, 5.0, 0.0], [1.0, 2.0, 3.0]) == 10.0
    assert energy(geometry, [0.0, 0.7, 9.0], [0.0, 0.0, 0.0]) == 0.0  # everything lies below the origin


def test_poincare_by_hand() -> None:
    """From the centre a point at radius r is 2·artanh r away; on one diameter distances add up."""
    geometry = make_geometry("poincare", 2, 2)
    assert energy(geometry, [0.5, 0.0], [0.0, 0.0]) == pytest.approx(2 * math.atanh(0.5))
    assert energy(geometry, [-0.3, 0.0], [0.5, 0.0]) == pytest.approx(2 * math.atanh(0.5) + 2 * math.atanh(0.3))
    assert energy(geometry, [0.0, 0.9], [0.5, 0.0]) == pytest.approx(math.acosh(1 + 2 * (0.25 + 0.81) / (0.75 * 0.19)))
    child, parent = tensor([0.5, 0.0]), tensor([-0.3, 0.0])
    assert float(geometry.decide(child, parent, alpha=3.0)[0]) == pytest.approx(
        -energy(geometry, [0.5, 0.0], [-0.3, 0.0]) * (1 - 3.0 * 0.2)
    )


# --- cones ------------------------------------------------------------------------------------------------------------------------


def test_cones_by_hand() -> None:
    geometry = make_geometry("cones", 2, 2, opening=0.1)
    opening = math.asin(0.1 * 0.75 / 0.5)
    straight, back = tensor([0.8, 0.0]), tensor([0.2, 0.0])
    parent = tensor([0.5, 0.0])
    assert float(geometry.outside(straight, parent)[0]) == pytest.approx(-opening)  # on the axis, away from the origin
    assert float(geometry.outside(back, parent)[0]) == pytest.approx(
        math.pi - opening
    )  # on the axis, on the wrong side
    assert float(geometry.directed(straight, parent)[0]) == 0.0 and float(
        geometry.decide(straight, parent)[0]
    ) == pytest.approx(opening)
    assert energy(geometry, [0.2, 0.0], [0.5, 0.0]) == pytest.approx(math.pi - opening)


def test_the_angle_of_a_cone_is_the_papers() -> None:
    """Ξ by the formula of Ganea et al. (2018, Eq. 26), with an arccos."""
    geometry = make_geometry("cones", 2, 4, opening=0.2)
    child, parent = (
        0.4 * torch.rand(200, 4, dtype=torch.float64, generator=generator_for(one)) + 0.05 for one in (1, 2)
    )
    U, V, inner = parent.square().sum(-1), child.square().sum(-1), (parent * child).sum(-1)
    cosine = (inner * (1 + U) - U * (1 + V)) / (
        U.sqrt() * (parent - child).norm(dim=-1) * (1 + U * V - 2 * inner).sqrt()
    )
    expected = torch.acos(cosine) - torch.asin(0.2 * (1 - U) / U.sqrt())
    assert torch.allclose(geometry.outside(child, parent), expected, atol=1e-10)
    assert bool((expected > 0).any()) and bool((expected < 0).any())
    assert torch.equal(geometry.directed(child, parent), -geometry.outside(child, parent).clamp_min(0))


def test_cones_start_as_points_and_then_leave_the_middle() -> None:
    geometry = make_geometry("cones", 4, 2, opening=0.1)
    geometry.table.copy_(tensor([0.9, 0.0], [0.0, 0.1], [0.0, 0.0], [-0.06, 0.08]))
    geometry.begin_phase("start")
    child, parent = tensor([0.5, 0.0]), tensor([0.0, 0.3])
    assert torch.equal(geometry.directed(child, parent), -ball_distance(child, parent))
    geometry.enter_main()
    geometry.begin_phase("main")
    inner = 2 * 0.1 / (1 + math.sqrt(1.04))
    assert 0.1 * (1 - inner**2) / inner == pytest.approx(1.0)  # where the aperture is a right angle
    inner += 1e-5
    assert torch.allclose(geometry.table, tensor([0.63, 0.0], [0.0, inner], [inner, 0.0], [-0.6 * inner, 0.8 * inner]))
    assert not torch.equal(geometry.directed(child, parent), -ball_distance(child, parent))


# --- disks ------------------------------------------------------------------------------------------------------------------------


def test_disk_by_hand() -> None:
    geometry = make_geometry("disk", 2, 3)
    far = 2 * math.atanh(0.5)
    assert energy(geometry, [0.5, 0.0, 0.2], [0.0, 0.0, far + 0.2]) == pytest.approx(
        0.0, abs=1e-12
    )  # touches from inside
    assert energy(geometry, [0.5, 0.0, 0.1], [0.0, 0.0, far + 0.2]) == pytest.approx(-0.1)
    assert energy(geometry, [0.0, 0.0, 2.0], [0.5, 0.0, 0.5]) == pytest.approx(far + 1.5)
    geometry.begin_phase("start")
    assert energy(geometry, [0.5, 0.0, 0.1], [0.0, 0.0, 9.0]) == pytest.approx(far)
    geometry.table.copy_(tensor([0.5, 0.0, 0.1], [0.0, -1.0, 0.4]))
    geometry.enter_main()
    assert torch.allclose(geometry.table, tensor([0.35, 0.0, 0.1], [0.0, -0.7, 0.4]))


def test_disks_nest() -> None:
    """Energies add up along a chain at most: containment is transitive."""
    geometry = make_geometry("disk", 2, 4)
    rows = torch.rand(3, 500, 4, dtype=torch.float64, generator=generator_for(4)) - 0.5
    one, two, three = (
        -geometry.directed(rows[0], rows[1]),
        -geometry.directed(rows[1], rows[2]),
        -geometry.directed(rows[0], rows[2]),
    )
    assert bool((three <= one + two + 1e-9).all())


# --- shadows ----------------------------------------------------------------------------------------------------------------------


def test_half_space_distance_by_hand() -> None:
    """Straight up it is the logarithm of the ratio; (tanh s, 1/cosh s) lies s away from (0, 1) on the unit circle."""
    assert float(half_space_distance(tensor([1.0, 2.0]), tensor([1.0, 6.0]))[0]) == pytest.approx(math.log(3))
    assert float(
        half_space_distance(tensor([math.tanh(1.3), 1 / math.cosh(1.3)]), tensor([0.0, 1.0]))[0]
    ) == pytest.approx(1.3)


def test_umbral_by_hand() -> None:
    r = 0.3
    geometry = make_geometry("umbral", 2, 3, radius=r)
    edge = math.sinh(r) * (2.0 - 0.5)
    assert energy(geometry, [edge, 0.0, 0.5], [0.0, 0.0, 2.0]) == pytest.approx(
        0.0, abs=1e-9
    )  # the ball touches the border from inside
    assert energy(geometry, [0.0, 0.0, 0.5], [0.0, 0.0, 2.0]) == pytest.approx(r - math.asinh(math.sinh(r) * 4))
    assert energy(geometry, [1.5, 0.0, 0.5], [0.0, 0.0, 2.0]) == pytest.approx(
        math.asinh((1.5 - 2 * math.sinh(r)) / 0.5) + r
    )
    assert energy(geometry, [0.0, 0.0, 6.0], [0.0, 0.0, 2.0]) == pytest.approx(
        math.log(3)
    )  # above: the way down to the parent
    assert energy(geometry, [1.0, 1.0, 2.0], [1.0, 1.0, 2.0]) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_the_shadow_is_a_cone(radius: float) -> None:
    """Energy ≤ 0 exactly where ‖Δx‖ ≤ sinh(r)·(h_parent − h_child); a radius that is tuned later means the cone of that radius."""
    geometry = make_geometry("umbral", 2, 3, radius=0.2)
    draw = generator_for(7)
    child, parent = (torch.randn(2000, 3, dtype=torch.float64, generator=draw) * 0.05 for _ in range(2))
    child[:, -1], parent[:, -1] = child[:, -1].exp(), parent[:, -1].exp() + 0.3
    inside = (child - parent)[:, :-1].norm(dim=-1) <= math.sinh(radius) * (parent - child)[:, -1]
    assert torch.equal(geometry.decide(child, parent, radius=radius) >= 0, inside)
    assert 20 < int(inside.sum()) < 1980
    assert torch.equal(geometry.decide(child, parent), geometry.directed(child, parent))


def test_the_umbral_energy_is_a_distance() -> None:
    """Beside the shadow it is how far the child is from its border: no point of the shadow is nearer, and one is just as near."""
    r = 0.4
    geometry = make_geometry("umbral", 2, 2, radius=r)
    heights = torch.exp(torch.linspace(-6, 0, 4001, dtype=torch.float64))
    border = torch.stack([math.sinh(r) * (1 - heights), heights], dim=1)  # parent at (0, 1)
    for child in ([1.5, 0.1], [0.9, 0.7], [0.3, 0.6]):
        nearest = float(half_space_distance(tensor(child).expand_as(border), border).min())
        assert energy(geometry, child, [0.0, 1.0]) == pytest.approx(nearest, abs=1e-4)


# --- Gaussians --------------------------------------------------------------------------------------------------------------------


def test_gaussian_by_hand() -> None:
    geometry = make_geometry("gaussian", 2, 2, tau=1.0)
    two, nine = math.log(2), math.log(9)
    child, parent = [1.0, 0.0, 0.0, two], [0.0, 1.0, nine, 0.0]
    expected = (1 + 1) / 9 + (1 + 2) / 1 + nine - two
    assert energy(geometry, child, parent) == pytest.approx(expected - 1.0)
    assert energy(geometry, child, child) == pytest.approx(2.0 - 1.0)  # KL = 0 leaves the dimension
    assert energy(make_geometry("gaussian", 2, 2, tau=100.0), child, parent) == 0.0
    assert float(geometry.decide(tensor(child), tensor(parent))[0]) == pytest.approx(-(expected - 2) / 2)


def test_gaussian_is_the_divergence() -> None:
    geometry = make_geometry("gaussian", 2, 5, tau=0.0)
    child, parent = (torch.randn(50, 10, dtype=torch.float64, generator=generator_for(one)) for one in (1, 2))
    one, other = (Independent(Normal(x[:, :5], (x[:, 5:] / 2).exp()), 1) for x in (child, parent))
    assert torch.allclose(geometry.decide(child, parent), -kl_divergence(one, other))
    assert torch.allclose(geometry.directed(child, parent), -(2 * kl_divergence(one, other) + 5))


def test_means_and_variances() -> None:
    geometry = make_geometry("gaussian", 30, 6, start=1e-3)
    geometry.initialise(generator_for(1))
    assert geometry.means.shape == geometry.variances.shape == (30, 6)
    assert torch.allclose(geometry.means.norm(dim=-1), torch.ones(30)) and torch.allclose(
        geometry.variances, torch.tensor(1e-3)
    )


# --- subspaces --------------------------------------------------------------------------------------------------------------------


def test_subspace_by_hand() -> None:
    """NIS of a line in a subspace is the squared cosine between them, 1 inside; of a plane in a line, one half."""
    geometry = make_geometry("subspace", 3, 3, lam=1e-4)
    geometry.X[0, 0, 0] = geometry.X[0, 1, 1] = 1.0  # the plane of the first two axes
    geometry.X[1, 0, 0] = 1.0  # the first axis
    geometry.X[2, 0, 0], geometry.X[2, 2, 0] = 0.5, math.sqrt(0.75)  # a line at 60° to it
    found = geometry.score_pairs(torch.tensor([1, 0, 2, 2]), torch.tensor([0, 1, 0, 1]))
    assert torch.allclose(found, torch.tensor([1.0, 0.5, 0.25, 0.25]), atol=2e-3)
