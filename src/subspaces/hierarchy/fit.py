"""From an edge list to a folder that answers queries: close, train with the one loop, make features, measure, calibrate."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subspaces.errors import UserError
from subspaces.files import digest, read_json, sha256_file, write_json
from subspaces.hierarchy.edges import read_hierarchy
from subspaces.hierarchy.features import Features, write_features
from subspaces.hierarchy.record import FORMAT, NAME, differences, read_record
from subspaces.hierarchy.rule import training_for
from subspaces.hierarchy.threshold import calibrate
from subspaces.keys import code_of
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import Progress, generator_for, set_threads
from subspaces.training.progress import Silent
from subspaces.training.run import Run
from subspaces.wordnet.fit import fit_reconstruction
from subspaces.wordnet.graph import Hierarchy
from subspaces.wordnet.ranking import evaluate_generality, evaluate_ranking

_SOURCES = 2_000  # nodes on which mAP and MR are measured, drawn at random from larger hierarchies
_FILES = ("hierarchy.npz", "weights.safetensors", "features.safetensors")


class Paused(Exception):
    """The time that was given is used up; a checkpoint holds everything."""


class _TimedCheckpoints(Checkpoints):
    """Checkpoints that end the run after the first one that is written when the time is up."""

    def __init__(self, folder: Path, key: str, progress: Progress, minutes: float | None):
        super().__init__(folder, key, progress.say)
        self.until = None if minutes is None else time.monotonic() + 60 * minutes

    def save(self, step: int, tensors: dict[str, torch.Tensor], record: dict[str, Any]) -> None:
        super().save(step, tensors, record)
        if self.until is not None and time.monotonic() >= self.until:
            raise Paused(f"paused at step {step:,}: the time is up. The same command goes on from here.")


def fit_hierarchy(
    edges: str | Path,
    out: str | Path,
    *,
    dim: int = 64,
    lam: float = 0.2,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
    seed: int = 0,
    threads: int = 1,
    minutes: float | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = 600.0,
) -> tuple[dict[str, Any], bool]:
    """(what hierarchy.json says, whether there was anything to do). An interrupted fit goes on from its checkpoint.

    Raises `Paused` after `minutes` of training. `threads` and `minutes` do not belong to what is asked: a fit may go on with others
    (other threads: other last bits).
    """
    out, progress = Path(out), progress or Silent()
    _check_numbers(dim, lam, seed, threads, minutes)
    read_record(out)  # a foreign folder is refused before anything else is looked at
    graph = read_hierarchy(Path(edges))
    if len(graph.ancestors) == graph.nodes * (graph.nodes - 1) // 2:
        raise UserError(
            f"{edges}: every node is above or below every other (one chain), so there is nothing to tell apart: add other branches."
        )
    training = training_for(graph.nodes, len(graph.ancestors), dim, lam, epochs=epochs, batch=batch, lr=lr)
    model = {"geometry": "subspace", "dim": dim, "vectors": 0, "lam": lam}
    job = {"model": model, "training": training, "subtree": None}
    asked = {"edges_sha256": edges_sha256(graph), "job": job, "seed": seed}
    key = digest(asked)
    _check_memory(graph.nodes, dim)
    with _alone(out):
        record = read_record(out)
        if record is not None and record["key"] != key:
            what = "; ".join(differences(record["asked"], asked))
            raise UserError(f"{out} holds another fit ({what}): choose another folder with --out, or delete that one.")
        if record is not None and record["finished"]:
            for name in _FILES:
                if not (out / name).exists() or sha256_file(out / name) != record["sha256"][name]:
                    raise UserError(f"{out / name} is damaged or missing: delete {out} and fit again (same command).")
            return record, False
        for stray in out.glob(".*.part"):
            stray.unlink()
        begun = {"format": FORMAT, "finished": False, "key": key, "asked": asked}
        write_json(out / NAME, begun)
        counts = graph.counts()
        progress.say(", ".join(f"{count:,} {name}" for name, count in counts.items()) + f"; {_gigabytes(graph.nodes, dim):.1f} GB to train")
        digests = {"hierarchy.npz": graph.save(out / "hierarchy.npz")}
        if not _trained(out, key):
            # other code of the loop or the geometry never goes on from this code's weights
            code = code_of("subspaces.wordnet.fit", "subspaces.wordnet.geometries.subspace")
            checkpoints = _TimedCheckpoints(out / "checkpoints", digest([key, code]), progress, minutes)
            if not checkpoints.folder.exists() and any((out / "checkpoints").glob("*/step-*.json")):
                progress.say("the checkpoints here are of another version of the code: training begins again")
            often = checkpoint_seconds if minutes is None else 60 * minutes / max(1, -(-60 * minutes // checkpoint_seconds))
            fit_reconstruction(job, graph, Run(out, key, checkpoints, progress, seed, threads, checkpoint_seconds=often))
        set_threads(threads)
        progress.say("features, quality and threshold")
        digests["features.safetensors"] = write_features(out / "weights.safetensors", lam, out / "features.safetensors")
        digests["weights.safetensors"] = read_json(out / "settings.json")["weights_sha256"]
        features = Features(out / "features.safetensors")
        record = {
            **begun,
            "finished": True,
            "counts": counts,
            "sha256": digests,
            "quality": measure(features, graph, seed),
            "threshold": calibrate(features, graph, seed),
            "version": {"subspaces": _version(), "torch": torch.__version__},
        }
        write_json(out / NAME, record)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        return record, True


def measure(features: Features, graph: Hierarchy, seed: int) -> dict[str, Any]:
    """Reconstruction of the hierarchy itself: mAP and MR (PROTOCOL §2), on all nodes with ancestors or 2,000 of them; ρ of rank with the
    number of descendants; and the share of closure edges whose ancestor has the larger rank."""
    sources = np.flatnonzero(np.diff(graph.offsets) > 0)
    if len(sources) > _SOURCES:
        drawn = torch.randperm(len(sources), generator=generator_for(seed, 3))[:_SOURCES].numpy()
        sources = np.sort(sources[drawn])
    ranking = evaluate_ranking(features, graph, block=256, sources=sources)
    trace = features.trace.double().numpy()
    return {
        "map": ranking["map"],
        "mr": ranking["mr"],
        "sources": ranking["sources"],
        "rho_descendants": evaluate_generality(trace, graph)["rho_descendants"],
        "ancestor_larger": 100 * float((trace[graph.ancestors] > trace[graph.closure[:, 0]]).mean()),
        "rank_mean": float(trace.mean()),
    }


def edges_sha256(graph: Hierarchy) -> str:
    """Digest of the relation: names and direct edges, in whatever order and packing the file had them."""
    hasher = hashlib.sha256("\n".join(graph.names).encode())
    hasher.update(b"\n\n" + np.ascontiguousarray(graph.edges, dtype="<i4").tobytes())
    return hasher.hexdigest()


def _trained(out: Path, key: str) -> bool:
    """Was this fit stopped after its training? Then only what follows is left to do."""
    if not (out / "settings.json").exists() or not (out / "weights.safetensors").exists():
        return False
    settings = read_json(out / "settings.json")
    return settings.get("key") == key and settings.get("weights_sha256") == sha256_file(out / "weights.safetensors")


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
