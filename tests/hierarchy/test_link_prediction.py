"""The task on a geometry that does what it is told: which epoch is kept, the two phases, the rates."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.geometries.base import Geometry, GeometrySettings, make_geometry
from subspaces.hierarchy.link_prediction import (
    LinkPredictionTask,
    LinkTraining,
    decision_scores,
)
from subspaces.hierarchy.splits import Split, draw_split
from subspaces.hierarchy.thresholds import average_precision
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import generator_for, train
from subspaces.training.progress import Silent
from tests.hierarchy.toys import binary_tree, random_dag

SETTINGS: dict[str, Any] = {
    "epochs": 4,
    "batch": 16,
    "sampling": "per-edge",
    "corrupt": "both",
    "negatives": 6,
    "pool": 12,
    "weigh_as": 1.0,
    "loss": "margin",
    "gamma_positive": 0.9,
    "gamma_negative": 0.3,
    "margin": 0.1,
    "optimiser": "sgd",
    "lr": 0.02,
    "lr_final": 1.0,
    "burn_in": 0,
    "burn_in_factor": 0.1,
    "start": 0.05,
    "start_epochs": 0,
    "start_lr": 0.1,
    "validate_every": 1,
}
SPLIT = draw_split(random_dag(40, 3, 110), 10)


# --- one step -----------------------------------------------------------------------------------------------------------------


class PairsOnly(Geometry):
    """Of this task's half of a geometry; it must not use the other."""

    def __init__(self, nodes: int):
        super().__init__(GeometrySettings(geometry="none", dim=1), nodes)

    def _not_here(self, *arguments):
        raise AssertionError("link prediction scores pairs")

    scores = update = features = score_block = _not_here


class Matrix(PairsOnly):
    """A score for every pair of nodes; a step keeps the gradient and moves nothing."""

    tuned = {"shift": (0.0, 1.0)}  # noqa: RUF012 - as the geometries have it

    def __init__(self, nodes: int, scores: Tensor | None = None):
        super().__init__(nodes)
        self.matrix = (
            torch.randn(nodes, nodes, dtype=torch.float64, generator=generator_for(8)) if scores is None else scores
        )
        self.phases: list[str] = []
        self.rates: list[float] = []

    def initialise(self, generator) -> None:
        pass

    def weights(self) -> dict[str, Tensor]:
        return {"matrix": self.matrix}

    def state(self) -> dict[str, Tensor]:
        return self.weights()

    def begin_phase(self, phase: str) -> None:
        self.phases.append(phase)

    def open(self, rows: Tensor) -> Tensor:
        return rows

    def pair_scores(self, opened: Tensor, children: Tensor, parents: Tensor) -> Tensor:
        self.asked = opened[children] * self.nodes + opened[parents]
        return self.matrix.flatten()[self.asked]

    def update_pairs(self, opened: Tensor, upstream: Tensor, lr: float) -> None:
        self.gradient = (
            torch.zeros(self.nodes**2, dtype=torch.float64).index_add_(0, self.asked, upstream).view(self.nodes, -1)
        )
        self.rates.append(lr)

    def score_pairs(self, children: Tensor, parents: Tensor, shift: float = 0.0) -> Tensor:
        return self.matrix[children, parents] + shift

    def generality(self) -> Tensor:
        return self.matrix.sum(0)


def task_of(
    geometry: Geometry | None = None, best: Path | None = None, split: Split = SPLIT, **settings: Any
) -> LinkPredictionTask:
    return LinkPredictionTask(split, geometry or Matrix(split.nodes), LinkTraining(**{**SETTINGS, **settings}), best)


@pytest.mark.parametrize("start_epochs", [0, 1], ids=["main", "start"])
@pytest.mark.parametrize("loss", ["margin", "softmax"])
@pytest.mark.parametrize("sampling", ["per-edge", "weighted", "shared"])
def test_a_step_hands_on_the_gradient_of_the_loss(sampling: str, loss: str, start_epochs: int) -> None:
    """Pair by pair from the same draw; before the main phase it is a softmax without margin, whatever the loss."""
    task = task_of(sampling=sampling, loss=loss, start_epochs=start_epochs, weigh_as=4.0)
    task.begin_epoch(0, generator_for(1))
    reported = task.step(0, 1, generator_for(2))
    edges = task.edges[task.order[16:32]]
    batch = task.sampler.draw(edges[:, 0], edges[:, 1], generator_for(2))
    leaf = task.geometry.matrix.clone().requires_grad_()
    lines = []
    for children, parents, counts in zip(
        batch.rows[batch.children], batch.rows[batch.parents], batch.counts, strict=True
    ):
        positive, negative = leaf[children[0], parents[0]], leaf[children[1:], parents[1:]][counts]
        if loss == "softmax" or start_epochs:
            positive = positive - (0.0 if start_epochs else 0.1)
            lines.append(torch.logsumexp(torch.cat([positive[None], negative]), 0) - positive)
        else:
            lines.append(
                (0.9 - positive).clamp_min(0) + 4.0 * (negative - 0.3).clamp_min(0).sum() / max(1, len(negative))
            )
    expected = torch.stack(lines).mean()
    assert reported["loss"] == pytest.approx(float(expected.detach()))
    assert torch.allclose(task.geometry.gradient, torch.autograd.grad(expected, leaf)[0])
    assert task.geometry.gradient.any()


def test_all_edges_once_an_epoch() -> None:
    task = task_of()
    count = len(SPLIT.train)
    assert count % 16 and task.steps_per_epoch == count // 16 + 1
    seen, real = [], task.sampler.draw

    def watched(children: Tensor, parents: Tensor, generator):
        seen.extend(zip(children.tolist(), parents.tolist(), strict=True))
        return real(children, parents, generator)

    task.sampler.draw = watched
    task.begin_epoch(0, generator_for(0, 1, 0))
    for step in range(task.steps_per_epoch):
        task.step(0, step, generator_for(0, 2, 0, step))
    assert sorted(seen) == sorted(map(tuple, SPLIT.train.tolist()))
    first = task.order.clone()
    task.begin_epoch(1, generator_for(0, 1, 1))
    assert not torch.equal(first, task.order)
    assert task_of(batch=10_000).steps_per_epoch == 1


def test_learning_rate() -> None:
    settings = {
        "epochs": 10,
        "lr": 0.5,
        "lr_final": 0.2,
        "burn_in": 2,
        "burn_in_factor": 0.01,
        "start_epochs": 4,
        "start_lr": 3.0,
    }
    task = task_of(**settings)
    last = task.steps_per_epoch - 1
    assert [task.learning_rate(0, 0), task.learning_rate(1, last)] == pytest.approx([0.03, 0.03])
    assert task.learning_rate(2, 0) == pytest.approx(3.0 * (1 - 0.8 * 2 / 10))
    assert task.learning_rate(3, last) == pytest.approx(3.0 * (1 - 0.8 * (4 - 1 / (last + 1)) / 10))
    assert task.learning_rate(4, 0) == pytest.approx(0.5 * (1 - 0.8 * 4 / 10))
    assert task.learning_rate(9, last) == pytest.approx(0.5 * (0.2 + 0.8 / (10 * (last + 1))))
    assert {task_of(lr=0.5).learning_rate(epoch, step) for epoch in range(4) for step in range(last)} == {0.5}
    task.begin_epoch(6, generator_for(1))
    task.step(6, 1, generator_for(2))
    assert task.geometry.rates == [task.learning_rate(6, 1)]  # the rate is the one used


def test_scores_for_a_decision_keep_their_order() -> None:
    geometry = Matrix(SPLIT.nodes)
    for tuned in ({}, {"shift": 2.5}):
        positive, negative = decision_scores(geometry, SPLIT.valid, SPLIT.valid_negatives, **tuned)
        shift = tuned.get("shift", 0.0)
        assert positive.dtype == negative.dtype == np.float64
        assert positive.tolist() == [float(geometry.matrix[c, p]) + shift for c, p in SPLIT.valid.tolist()]
        assert negative.tolist() == [
            float(geometry.matrix[c, p]) + shift for block in SPLIT.valid_negatives.tolist() for c, p in block
        ]


# --- which epoch is kept ------------------------------------------------------------------------------------------------------


class Scripted(PairsOnly):
    """Counts its steps, and after epoch e puts as many validation edges above all else as the script says.

    What would go wrong silently is counted in tensors that a checkpoint holds: entries into the main phase, and steps in a wrong phase.
    """

    def __init__(self, script: list[int], steps_per_epoch: int, start_epochs: int = 0):
        super().__init__(SPLIT.nodes)
        self.script, self.steps_per_epoch, self.start_epochs, self.phase = script, steps_per_epoch, start_epochs, "main"
        self.steps, self.entered, self.astray = (torch.zeros(1, dtype=torch.int64) for _ in range(3))
        self.validated: list[tuple[int, str]] = []

    def initialise(self, generator) -> None:
        for tensor in self.state().values():
            tensor.zero_()

    def weights(self) -> dict[str, Tensor]:
        return {"steps": self.steps}

    def state(self) -> dict[str, Tensor]:
        return {"steps": self.steps, "entered": self.entered, "astray": self.astray}

    def begin_phase(self, phase: str) -> None:
        self.phase = phase

    def enter_main(self) -> None:
        self.entered += 1
        self.astray += int(self.steps) != self.start_epochs * self.steps_per_epoch

    def open(self, rows: Tensor) -> None:
        return None

    def pair_scores(self, opened: None, children: Tensor, parents: Tensor) -> Tensor:
        self.astray += self.phase != ("start" if int(self.steps) < self.start_epochs * self.steps_per_epoch else "main")
        return torch.zeros(len(children), dtype=torch.float64)

    def update_pairs(self, opened: None, upstream: Tensor, lr: float) -> None:
        self.steps += 1

    def score_pairs(self, children: Tensor, parents: Tensor) -> Tensor:
        epoch, rest = divmod(int(self.steps), self.steps_per_epoch)
        assert rest == 0, "validation is for whole epochs"
        self.validated.append((epoch, self.phase))
        scores = torch.zeros(len(children), dtype=torch.float64)
        scores[: self.script[epoch - 1]] = 1.0
        return scores

    def generality(self) -> Tensor:
        return torch.zeros(self.nodes)


def scripted(script: list[int], best: Path | None, **settings: Any) -> LinkPredictionTask:
    settings = {"batch": -(-len(SPLIT.train) // 3), **settings}
    steps = -(-len(SPLIT.train) // settings["batch"])
    return task_of(Scripted(script, steps, settings.get("start_epochs", 0)), best, epochs=len(script), **settings)


def run(task: LinkPredictionTask, folder: Path, **more: Any) -> int:
    checkpoints = Checkpoints(folder, "f" * 64, say=lambda text: None)
    train(task, epochs=task.settings.epochs, seed=0, checkpoints=checkpoints, progress=Silent(), **more)
    task.validate(task.settings.epochs - 1)
    return task.take_best()


def reached(good: int) -> float:
    scores = np.zeros(len(SPLIT.valid))
    scores[:good] = 1.0
    return average_precision(scores, np.zeros(SPLIT.valid_negatives.size // 2))


@pytest.mark.parametrize(
    ("script", "chosen"),
    [([1, 3, 2, 0], 2), ([3, 2, 1, 0], 1), ([0, 1, 2, 3], 4), ([1, 3, 3, 2], 2), ([2, 2, 2, 2], 1), ([3], 1)],
)
def test_the_best_epoch_is_kept_of_equals_the_first(tmp_path: Path, script: list[int], chosen: int) -> None:
    assert len(SPLIT.valid) > 3
    task = scripted(script, tmp_path / "best")
    assert run(task, tmp_path / "checkpoints") == chosen
    assert int(task.geometry.steps) == chosen * task.steps_per_epoch
    assert task.curve.tolist() == [reached(good) for good in script]
    record = read_json(tmp_path / "best" / "record.json")
    assert record["place"] == chosen - 1 and record["value"] == reached(script[chosen - 1])


def test_epochs_between_two_looks_are_not_looked_at(tmp_path: Path) -> None:
    """The best epoch of all is the third, which is not due; the last is always due."""
    task = scripted([0, 1, 3, 2, 0], tmp_path / "best", validate_every=2)
    assert run(task, tmp_path / "checkpoints") == 4
    assert task.geometry.validated == [(2, "main"), (4, "main"), (5, "main")]
    assert [not math.isnan(value) for value in task.curve.tolist()] == [False, True, False, True, True]


def test_without_a_place_for_the_best_the_last_epoch_is_kept(tmp_path: Path) -> None:
    task = scripted([3, 0, 0], None)
    assert run(task, tmp_path / "checkpoints") == 3
    assert not task.geometry.validated and task.curve.isnan().all()
    assert int(task.geometry.steps) == 3 * task.steps_per_epoch


def test_scores_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    geometry = Matrix(SPLIT.nodes)
    geometry.matrix[SPLIT.valid[0, 0], SPLIT.valid[0, 1]] = math.nan
    with pytest.raises(UserError, match="NaN or infinite"):
        task_of(geometry, tmp_path / "best").validate(0)
    assert not (tmp_path / "best").exists()


# --- two phases, and runs that are stopped ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_epochs", [0, 1, 3])
def test_the_main_phase_is_entered_once(tmp_path: Path, start_epochs: int) -> None:
    task = scripted([9, 9, 0, 1], tmp_path / "best", start_epochs=start_epochs)
    chosen = run(task, tmp_path / "checkpoints")
    assert int(task.geometry.entered) == 1 and int(task.geometry.astray) == 0
    assert task.geometry.validated == [(epoch, "main") for epoch in range(start_epochs + 1, 5)]
    assert chosen == max(range(start_epochs, 4), key=[9, 9, 0, 1].__getitem__) + 1


class Stop(Exception):
    pass


@pytest.mark.parametrize("start_epochs", [0, 2])
def test_stopped_after_any_step_and_resumed(tmp_path: Path, start_epochs: int) -> None:
    """In the middle of an epoch, and at its ends: the same curve, one entry into the main phase, every step in its phase."""
    script = [0, 2, 3, 1]
    whole = scripted(script, tmp_path / "whole.best", start_epochs=start_epochs)
    assert whole.steps_per_epoch == 3
    chosen = run(whole, tmp_path / "whole")
    for last in range(1, whole.total):
        folder = tmp_path / str(last)
        first = scripted(script, folder / "best", start_epochs=start_epochs)
        real, done = first.step, []

        def stopping(*arguments, real=real, done=done, last=last):
            if len(done) == last:
                raise Stop
            done.append(None)
            return real(*arguments)

        first.step = stopping
        with pytest.raises(Stop):
            run(first, folder / "checkpoints", checkpoint_seconds=0.0)
        second = scripted(script, folder / "best", start_epochs=start_epochs)
        assert run(second, folder / "checkpoints") == chosen
        assert second.curve.tolist() == pytest.approx(whole.curve.tolist(), nan_ok=True)
        assert int(second.geometry.entered) == 1 and int(second.geometry.astray) == 0
        assert {phase for _, phase in second.geometry.validated} == {"main"}
        assert second.geometry.steps == whole.geometry.steps


def test_a_phase_begins_with_every_epoch() -> None:
    task = task_of(start_epochs=1)
    for epoch in range(3):
        task.begin_epoch(epoch, generator_for(epoch))
    assert task.geometry.phases == ["start", "main", "main"]


# --- refusals, and that it learns ---------------------------------------------------------------------------------------------


def test_nothing_to_learn() -> None:
    with pytest.raises(UserError, match="no training edges"):
        task_of(split=dataclasses.replace(SPLIT, train=SPLIT.train[:0]))


@pytest.mark.parametrize("corrupt", ["child", "parent"])
def test_the_shadow_loss_wants_both_sides(corrupt: str) -> None:
    with pytest.raises(UserError, match="use `corrupt: both`"):
        task_of(loss="shadow", corrupt=corrupt)


@pytest.mark.parametrize("start_epochs", [4, 7])
def test_a_start_that_leaves_no_epoch_to_the_main_phase(start_epochs: int) -> None:
    with pytest.raises(UserError, match=rf"start_epochs \({start_epochs}\) must be less than epochs \(4\)"):
        task_of(start_epochs=start_epochs)


@pytest.mark.parametrize(
    ("name", "dim", "settings"),
    [
        ("subspace", 12, {"sampling": "per-edge"}),
        ("subspace", 12, {"sampling": "shared"}),
        ("subspace", 12, {"sampling": "weighted"}),
        ("euclidean", 6, {"loss": "softmax"}),
    ],
)
def test_a_small_tree_is_learnt(tmp_path: Path, name: str, dim: int, settings: dict[str, Any]) -> None:
    """Half of the non-basic edges are shown; the held-out ones are told from their negatives far better than at the start."""
    split = draw_split(binary_tree(5), 50)
    geometry = make_geometry(name, split.nodes, dim, start=0.05)
    task = task_of(geometry, tmp_path / "best", split, epochs=25, validate_every=25, **settings)
    task.state()
    task.initialise(generator_for(0, 0))
    before = average_precision(*decision_scores(geometry, split.valid, split.valid_negatives))
    run(task, tmp_path / "checkpoints")
    after = average_precision(*decision_scores(geometry, split.valid, split.valid_negatives))
    assert after == float(task.curve[-1])
    assert before < 40 and after > 65
