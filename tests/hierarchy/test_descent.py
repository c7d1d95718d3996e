"""Compiled descent against the same thing in plain Python with torch energies; resume, bad input, and life without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.geometries import compiled
from subspaces.geometries.base import Geometry, make_geometry
from subspaces.geometries.gaussian import GaussianGeometry
from subspaces.hierarchy import descent
from subspaces.hierarchy.descent import EXCLUDE, LOSSES, Loss, Negatives, sorted_lists, train_chunk
from subspaces.hierarchy.graph import build_hierarchy
from subspaces.hierarchy.link_prediction import (
    CompiledLinkTask,
    LinkTraining,
    make_task,
    margin_loss,
    shadow_loss,
    softmax_loss,
)
from subspaces.hierarchy.negatives import Known, make_negatives
from subspaces.hierarchy.reconstruction import CompiledReconstructionTask, ReconstructionTraining
from subspaces.hierarchy.reconstruction import make_task as make_ranking_task
from subspaces.hierarchy.splits import draw_split
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import generator_for, train
from subspaces.training.progress import Silent
from tests.hierarchy.test_link_prediction import SETTINGS as LINK
from tests.hierarchy.toys import SETTINGS as RANKING
from tests.hierarchy.toys import random_dag, random_tree
from tests.training.test_loop import Interrupted, Watched

SPLIT = draw_split(random_dag(40, 3, 110), 10)
TRAINING: dict[str, Any] = {
    **LINK, "engine": "compiled", "sampling": "per-edge", "optimiser": "sgd", "negatives": 4, "batch": 3,
    "gamma_positive": -0.1, "gamma_negative": -1.0, "weigh_as": 4.0, "epochs": 3,
}  # fmt: skip
MASK = (1 << 64) - 1


class Random:
    """splitmix64 on Python's integers."""

    def __init__(self, seed: int):
        self.state = seed

    def below(self, bound: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        word = self.state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        word ^= word >> 31
        return ((word >> 32) * bound) >> 32


def negatives_of(
    edge: tuple[int, int], draw: Negatives, edges: set[tuple[int, int]], random: Random
) -> list[tuple[int, int]]:
    """The corrupted pairs of an edge; every edge of these tests has enough nodes that may be drawn."""
    child, parent = edge

    def allowed(pair: tuple[int, int]) -> bool:
        known = draw.exclude > 0 and (pair[0] == pair[1] or pair in edges)
        return not known and not (draw.exclude == 2 and pair[::-1] in edges)

    pairs = []
    for number in range(draw.below + draw.above):
        while True:
            other = random.below(draw.nodes)
            pair = (other, parent) if number < draw.below else (child, other)
            if allowed(pair):
                pairs.append(pair)
                break
    return pairs


def by_hand(
    geometry: Geometry, loss: Loss, draw: Negatives, edges: np.ndarray, batch: int, rate: float, seed: int
) -> float:
    """What `descend` does, with torch; returns the sum of the losses."""
    known, random, total = {(int(c), int(p)) for c, p in edges}, Random(seed), 0.0
    for start in range(0, len(edges), batch):
        some = [(int(child), int(parent)) for child, parent in edges[start : start + batch]]
        pairs = torch.tensor([[edge, *negatives_of(edge, draw, known, random)] for edge in some])
        rows, inside = torch.unique(pairs, return_inverse=True)
        opened = geometry.open(rows)
        scores = geometry.pair_scores(opened, inside[..., 0].flatten(), inside[..., 1].flatten())
        scores = scores.double().view(len(some), -1).requires_grad_()
        counts = torch.ones(scores[:, 1:].shape, dtype=torch.bool)
        value = {
            "margin": lambda s=scores, c=counts: margin_loss(s, c, loss.positive, loss.negative, loss.weight),
            "softmax": lambda s=scores, c=counts: softmax_loss(s, c, loss.margin),
            "shadow": lambda s=scores, c=counts: shadow_loss(s, c, loss.margin),
        }[LOSSES[loss.kind]]()
        (upstream,) = torch.autograd.grad(value, scores)
        geometry.update_pairs(opened, upstream.flatten(), rate)
        total += float(value.detach()) * len(some)
    return total


def two_of(name: str, phase: str = "main") -> tuple[Geometry, Geometry]:
    """The same random model twice."""
    options = {} if name in ("lorentz", "gaussian") else {"optimiser": "sgd"}
    start = 0.01 if name == "gaussian" else 0.4
    both = tuple(make_geometry(name, SPLIT.nodes, 5, start=start, **options) for _ in range(2))
    for geometry in both:
        geometry.initialise(generator_for(3))
        if name == "gaussian":
            geometry.tau = 1.0
        geometry.begin_phase(phase)
        if phase == "main" and name in ("cones", "disk"):
            geometry.enter_main()
    return both


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("name", ["euclidean", "order", "poincare", "lorentz", "cones", "disk", "umbral", "gaussian"])
def test_descent_is_that_of_plain_python(name: str, kind: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianGeometry, "dtype", torch.float64)  # of single precision Adam makes other signs
    ours, reference = two_of(name)
    loss = Loss(LOSSES.index(kind), -0.1, -1.0, 3.0, 0.5)
    draw = Negatives(SPLIT.nodes, 2, 3, EXCLUDE["known"], False, 0.0)
    edges, generator = torch.from_numpy(SPLIT.train[:24]), generator_for(5)
    seed = torch.randint(1 << 62, (), generator=generator_for(5)).item()
    total, _ = train_chunk(ours, loss, draw, sorted_lists(SPLIT.nodes, edges.numpy()), edges, batch, 0.05, generator)
    assert total == pytest.approx(by_hand(reference, loss, draw, edges.numpy(), batch, 0.05, int(seed)), rel=1e-5)
    start = two_of(name)[0]
    assert (ours.table - start.table).abs().max() > 1e-4
    np.testing.assert_allclose(ours.table, reference.table, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["cones", "disk"])
def test_the_start_phase_moves_points_of_the_ball(name: str) -> None:
    ours, reference = two_of(name, "start")
    draw = Negatives(SPLIT.nodes, 0, 4, EXCLUDE["linked"], False, 0.0)
    edges, seed = torch.from_numpy(SPLIT.train[:24]), torch.randint(1 << 62, (), generator=generator_for(5)).item()
    known = sorted_lists(SPLIT.nodes, edges.numpy())
    train_chunk(ours, descent.START, draw, known, edges, 2, 0.05, generator_for(5))
    by_hand(reference, descent.START, draw, edges.numpy(), 2, 0.05, int(seed))
    np.testing.assert_allclose(ours.table, reference.table, rtol=1e-7, atol=1e-9)


# --- negatives ------------------------------------------------------------------------------------------------------------


def drawn_pairs(draw: Negatives, edges: np.ndarray, edge: tuple[int, int], rounds: int = 400) -> list[tuple[int, int]]:
    """All negatives of one edge in many draws, through the compiled function where there is one."""
    known, state = sorted_lists(draw.nodes, edges, draw.related), np.array([7], dtype=np.uint64)
    pairs, found = np.empty((draw.below + draw.above + 3, 2), dtype=np.int64), []
    for _ in range(rounds):
        pairs[0] = edge
        count, _ = _draw(draw, known, state, pairs)
        found += [(int(c), int(p)) for c, p in pairs[1:count]]
    return found


@compiled.entry
def _draw(draw, known, state, pairs):
    return descent.draw_pairs(draw, known, state, pairs)


CHAIN = np.array(
    [[1, 0], [2, 0], [2, 1], [3, 0], [3, 1], [3, 2], [4, 0], [5, 0]]
)  # 3 under 2 under 1 under 0; 4 and 5 under 0


@pytest.mark.parametrize(
    ("exclude", "parents"), [("none", {0, 1, 2, 3, 4, 5, 6}), ("known", {3, 4, 5, 6}), ("linked", {4, 5, 6})]
)
def test_which_parents_are_drawn(exclude: str, parents: set[int]) -> None:
    """Of the edge 2 → 1: its ancestors are 0 and 1, and 3 lies below it."""
    draw = Negatives(7, 0, 2, EXCLUDE[exclude], False, 0.0)
    assert set(drawn_pairs(draw, CHAIN, (2, 1))) == {(2, parent) for parent in parents}


@pytest.mark.parametrize(
    ("exclude", "children"), [("none", {0, 1, 2, 3, 4, 5, 6}), ("known", {0, 4, 5, 6}), ("linked", {4, 5, 6})]
)
def test_which_children_are_drawn(exclude: str, children: set[int]) -> None:
    draw = Negatives(7, 2, 0, EXCLUDE[exclude], False, 0.0)
    assert set(drawn_pairs(draw, CHAIN, (2, 1))) == {(child, 1) for child in children}


def test_reversed_edges_and_siblings() -> None:
    """Siblings: two nodes below one that are not an edge themselves, in about the share asked for."""
    found = drawn_pairs(Negatives(7, 0, 0, EXCLUDE["known"], True, 0.5), CHAIN, (2, 1), rounds=2000)
    assert found.count((1, 2)) >= 2000  # 1 and 2 are also siblings
    siblings = [pair for pair in found if pair != (1, 2)]
    known = {(int(c), int(p)) for c, p in CHAIN}
    assert {(4, 5), (5, 4), (4, 1), (2, 3)} <= set(siblings)
    assert not any(pair in known or pair[0] == pair[1] for pair in siblings)
    assert 300 < len(siblings) < 1000


def test_a_node_above_all_others_gets_no_other_children() -> None:
    """The draw gives up where there is nothing to draw."""
    edges = np.array([[child, 0] for child in range(1, 5)])
    assert drawn_pairs(Negatives(5, 3, 0, EXCLUDE["known"], False, 0.0), edges, (1, 0)) == []


# --- tasks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["order", "cones", "umbral"])
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "CHUNK", 12)  # several steps to an epoch
    start = {"start_epochs": 1} if name == "cones" else {}
    training = LinkTraining(**{**TRAINING, **start, "loss": "shadow" if name == "umbral" else "margin", "epochs": 4})

    def run(folder: str, stop_at: int | None) -> torch.Tensor:
        geometry = make_geometry(name, SPLIT.nodes, 4, start=0.1, optimiser="sgd")
        task = make_task(SPLIT, geometry, training)
        assert isinstance(task, CompiledLinkTask) and task.steps_per_epoch > 3
        checkpoints = Checkpoints(tmp_path / folder, "k" * 64, say=lambda text: None)
        watched = Watched(task, stop_at)
        train(watched, epochs=4, seed=1, checkpoints=checkpoints, progress=Silent(), checkpoint_seconds=1e-9)
        return geometry.table

    whole = run("whole", None)
    for stop_at in (2, 9):
        with pytest.raises(Interrupted):
            run(f"killed-{stop_at}", stop_at)
        assert torch.equal(run(f"killed-{stop_at}", None), whole)


@pytest.mark.parametrize("name", ["order", "poincare"])
def test_a_diverging_rate_stops_with_its_step_and_the_checkpoint(tmp_path: Path, name: str) -> None:
    settings = {"order": {"lr": 1e200, "start": 0.1}, "poincare": {"lr": 1e308, "loss": "softmax"}}[name]
    geometry = make_geometry(name, SPLIT.nodes, 4, start=0.1, optimiser="sgd")
    task = make_task(SPLIT, geometry, LinkTraining(**{**TRAINING, **settings, "epochs": 50}))
    task_loss = Watched(task)
    if name == "poincare":  # bounded by its rim: only ruined weights make it NaN
        task.initialise(generator_for(1, 0))
        geometry.table[3] = float("nan")
        task_loss.initialise = lambda generator: None
    checkpoints = Checkpoints(tmp_path, "k" * 64, say=lambda text: None)
    with pytest.raises(
        UserError, match=r"the loss became nan at step \d+ \(epoch \d+, step \d+\).*checkpoint.*Lower the learning rate"
    ):
        train(task_loss, epochs=50, seed=1, checkpoints=checkpoints, progress=Silent())


def test_settings_that_were_not_there_are_not_dumped() -> None:
    """Keys of results from before these settings depend on it."""
    dumped = LinkTraining(**{**TRAINING, "engine": "torch"}).model_dump()
    assert not {"engine", "exclude"} & set(dumped)
    assert {"engine": "compiled", "exclude": "none"}.items() <= LinkTraining(
        **TRAINING, exclude="none"
    ).model_dump().items()
    assert not {"engine", "exclude"} & set(ReconstructionTraining(**RANKING).model_dump())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("subspace", {}, "subspace has no compiled form: use `engine: torch`"),
        ("order", {"loss": "shadow"}, "order has no shadow loss: choose margin or softmax"),
        ("poincare", {"optimiser": "adam"}, "poincare by Riemannian SGD: use `optimiser: sgd`"),
        ("order", {"sampling": "shared"}, "not shared: use `sampling: per-edge`"),
    ],
)
def test_what_compiled_training_refuses(name: str, settings: dict[str, Any], message: str) -> None:
    training = LinkTraining(**{**TRAINING, **settings})
    geometry = make_geometry(name, SPLIT.nodes, 4, optimiser=training.optimiser)
    with pytest.raises(UserError, match=message):
        make_task(SPLIT, geometry, training)


def test_a_self_loop_is_refused_with_its_name() -> None:
    with pytest.raises(UserError, match="cycle: cat → cat"):
        build_hierarchy(["animal", "cat"], [(1, 0), (1, 1)])


def epochs_of(task: Any) -> list[dict[str, float]]:
    """Train from seed 0; what the only step of each epoch says."""
    assert task.steps_per_epoch == 1
    task.initialise(generator_for(0, 0))
    said = []
    for epoch in range(task.settings.epochs):
        task.begin_epoch(epoch, generator_for(0, 1, epoch))
        said.append(task.step(epoch, 0, generator_for(0, 2, epoch, 0)))
    return said


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("euclidean", {"gamma_positive": -0.5}),
        ("order", {}),
        ("disk", {"gamma_negative": -0.5}),
    ],
)
def test_it_learns(name: str, settings: dict[str, Any]) -> None:
    training = {**TRAINING, "lr": 0.05, "gamma_positive": 0.0, "epochs": 60, "batch": 1, **settings}
    geometry = make_geometry(name, SPLIT.nodes, 6, start=0.1, optimiser="sgd")
    losses = [said["loss"] for said in epochs_of(make_task(SPLIT, geometry, LinkTraining(**training)))]
    assert losses[-1] < 0.5 * losses[0]


def test_ranking_learns_and_descendants_are_negatives() -> None:
    graph = random_tree(60, 2)
    training = ReconstructionTraining(
        **{
            **RANKING,
            "engine": "compiled",
            "exclude": "known",
            "sampling": "per-edge",
            "negatives": 10,
            "batch": 1,
            "lr": 0.3,
            "start": 1e-3,
            "epochs": 80,
        }
    )
    geometry = make_geometry("poincare", graph.nodes, 4, start=1e-3, ranking=True)
    task = make_ranking_task(graph, geometry, training)
    assert isinstance(task, CompiledReconstructionTask)
    first = [said["first"] for said in epochs_of(task)]
    assert first[0] < 0.3 and np.mean(first[-5:]) > 0.8


# --- the compiler ---------------------------------------------------------------------------------------------------------

_FIT = """
import sys, warnings
sys.path.insert(0, {root!r})
{before}
from tests.hierarchy.test_descent import SPLIT, TRAINING, make_geometry, make_task, generator_for, LinkTraining
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    task = make_task(SPLIT, make_geometry("order", SPLIT.nodes, 4, start=0.1, optimiser="sgd"), LinkTraining(**TRAINING))
    make_task(SPLIT, make_geometry("order", SPLIT.nodes, 4, optimiser="sgd"), LinkTraining(**TRAINING))
task.initialise(generator_for(0, 0)); task.begin_epoch(0, generator_for(0, 1))
print(type(task).__name__, task.step(0, 0, generator_for(0, 2))["loss"])
print(*[str(one.message) for one in seen if "numba" in str(one.message)], sep="\\n")
"""


def in_new_process(before: str, **environment: str) -> list[str]:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _FIT.format(root=str(root), before=before)],
        capture_output=True, text=True, env={**os.environ, **environment}, cwd=environment.get("PWD"), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("\n")


def test_without_numba_torch_trains_with_one_warning() -> None:
    kind, *warned = in_new_process("sys.modules['numba'] = None")
    assert kind.split()[0] == "LinkPredictionTask"
    assert len(warned) == 1 and "numba is unavailable" in warned[0]


_STEP = """
import numpy as np
from subspaces.geometries.compiled import run, step
from subspaces.geometries.order import Orthant
point = np.array([1.0, 2.0])
run(step, Orthant(2), point, np.array([1.0, -1.0]), 0.5)
assert point.tolist() == [0.5, 2.5]
print(sum(step.stats.cache_hits.values()))
"""


@pytest.mark.skipif(compiled.numba is None, reason="numba is unavailable")
def test_a_damaged_cache_is_rebuilt(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(compiled.PACKAGE.parent)}

    def hits() -> str:
        done = subprocess.run(
            [sys.executable, "-c", _STEP], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert hits() == "0" and hits() == "1"
    for suffix, content in ((".nbi", b"damaged"), (".nbc", b"")):
        for file in tmp_path.rglob(f"compiled.step*{suffix}"):
            file.write_bytes(content)
        assert hits() == "0" and hits() == "1"


# --- the torch path of the same settings ----------------------------------------------------------------------------------


def test_sgd_is_sgd_in_torch_too() -> None:
    geometry = make_geometry("order", 3, 2, start=0.1, optimiser="sgd")
    geometry.table[:] = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    geometry.optimiser.step(torch.tensor([0, 1]), torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64), 1.5)
    assert geometry.table.tolist() == [[0.0, 2.5], [0.5, 0.0], [0.0, 0.0]]
    assert make_geometry("order", 3, 2).state().keys() > {"table", "adam.mean"}


@pytest.mark.parametrize(("exclude", "counted"), [(None, {0, 3}), ("none", {0, 1, 2, 3}), ("linked", {3})])
def test_exclusion_in_torch(exclude: str | None, counted: set[int]) -> None:
    """Of the edge 1 → 2 in 1 → 2, 0 → 1: 1 is the child itself, 0 lies below it."""
    edges = np.array([[1, 2], [0, 1]])
    sampler = make_negatives(Known(4, edges), edges, "per-edge", 60, 1, "parent", exclude)
    batch = sampler.draw(torch.tensor([1]), torch.tensor([2]), generator_for(1))
    parents = batch.rows[batch.parents[0, 1:]][batch.counts[0]]
    assert set(parents.tolist()) == counted
