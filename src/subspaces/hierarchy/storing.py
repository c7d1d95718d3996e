"""A fitted hierarchy to other folders: saved with its added nodes, or exported as plain JSON and safetensors and read back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open

from subspaces.errors import UserError
from subspaces.files import digest, read_json, write_json, write_text
from subspaces.hierarchy.features import Features, write_features
from subspaces.hierarchy.fit import edges_sha256, judge_generality
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.judging import judge_pairs
from subspaces.hierarchy.record import FORMAT, NAME
from subspaces.hierarchy.rule import settings_for
from subspaces.training.checkpoint import write_tensors

if TYPE_CHECKING:
    from subspaces.hierarchy.model import Hierarchy

EXPORT = "subspaces hierarchy export 1"
_JSON, _TENSORS = "export.json", "subspaces.safetensors"


def save(hierarchy: Hierarchy, folder: Path) -> Path:
    """A copy of the folder; with added nodes, new files and a new judgement at the old threshold."""
    _check_empty(folder)
    if not hierarchy._new:
        shutil.copytree(hierarchy.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("checkpoints"))
        return folder
    record = hierarchy.record
    names = hierarchy.names[len(hierarchy) - len(hierarchy._new) :]
    asked = record["asked"] | {"edges_sha256": edges_sha256(hierarchy.graph)}
    added = [*record.get("added", []), *names]
    X = hierarchy.vectors(torch.arange(len(hierarchy)))
    return _write(
        folder, hierarchy.graph, X, asked, hierarchy.threshold, {"added": added, "valid": record.get("valid")}
    )


def export(hierarchy: Hierarchy, folder: Path) -> Path:
    """export.json: format, lambda, threshold, names, edges as pairs of numbers (child, parent). subspaces.safetensors: X (N, d, d)."""
    _check_empty(folder)
    write_tensors(folder / _TENSORS, {"X": hierarchy.vectors(torch.arange(len(hierarchy)))})
    content = {
        "format": EXPORT,
        "lambda": hierarchy.lam,
        "threshold": hierarchy.threshold,
        "names": hierarchy.names,
        "edges": hierarchy.graph.edges.tolist(),
    }
    write_text(folder / _JSON, json.dumps(content, ensure_ascii=False) + "\n")
    return folder


def import_folder(folder: Path, out: Path) -> Path:
    """A folder that `Hierarchy.load` reads, from one that `export`, or another program, wrote. X may have any number of columns; without
    a threshold the one with the best F1 is chosen."""
    if not (folder / _JSON).is_file() or not (folder / _TENSORS).is_file():
        raise UserError(f"{folder} holds no exported hierarchy: it needs {_JSON} and {_TENSORS}.")
    content = read_json(folder / _JSON)
    if not isinstance(content, dict) or content.get("format") != EXPORT:
        raise UserError(f"{folder / _JSON} is no exported hierarchy: its format must be {EXPORT!r}.")
    try:
        names, edges, lam = content["names"], content["edges"], float(content["lambda"])
        with safe_open(folder / _TENSORS, framework="pt") as tensors:
            X = tensors.get_tensor("X").float()
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise UserError(f"{folder} is not complete ({error}): export it again.") from error
    if X.ndim != 3 or len(X) != len(names):
        raise UserError(f"{folder / _TENSORS}: X must have the shape ({len(names)}, d, n), not {tuple(X.shape)}.")
    _check_empty(out)
    graph = build_hierarchy(names, edges)
    settings = settings_for(graph.nodes, X.shape[1], lam).model_dump()
    asked = {"edges_sha256": edges_sha256(graph), "settings": settings, "closure": True, "seed": 0, "imported": True}
    return _write(out, graph, X, asked, content.get("threshold"), {})


def _write(
    folder: Path, graph: Taxonomy, X: torch.Tensor, asked: dict[str, Any], threshold: float | None, more: dict[str, Any]
) -> Path:
    """All files of a fitted hierarchy, the record last."""
    digests = {"hierarchy.npz": graph.save(folder / "hierarchy.npz")}
    digests["weights.safetensors"] = write_tensors(folder / "weights.safetensors", {"X": X})
    out = folder / "features.safetensors"
    digests[out.name] = write_features(folder / "weights.safetensors", asked["settings"]["lam"], out)
    features = Features(out)
    quality = judge_pairs(features, graph, asked["seed"], asked["closure"], threshold)
    quality |= judge_generality(features.trace, graph)
    record = {"format": FORMAT, "finished": True, "key": digest([asked, digests]), "asked": asked, "sha256": digests}
    write_json(folder / NAME, record | {"counts": graph.counts(), "quality": quality} | more)
    return folder


def _check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty: choose a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
