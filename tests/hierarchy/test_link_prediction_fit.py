"""From a job to a saved model to its evaluation: killed runs, damaged files, and a decision that is frozen before test is seen."""

from __future__ import annotations

import csv
import dataclasses
import math
import multiprocessing
import random
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.link_prediction.evaluate import evaluate_link_prediction, judge_split, load_link_prediction
from subspaces.files import read_json, sha256_file, write_json
from subspaces.hierarchy import link_prediction
from subspaces.hierarchy.link_prediction import (
    LinkJob,
    LinkPredictionTask,
    decide,
    decision_scores,
    fit_link_prediction,
)
from subspaces.hierarchy.splits import Split, draw_split
from subspaces.hierarchy.thresholds import average_precision, best_threshold, judge
from subspaces.pipeline.artefact import carries
from subspaces.training import best, run
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.progress import Silent
from subspaces.training.run import Run
from tests.hierarchy.test_link_prediction import SETTINGS, Matrix
from tests.hierarchy.toys import binary_tree, random_dag

KEY = "a" * 64
RECORD = {"data": {"sample": False}}
SPLIT = draw_split(random_dag(40, 3, 110), 10)
DIMS = {"subspace": 8, "euclidean": 6}
OUTPUTS = ("weights.safetensors", "settings.json", "history.csv")
# A run in two phases whose validation does not simply rise
BUSY = {"epochs": 6, "batch": 24, "lr": 0.05, "start_epochs": 1, "start_lr": 0.02, "validate_every": 2}


def job(name: str = "subspace", threshold: str = "exact", **settings: Any) -> LinkJob:
    model = {"geometry": name, "dim": DIMS[name]}
    return LinkJob(model=model, training={**SETTINGS, **settings}, threshold=threshold)


def fit(one: LinkJob, folder: Path, split: Split = SPLIT, seed: int = 0, **more: Any) -> dict[str, Any]:
    checkpoints = Checkpoints(folder / "checkpoints", KEY, say=lambda text: None)
    return fit_link_prediction(
        one, split, Run(folder / "model", KEY, checkpoints, Silent(), seed, record=RECORD, **more)
    )


def evaluate(folder: Path, split: Split, out: str = "out.json") -> dict[str, Any]:
    split.save(folder / "split.npz")
    return evaluate_link_prediction(
        folder / "model", folder / "split.npz", folder / out, "b" * 64, 1, {"scale": "quick"}
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "model" / name).read_bytes() for name in OUTPUTS}


def best_of(folder: Path) -> Path:
    return folder / "checkpoints" / f"{KEY[:16]}.best"


@pytest.fixture(autouse=True)
def global_switches():
    """`fit` and `evaluate` set threads and determinism for their process; the next test gets its own back."""
    yield
    torch.use_deterministic_algorithms(False)


# --- the whole way ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIMS)
def test_a_model_is_saved_loaded_and_evaluated(tmp_path: Path, name: str) -> None:
    settings = fit(job(name, validate_every=3), tmp_path)
    folder = tmp_path / "model"
    assert read_json(folder / "settings.json") == settings and carries(folder / "settings.json", KEY)
    assert settings["weights_sha256"] == sha256_file(folder / "weights.safetensors")
    assert settings["split"] == {**SPLIT.counts(), "coverage": 10, "train_origin": SPLIT.train_origin}
    assert [path.name for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()] == ["lock"] and not best_of(
        tmp_path
    ).exists()
    with (folder / "history.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"] and all(
        math.isfinite(float(row["loss"])) for row in rows
    )
    seen = {int(row["epoch"]): float(row["validation_auprc"]) for row in rows if row["validation_auprc"]}
    assert set(seen) == {3, 4} and settings["best_epoch"] == max(seen, key=seen.get)

    _, geometry = load_link_prediction(folder, SPLIT.nodes)
    assert (
        average_precision(*decision_scores(geometry, SPLIT.valid, SPLIT.valid_negatives))
        == seen[settings["best_epoch"]]
    )
    assert decide(geometry, SPLIT, "exact") == settings["decision"]
    result = evaluate(tmp_path, SPLIT)
    assert read_json(tmp_path / "out.json") == result
    assert result["metrics"] == judge_split(geometry, SPLIT, settings["decision"])
    assert result["model_key"] == KEY and result["key"] == "b" * 64 and result["scale"] == "quick"
    assert (
        result["settings"]["decision"] == settings["decision"]
        and result["weights_sha256"] == settings["weights_sha256"]
    )
    positive, negative = decision_scores(geometry, SPLIT.test, SPLIT.test_negatives, **settings["decision"]["tuned"])
    assert result["metrics"]["auprc"] == average_precision(positive, negative)
    assert result["metrics"]["f1"] == judge(positive, negative, settings["decision"]["threshold"])["f1"]


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for folder, seed in (("one", 0), ("two", 0), ("three", 1)):
        fit(job(), tmp_path / folder, seed=seed)
    one, two, three = (contents(tmp_path / folder) for folder in ("one", "two", "three"))
    assert one == two
    assert all(one[name] != three[name] for name in OUTPUTS)


def test_a_split_without_validation_keeps_the_last_epoch_and_decides_nothing(tmp_path: Path) -> None:
    blind = dataclasses.replace(SPLIT, valid=SPLIT.valid[:0], valid_negatives=SPLIT.valid_negatives[:0])
    settings = fit(job(), tmp_path, blind)
    assert settings["best_epoch"] == SETTINGS["epochs"] and settings["decision"] is None
    with pytest.raises(UserError, match="without validation edges, so no threshold was frozen"):
        evaluate(tmp_path, SPLIT)


# --- the decision -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIMS)
def test_fit_never_reads_test(tmp_path: Path, name: str) -> None:
    """With nodes that do not exist in test's place the files are the same to the last byte."""
    nowhere = [np.full_like(one, 10**12) for one in (SPLIT.test, SPLIT.test_negatives)]
    fit(job(name), tmp_path / "poisoned", dataclasses.replace(SPLIT, test=nowhere[0], test_negatives=nowhere[1]))
    fit(job(name), tmp_path / "plain")
    assert contents(tmp_path / "poisoned") == contents(tmp_path / "plain")


def test_evaluation_only_applies_the_decision(tmp_path: Path) -> None:
    """Another test set gives other numbers by the same threshold, and validation is not looked at again."""
    one = job("euclidean", epochs=8)
    settings = fit(one, tmp_path)
    before, first = contents(tmp_path), evaluate(tmp_path, SPLIT)
    other = dataclasses.replace(SPLIT, test=SPLIT.test[::2], test_negatives=SPLIT.test_negatives[::2])
    second = evaluate(tmp_path, other, "other.json")
    assert second["metrics"] != first["metrics"]
    assert first["settings"]["decision"] == second["settings"]["decision"] == settings["decision"]
    unseen = dataclasses.replace(SPLIT, valid=SPLIT.valid[:1], valid_negatives=SPLIT.valid_negatives[:1])
    assert evaluate(tmp_path, unseen, "third.json")["metrics"] == first["metrics"]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("scan", ["exact", "grid"])
def test_what_validation_decides(scan: str) -> None:
    """The setting by average precision, the default among equals; then the threshold, on scores with that setting."""
    geometry = Matrix(SPLIT.nodes)
    positive, negative = decision_scores(geometry, SPLIT.valid, SPLIT.valid_negatives)
    decision = decide(geometry, SPLIT, scan)  # a shift of all scores changes no order
    threshold = best_threshold(positive, negative, scan)
    expected = {"auprc": average_precision(positive, negative), **judge(positive, negative, threshold)}
    assert decision == {"threshold": threshold, "scan": scan, "tuned": {"shift": 0.0}, "validation": expected}

    class Better(Matrix):
        def score_pairs(self, children, parents, shift=0.0):
            clear = torch.arange(len(children)) < len(SPLIT.valid)
            return torch.where(clear, 0.75, 0.25).double() if shift else super().score_pairs(children, parents)

    decision = decide(Better(SPLIT.nodes), SPLIT, scan)
    assert (
        decision["tuned"] == {"shift": 1.0} and decision["validation"]["auprc"] == decision["validation"]["f1"] == 100.0
    )
    assert 0.25 < decision["threshold"] <= 0.75


def test_against_edges_turned_round_by_hand() -> None:
    """Three test edges; the threshold 0.5 takes two of them, four of thirty negatives, and two of three reversed edges."""
    test = np.array([[0, 1], [0, 2], [3, 4]])
    scores = torch.zeros(12, 12, dtype=torch.float64)
    scores[0, 1], scores[0, 2], scores[3, 4] = 0.9, 0.5, 0.2
    scores[1, 0], scores[2, 0], scores[4, 3] = 0.6, 0.1, 0.8
    blocks = np.repeat(test[:, None], 10, axis=1)
    blocks[:, :5, 0] = blocks[:, 5:, 1] = np.arange(5, 10)
    for child, parent in ((5, 1), (0, 7), (9, 4)):
        scores[child, parent] = 0.7
    split = dataclasses.replace(SPLIT, names=[str(node) for node in range(12)], test=test, test_negatives=blocks)
    found = judge_split(Matrix(12, scores), split, {"threshold": 0.5, "tuned": {}})
    # (0, 7) is in two blocks, those of (0, 1) and of (0, 2): four negatives reach 0.5
    assert found["precision"] == pytest.approx(100 * 2 / 6) and found["recall"] == pytest.approx(100 * 2 / 3)
    assert found["f1"] == pytest.approx(100 * 2 * 2 / (6 + 3))
    assert found["auprc"] == pytest.approx(100 / 3 * (1 + 2 / 6 + 3 / 7))
    assert found["precision_reversed"] == pytest.approx(100 * 2 / 4) and found["recall_reversed"] == pytest.approx(
        100 * 2 / 3
    )
    assert found["f1_reversed"] == pytest.approx(100 * 2 * 2 / (4 + 3))
    assert found["auprc_reversed"] == pytest.approx(100 / 3 * (1 + 2 / 4 + 3 / 5))
    shifted = judge_split(Matrix(12, scores), split, {"threshold": 1.5, "tuned": {"shift": 1.0}})
    assert shifted == pytest.approx(found)  # the frozen setting is used, on both


def test_an_empty_test_set_is_explained() -> None:
    with pytest.raises(UserError, match="both edges and non-edges are needed"):
        nothing = dataclasses.replace(SPLIT, test=SPLIT.test[:0], test_negatives=SPLIT.test_negatives[:0])
        judge_split(Matrix(SPLIT.nodes), nothing, {"threshold": 0.5, "tuned": {}})


# --- damage -------------------------------------------------------------------------------------------------------------------


def flip_last(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_damaged_or_missing_weights_are_refused(tmp_path: Path) -> None:
    fit(job("euclidean", epochs=1), tmp_path)
    flip_last(tmp_path / "model" / "weights.safetensors")
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged or missing: copy .* again, or delete it"):
        evaluate(tmp_path, SPLIT)
    (tmp_path / "model" / "weights.safetensors").unlink()
    with pytest.raises(UserError, match="damaged or missing"):
        load_link_prediction(tmp_path / "model", SPLIT.nodes)
    assert not (tmp_path / "out.json").exists()


class Stop(Exception):
    pass


def stopped(folder: Path, after: int, patch: pytest.MonkeyPatch, one: LinkJob, **more: Any) -> None:
    """Train with a checkpoint after every step, until `after` steps are done."""
    real, done = LinkPredictionTask.step, []

    def stopping(*arguments):
        if len(done) == after:
            raise Stop
        done.append(None)
        return real(*arguments)

    with patch.context() as context:
        context.setattr(LinkPredictionTask, "step", stopping)
        with pytest.raises(Stop):
            fit(one, folder, **{"checkpoint_seconds": 0.0, **more})
    assert not (folder / "model").exists()


DAMAGES = {
    "flipped byte in the weights": lambda best: flip_last(best / "weights.safetensors"),
    "no weights": lambda best: (best / "weights.safetensors").unlink(),
    "no record": lambda best: (best / "record.json").unlink(),
    "garbage record": lambda best: (best / "record.json").write_bytes(b"\x00\xff{{{"),
    "record of nothing": lambda best: (best / "record.json").write_text("[]"),
    "record without keys": lambda best: (best / "record.json").write_text("{}"),
    "weights of another epoch": lambda best: write_json(
        best / "record.json", {**read_json(best / "record.json"), "place": 2}
    ),
}


def peaked(patch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Let validation find these values, one after the other."""
    left = iter(values)
    # when the values are used up, training is over and the decision computes its own
    patch.setattr(
        link_prediction,
        "average_precision",
        lambda positive, negative: next(left, None) or average_precision(positive, negative),
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_best_weights_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """The peak is behind a stopped run, so its weights cannot come again; what the message says to delete helps."""
    one = job("euclidean", batch=64, epochs=4)
    with monkeypatch.context() as patch:
        peaked(patch, [50.0, 90.0, 40.0])
        stopped(tmp_path, 3 * -(-len(SPLIT.train) // 64) + 1, monkeypatch, one)
        DAMAGES[damage](best_of(tmp_path))
        peaked(patch, [30.0])
        with pytest.raises(UserError, match=rf"damaged or missing: delete {tmp_path / 'checkpoints'} and train again"):
            fit(one, tmp_path)
    assert not (tmp_path / "model").exists()
    for path in sorted((tmp_path / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    fit(one, tmp_path)
    fit(one, tmp_path / "plain")
    assert contents(tmp_path) == contents(tmp_path / "plain")


def test_damaged_best_weights_that_are_beaten_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = job("euclidean", batch=64, epochs=4)
    with monkeypatch.context() as patch:
        peaked(patch, [50.0, 40.0, 30.0])
        stopped(tmp_path, 3 * -(-len(SPLIT.train) // 64) + 1, monkeypatch, one)
        flip_last(best_of(tmp_path) / "weights.safetensors")
        peaked(patch, [60.0])
        assert fit(one, tmp_path)["best_epoch"] == 4


def test_an_early_peak_is_what_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved, decided and evaluated are the weights of the second epoch; a run of two epochs ends with the same."""
    with monkeypatch.context() as patch:
        peaked(patch, [50.0, 90.0, 40.0, 30.0])
        settings = fit(job(), tmp_path / "long")
        peaked(patch, [50.0, 90.0])
        short = fit(job(epochs=2), tmp_path / "short")
    assert settings["best_epoch"] == short["best_epoch"] == 2
    assert settings["weights_sha256"] == short["weights_sha256"] and settings["decision"] == short["decision"]


# --- runs that are stopped ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    settings = fit(job(**BUSY), folder)
    torch.use_deterministic_algorithms(False)
    assert settings["best_epoch"] > 1 and settings["steps"] == 6 * -(-len(SPLIT.train) // 24)
    return folder


@pytest.mark.parametrize("kept", [True, False], ids=["with checkpoints", "without"])
@pytest.mark.parametrize("epochs", [0.5, 1.5, 2.0, 2.5, 4.0, 5.5])
def test_a_resumed_run_writes_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, epochs: float, kept: bool
) -> None:
    """Stopped before the first validation, just before one, and after; also when only the best weights are left of the first run."""
    after = int(epochs * -(-len(SPLIT.train) // 24))
    stopped(tmp_path, after, monkeypatch, job(**BUSY), checkpoint_seconds=0.0 if kept else 1e9)
    assert (best_of(tmp_path) / "record.json").exists() == (epochs >= 2.0)
    fit(job(**BUSY), tmp_path)
    assert read_json(tmp_path / "model" / "timing.json")["resumed"] == kept
    assert contents(tmp_path) == contents(whole)
    assert not best_of(tmp_path).exists()


@pytest.mark.parametrize("place", ["best weights", "best record", "model weights", "settings"])
def test_stopped_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, place: str) -> None:
    """Between the two files of the best epoch, or with a model half saved."""
    module = best if place.startswith("best") else run
    name = "write_tensors" if place.endswith("weights") else "write_json"
    real, calls = getattr(module, name), []

    def failing(path: Path, content: Any) -> Any:
        calls.append(path)
        if (place.startswith("best") and len(calls) == 2) or (place == "model weights") or path.name == "settings.json":
            raise Stop
        return real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, failing)
        with pytest.raises(Stop):
            fit(job(**BUSY), tmp_path, checkpoint_epochs=1)
    assert not (tmp_path / "model" / "settings.json").exists()
    fit(job(**BUSY), tmp_path)
    assert contents(tmp_path) == contents(whole)


def run_slowly(folder: Path, validate_every: int) -> None:
    """For a process of its own: a checkpoint after every step, and a short rest, so that there is time to kill it."""
    real = LinkPredictionTask.step

    def slow(*arguments):
        metrics = real(*arguments)
        time.sleep(0.004)
        return metrics

    LinkPredictionTask.step = slow
    # the public function does this and loads a compiler for it, which takes seconds in every process
    torch.use_deterministic_algorithms = torch._C._set_deterministic_algorithms
    fit(job(**{**BUSY, "validate_every": validate_every}), folder, checkpoint_seconds=1e-9)


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Forked from a server that has torch in memory already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["subspaces.experiments.link_prediction.evaluate", "subspaces.geometries.subspace"])
    return context


def newest(folder: Path) -> int:
    steps = [int(path.stem.removeprefix("step-")) for path in (folder / "checkpoints" / KEY[:16]).glob("step-*.json")]
    return max(steps, default=0)


@pytest.mark.parametrize("validate_every", [1, 6], ids=["best weights left behind", "none left"])
def test_sigkill_at_random_moments(tmp_path: Path, processes: ForkServerContext, validate_every: int) -> None:
    """Real processes, killed without warning, also while they write: the same weights, decision and curve."""
    draw, left = random.Random(), []
    for target in (2, 8, 14):  # of 24 steps
        worker = processes.Process(target=run_slowly, args=(tmp_path, validate_every))
        worker.start()
        deadline = time.monotonic() + 60
        while newest(tmp_path) < target and worker.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 0.02))
        worker.kill()
        worker.join()
        assert worker.exitcode == -9, f"it ended by itself ({worker.exitcode}) before it was killed"
        assert newest(tmp_path) >= target
        left.append((best_of(tmp_path) / "weights.safetensors").exists())
    assert left[-1] == (validate_every == 1) and not left[0]
    one = job(**{**BUSY, "validate_every": validate_every})
    found = fit(one, tmp_path)
    expected = fit(one, tmp_path / "plain")
    assert read_json(tmp_path / "model" / "timing.json")["resumed"]
    assert found["weights_sha256"] == expected["weights_sha256"] and found["decision"] == expected["decision"]
    assert contents(tmp_path) == contents(tmp_path / "plain")


def test_two_phases_of_a_geometry_that_has_them_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at the end of every epoch: what is validated next is scored as in the run that was not stopped."""
    split = draw_split(binary_tree(4), 50)
    one = job(epochs=4, start_epochs=2, lr=0.01, loss="margin", gamma_positive=0.0, gamma_negative=-0.5)
    one = LinkJob(**one.model_dump() | {"model": {"geometry": "disk", "dim": 3}})
    fit(one, tmp_path / "whole", split)
    steps = -(-len(split.train) // SETTINGS["batch"])
    for epochs in (2, 3):
        folder = tmp_path / str(epochs)
        stopped(folder, epochs * steps, monkeypatch, one, split=split)
        fit(one, folder, split)
        assert contents(folder) == contents(tmp_path / "whole")
