"""What dropping small eigenvalues costs (paper §4.6, compression figure): mAP on WordNet, 2-way accuracy on SNLI, mean rank, against τ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.files import write_json
from subspaces.nli.data import load_pairs, subset
from subspaces.nli.fit import tokenise
from subspaces.nli.load import load_text_model
from subspaces.nli.task import accuracy
from subspaces.retrieval.compression import compression_curve
from subspaces.training.loop import set_threads
from subspaces.wordnet.evaluate import load_model
from subspaces.wordnet.ranking import evaluate_ranking

_BLOCK = 2048


class _Given:
    """Projectors (N, d, d) as the ranking of the reconstruction task wants to see a geometry."""

    def __init__(self, projectors: Tensor):
        self.projectors = projectors

    def all_features(self) -> Tensor:
        return torch.cat([half_vector(some) for some in self.projectors.split(_BLOCK)])

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.mT


@torch.no_grad()
def compress_wordnet(folder: Path, graph_path: Path, taus: list[float], nodes: int | None, seed: int) -> dict[str, Any]:
    """mAP (%) and mean rank of a reconstruction model at each τ, on all sources or on some drawn with the seed."""
    _, graph, geometry = load_model(folder, graph_path)
    projectors = torch.cat([geometry.projectors(slice(start, start + _BLOCK)) for start in range(0, graph.nodes, _BLOCK)])
    sources = np.flatnonzero(np.diff(graph.offsets))
    if nodes is not None:
        sources = np.sort(np.random.default_rng(seed).permutation(sources)[:nodes])
    found = compression_curve(projectors, taus, lambda cut: evaluate_ranking(_Given(cut), graph, sources=sources)["map"], "map")
    return found | {"sources": len(sources)}


@torch.no_grad()
def compress_snli(folder: Path, data: Path, sources: Path, taus: list[float], pairs: int, seed: int) -> dict[str, Any]:
    """2-way accuracy (%) on test pairs and mean rank of a text model at each τ; its decision is the one that training froze."""
    text_model = load_text_model(folder, sources)
    test = subset(load_pairs(data, "test"), pairs, seed)
    texts = tokenise(test, text_model.tokeniser, text_model.settings, "cpu")
    projectors = texts.encode_all(text_model.model, np.arange(len(test.texts)))
    premise, hypothesis = torch.from_numpy(test.premise), torch.from_numpy(test.hypothesis)

    def judged(cut: Tensor) -> float:
        parts = zip(premise.split(512), hypothesis.split(512), strict=True)
        return accuracy(torch.cat([text_model.model.logits(cut[p], cut[h]) for p, h in parts]), test.labels(2))

    return compression_curve(projectors, taus, judged, "accuracy") | {"pairs": len(test)}


def write_compression(
    part: str, model: Path, settings: dict[str, Any], sources: Path, out: Path, key: str, threads: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Measure one half of the figure, `wordnet` or `snli`: each has a model of its own."""
    set_threads(threads)
    if part == "wordnet":
        found = compress_wordnet(model, Path("data/wordnet/nouns.npz"), settings["taus"], settings["nodes"], settings["seed"])
    else:
        found = compress_snli(model, Path("data/snli.parquet"), sources, settings["taus"], settings["pairs"], settings["seed"])
    content = {"key": key, **extra, "settings": settings, part: found}
    write_json(out, content)
    return content
