"""Compiled energies, gradients and moves against torch, which is the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from subspaces.geometries.base import Geometry, VectorGeometry, geometry_names, make_geometry
from subspaces.geometries.compiled import pair, step
from subspaces.geometries.poincare import EDGE
from tests.geometries.test_gradients import VECTORS, normals, on_spheres, pairs

WIDTH = 4
DIMS = {"gaussian": 2, "lorentz": 3}


def geometry_of(name: str, nodes: int = 12, phase: str = "main", **options) -> VectorGeometry:
    geometry = make_geometry(name, nodes, DIMS.get(name, WIDTH), **options)
    geometry.begin_phase(phase)
    if name == "gaussian":
        geometry.tau = 3.0
    assert isinstance(geometry, VectorGeometry)
    return geometry


def places(name: str, where: str) -> tuple[Tensor, Tensor]:
    """(child, parent), (12, 4) each."""
    if name == "lorentz":
        manifold, scale = geometry_of(name).manifold, {"inside": 1.0, "border": 1e-3, "far": 1e3, "same": 1.0}[where]
        child, parent = (manifold.projx(scale * normals(12, WIDTH, seed=seed)) for seed in (1, 2))
    else:
        child, parent = pairs(name, "border" if where == "border" else "inside")
    if where == "same":
        child = parent.clone()
    if where == "far" and name in ("poincare", "cones", "disk"):  # on the rim, nearly opposite each other
        columns = slice(0, -1) if name == "disk" else slice(None)
        child[:, columns] = on_spheres(child[:, columns], 1 - 2 * EDGE)
        parent[:, columns] = on_spheres(0.1 * parent[:, columns] - child[:, columns], 1 - 2 * EDGE)
    if where == "far" and name in ("euclidean", "order"):
        child, parent = 1e6 * child, 1e6 * parent
    if where == "far" and name == "umbral":
        child[:, :-1] *= 1e6
    if where == "far" and name == "gaussian":
        child[:, :2] *= 1e4
    return child.double(), parent.double()


def by_torch(geometry: VectorGeometry, child: Tensor, parent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    child, parent = child.clone().requires_grad_(), parent.clone().requires_grad_()
    inner = getattr(geometry, "score", "distance") == "inner"  # a score for ranking, which has no form for single pairs
    energy = -(geometry.score_matrix(child, parent).diagonal() if inner else geometry.directed(child, parent))
    return energy.detach(), *torch.autograd.grad(energy.sum(), (child, parent))


def check(geometry: VectorGeometry, child: Tensor, parent: Tensor) -> None:
    energies, dchild, dparent = by_torch(geometry, child, parent)
    for i, energy in enumerate(energies.tolist()):
        low, high = np.zeros(WIDTH), np.zeros(WIDTH)
        found = pair(geometry.space(), child[i].numpy(), parent[i].numpy(), low, high)
        assert found == pytest.approx(energy, rel=1e-9, abs=1e-12)
        for compiled, wanted in ((low, dchild[i].numpy()), (high, dparent[i].numpy())):
            assert np.abs(compiled - wanted).max() <= 1e-7 * np.abs(wanted).max() + 1e-12


def test_every_small_geometry_has_a_compiled_form() -> None:
    assert [name for name in geometry_names() if make_geometry(name, 2, 4).space() is None] == ["subspace"]


@pytest.mark.parametrize("where", ["inside", "border", "far", "same"])
@pytest.mark.parametrize("name", VECTORS)
def test_energy_and_gradient_are_those_of_torch(name: str, where: str) -> None:
    check(geometry_of(name), *places(name, where))


@pytest.mark.parametrize("name", VECTORS)
def test_energies_differ_between_the_places(name: str) -> None:
    """Guards the tests above: clipped energies, whose gradient is 0, would agree whatever the code."""
    energies = torch.cat(
        [by_torch(geometry_of(name), *places(name, where))[0] for where in ("inside", "border", "far")]
    )
    assert (energies != 0).sum() > 12
    assert energies.unique().numel() > 12


@pytest.mark.parametrize("where", ["inside", "border", "far", "same"])
@pytest.mark.parametrize("name", ["cones", "disk"])
def test_the_start_phase_is_the_ball(name: str, where: str) -> None:
    check(geometry_of(name, phase="start"), *places(name, where))


def test_the_inner_product_of_points() -> None:
    check(geometry_of("euclidean", ranking=True, score="inner"), *places("euclidean", "inside"))


@pytest.mark.parametrize("phase", ["main", "start"])
@pytest.mark.parametrize("name", [name for name in VECTORS if name != "gaussian"])
def test_a_move_is_the_step_of_the_torch_optimiser(name: str, phase: str) -> None:
    """From tiny gradients to those that the longest step cuts off."""
    options = {} if name == "lorentz" else {"optimiser": "sgd"}
    geometry = geometry_of(name, phase=phase, **options)
    points = places(name, "inside")[0]
    geometry.table.copy_(points)
    gradient = normals(12, WIDTH, seed=5) * torch.tensor([1e-6, 1.0, 30.0, 1e6] * 3, dtype=torch.float64)[:, None]
    if name == "disk" and phase == "start":
        gradient[:, -1] = 0.0  # of the radius, which the distance does not see
    moved = points.clone().numpy()
    for i in range(12):
        step(geometry.space(), moved[i], gradient[i].clone().numpy(), 0.1)
    geometry.optimiser.step(torch.arange(12), gradient.clone(), 0.1)
    assert (geometry.table - points).abs().max() > 0.01
    np.testing.assert_allclose(moved, geometry.table.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", VECTORS)
def test_nan_is_not_lost(name: str) -> None:
    geometry: Geometry = geometry_of(name)
    child, parent = places(name, "inside")
    child[0] = math.nan
    low, high = np.zeros(WIDTH), np.zeros(WIDTH)
    assert math.isnan(pair(geometry.space(), child[0].numpy(), parent[0].numpy(), low, high))
    step(geometry.space(), child[0].numpy(), low, 0.1)
    assert bool(child[0].isnan().any())
