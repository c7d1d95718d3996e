"""Ways to answer a composed query: functions from a query and the scores of documents to one score per document.

A system sees the query tree and `Evidence`: per-term scores of all documents (cosine of the backbone, inclusion
NIS(term | document), probability of entailment, BM25) and whole-query scores. Term-wise logic combines values p, q in
[0, 1]: and is p·q, not is 1 − p, or is 1 − (1 − p)(1 − q). The hub correction subtracts one number per document, its
mean score over generic texts: a document that scores high for every text says little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from rank_bm25 import BM25Okapi
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from subspaces.algebra import Subspace, half_vector, unhalf_vector
from subspaces.errors import UserError
from subspaces.experiments.compositional_retrieval.judge import Lemmatiser
from subspaces.search.half_vectors import HalfVectorEncoder, TextEncoder
from subspaces.search.query import And, Conjunction, Not, Or, Query, Term, evaluate, terms

GENERIC = (
    "Something is happening.",
    "This is a picture.",
    "There are things here.",
    "People are doing something.",
    "Somebody is somewhere.",
    "An object is in a place.",
    "It is a scene of daily life.",
    "Someone is outside or inside.",
    "There is something to see.",
    "A moment in time.",
)
_STOP = frozenset(["a", "an", "at", "in", "on", "of", "the", "to", "and", "or", "not", "without", "is", "it"])
_MINUS = 0.5  # weight of an excluded term in vector arithmetic
_BLOCK = 1024
Embed = Callable[[Sequence[str]], Tensor]
Entailment = Callable[[Tensor, Tensor], Tensor]


def logic(query: Query, leaf: Callable[[str], np.ndarray]) -> np.ndarray:
    """Term-wise logic with values in [0, 1]."""
    match query:
        case Term(text):
            return leaf(text)
        case Not(of=inner):
            return 1 - logic(inner, leaf)
        case And(left, right):
            return logic(left, leaf) * logic(right, leaf)
        case Or(left, right):
            return 1 - (1 - logic(left, leaf)) * (1 - logic(right, leaf))
    raise TypeError(query)


def english(query: Query) -> str:
    """The query as a person would write it."""
    match query:
        case Term(text):
            return text
        case And(left, Not(of=inner)):
            return f"{english(left)} without {english(inner)}"
        case And(left, right):
            return f"{english(left)} and {english(right)}"
        case Or(left, right):
            return f"{english(left)} or {english(right)}"
        case Not(of=inner):
            return f"not {english(inner)}"
    raise TypeError(query)


def signs(query: Query, sign: int = 1) -> list[tuple[str, int]]:
    """The terms of a query, +1 if asked for, −1 if excluded."""
    match query:
        case Term(text):
            return [(text, sign)]
        case Not(of=inner):
            return signs(inner, -sign)
        case And(left, right) | Or(left, right):
            return signs(left, sign) + signs(right, sign)
    raise TypeError(query)


class VectorEvidence:
    """Unit vectors of all documents; `embed(texts)` gives unit vectors of other texts."""

    def __init__(self, documents: Tensor, embed: Embed):
        self.documents, self._embed = documents, lru_cache(maxsize=None)(lambda text: embed([text])[0])

    def cosine(self, text: str) -> np.ndarray:
        return (self.documents @ self._embed(text)).numpy()

    @cached_property
    def hub(self) -> np.ndarray:
        return np.mean([self.cosine(text) for text in GENERIC], axis=0)

    def arithmetic(self, query: Query) -> np.ndarray:
        """The sum of the wanted terms minus half of the excluded ones."""
        weights = [(text, 1.0 if sign > 0 else -_MINUS) for text, sign in signs(query)]
        return (self.documents @ torch.stack([weight * self._embed(text) for text, weight in weights]).sum(0)).numpy()


class SubspaceEvidence:
    """Half-vectors (float16) and traces of all documents; `entailment(premises (n, d, d), hypothesis (d, d))` is a
    probability (n,)."""

    def __init__(self, documents: Sequence[str], encoder: TextEncoder, entailment: Entailment | None = None):
        self.encoder, self._entailment = HalfVectorEncoder.of(encoder), entailment
        parts = [
            self.encoder.half_vectors_and_traces(documents[start : start + _BLOCK])
            for start in range(0, len(documents), _BLOCK)
        ]
        self.half, self.trace = torch.cat([half.half() for half, _ in parts]), torch.cat([trace for _, trace in parts])
        self._subspace = lru_cache(maxsize=None)(self.encoder.encode)
        self.probability = lru_cache(maxsize=None)(self._probability)

    def _scores(self, matrix: Tensor) -> np.ndarray:
        """NIS(matrix | document) of all documents."""
        half = half_vector(matrix.float())
        return (torch.cat([part.float() @ half for part in self.half.split(_BLOCK)]) / self.trace).numpy()

    def inclusion(self, text: str) -> np.ndarray:
        return self._scores(self._subspace(text).projector)

    @cached_property
    def hub(self) -> np.ndarray:
        return np.mean([self.inclusion(text) for text in GENERIC], axis=0)

    def composed(self, query: Query, conjunction: Conjunction) -> np.ndarray:
        """One matrix for the whole query, as `subspaces search` does; a query without an exact intersection ranks
        nothing."""
        subspaces: Mapping[str, Subspace] = {text: self._subspace(text) for text in terms(query)}
        try:
            return self._scores(evaluate(query, subspaces, conjunction))
        except UserError:
            return np.zeros(len(self.trace), dtype=np.float32)

    def _probability(self, text: str) -> np.ndarray:
        if self._entailment is None:
            raise UserError("this encoder has no entailment head: term-wise probabilities need one.")
        hypothesis = self._subspace(text).projector
        with torch.no_grad():
            parts = [self._entailment(unhalf_vector(part.float()), hypothesis) for part in self.half.split(_BLOCK)]
        return torch.cat(parts).numpy()


class LexicalEvidence:
    """BM25 of the lemmas of a term, divided by its maximum."""

    def __init__(self, documents: Sequence[str], lemmatiser: Lemmatiser):
        self._lemmatiser = lemmatiser
        self._bm25 = BM25Okapi([self._words(text) for text in documents])
        self.match = lru_cache(maxsize=None)(self._match)

    def _words(self, text: str) -> list[str]:
        return [min(forms, key=lambda form: (len(form), form)) for forms in self._lemmatiser.forms(text)]

    def _match(self, text: str) -> np.ndarray:
        scores = self._bm25.get_scores([word for word in self._words(text) if word not in _STOP])
        return np.clip(scores / max(scores.max(), 1e-9), 0, 1)


class Calibration:
    """Per-term probability of relevance from features of (term, document): a logistic regression, the same for all
    terms."""

    def __init__(self, features: Callable[[str], np.ndarray]):
        self._features, self._model = features, LogisticRegression(max_iter=1000)
        self.probability = lru_cache(maxsize=None)(self._probability)

    def fit(self, judged: Mapping[str, np.ndarray], per_term: int = 2000, seed: int = 0) -> Calibration:
        """From terms of the choosing half with their judgements (documents,); all relevant and random other documents
        of each."""
        generator, x, y = np.random.default_rng(seed), [], []
        for text, shown in judged.items():
            rows = generator.permutation(len(shown))[:per_term]
            x.append(self._features(text)[rows])
            y.append(shown[rows])
        self._model.fit(np.concatenate(x), np.concatenate(y))
        return self

    def _probability(self, text: str) -> np.ndarray:
        return self._model.predict_proba(self._features(text))[:, 1]


System = Callable[[Query], np.ndarray]


def lexical_systems(lexical: LexicalEvidence) -> dict[str, System]:
    return {"BM25, Boolean": lambda query: logic(query, lexical.match)}


def vector_systems(vectors: VectorEvidence, judged: Mapping[str, np.ndarray]) -> dict[str, System]:
    def features(text: str) -> np.ndarray:
        return vectors.cosine(text)[:, None]

    def corrected(text: str) -> np.ndarray:
        return np.stack([vectors.cosine(text), vectors.hub], axis=1)

    plain, hub = Calibration(features).fit(judged), Calibration(corrected).fit(judged)
    return {
        "text": lambda query: vectors.cosine(english(query)),
        "text, hub": lambda query: vectors.cosine(english(query)) - vectors.hub,
        "vector arithmetic": vectors.arithmetic,
        "vector arithmetic, hub": lambda query: vectors.arithmetic(query) - vectors.hub,
        "cosine logic": lambda query: logic(query, plain.probability),
        "cosine logic, hub": lambda query: logic(query, hub.probability),
    }


def subspace_systems(
    subspaces: SubspaceEvidence, vectors: VectorEvidence | None, judged: Mapping[str, np.ndarray], heads: bool = True
) -> dict[str, System]:
    """The paper's composition, term-wise logic, and the hybrid of cosine and inclusion if there are vectors."""
    systems: dict[str, System] = {}
    for conjunction in ("product", "sandwich-hard", "exact"):
        systems[conjunction] = _composed(subspaces, conjunction, False)
        systems[f"{conjunction}, hub"] = _composed(subspaces, conjunction, True)
    if heads:
        systems["entailment logic"] = lambda query: logic(query, subspaces.probability)
    features: dict[str, Callable[[str], list[Any]]] = {
        "inclusion logic": lambda text: [subspaces.inclusion(text)],
        "inclusion logic, hub": lambda text: [subspaces.inclusion(text), subspaces.hub],
    }
    if vectors is not None:
        features["hybrid"] = lambda text: [vectors.cosine(text), subspaces.inclusion(text)]
        features["hybrid, hub"] = lambda text: [
            vectors.cosine(text),
            vectors.hub,
            subspaces.inclusion(text),
            subspaces.hub,
        ]
    for name, columns in features.items():
        systems[name] = _calibrated(columns, judged)
    return systems


def _composed(subspaces: SubspaceEvidence, conjunction: Conjunction, hub: bool) -> System:
    return lambda query: subspaces.composed(query, conjunction) - (subspaces.hub if hub else 0.0)


def _calibrated(columns: Callable[[str], list[Any]], judged: Mapping[str, np.ndarray]) -> System:
    calibration = Calibration(lambda text: np.stack(columns(text), axis=1)).fit(judged)
    return lambda query: logic(query, calibration.probability)
