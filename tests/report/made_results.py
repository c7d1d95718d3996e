"""A working folder as the pipeline leaves it: all numbers, every verdict among them, and the files behind them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from subspaces.files import write_json, write_text
from subspaces.report.registry import number, numbers
from subspaces.report.verdicts import verdict

# what is measured here: the paper's value plus these, seed by seed
MEASURED = {
    "reconstruction/subspace-64/nouns-map": (0.1, -0.1),  # reproduced
    "reconstruction/subspace-64/nouns-rho": (8.0,),  # better
    "reconstruction/subspace-128/nouns-map": (-40.25, -41.25, -42.75),  # short
    "reconstruction/subspace-128/verbs-map": (0.0,),  # other scale: below one synset only
}
EXPECTED = {"reproduced": 1, "better": 1, "short": 1, "other scale": 1, "not run": len(numbers()) - 4}
REASON = "the test has no experiment for"
# in the evaluations, but for that of a subtree: there in the record of its model
CURVE = [{"epoch": epoch, "loss": 1 / (1 + epoch), "validation_map": 60.0 + 9 * epoch} for epoch in range(4)]
FIGURES = ("overview", "rank_vs_descendants")


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
        "key": "e" * 64,
        "weights_sha256": f"{seed}" * 64,
        "timing": {"train_seconds": 1234.5, "evaluate_seconds": 2.5},
        "machine": {"processor": "an abacus", "threads": 2},
        **({} if subtree else {"history": CURVE}),
    }


def make_results(folder: Path, scale: str = "laptop") -> pd.DataFrame:
    """Write the files behind the numbers; returns the frame of numbers."""
    rows = []
    for identifier in numbers():
        entry = number(identifier)
        metric = entry.column.split("-")[-1]
        subtree = "move.v.03" if "verbs" in entry.column else None
        values = [entry.value + more for more in MEASURED.get(identifier, ())]
        paths = [f"results/evaluations/{identifier}/seed-{seed}.json" for seed in range(len(values))]
        for seed, (path, value) in enumerate(zip(paths, values, strict=True)):
            write_json(folder / path, evaluation(seed, metric, value, subtree))
        mean, sd = (fmean(values) if values else None), (stdev(values) if len(values) > 1 else None)
        row = {"id": entry.id, "table": entry.table, "row": entry.row, "column": entry.column, "unit": entry.unit}
        row |= {"better": entry.better, "paper": entry.value, "paper_sd": entry.sd, "value": mean, "sd": sd}
        row |= {"seeds": len(values), "scale": scale, "evidence": paths, "values": values, "sample": False}
        if mean is None:
            row |= {"verdict": "not run", "reason": f"{REASON} {identifier}"}
        elif subtree:
            row |= {"verdict": "other scale", "reason": f"below {subtree} only"}
        else:
            row |= {"verdict": verdict(mean, sd, entry.value, entry.sd, entry.better), "reason": "whole hierarchy"}
        rows.append(row)
    trained = {"weights_sha256": "0" * 64, "seed": 0, "curve": CURVE}
    write_json(folder / "results/models/reconstruction/subspace-128/verbs.json", {"key": "e" * 64, "seeds": [trained]})
    table = "**Table 1. Soft projectors**, checked.\n\n| Operation | Bound |\n|---|---|\n| Projector | $\\epsilon(\\sigma_r,\\lambda)$ |\n"
    write_text(folder / "results/tables/soft_projectors.md", f"<!-- key:{'f' * 64} -->\n{table}")
    write_text(folder / "docs/deviations.md", "# What differs\n\nNot `much`.\n\n## A part\n\n- one\n- two\n")
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures/overview.png").write_bytes(png(140, 70))
    return pd.DataFrame(rows)


def png(width: int, height: int) -> bytes:
    """A grey picture that every browser opens."""
    rows = b"".join(b"\x00" + b"\x80" * width for _ in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
