"""From an edge list to a folder that answers queries: close, train, make features, judge over all or stratified pairs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subspaces.errors import UserError
from subspaces.files import digest, read_json, sha256_file, write_json
from subspaces.hierarchy.baseline import BaselineSettings, BaselineTask, baseline_settings, load_baseline
from subspaces.hierarchy.edges import read_rows
from subspaces.hierarchy.features import Features, write_features
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.judging import PairScores, choose_threshold, judge_pairs
from subspaces.hierarchy.learning import InclusionTask
from subspaces.hierarchy.ranking import spearman
from subspaces.hierarchy.record import FORMAT, NAME, differences, read_record
from subspaces.hierarchy.relation import read_relation, shape
from subspaces.hierarchy.rule import FitSettings, settings_for
from subspaces.training.checkpoint import Checkpoints, write_tensors
from subspaces.training.loop import Progress, set_threads, train
from subspaces.training.progress import Silent


class Paused(Exception):
    """The fit was stopped by its time limit or by Ctrl-C; a checkpoint holds everything."""

    interrupted = False


class _PausingCheckpoints(Checkpoints):
    """Writes a checkpoint and stops the fit when the time is up or after Ctrl-C. A second Ctrl-C stops at once."""

    def __init__(self, folder: Path, key: str, progress: Progress, minutes: float | None):
        super().__init__(folder, key, progress.say)
        self.until = None if minutes is None else time.monotonic() + 60 * minutes
        self.interrupted = False

    def due(self) -> bool:
        return self.interrupted or (self.until is not None and time.monotonic() >= self.until)

    def save(self, step: int, tensors: dict[str, torch.Tensor], record: dict[str, Any]) -> None:
        super().save(step, tensors, record)
        if self.due():
            why = "interrupted" if self.interrupted else "the time is up"
            pause = Paused(f"paused at step {step:,}: {why}. A checkpoint is saved; the same command resumes from it.")
            pause.interrupted = self.interrupted
            raise pause

    @contextmanager
    def catch_interrupt(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def interrupt(number: int, frame: Any) -> None:
            self.interrupted = True
            signal.signal(signal.SIGINT, before)
            self.say("Ctrl-C: saving a checkpoint after this step")

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def fit_hierarchy(
    edges: Any,
    out: str | Path,
    *,
    parent_first: bool = False,
    geometry: str = "subspace",
    dim: int = 64,
    lam: float = 0.2,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
    seed: int = 0,
    threads: int = 1,
    minutes: float | None = None,
    closure: bool = True,
    valid: str | Path | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 600.0,
) -> tuple[dict[str, Any], bool]:
    """(what hierarchy.json says, whether there was anything to do). An interrupted fit resumes from its checkpoint.

    `edges` is a path (`-`: standard input), pairs (child, parent), a DataFrame or a networkx DiGraph, see `relation.read_relation`.
    `valid` is a file of pairs with a third column, 1 or 0: the threshold is then chosen on them instead of on the hierarchy's own pairs.
    `geometry` is `subspace`, or a baseline (`baseline.BASELINES`) that is trained and judged on the same pairs, for comparison only.
    `closure=False` trains on the given edges only: pairs that follow from them count neither as edges nor as non-edges.
    Raises `Paused` after `minutes` of training or on Ctrl-C. `threads`, `minutes` and `valid` are not part of the key: a fit may resume
    with others (other threads: other last bits), and a finished one takes another `valid` without training.
    """
    out, warn = Path(out), _warn if progress is None else lambda text: progress.say(f"warning: {text}")
    progress = progress or Silent()
    _check_numbers(dim, lam, seed, threads, minutes)
    read_record(out)  # a foreign folder is refused before anything else is looked at
    graph, doubts = read_relation(edges, parent_first)
    progress.say(shape(graph))
    for doubt in doubts:
        warn(doubt)
    labelled = read_valid(valid, graph) if valid is not None else None
    if len(graph.ancestors) == graph.nodes * (graph.nodes - 1) // 2:
        raise UserError(
            "every node is above or below every other (one chain), so no two nodes are unrelated: add other branches."
        )
    settings: FitSettings | BaselineSettings
    if geometry == "subspace":
        settings = settings_for(graph.nodes, dim, lam, epochs=epochs, batch=batch, lr=lr)
        _check_memory(graph.nodes, dim)
    else:
        settings = baseline_settings(geometry, graph, dim, epochs=epochs, batch=batch, lr=lr)
    asked = {
        "edges_sha256": edges_sha256(graph),
        "settings": settings.model_dump(),
        "closure": closure,
        "seed": seed,
    }
    key = digest(asked)
    with _alone(out):
        record = read_record(out)
        if record is not None and record["key"] != key:
            what = "; ".join(differences(record["asked"], asked))
            raise UserError(f"{out} holds another fit ({what}): choose another folder with --out, or delete that one.")
        if record is not None and record["finished"]:
            for name, sha256 in record["sha256"].items():
                if not (out / name).exists() or sha256_file(out / name) != sha256:
                    raise UserError(f"{out / name} is damaged or missing: delete {out} and fit again (same command).")
            if (record.get("valid") or {}).get("sha256") == (labelled.sha256 if labelled else None):
                return record, False
            record |= _judge(out, graph, settings, seed, closure, labelled)
            write_json(out / NAME, record)
            return record, True
        for stray in out.glob(".*.part"):
            stray.unlink()
        begun = {"format": FORMAT, "finished": False, "key": key, "asked": asked}
        write_json(out / NAME, begun)
        counts = graph.counts()
        needs = f", {_gigabytes(graph.nodes, dim):.1f} GB to train" if geometry == "subspace" else f", {geometry}"
        progress.say(f"{settings.epochs} epochs at d = {dim}{needs}")
        digests = {"hierarchy.npz": graph.save(out / "hierarchy.npz")}
        if not _trained(out, key):
            checkpoints = _PausingCheckpoints(out / "checkpoints", key, progress, minutes)
            _train(graph, settings, closure, out, key, checkpoints, progress, seed, threads, checkpoint_seconds)
        set_threads(threads)
        progress.say("judging")
        digests["weights.safetensors"] = read_json(out / "training.json")["weights_sha256"]
        if geometry == "subspace":
            features = out / "features.safetensors"
            digests[features.name] = write_features(out / "weights.safetensors", lam, features)
        record = {
            **begun,
            "finished": True,
            "counts": counts,
            "sha256": digests,
            "version": {"subspaces": _version(), "torch": torch.__version__},
            **_judge(out, graph, settings, seed, closure, labelled),
        }
        write_json(out / NAME, record)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        return record, True


def _train(
    graph: Taxonomy,
    settings: FitSettings | BaselineSettings,
    closure: bool,
    out: Path,
    key: str,
    checkpoints: _PausingCheckpoints,
    progress: Progress,
    seed: int,
    threads: int,
    checkpoint_seconds: float,
) -> None:
    """Train to the end and write the weights; training.json comes last, so that a folder with it has its weights."""
    set_threads(threads)
    task = (InclusionTask if isinstance(settings, FitSettings) else BaselineTask)(graph, settings, closure)  # type: ignore[arg-type]
    with checkpoints.catch_interrupt():
        outcome = train(
            task,
            epochs=settings.epochs,
            seed=seed,
            checkpoints=checkpoints,
            progress=progress,
            checkpoint_seconds=checkpoint_seconds,
        )
    sha256 = write_tensors(out / "weights.safetensors", task.weights())
    timing = {"seconds": round(outcome.seconds, 1), "threads": threads, "resumed": outcome.resumed_from > 0}
    write_json(out / "timing.json", timing)
    write_json(out / "training.json", {"key": key, "weights_sha256": sha256, "history": outcome.history})


@dataclass(frozen=True)
class Labelled:
    """Pairs of the user with their labels; `sha256` tells whether a finished fit was judged with them."""

    children: torch.Tensor
    parents: torch.Tensor
    entailed: np.ndarray
    sha256: str


def read_valid(path: str | Path, graph: Taxonomy) -> Labelled:
    """child, parent and 1 or 0 (yes or no, true or false) per line."""
    place = {name: node for node, name in enumerate(graph.names)}
    answers = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
    rows = []
    for number, (child, parent, label) in read_rows(path, ("child", "parent", "label")):
        for name in (child, parent):
            if name not in place:
                raise UserError(
                    f"{path}, line {number}: {name!r} is no node of this hierarchy. Correct or delete the line."
                )
        if label.lower() not in answers:
            raise UserError(f"{path}, line {number}: the label must be 1 or 0, not {label!r}.")
        rows.append((place[child], place[parent], answers[label.lower()]))
    if len({row[2] for row in rows}) < 2:
        raise UserError(f"{path}: the threshold needs pairs that hold (1) and pairs that do not (0).")
    table = torch.tensor([row[:2] for row in rows])
    return Labelled(table[:, 0], table[:, 1], np.array([row[2] for row in rows]), digest(rows))


def _judge(
    out: Path,
    graph: Taxonomy,
    settings: FitSettings | BaselineSettings,
    seed: int,
    closure: bool,
    labelled: Labelled | None,
) -> dict[str, dict[str, Any] | None]:
    """The entries `valid` and `quality` of the record."""
    scores: PairScores
    more: dict[str, Any]
    if isinstance(settings, BaselineSettings):
        scores = load_baseline(out / "weights.safetensors", settings, graph, seed, closure)
        generality = scores.geometry.generality()
        more = {"tuned": scores.tuned}
    else:
        scores = features = Features(out / "features.safetensors")
        generality, more = features.trace, {"rank_mean": float(features.trace.double().mean())}
    valid: dict[str, Any] | None = None
    threshold: float | None = None
    if labelled is not None:
        found = choose_threshold(scores, labelled.children, labelled.parents, labelled.entailed)
        valid, threshold = {"sha256": labelled.sha256, **found}, found["threshold"]
    quality = judge_pairs(scores, graph, seed, closure, threshold) | judge_generality(generality, graph) | more
    return {"valid": valid, "quality": quality}


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def judge_generality(generality: torch.Tensor, graph: Taxonomy) -> dict[str, float]:
    """Spearman's ρ with the number of descendants, and the share of closure edges whose ancestor is the more general node."""
    value = generality.double().numpy()
    return {
        "rho_descendants": 100 * spearman(value, graph.descendants),
        "ancestor_larger": 100 * float((value[graph.ancestors] > value[graph.closure[:, 0]]).mean()),
    }


def edges_sha256(graph: Taxonomy) -> str:
    """Digest of the relation: names and direct edges, in whatever order and packing the file had them."""
    hasher = hashlib.sha256("\n".join(graph.names).encode())
    hasher.update(b"\n\n" + np.ascontiguousarray(graph.edges, dtype="<i4").tobytes())
    return hasher.hexdigest()


def _trained(out: Path, key: str) -> bool:
    """Was this fit stopped after its training? Then only the features and the judgement are missing."""
    if not (out / "training.json").exists() or not (out / "weights.safetensors").exists():
        return False
    trained = read_json(out / "training.json")
    return trained["key"] == key and trained["weights_sha256"] == sha256_file(out / "weights.safetensors")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One fit per folder at a time. The folder itself is locked; the system lets go when the process dies, however it dies."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = os.open(out, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}. Choose another folder with --out.") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(folder)
        raise UserError(f"another fit is at work in {out}: wait for it, or stop it; it resumes.") from error
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(folder)


def _gigabytes(nodes: int, dim: int) -> float:
    """Weights and two moments, single precision."""
    return 3 * 4 * nodes * dim**2 / 1e9


def _check_memory(nodes: int, dim: int) -> None:
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if _gigabytes(nodes, dim) > there:
        fits = int(dim * (0.8 * there / _gigabytes(nodes, dim)) ** 0.5)
        raise UserError(
            f"{nodes:,} nodes at --dim {dim} need {_gigabytes(nodes, dim):.1f} GB for the training, and this machine has {there:.0f} GB: "
            f"--dim {fits} would fit."
        )


def _check_numbers(dim: int, lam: float, seed: int, threads: int, minutes: float | None) -> None:
    if not 2 <= dim <= 1024:
        raise UserError(f"dim must be between 2 and 1024, not {dim}: 64 is usual.")
    if not 0 < lam < float("inf"):
        raise UserError(f"lambda must be a positive number, not {lam}: 0.2 is usual.")
    if seed < 0 or threads < 1:
        raise UserError(f"seed must be at least 0 and threads at least 1, not {seed} and {threads}.")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise UserError(f"minutes must be a positive number, not {minutes}.")


def _version() -> str:
    try:
        return version("subspaces")
    except PackageNotFoundError:
        return "unknown"
