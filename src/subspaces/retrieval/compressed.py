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
from subspaces.training.loop import set_threads
from subspaces.wordnet.evaluate import load_model
from subspaces.wordnet.ranking import evaluate_ranking

_BLOCK = 2048


class Spectra:
    """Eigenvalues and eigenvectors of many projectors (N, d, d), computed once for all thresholds."""

    def __init__(self, projectors: Tensor):
        parts = [torch.linalg.eigh(some) for some in projectors.split(_BLOCK)]
        self.values = torch.cat([one[0] for one in parts])
        self.vectors = torch.cat([one[1] for one in parts])

    def __len__(self) -> int:
        return len(self.values)

    def truncated(self, tau: float, rows: slice = slice(None)) -> Tensor:
        """The projectors without their eigenvalues below τ."""
        values, vectors = self.values[rows], self.vectors[rows]
        return (vectors * (values * (values >= tau)).unsqueeze(-2)) @ vectors.mT

    def rank(self, tau: float) -> float:
        """Mean number of eigenvalues that are kept; τ = 0 keeps the positive ones."""
        return float((self.values >= max(tau, 1e-6)).sum(-1).double().mean())


class _Truncated:
    """A trained geometry whose nodes have lost their small eigenvalues, for the ranking of the reconstruction task."""

    def __init__(self, geometry: Any, spectra: Spectra, tau: float):
        self.geometry, self.spectra, self.tau = geometry, spectra, tau
        self.nodes, self.dim, self.device = geometry.nodes, geometry.dim, geometry.device

    def features(self, rows: slice) -> Tensor:
        return half_vector(self.spectra.truncated(self.tau, rows))

    def all_features(self, block: int = 4096) -> Tensor:
        width = self.dim * (self.dim + 1) // 2
        found = torch.empty(self.nodes, width)
        for start in range(0, self.nodes, block):
            found[start : start + block] = self.features(slice(start, min(start + block, self.nodes)))
        return found

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        return sources @ everyone.mT


def compress_wordnet(folder: Path, graph_path: Path, taus: list[float], nodes: int | None, seed: int) -> dict[str, Any]:
    """mAP (%) and mean rank of a reconstruction model at each τ, on all sources or on some drawn with the seed."""
    _, graph, geometry = load_model(folder, graph_path)
    with torch.no_grad():
        projectors = torch.cat([geometry.projectors(slice(start, start + _BLOCK)) for start in range(0, graph.nodes, _BLOCK)])
        spectra = Spectra(projectors)
        del projectors
        chosen = None
        if nodes is not None:
            with_ancestors = np.flatnonzero(np.diff(graph.offsets))
            chosen = np.sort(np.random.default_rng(seed).permutation(with_ancestors)[:nodes])
        found = [evaluate_ranking(_Truncated(geometry, spectra, tau), graph, sources=chosen)["map"] for tau in taus]
    used = graph.nodes if chosen is None else len(chosen)
    ranks = [spectra.rank(tau) for tau in taus]
    return {"taus": taus, "map": found, "rank": ranks, "full_rank": geometry.dim, "sources": used}


def compress_snli(folder: Path, data: Path, sources: Path, taus: list[float], pairs: int, seed: int) -> dict[str, Any]:
    """2-way accuracy (%) on test pairs and mean rank of a text model at each τ; its decision is the one that training froze."""
    text_model = load_text_model(folder, sources)
    test = subset(load_pairs(data, "test"), pairs, seed)
    with torch.no_grad():
        texts = tokenise(test, text_model.tokeniser, text_model.settings, "cpu")
        spectra = Spectra(texts.encode_all(text_model.model, np.arange(len(test.texts))))
        premise, hypothesis = torch.from_numpy(test.premise), torch.from_numpy(test.hypothesis)
        found = []
        for tau in taus:
            encoded = spectra.truncated(tau)
            parts = zip(premise.split(512), hypothesis.split(512), strict=True)
            logits = torch.cat([text_model.model.logits(encoded[p], encoded[h]) for p, h in parts])
            found.append(accuracy(logits, test.labels(2)))
    ranks = [spectra.rank(tau) for tau in taus]
    return {"taus": taus, "accuracy": found, "rank": ranks, "full_rank": text_model.dim, "pairs": len(test)}


def write_compression(
    wordnet: Path, snli: Path, settings: dict[str, Any], sources: Path, out: Path, key: str, threads: int, extra: dict[str, Any]
) -> dict[str, Any]:
    set_threads(threads)
    taus, seed = settings["taus"], settings["seed"]
    content = {
        "key": key,
        **extra,
        "settings": settings,
        "wordnet": compress_wordnet(wordnet, Path("data/wordnet/nouns.npz"), taus, settings["nodes"], seed),
        "snli": compress_snli(snli, Path("data/snli.parquet"), sources, taus, 8 * settings["queries"], seed),
    }
    write_json(out, content)
    return content
