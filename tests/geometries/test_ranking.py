"""Each geometry: its scores by hand, its step against autograd, and that its points stay where they belong."""

from __future__ import annotations

import math

import pytest
import torch

from subspaces.errors import UserError
from subspaces.geometries.base import Geometry, make_geometry
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import DIMS, make_task, random_tree, run_task

ROWS = torch.tensor([7, 2, 9, 4, 0])
ANCHORS = torch.tensor([0, 3, 0])
LISTS = torch.tensor([[1, 2, 3], [4, 0, 1], [4, 4, 2]])


class Recorder:
    """In the optimiser's place: keeps the gradient, moves nothing."""

    def state(self) -> dict[str, torch.Tensor]:
        return {}

    def step(self, rows: torch.Tensor, gradient: torch.Tensor, lr: float) -> None:
        self.rows, self.gradient, self.lr = rows, gradient.clone(), lr

    def step_in_parts(self, parts, lr: float) -> None:
        rows, gradients = zip(*parts, strict=True)
        self.step(torch.cat(rows), torch.cat(gradients), lr)


def started(name: str, dim: int = 5, nodes: int = 11, start: float = 0.3, **options) -> Geometry:
    geometry = make_geometry(name, nodes, dim, start=start, ranking=True, **options)
    geometry.state()
    geometry.initialise(generator_for(1))
    return geometry


def recorded(
    geometry: Geometry, candidates: torch.Tensor | None, upstream: torch.Tensor, pull: float = 0.0
) -> Recorder:
    geometry.optimiser = Recorder()
    opened = geometry.open(ROWS)
    geometry.scores(opened, ANCHORS, candidates)
    geometry.update(opened, ANCHORS, candidates, upstream, 0.25, pull)
    assert torch.equal(geometry.optimiser.rows, ROWS) and geometry.optimiser.lr == 0.25
    return geometry.optimiser


def upstream_for(candidates: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(3, 5 if candidates is None else 3, dtype=torch.float64, generator=generator_for(5)).to(dtype)


def picked(matrix: torch.Tensor, candidates: torch.Tensor | None) -> torch.Tensor:
    """Scores of the anchors from the (M, M) matrix of all rows."""
    return matrix[ANCHORS] if candidates is None else matrix[ANCHORS].gather(1, candidates)


# --- scores -----------------------------------------------------------------------------------------------------------------------


def test_euclidean_scores_by_hand() -> None:
    one, other = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0], [1.0, 2.0]])
    distance = make_geometry("euclidean", 3, 2, ranking=True, score="distance").score_matrix(one, other)
    assert torch.allclose(distance, -torch.tensor([[5.0, 1.0, 5**0.5], [8**0.5, 2.0, 1e-6]]), atol=1e-6)
    inner = make_geometry("euclidean", 3, 2, ranking=True, score="inner").score_matrix(one, other)
    assert torch.equal(inner, torch.tensor([[0.0, 0.0, 0.0], [11.0, 1.0, 5.0]]))


def test_poincare_scores_by_hand() -> None:
    """From the centre a point at radius r is 2·artanh r away; on one diameter distances add up."""
    geometry = make_geometry("poincare", 3, 2)
    one = torch.tensor([[0.0, 0.0], [0.5, 0.0]], dtype=torch.float64)
    other = torch.tensor([[0.5, 0.0], [-0.3, 0.0], [0.0, 0.9]], dtype=torch.float64)
    expected = [
        [2 * math.atanh(0.5), 2 * math.atanh(0.3), 2 * math.atanh(0.9)],
        [0.0, 2 * math.atanh(0.5) + 2 * math.atanh(0.3), math.acosh(1 + 2 * (0.25 + 0.81) / (0.75 * 0.19))],
    ]
    assert torch.allclose(geometry.score_matrix(one, other), -torch.tensor(expected, dtype=torch.float64), atol=1e-6)


def test_lorentz_scores_by_hand() -> None:
    """(cosh t, sinh t) is t away from the origin (1, 0); on one line distances add up."""
    geometry = make_geometry("lorentz", 3, 2)

    def point(t: float, angle: float = 0.0) -> list[float]:
        return [math.cosh(t), math.sinh(t) * math.cos(angle), math.sinh(t) * math.sin(angle)]

    one = torch.tensor([point(0.0), point(1.0)], dtype=torch.float64)
    other = torch.tensor([point(1.0), point(-2.0), point(1.5, math.pi / 2)], dtype=torch.float64)
    expected = [[1.0, 2.0, 1.5], [0.0, 3.0, math.acosh(math.cosh(1.0) * math.cosh(1.5))]]
    assert torch.allclose(geometry.score_matrix(one, other), -torch.tensor(expected, dtype=torch.float64), atol=1e-6)


def test_the_ball_and_the_hyperboloid_are_one_space() -> None:
    """x/(1+x₀) maps the hyperboloid to the ball and keeps every distance."""
    lorentz, poincare = started("lorentz", start=1.0), make_geometry("poincare", 11, 5)
    ball = lorentz.table[:, 1:] / (1 + lorentz.table[:, :1])
    assert torch.allclose(
        lorentz.score_matrix(lorentz.table, lorentz.table), poincare.score_matrix(ball, ball), atol=1e-6
    )


@pytest.mark.parametrize("vectors", [3, 6, 9])
def test_subspace_scores_are_traces(vectors: int) -> None:
    geometry = started("subspace", 6, vectors=vectors, lam=0.2)
    X = geometry.X.double()
    P = X @ torch.linalg.solve(X.mT @ X + 0.2 * torch.eye(vectors, dtype=torch.float64), X.mT)
    traces = torch.einsum("uij,vji->uv", P, P)
    everyone = geometry.all_features(block=4)
    assert everyone.shape == (11, 21)
    assert torch.allclose(geometry.score_block(everyone[3:7], everyone).double(), traces[3:7], atol=1e-5)
    assert torch.allclose(geometry.projectors(torch.tensor([1, 5])).double(), P[[1, 5]], atol=1e-6)
    for block in (4, 4096):
        assert torch.allclose(geometry.generality(block).double(), P.diagonal(dim1=1, dim2=2).sum(-1), atol=1e-5)
    opened = geometry.open(ROWS)
    for candidates in (None, LISTS):
        assert torch.allclose(
            geometry.scores(opened, ANCHORS, candidates).double(), picked(traces[ROWS][:, ROWS], candidates), atol=1e-5
        )


@pytest.mark.parametrize("name", ["euclidean", "poincare", "lorentz"])
def test_training_and_evaluation_score_alike(name: str) -> None:
    """Apart from a point's distance to itself, which is rounding and is never looked at."""
    geometry = started(name)
    matrix = geometry.score_matrix(geometry.table, geometry.table).fill_diagonal_(0.0)
    block = geometry.score_block(geometry.features(slice(2, 5)), geometry.all_features(block=4))
    block[range(3), range(2, 5)] = 0.0
    assert torch.allclose(block, matrix[2:5], atol=1e-6)
    opened = geometry.open(ROWS)
    for candidates in (None, LISTS):
        found = geometry.scores(opened, ANCHORS, candidates)
        if candidates is None:
            found[range(3), ANCHORS] = 0.0
        assert torch.allclose(found, picked(matrix[ROWS][:, ROWS], candidates), atol=1e-6)


# --- steps ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pull", [0.0, 0.7])
@pytest.mark.parametrize("candidates", [None, LISTS], ids=["shared", "per-edge"])
@pytest.mark.parametrize("vectors", [3, 5, 8])
def test_the_gradient_of_subspaces_is_autograds(vectors: int, candidates: torch.Tensor | None, pull: float) -> None:
    """The closed form in float32 against autograd through a solve in float64; the pull is on the mean trace of the anchors."""
    geometry = started("subspace", vectors=vectors, lam=0.2)
    upstream = upstream_for(candidates, torch.float32)
    leaf = geometry.X[ROWS].double().requires_grad_()
    P = leaf @ torch.linalg.solve(leaf.mT @ leaf + 0.2 * torch.eye(vectors, dtype=torch.float64), leaf.mT)
    loss = (picked(torch.einsum("uij,vji->uv", P, P), candidates) * upstream.double()).sum()
    loss = loss + pull * P.diagonal(dim1=1, dim2=2).sum(-1)[ANCHORS].mean()
    (expected,) = torch.autograd.grad(loss, leaf)
    found = recorded(geometry, candidates, upstream, pull).gradient
    assert (found.double() - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize("candidates", [None, LISTS], ids=["shared", "per-edge"])
@pytest.mark.parametrize(
    ("name", "options"), [("euclidean", {"score": "inner"}), ("euclidean", {}), ("poincare", {}), ("lorentz", {})]
)
def test_the_gradient_of_vectors_is_that_of_the_formula(
    name: str, options: dict, candidates: torch.Tensor | None
) -> None:
    """The published formulas, pair by pair, differentiated in float64."""

    def pair(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if options:
            return u @ v
        if name == "euclidean":
            return -(u - v).norm()
        if name == "poincare":
            return -torch.acosh(1 + 2 * (u - v).square().sum() / ((1 - u.square().sum()) * (1 - v.square().sum())))
        return -torch.acosh(u[0] * v[0] - u[1:] @ v[1:])

    geometry = started(name, **options)
    upstream = upstream_for(candidates, geometry.table.dtype)
    if candidates is None:
        upstream[range(3), ANCHORS] = 0.0  # nobody is compared with itself, and there a distance has no gradient
    leaf = geometry.table[ROWS].double().requires_grad_()
    loss = torch.zeros((), dtype=torch.float64)
    for line, anchor in enumerate(ANCHORS.tolist()):
        for column, place in enumerate(range(5) if candidates is None else candidates[line].tolist()):
            if place != anchor:
                loss = loss + float(upstream[line, column]) * pair(leaf[anchor], leaf[place])
    (expected,) = torch.autograd.grad(loss, leaf)
    found = recorded(geometry, candidates, upstream).gradient
    assert (found.double() - expected).abs().max() < (
        1e-5 if geometry.table.dtype == torch.float32 else 1e-9
    ) * expected.abs().max()


def test_a_step_goes_downhill_and_touches_its_rows_only() -> None:
    for name in DIMS:
        geometry = started(name)
        weights = next(iter(geometry.weights().values()))
        before = weights.clone()
        opened = geometry.open(ROWS)
        upstream = torch.zeros(3, 3, dtype=weights.dtype)
        upstream[:, 0] = -1.0  # raise the scores of the first column
        first = geometry.scores(opened, ANCHORS, LISTS)[:, 0].sum()
        geometry.update(opened, ANCHORS, LISTS, upstream, 0.01, 0.0)
        assert geometry.scores(geometry.open(ROWS), ANCHORS, LISTS)[:, 0].sum() > first
        still = [node for node in range(11) if node not in ROWS.tolist()]
        assert torch.equal(weights[still], before[still]) and not torch.equal(weights, before)


def test_riemannian_steps_by_hand() -> None:
    """From the centre of the ball: gradient × (1−‖θ‖²)²/4, then the exponential map, tanh of half the length at the centre."""
    ball = make_geometry("poincare", 2, 2, ranking=True)
    ball.table[1] = torch.tensor([0.5, 0.0])
    ball.optimiser.step(torch.tensor([0]), torch.tensor([[-2.0, 0.0]], dtype=torch.float64), 0.4)
    step = 0.4 * 2.0 / 4
    assert torch.allclose(ball.table, torch.tensor([[math.tanh(step), 0.0], [0.5, 0.0]], dtype=torch.float64))
    sheet = make_geometry("lorentz", 2, 2, max_step=1.0)
    for lr, length in ((0.4, 0.8), (5.0, 1.0)):  # the second is longer than a step may be
        sheet.table.copy_(torch.tensor([[1.0, 0.0, 0.0], [math.cosh(1), math.sinh(1), 0.0]]))
        sheet.optimiser.step(torch.tensor([0]), torch.tensor([[3.0, 0.0, -2.0]], dtype=torch.float64), lr)
        assert torch.allclose(
            sheet.table[0], torch.tensor([math.cosh(length), 0.0, math.sinh(length)], dtype=torch.float64), atol=1e-6
        )


@pytest.mark.parametrize("lr", [0.5, 50.0])
def test_points_stay_inside_the_ball(lr: float) -> None:
    geometry = run_task(make_task("poincare", random_tree(30, 2), epochs=5, lr=lr))
    assert bool(torch.isfinite(geometry.table).all())
    assert 0.1 < float(geometry.table.norm(dim=-1).max()) < 1.0


@pytest.mark.parametrize("lr", [0.5, 50.0])
def test_points_stay_on_the_hyperboloid(lr: float) -> None:
    geometry = run_task(make_task("lorentz", random_tree(30, 2), epochs=5, lr=lr))
    table = geometry.table
    assert bool(torch.isfinite(table).all()) and float(table[:, 0].max()) > 1.01
    form = table[:, 1:].square().sum(-1) - table[:, 0].square()
    assert float(((form + 1) / table[:, 0].square()).abs().max()) < 1e-12


# --- start, names and options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIMS)
def test_the_start_is_random_small_and_repeatable(name: str) -> None:
    one, two, three = (
        started(name, 8, 200, start=0.01),
        started(name, 8, 200, start=0.01),
        make_geometry(name, 200, 8, start=0.01, ranking=True),
    )
    three.initialise(generator_for(2))
    weights = [next(iter(geometry.weights().values())) for geometry in (one, two, three)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    spread = weights[0][..., -8:].std()
    assert float(spread) == pytest.approx(0.01 if name in ("subspace", "euclidean") else 0.01 / 3**0.5, rel=0.1)


@pytest.mark.parametrize("name", ["subspace", "euclidean"])
def test_a_new_start_forgets_the_old_run(name: str) -> None:
    geometry = started(name)
    opened = geometry.open(ROWS)
    geometry.scores(opened, ANCHORS, LISTS)
    geometry.update(opened, ANCHORS, LISTS, torch.ones(3, 3), 0.1, 0.0)
    geometry.initialise(generator_for(1))
    assert all(torch.equal(tensor, started(name).state()[key]) for key, tensor in geometry.state().items())


def test_general_is_large() -> None:
    subspace = make_geometry("subspace", 2, 4)
    subspace.X[0] = 10 * torch.eye(4)
    subspace.X[1, 0, 0] = 10
    assert subspace.generality()[0] > subspace.generality()[1] > 0.9
    for name, near, far in (
        ("poincare", [0.1, 0.0], [0.0, 0.9]),
        ("euclidean", [0.1, 0.0], [0.0, 3.0]),
        ("lorentz", [2**0.5, 1.0, 0.0], [2.0, 0.0, 3**0.5]),
    ):
        geometry = make_geometry(name, 2, 2)
        geometry.table.copy_(torch.tensor([near, far]))
        assert geometry.generality()[0] > geometry.generality()[1]


def test_settings_of_ranking_only() -> None:
    with pytest.raises(UserError, match="geometry euclidean has no setting score: it knows dim"):
        make_geometry("euclidean", 3, 2, score="inner")
    with pytest.raises(
        UserError, match="score of geometry euclidean: input should be 'distance' or 'inner', not 'cosine'"
    ):
        make_geometry("euclidean", 3, 2, ranking=True, score="cosine")


@pytest.mark.parametrize("name", ["order", "cones", "disk", "umbral", "gaussian"])
def test_energies_rank_by_the_directed_score(name: str) -> None:
    """One node against all: how surely it lies below each, in parts that fit in memory."""
    geometry = started(name, dim=4, start=0.5)
    geometry.enter_main()
    table = geometry.table
    expected = torch.stack([geometry.directed(node.expand_as(table), table) for node in table])
    assert torch.equal(geometry.score_block(table, table), expected)
    opened = geometry.open(ROWS)
    for candidates in (None, LISTS):
        assert torch.allclose(
            geometry.scores(opened, ANCHORS, candidates), picked(expected[ROWS][:, ROWS], candidates), atol=1e-12
        )
