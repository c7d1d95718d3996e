"""A working folder as the pipeline leaves it, made in a second: all numbers, with every verdict among them, and what stands behind them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from subspaces.files import write_json, write_text
from subspaces.paper.numbers import write_number
from subspaces.paper.registry import number, numbers

# what is measured here: the paper's value plus these, seed by seed
MEASURED = {
    "reconstruction/subspace-64/nouns-map": (0.1, -0.1),  # reproduced
    "reconstruction/subspace-64/nouns-rho": (8.0,),  # better
    "reconstruction/subspace-128/nouns-map": (-40.25, -41.25, -42.75),  # short
    "reconstruction/subspace-128/verbs-map": (0.0,),  # other scale: below one synset only
}
EXPECTED = {"reproduced": 1, "better": 1, "short": 1, "other scale": 1, "not run": len(numbers()) - 4}
REASON = "the test has no experiment for"
FIGURES = ("overview", "rank_vs_descendants")
PLACE = "runs/quick"


def evaluation(seed: int, metric: str, value: float, subtree: str | None = None) -> dict[str, Any]:
    return {
        "metrics": {metric: value},
        "seed": seed,
        "settings": {
            "model": {"geometry": "subspace", "dim": 64},
            "training": {"epochs": 3, "sampling": "shared"},
            "subtree": subtree,
            "seed": seed,
            "graph": {"nodes": 10},
        },
        "data": {"sample": False, "origin": "mirror", "sha256": "c" * 64, "source": {"data.noun": "d" * 64}},
        "code_sha256": "e" * 64,
        "weights_sha256": f"{seed}" * 64,
        "timing": {"train_seconds": 1234.5, "evaluate_seconds": 2.5},
        "machine": {"processor": "an abacus", "threads": 2},
    }


def make_results(folder: Path, scale: str = "laptop") -> dict[str, list[str]]:
    """Write everything; returns the evaluation files of each number."""
    evidence: dict[str, list[str]] = {}
    for identifier in numbers():
        entry = number(identifier)
        metric = entry.column.split("-")[-1]
        subtree = "move.v.03" if "verbs" in entry.column else None
        paths = []
        for seed, more in enumerate(MEASURED.get(identifier, ())):
            paths.append(f"results/evaluations/{identifier}/seed-{seed}.json")
            write_json(folder / paths[-1], evaluation(seed, metric, entry.value + more, subtree))
        evidence[identifier] = paths
        out = folder / f"results/numbers/{identifier}.json"
        reason = None if paths else f"{REASON} {identifier}"
        write_number(asdict(entry), scale, [folder / path for path in paths], out, "a" * 64, "b" * 64, reason)
    table = "**Table 1. Soft projectors**, checked.\n\n| Operation | Bound |\n|---|---|\n| Projector | $\\epsilon(\\sigma_r,\\lambda)$ |\n"
    write_text(folder / "results/tables/soft_projectors.md", f"<!-- key:{'f' * 64} -->\n{table}")
    write_text(folder / "docs/deviations.md", "# What differs\n\nNot `much`.\n\n## A part\n\n- one\n- two\n")
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures/overview.png").write_bytes(png(140, 70))
    return evidence


def png(width: int, height: int) -> bytes:
    """A grey picture that every browser opens."""
    rows = b"".join(b"\x00" + b"\x80" * width for _ in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
