"""One run of the benchmark: calibrate and choose on one half of the queries, report on the other."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from subspaces.experiments.compositional_retrieval.benchmark import Benchmark, compare, run, summarise
from subspaces.experiments.compositional_retrieval.systems import (
    EVERYTHING,
    FITTED,
    Evidence,
    LexicalEvidence,
    System,
    all_systems,
    fitted_calibrations,
)
from subspaces.files import write_json
from subspaces.search.build import Progress
from subspaces.search.calibration import Calibration, Method, SearchProfile, Termwise
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from subspaces.text.backbone import Backbone
from subspaces.text.load import TextModel
from subspaces.text.pooling import keeps_backbone, pooled
from subspaces.text.texts import backbone_tokeniser

OPERATORS: dict[str, Method] = {"product": "product", "sandwich-hard": "sandwich-hard", "exact": "exact"}
AGAINST = ("text", "vector arithmetic", "product", "BM25, Boolean")
SHOWN = ("a & b", "a & ~b")  # forms with worked examples
_EXAMPLES, _HITS = 2, 3


def benchmark_encoder(model: TextModel, backbone: Path) -> HalfVectorEncoder:
    """The model with vectors of the plain backbone and all columns of a calibration; long captions are cut, so that a
    document is one row."""
    plain, tokeniser = Backbone.from_folder(backbone, None, 0, 0.0).eval(), backbone_tokeniser(backbone)
    known: dict[Termwise, Calibration] = dict(SearchProfile.of_model(model).calibrations)
    profile = SearchProfile(calibrations={**known, "hybrid": EVERYTHING})
    vectors = partial(pooled, plain, tokeniser, limit=model.limit)
    return HalfVectorEncoder(model.projectors, model.dim, model.fingerprint, model, None, profile, vectors)


def evaluate_benchmark(
    benchmark: Benchmark,
    encoder: HalfVectorEncoder,
    folder: Path,
    hybrid: bool,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Everything that the table, the figure and search.json are made from. `folder` holds the index of the documents;
    `hybrid`: the model can be shipped with the method hybrid."""
    index = SubspaceIndex.build(benchmark.documents, encoder, folder, kind="exact-fp16", progress=progress)
    evidence = Evidence(index)
    calibrations = fitted_calibrations(evidence, benchmark.choosing_terms())
    systems = all_systems(evidence, LexicalEvidence(benchmark.documents, benchmark.lemmatiser), calibrations)
    halves = {half: run(benchmark, systems, half) for half in ("choosing", "reporting")}
    quality = mean_ndcg(halves["choosing"])
    chosen, profile = choose(quality, calibrations, hybrid)
    summary = pd.concat([summarise(results, seed).assign(half=half) for half, results in halves.items()])
    return {
        "chosen": chosen,
        "choosing_ndcg": quality,
        "profile": profile.model_dump(),
        "summary": summary.to_dict("records"),
        "differences": [
            {"against": other, **row}
            for other in AGAINST
            for row in compare(halves["reporting"], chosen, other, seed=seed).to_dict("records")
        ],
        "calibrations": {name: calibration.model_dump() for name, calibration in calibrations.items()},
        "examples": examples(benchmark, {name: systems[name] for name in (chosen, "text", "product")}),
        "documents": len(index),
    }


def mean_ndcg(results: pd.DataFrame) -> dict[str, float]:
    """System -> mean over the forms of nDCG@10; every form counts the same."""
    by_form = results.groupby(["system", "form"])["ndcg"].mean()
    return {str(name): float(value) for name, value in by_form.groupby("system").mean().items()}


def methods(calibrations: Mapping[str, Calibration], hybrid: bool) -> dict[str, Method]:
    """System -> the method of `subspaces search` that it is."""
    found = dict(OPERATORS)
    for name in calibrations:
        method = FITTED[name][0] if name in FITTED else "calibrated"
        if method is not None and (hybrid or method != "hybrid"):
            found[name] = method
    return found


def choose(
    quality: Mapping[str, float], calibrations: Mapping[str, Calibration], hybrid: bool
) -> tuple[str, SearchProfile]:
    """The best system that an index can run, and the profile with the best calibration of each method."""
    runnable = methods(calibrations, hybrid)
    ranked = sorted(runnable, key=lambda name: -quality[name])
    best: dict[Termwise, Calibration] = {}
    for name in ranked:
        method = runnable[name]
        if (method == "calibrated" or method == "hybrid") and method not in best:
            best[method] = calibrations[name]
    return ranked[0], SearchProfile(method=runnable[ranked[0]], calibrations=best)


def examples(benchmark: Benchmark, systems: Mapping[str, System]) -> list[dict[str, Any]]:
    """The first reporting queries of some forms with the best documents of each system."""
    found = []
    for form in SHOWN:
        for query in [query for query in benchmark.half("reporting") if query.form == form][:_EXAMPLES]:
            tree = query.tree
            relevant = benchmark.relevant(tree)
            hits = {}
            for name, system in systems.items():
                rows = torch.from_numpy(system(tree)).argsort(descending=True, stable=True)[:_HITS].tolist()
                hits[name] = [{"text": benchmark.documents[row], "relevant": bool(relevant[row])} for row in rows]
            found.append({"query": query.query, "form": form, "hits": hits})
    return found


def write_evaluation(
    model: TextModel,
    backbone: Path,
    benchmark: Benchmark,
    folder: Path,
    settings: Mapping[str, Any],
    out: Path,
    key: str,
    threads: int,
    scale: str,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the evaluation to `out`, and search.json for the model's folder beside it."""
    encoder, hybrid = benchmark_encoder(model, backbone), keeps_backbone(model)
    found = evaluate_benchmark(benchmark, encoder, folder, hybrid, settings["seed"], progress)
    machine = {"processor": platform.machine(), "threads": threads, "torch": torch.__version__, "device": "cpu"}
    write_json(
        out,
        {
            "key": key,
            "scale": scale,
            "settings": dict(settings),
            "weights_sha256": model.fingerprint,
            "machine": machine,
            **found,
        },
    )
    return found
