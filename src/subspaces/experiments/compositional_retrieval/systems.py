"""Ways to answer a composed query: functions from a query to one score per document (compositional retrieval, §4.6).

The subspace systems are the methods of `subspaces search`, with the same code: one composed matrix (product,
sandwich-hard, exact), or term-wise logic over calibrated probabilities (search/calibration.py). Beside them stand plain
text, vector arithmetic and BM25. The hub correction subtracts one number per document, its mean score over generic
texts: a document that scores high for every text says little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import torch
from rank_bm25 import BM25Okapi
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from subspaces.errors import UserError
from subspaces.experiments.compositional_retrieval.judge import Lemmatiser
from subspaces.search.calibration import Calibration, Feature, Termwise, combine
from subspaces.search.half_vectors import COSINE_HUB, HUB, VECTORS
from subspaces.search.index import SubspaceIndex
from subspaces.search.query import And, Conjunction, Not, Or, Query, Term
from subspaces.search.storage import read_column

_STOP = frozenset(["a", "an", "at", "in", "on", "of", "the", "to", "and", "or", "not", "without", "is", "it"])
_MINUS = 0.5  # weight of an excluded term in vector arithmetic
EVERYTHING = Calibration(weights={"inclusion": 1.0, "hub": -1.0, "cosine": 1.0, "cosine_hub": -1.0})
# which features each fitted system reads; the method of `subspaces search` that it becomes if it wins, if any
FITTED: dict[str, tuple[Termwise | None, tuple[Feature, ...]]] = {
    "cosine logic": (None, ("cosine",)),
    "cosine logic, hub": (None, ("cosine", "cosine_hub")),
    "calibrated": ("calibrated", ("inclusion",)),
    "calibrated, hub": ("calibrated", ("inclusion", "hub")),
    "calibrated, log": ("calibrated", ("log_inclusion", "log_rest")),
    "calibrated, log, hub": ("calibrated", ("log_inclusion", "log_rest", "hub")),
    "hybrid": ("hybrid", ("inclusion", "cosine")),
    "hybrid, hub": ("hybrid", ("inclusion", "hub", "cosine", "cosine_hub")),
}
System = Callable[[Query], np.ndarray]


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


class Evidence:
    """What an exact index of the documents says of single terms, computed once per term; one row per document."""

    def __init__(self, index: SubspaceIndex):
        if index.manifest.rows != len(index):
            raise UserError("the benchmark needs one row per document: build its index without windows.")
        assert index.encoder is not None
        self.index, self.encoder = index, index.encoder
        self.vectors = read_column(index.folder, VECTORS, index.manifest.columns[VECTORS]).float()
        self.hub, self.cosine_hub = (read_column(index.folder, name, 1)[:, 0].numpy() for name in (HUB, COSINE_HUB))
        self.features = cache(self._features)
        self.embed = cache(lambda text: self.encoder.vectors([text])[0])

    def _features(self, text: str) -> dict[str, Tensor]:
        return {name: values[0] for name, values in self.index.term_features(text, EVERYTHING).items()}

    def composed(self, query: Query, conjunction: Conjunction) -> np.ndarray:
        """One matrix for the whole query; a query without an exact intersection ranks nothing."""
        try:
            return self.index.score_all(self.index.matrices([query], conjunction))[0].numpy()
        except UserError:
            return np.zeros(len(self.index), dtype=np.float32)

    def cosine(self, text: str) -> np.ndarray:
        return (self.vectors @ self.embed(text)).numpy()

    def arithmetic(self, query: Query) -> np.ndarray:
        """The sum of the wanted terms minus half of the excluded ones."""
        weighted = [(1.0 if sign > 0 else -_MINUS) * self.embed(text) for text, sign in signs(query)]
        return (self.vectors @ torch.stack(weighted).sum(0)).numpy()

    def fit(
        self, judged: Mapping[str, np.ndarray], names: Sequence[Feature], per_term: int = 2000, seed: int = 0
    ) -> Calibration:
        """A logistic regression, the same for all terms, on random documents of each judged term."""
        generator, x, y = np.random.default_rng(seed), [], []
        unit = {name: Calibration(weights={name: 1.0}) for name in names}
        for text, shown in judged.items():
            rows = torch.from_numpy(generator.permutation(len(shown))[:per_term])
            some = {name: values[rows] for name, values in self.features(text).items()}
            x.append(torch.stack([unit[name].log_odds(some) for name in names], dim=1).numpy())
            y.append(shown[rows.numpy()])
        model = LogisticRegression(C=100.0, max_iter=5000).fit(np.concatenate(x), np.concatenate(y))
        weights: dict[Feature, float] = dict(zip(names, model.coef_[0].tolist(), strict=True))
        return Calibration(weights=weights, intercept=float(model.intercept_[0]))

    def calibrated(self, calibration: Calibration) -> System:
        odds = cache(lambda text: calibration.log_odds(self.features(text)))
        return lambda query: combine(query, odds).numpy()


class LexicalEvidence:
    """BM25 of the lemmas of a term, divided by its maximum."""

    def __init__(self, documents: Sequence[str], lemmatiser: Lemmatiser):
        self._lemmatiser = lemmatiser
        self._bm25 = BM25Okapi([self._words(text) for text in documents])
        self.match = cache(self._match)

    def _words(self, text: str) -> list[str]:
        return [min(forms, key=lambda form: (len(form), form)) for forms in self._lemmatiser.forms(text)]

    def _match(self, text: str) -> np.ndarray:
        scores = self._bm25.get_scores([word for word in self._words(text) if word not in _STOP])
        return np.clip(scores / max(scores.max(), 1e-9), 0, 1)

    def log_odds(self, text: str) -> Tensor:
        return torch.logit(torch.from_numpy(self.match(text)), eps=1e-9)


def fitted_calibrations(evidence: Evidence, judged: Mapping[str, np.ndarray]) -> dict[str, Calibration]:
    """The calibrations of `FITTED`, and the Beta head's if the model has one."""
    found = {name: evidence.fit(judged, features) for name, (_, features) in FITTED.items()}
    beta = evidence.encoder.profile.calibrations.get("calibrated")
    return found | ({"Beta head": beta} if beta is not None else {})


def all_systems(
    evidence: Evidence, lexical: LexicalEvidence, calibrations: Mapping[str, Calibration]
) -> dict[str, System]:
    """Every way to answer, by name."""
    systems: dict[str, System] = {
        "BM25, Boolean": lambda query: combine(query, lexical.log_odds).numpy(),
        "text": lambda query: evidence.cosine(english(query)),
        "text, hub": lambda query: evidence.cosine(english(query)) - evidence.cosine_hub,
        "vector arithmetic": evidence.arithmetic,
        "vector arithmetic, hub": lambda query: evidence.arithmetic(query) - evidence.cosine_hub,
    }
    operators: tuple[Conjunction, ...] = ("product", "sandwich-hard", "exact")
    for operator in operators:
        systems[operator] = _composed(evidence, operator, False)
        systems[f"{operator}, hub"] = _composed(evidence, operator, True)
    return systems | {name: evidence.calibrated(calibration) for name, calibration in calibrations.items()}


def _composed(evidence: Evidence, operator: Conjunction, hub: bool) -> System:
    return lambda query: evidence.composed(query, operator) - (evidence.hub if hub else 0.0)
