"""Encoding time per query, with the projection head and without it (paper §4.5, Table 7): forward passes only, tokens
made beforehand.

Times do not depend on what the weights are, so the head is a fresh one: nothing has to be trained for this table.
"""

from __future__ import annotations

import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subspaces.experiments.efficiency.settings import EncodingSettings
from subspaces.files import read_json, write_json
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import make_model
from subspaces.text.texts import Tokens, TokenTable, backbone_tokeniser
from subspaces.training.loop import set_threads

BARE, HEAD = "mpnet", "mpnet-subspace-128"


def batches_of(table: TokenTable, size: int, sentences: int, seed: int) -> list[Tokens]:
    """`sentences` rows, at least one batch, cut into batches of `size`; where there are too few texts, some stand more
    than once."""
    rows = np.resize(np.random.default_rng(seed).permutation(len(table)), max(sentences, size))
    whole = len(rows) // size * size
    return [table.batch(some) for some in rows[:whole].reshape(-1, size)]


@torch.inference_mode()
def encoding_times(
    job: Any,
    texts: list[str],
    sources: Path,
    sizes: list[int],
    sentences: int,
    repeats: int,
    seed: int,
    device: str = "cpu",
) -> dict[str, dict[str, float]]:
    """Milliseconds per query for each batch size, of the bare backbone and with the head; measured in turns, medians over repeats."""
    chosen = job.backbone
    backbone = Backbone.from_folder(sources / chosen.name, chosen.layers, 0, 0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make_model(job.model, job.ways, backbone).to(device).eval()
    table = TokenTable.of(texts, backbone_tokeniser(sources / chosen.name), job.limit)
    found: dict[str, dict[str, float]] = {BARE: {}, HEAD: {}}
    for size in sizes:
        batches = [one.to(device) for one in batches_of(table, size, sentences, seed)]
        spent: dict[str, list[float]] = {BARE: [], HEAD: []}
        for turn in range(repeats + 1):
            for name, encode in ((BARE, backbone), (HEAD, model.encode)):
                began = time.perf_counter()
                for tokens in batches:
                    encode(tokens)
                if device == "cuda":
                    torch.cuda.synchronize()
                if turn:  # the first warms up
                    spent[name].append(1e3 * (time.perf_counter() - began) / (size * len(batches)))
        for name, times in spent.items():
            found[name][f"batch-{size}"] = statistics.median(times)
    return found


def measure_encoding(
    settings: EncodingSettings,
    job: Any,
    captions: Path,
    sources: Path,
    out: Path,
    key: str,
    threads: int,
    device: str,
    scale: str,
) -> dict[str, Any]:
    """Measure both rows of the table and write them to `out`; `job` is the SNLI job of the row with the head."""
    set_threads(threads)
    texts = captions.read_text(encoding="utf-8").splitlines()
    options = {"sentences": settings.sentences, "repeats": settings.repeats, "seed": settings.seed}
    found = encoding_times(job, texts, sources, settings.batches, device=device, **options)
    record = read_json(captions.with_suffix(".json"))
    overhead = {size: found[HEAD][size] - found[BARE][size] for size in found[BARE]}
    backbone = job.backbone
    where = f"{device}, {threads} thread{'s' * (threads > 1)}"
    text = f"{where}; the paper: an RTX 8000"
    if backbone.name != backbone.wanted or backbone.layers is not None:
        text += f"; {backbone.name}" + (f", its first {backbone.layers} layers," if backbone.layers else "")
        text += f" in place of {backbone.wanted}"
    if record["sample"]:
        text += "; captions of a small sample"
    machine = {"processor": platform.machine(), "threads": threads, "torch": torch.__version__, "device": device}
    shared = {
        "scale": scale,
        "settings": {
            "model": job.model.model_dump(),
            "backbone": backbone.model_dump(),
            "training": None,
            "seed": settings.seed,
            **options,
        },
        "data": {name: record[name] for name in ("sample", "origin", "sha256", "captions")},
        "weights_sha256": None,
        "extent": {"comparable": False, "text": text},
        "machine": machine,
    }
    write_json(out, {"key": key, **shared, "metrics": found, "added_ms": overhead})
    return found | {"added": overhead}
