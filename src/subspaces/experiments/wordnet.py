"""From the raw WordNet files to a hierarchy with its closure, checked against the paper's six counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, write_json
from subspaces.hierarchy.graph import build_hierarchy
from subspaces.sources.wordnet_reader import read_wordnet


def prepare_hierarchy(
    source: Path, pos: str, instance_hypernyms: bool, expected: dict[str, int], out: Path, key: str
) -> dict[str, Any]:
    """Write `out`.npz (the hierarchy) and `out`.json (counts, origin, digests, key), the second last.

    `expected` are the counts that the closure of the real, plain hypernym graph must have; a sample or the instance graph has its own.
    """
    manifest = read_json(source / "manifest.json")
    names, edges = read_wordnet(source, pos, instance_hypernyms)
    graph = build_hierarchy(names, edges)
    counts = graph.counts()
    if not manifest["sample"] and not instance_hypernyms and counts != expected:
        raise UserError(
            f"WordNet {pos}: expected {expected}, found {counts}. The files in {source} are not WordNet 3.0: "
            "delete the folder and fetch again."
        )
    sha256 = graph.save(out.with_suffix(".npz"))
    record = {
        "key": key,
        "pos": pos,
        "counts": counts,
        "instance_hypernyms": instance_hypernyms,
        "sample": manifest["sample"],
        "origin": manifest["origin"],
        "sha256": sha256,
        "source": {name: one["sha256"] for name, one in manifest["files"].items()},
    }
    write_json(out.with_suffix(".json"), record)
    return record
