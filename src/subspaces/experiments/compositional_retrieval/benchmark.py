"""The compositional retrieval benchmark: metrics of systems on the committed queries, with bootstrap intervals over
queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from subspaces.errors import UserError
from subspaces.experiments.compositional_retrieval.judge import (
    Lemmatiser,
    judgements,
    read_concepts,
    read_images,
)
from subspaces.experiments.compositional_retrieval.queries import (
    BenchmarkQuery,
    Half,
    committed_queries,
    excluded,
    relevance,
)
from subspaces.experiments.compositional_retrieval.systems import System
from subspaces.search.query import Query

TOP = 10
METRICS = ("precision", "ndcg", "average_precision", "excluded")
_DRAWS = 1000


class Benchmark(NamedTuple):
    """Documents, the judgement (documents,) of each term, a lemmatiser, and the queries."""

    documents: list[str]
    shown: dict[str, np.ndarray]
    lemmatiser: Lemmatiser
    queries: list[BenchmarkQuery]

    @classmethod
    def load(cls, captions: Path, wordnet: Path) -> Benchmark:
        """From the Flickr30k table and a WordNet folder."""
        from subspaces.sources.wordnet_reader import open_nltk

        reader = open_nltk(wordnet)
        lemmatiser, images, concepts = Lemmatiser(reader), read_images(captions), read_concepts(reader)
        shown = judgements(images, concepts, lemmatiser)
        by_term = {concept.term: shown[:, n] for n, concept in enumerate(concepts)}
        return cls([image.document for image in images], by_term, lemmatiser, committed_queries())

    def half(self, name: Half) -> list[BenchmarkQuery]:
        return [query for query in self.queries if query.half == name]

    def relevant(self, query: Query) -> np.ndarray:
        return relevance(query, self.shown.__getitem__)

    def choosing_terms(self) -> dict[str, np.ndarray]:
        """The single terms of the choosing half with their judgements: a calibration is fitted to them."""
        queries = [query for query in self.half("choosing") if query.form == "a"]
        return {query.query: self.shown[query.query] for query in queries}


def measure(scores: np.ndarray, relevant: np.ndarray, unwanted: np.ndarray | None, top: int = TOP) -> dict[str, float]:
    """P@10, nDCG@10 (binary), average precision in percent; with `unwanted`, the share of the first ten that shows
    it. Of equal scores the first document counts as better.

    One sort serves all: `ndcg_score` and `average_precision_score` sort the 31,014 documents again each.
    """
    order = np.argsort(-scores, kind="stable")
    found = relevant[order]
    ranks = np.flatnonzero(found) + 1.0
    discounts = 1 / np.log2(np.arange(2, top + 2))
    values = {
        "precision": found[:top].mean(),
        "ndcg": (found[:top] @ discounts[: len(found)]) / discounts[: int(min(top, len(ranks)))].sum(),
        "average_precision": (np.arange(1, len(ranks) + 1) / ranks).mean(),
    }
    if unwanted is not None:
        values["excluded"] = unwanted[order[:top]].mean()
    return {name: 100 * float(value) for name, value in values.items()}


def run(benchmark: Benchmark, systems: Mapping[str, System], half: Half) -> pd.DataFrame:
    """One row per system and query of a half."""
    rows: list[dict[str, Any]] = []
    for query in benchmark.half(half):
        relevant = benchmark.relevant(query.tree)
        if not relevant.any():
            raise UserError(f"no image is relevant for «{query.query}»: the benchmark needs all images.")
        terms_out = excluded(query.tree)
        unwanted = np.any([benchmark.shown[text] for text in terms_out], axis=0) if terms_out else None
        for name, system in systems.items():
            values = measure(system(query.tree), relevant, unwanted)
            rows.append({"system": name, "form": query.form, "query": query.query, **values})
    return pd.DataFrame(rows)


def summarise(results: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Means per form and system with 95 % bootstrap intervals over queries: columns form, system, metric, mean, low,
    high, queries."""
    generator, rows = np.random.default_rng(seed), []
    for (form, system), group in results.groupby(["form", "system"], sort=False):
        draws = generator.integers(0, len(group), (_DRAWS, len(group)))
        for metric in METRICS:
            values = group[metric].to_numpy() if metric in group else np.array([np.nan])
            if np.isnan(values).all():
                continue
            low, high = np.percentile(values[draws].mean(1), [2.5, 97.5])
            rows.append([form, system, metric, values.mean(), low, high, len(group)])
    return pd.DataFrame(rows, columns=["form", "system", "metric", "mean", "low", "high", "queries"])


def compare(results: pd.DataFrame, system: str, other: str, metric: str = "ndcg", seed: int = 0) -> pd.DataFrame:
    """The paired difference of two systems per form, with a 95 % bootstrap interval: columns form, difference, low,
    high."""
    generator, rows = np.random.default_rng(seed), []
    for form, group in results.groupby("form", sort=False):
        table = group.pivot(index="query", columns="system", values=metric)
        difference = (table[system] - table[other]).to_numpy()
        draws = generator.integers(0, len(difference), (_DRAWS, len(difference)))
        low, high = np.percentile(difference[draws].mean(1), [2.5, 97.5])
        rows.append([form, difference.mean(), low, high])
    return pd.DataFrame(rows, columns=["form", "difference", "low", "high"])
