"""Term-wise search on any kind of index: candidates by inner products, then re-ranking by calibrated probabilities.

An exact index scores all documents. An approximate one is asked for the best documents of each wanted term (less the
hub correction, which is an inner product too), of their sum less the excluded terms, and of the composed matrix; the
union is re-ranked. Of a document with several windows, each term takes the window that shows it best.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError
from subspaces.search.calibration import Calibration, combine
from subspaces.search.half_vectors import COSINE_HUB, HUB, VECTORS, HalfVectorEncoder
from subspaces.search.kinds.base import Answer, ExactSearcher, Searcher
from subspaces.search.query import And, Not, Or, Query, Term, evaluate, terms
from subspaces.search.storage import Manifest

_CANDIDATES = 32  # of each inner product, times the effort
_BLOCK = 16_384  # rows whose vectors are widened together


class TermwiseSearch:
    """Re-ranks documents of one index by a calibration. `document` (rows,) is None where every document is one row."""

    def __init__(
        self,
        manifest: Manifest,
        searcher: Searcher,
        encoder: HalfVectorEncoder,
        columns: Mapping[str, Tensor],
        document: Tensor | None,
    ):
        self._manifest, self._searcher, self._encoder = manifest, searcher, encoder
        self._columns, self._document = columns, document
        # Tr(P I)/Tr(P) is 1 for every document: this part of a query is exact, whatever the kind of index
        self._identity = half_vector(torch.eye(manifest.dim))

    def search(
        self, query: Query, subspaces: Mapping[str, Subspace], calibration: Calibration, top: int, effort: float
    ) -> Answer:
        """Probabilities (1, top) and documents (1, top), best first; of equal ones the first document wins."""
        asked = _Asked.of(query, subspaces, self._encoder if calibration.vectors else None)
        rows = None if isinstance(self._searcher, ExactSearcher) else self._candidates(asked, calibration, top, effort)
        odds, documents = self._log_odds(asked, calibration, rows)
        order = odds.argsort(descending=True, stable=True)[:top]
        return torch.sigmoid(odds[order]).float()[None], documents[order][None]

    def features(self, query: Query, subspaces: Mapping[str, Subspace], calibration: Calibration) -> dict[str, Tensor]:
        """The features (terms, rows) that a calibration reads, of all rows of an exact index."""
        return self._features(
            _Asked.of(query, subspaces, self._encoder if calibration.vectors else None), calibration, None
        )

    def _log_odds(self, asked: _Asked, calibration: Calibration, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-odds of documents, and which documents they are, in their order."""
        odds = calibration.log_odds(self._features(asked, calibration, rows))
        documents = torch.arange(self._manifest.rows) if rows is None else rows
        if self._document is not None:
            documents, place = self._document[documents].unique(return_inverse=True)
            best = odds.new_full((len(odds), len(documents)), -torch.inf)
            odds = best.scatter_reduce_(1, place.expand_as(odds), odds, "amax")
        by_term = dict(zip(asked.texts, odds, strict=True))
        return combine(asked.query, by_term.__getitem__), documents

    def _features(self, asked: _Asked, calibration: Calibration, rows: Tensor | None) -> dict[str, Tensor]:
        same = (asked.half @ self._identity / self._manifest.dim)[:, None]
        half = asked.half - same * self._identity
        if rows is not None:
            found = {"inclusion": self._searcher.scores(half, rows) + same}
        elif isinstance(self._searcher, ExactSearcher):
            found = {"inclusion": self._searcher.score_all(half) + same}
        else:
            raise UserError(f"an index of kind {self._manifest.kind} does not score all documents: use an exact one.")
        if calibration.hub:
            found["hub"] = self._column(HUB, rows)[:, 0].expand_as(found["inclusion"])
        if asked.vectors is not None:
            found["cosine"] = self._cosines(asked.vectors, rows)
            found["cosine_hub"] = self._column(COSINE_HUB, rows)[:, 0].expand_as(found["inclusion"])
        return found

    def _column(self, name: str, rows: Tensor | None) -> Tensor:
        if name not in self._columns:
            raise UserError(
                f"this index was built without {name}, which the calibration of this model reads: build it again."
            )
        return (self._columns[name] if rows is None else self._columns[name][rows]).float()

    def _cosines(self, vectors: Tensor, rows: Tensor | None) -> Tensor:
        if rows is not None:
            return vectors @ self._column(VECTORS, rows).T
        self._column(VECTORS, torch.zeros(0, dtype=torch.int64))  # is it there?
        return torch.cat([vectors @ part.float().T for part in self._columns[VECTORS].split(_BLOCK)], dim=1)

    def _candidates(self, asked: _Asked, calibration: Calibration, top: int, effort: float) -> Tensor:
        """Rows that may be among the best, in order, with all windows of their documents."""
        count = min(self._manifest.rows, max(round(_CANDIDATES * effort), 4 * top))
        weights = asked.weights
        wanted = asked.half[weights > 0]
        if calibration.hub and (weight := calibration.weights.get("inclusion", 0.0)) > 0:
            wanted = wanted + calibration.weights["hub"] / weight * self._encoder.generic
        queries = torch.cat([wanted, (weights @ asked.half)[None], half_vector(asked.composed)[None]])
        queries = queries - (queries @ self._identity / self._manifest.dim)[:, None] * self._identity
        rows = self._searcher.search(queries, count, effort)[1].flatten()
        if asked.vectors is not None:
            cosines = self._cosines(torch.cat([asked.vectors, (weights @ asked.vectors)[None]]), None)
            rows = torch.cat([rows, cosines.topk(count, dim=1).indices.flatten()])
        rows = rows[rows >= 0].unique()
        if self._document is None:
            return rows
        chosen = torch.zeros(self._manifest.count, dtype=torch.bool)
        chosen[self._document[rows]] = True
        return torch.nonzero(chosen[self._document]).flatten()


class _Asked:
    """A query with the half-vectors (T, D) of its terms, perhaps their vectors (T, h), and the composed matrix."""

    def __init__(self, query: Query, half: Tensor, vectors: Tensor | None, composed: Tensor):
        self.query, self.texts, self.half, self.vectors, self.composed = query, terms(query), half, vectors, composed

    @classmethod
    def of(cls, query: Query, subspaces: Mapping[str, Subspace], encoder: HalfVectorEncoder | None) -> _Asked:
        texts = terms(query)
        half = torch.stack([half_vector(subspaces[text].projector.float()) for text in texts])
        vectors = encoder.vectors(texts) if encoder is not None else None
        return cls(query, half, vectors, evaluate(query, subspaces).float())

    @property
    def weights(self) -> Tensor:
        """1 for a term that is wanted somewhere, −1 for one that is only excluded, (T,)."""
        wanted = _wanted(self.query)
        return torch.tensor([1.0 if text in wanted else -1.0 for text in self.texts])


def _wanted(query: Query, negated: bool = False) -> set[str]:
    match query:
        case Term(text):
            return set() if negated else {text}
        case Not(of=inner):
            return _wanted(inner, not negated)
        case And(left, right) | Or(left, right):
            return _wanted(left, negated) | _wanted(right, negated)
    raise TypeError(query)
