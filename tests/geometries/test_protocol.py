"""What all geometries share: names and options, a repeatable start, a state that can go on, points that stay where they belong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.geometries.base import Geometry, VectorGeometry, geometry_names, make_geometry
from subspaces.training.loop import generator_for

VECTORS = ["cones", "disk", "euclidean", "gaussian", "lorentz", "order", "poincare", "umbral"]
NAMES = sorted([*VECTORS, "subspace"])
SETTINGS = [(name, {}) for name in VECTORS] + [
    (name, {"optimiser": "adam"}) for name in ("cones", "disk", "poincare", "umbral")
]
ROWS, CHILDREN, PARENTS = (
    torch.tensor([7, 2, 9, 4, 0]),
    torch.tensor([0, 1, 1, 3, 4, 2]),
    torch.tensor([1, 0, 2, 1, 3, 0]),
)


def made(name: str, nodes: int = 11, seed: int = 1, **options) -> Geometry:
    if name == "subspace":  # of four tiny dimensions a start as small as the default is all rounding
        options["start"] = 0.1
    geometry = make_geometry(name, nodes, 4, **options)
    geometry.state()
    geometry.initialise(generator_for(seed))
    return geometry


def started(name: str, nodes: int = 11, seed: int = 1, **options) -> Geometry:
    geometry = made(name, nodes, seed, **options)
    geometry.enter_main()
    geometry.begin_phase("main")
    return geometry


def walk(geometry: Geometry, steps: range, lr: float = 0.05) -> None:
    """Some steps on random pairs, up and down."""
    for step in steps:
        draw = generator_for(5, step)
        rows = torch.randperm(geometry.nodes, generator=draw)[:6]
        children, parents = torch.randint(6, (2, 40), generator=draw)
        children, parents = children[children != parents], parents[children != parents]
        opened = geometry.open(rows)
        scores = geometry.pair_scores(opened, children, parents)
        geometry.update_pairs(opened, torch.randn(len(scores), generator=draw).to(scores.dtype), lr)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


# --- names and options ------------------------------------------------------------------------------------------------------------


def test_the_geometries_there_are() -> None:
    assert geometry_names() == NAMES
    for name in NAMES:
        geometry = make_geometry(name, 3, 2)
        assert geometry.name == name and geometry.settings.geometry == name


def test_unknown_names_and_options() -> None:
    with pytest.raises(
        UserError,
        match="unknown geometry 'torus': choose one of cones, disk, euclidean, gaussian, lorentz, order, poincare, subspace, umbral",
    ):
        make_geometry("torus", 3, 2)
    with pytest.raises(UserError, match="unknown geometry 'base'"):
        make_geometry("base", 3, 2)
    with pytest.raises(UserError, match="geometry order has no setting radius: it knows dim"):
        make_geometry("order", 3, 2, radius=0.1)
    with pytest.raises(UserError, match="geometry cones has no setting lam, tau: it knows dim, opening"):
        make_geometry("cones", 3, 2, tau=1, lam=1)


@pytest.mark.parametrize(
    ("name", "dim", "options", "message"),
    [
        ("poincare", 2, {"optimiser": "lion"}, "unknown optimiser 'lion': use adam or sgd"),
        ("disk", 1, {}, "dim of geometry disk: input should be greater than or equal to 2, not 1"),
        ("umbral", 1, {}, "dim of geometry umbral: input should be greater than or equal to 2, not 1"),
        ("umbral", 2, {"radius": 0.0}, "radius of geometry umbral: input should be greater than 0, not 0.0"),
        ("cones", 2, {"opening": -0.1}, "opening of geometry cones: input should be greater than 0, not -0.1"),
        ("gaussian", 2, {"start": 0.0}, "must be from 1e-08 to 10, not 0.0"),
    ],
)
def test_impossible_options(name: str, dim: int, options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_geometry(name, 3, dim, **options)


# --- start and state --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_start_is_random_and_repeatable(name: str) -> None:
    one, two, three = started(name), started(name), started(name, seed=2)
    assert same(one.state(), two.state()) and not same(one.weights(), three.weights())


@pytest.mark.parametrize("name", NAMES)
def test_a_new_start_forgets_the_old_run(name: str) -> None:
    geometry = made(name)
    walk(geometry, range(3))
    assert not same(geometry.weights(), made(name).weights())
    geometry.initialise(generator_for(1))
    assert same(geometry.state(), made(name).state())


@pytest.mark.parametrize(("name", "options"), [*SETTINGS, ("subspace", {})])
def test_a_state_goes_on_where_it_was(name: str, options: dict) -> None:
    whole, first, second = started(name, **options), started(name, **options), started(name, seed=9, **options)
    walk(whole, range(6))
    walk(first, range(3))
    for key, tensor in second.state().items():
        tensor.copy_(first.state()[key])
    walk(second, range(3, 6))
    assert same(whole.state(), second.state()) and not same(whole.weights(), first.weights())


@pytest.mark.parametrize("name", NAMES)
def test_a_step_touches_its_rows_only(name: str) -> None:
    geometry = started(name)
    before = {key: tensor.clone() for key, tensor in geometry.state().items()}
    opened = geometry.open(ROWS)
    scores = geometry.pair_scores(opened, CHILDREN, PARENTS)
    geometry.update_pairs(opened, torch.ones_like(scores), 0.01)
    rest = [row for row in range(11) if row not in ROWS.tolist()]
    for key, tensor in geometry.state().items():
        if len(tensor) == 11:
            assert torch.equal(tensor[rest], before[key][rest])
    assert not same(geometry.weights(), {key: before[key] for key in geometry.weights()})


# --- scores -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_training_and_decision_agree_where_nothing_is_tuned(name: str) -> None:
    """The same order of pairs; cones and Gaussians also tell pairs apart that training leaves alone, at its largest score."""
    geometry = started(name)
    walk(geometry, range(10))
    opened = geometry.open(ROWS)
    trained, decided = (
        geometry.pair_scores(opened, CHILDREN, PARENTS),
        geometry.score_pairs(ROWS[CHILDREN], ROWS[PARENTS]),
    )
    assert trained.shape == decided.shape == (6,) and not decided.requires_grad
    if name == "gaussian":
        decided = 2 * decided - 4 + geometry.tau
    if name in ("cones", "gaussian"):
        decided = decided.clamp_max(0)
    assert torch.allclose(trained, decided, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_value_of_what_is_tuned_is_the_default(name: str) -> None:
    geometry = started(name)
    walk(geometry, range(10))
    children, parents = ROWS[CHILDREN], ROWS[PARENTS]
    default = {key: values[0] for key, values in geometry.tuned.items()}
    plain = geometry.score_pairs(children, parents)
    assert torch.equal(plain, geometry.score_pairs(children, parents, **default))
    for key, values in geometry.tuned.items():
        assert not torch.equal(plain, geometry.score_pairs(children, parents, **{key: values[-1]}))


def test_what_is_tuned_for_umbral_cones_is_near_the_radius_of_the_training() -> None:
    assert make_geometry("umbral", 3, 2).tuned["radius"][0] == 0.05
    assert make_geometry("umbral", 3, 2, radius=0.4).tuned["radius"] == pytest.approx((0.4, 0.08, 0.2, 0.48, 0.6, 0.8))


def test_many_pairs_are_scored_in_parts() -> None:
    geometry = started("disk", nodes=40)
    walk(geometry, range(5))
    children, parents = torch.randint(40, (2, (1 << 18) + 3), generator=generator_for(2))
    found = geometry.score_pairs(children, parents)
    some = torch.tensor([0, (1 << 18) - 1, 1 << 18, (1 << 18) + 2])
    assert len(found) == len(children)
    assert torch.equal(found[some], geometry.decide(geometry.table[children[some]], geometry.table[parents[some]]))


def test_general_is_large() -> None:
    """Row 0 is the more general one."""
    tables = {
        "euclidean": [[0.1, 0.0], [0.0, 3.0]],
        "order": [[0.1, 0.0], [0.2, 3.0]],
        "poincare": [[0.1, 0.0], [0.0, 0.9]],
        "cones": [[0.1, 0.0], [0.0, 0.9]],
        "disk": [[0.5, 2.0], [0.0, 0.1]],
        "umbral": [[0.5, 2.0], [0.0, 0.1]],
        "lorentz": [[2**0.5, 1.0, 0.0], [2.0, 0.0, 3**0.5]],
        "gaussian": [[1.0, 0.0, -1.0, -1.0], [0.0, 1.0, -2.0, -1.0]],
    }
    for name, rows in tables.items():
        geometry = make_geometry(name, 2, 2)
        geometry.table.copy_(torch.tensor(rows))
        generality = geometry.generality()
        assert generality.shape == (2,) and generality[0] > generality[1], name
    subspace = make_geometry("subspace", 2, 2)
    subspace.X[0] = torch.eye(2)
    assert subspace.generality()[0] > subspace.generality()[1]
    assert set(tables) | {"subspace"} == set(NAMES)


# --- points stay where they belong ------------------------------------------------------------------------------------------------


def belongs(geometry: VectorGeometry) -> bool:
    table = geometry.table
    if geometry.name == "order":
        return bool((table >= 0).all())
    if geometry.name == "umbral":
        return bool((table[:, -1] > 0).all())
    if geometry.name == "lorentz":
        form = table[:, 1:].square().sum(-1) - table[:, 0].square()
        return float(((form + 1) / table[:, 0].square()).abs().max()) < 1e-12
    if geometry.name == "gaussian":
        unit = torch.allclose(geometry.means.norm(dim=-1), torch.ones(len(table)))
        return unit and bool((geometry.variances > 0.99e-8).all() and (geometry.variances < 10.01).all())
    norm = (table[:, :-1] if geometry.name == "disk" else table).norm(dim=-1)
    inner = geometry.inner - 1e-12 if geometry.name == "cones" else 0.0
    return geometry.name == "euclidean" or bool((norm < 1).all() and (norm >= inner).all())


@pytest.mark.parametrize("lr", [0.05, 50.0])
@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_points_stay_where_they_belong(name: str, options: dict, lr: float) -> None:
    geometry = started(name, **options)
    before = geometry.table.clone()
    assert belongs(geometry)
    for start in range(0, 40, 10):
        walk(geometry, range(start, start + 10), lr)
        assert bool(torch.isfinite(geometry.table).all()) and belongs(geometry)
    assert not torch.equal(geometry.table, before)
