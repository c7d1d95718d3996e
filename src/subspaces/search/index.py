"""An index that answers queries: which documents lie most in a composed subspace (paper §4.6, last figure).

The methods product, sandwich-hard and exact compose one matrix: the score of a document is NIS(P_query | P_document) =
⟨hvec(P_document)/Tr(P_document), hvec(Q)⟩, one inner product for every form of query. The methods calibrated and hybrid
score each term, and combine probabilities (calibration.py, termwise.py). A document that is longer than the model's
limit has several windows, and its best window counts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError
from subspaces.files import digest
from subspaces.search.build import Progress, build_index, part_folder
from subspaces.search.calibration import Calibration, Method
from subspaces.search.documents import StoredTexts
from subspaces.search.engines import open_searcher
from subspaces.search.half_vectors import HalfVectorEncoder, TextEncoder
from subspaces.search.kinds.base import Answer, ExactSearcher
from subspaces.search.query import Conjunction, Query, Term, evaluate, parse, terms
from subspaces.search.storage import MANIFEST, Manifest, StaleIndex, cache_folder, read_column, read_windows
from subspaces.search.termwise import TermwiseSearch

CARE = 4.0  # effort for single queries: short, general texts need more candidates than captions
Asked = str | Query | Subspace | Tensor


class Hit(NamedTuple):
    score: float
    row: int
    text: str


class SubspaceIndex:
    """Documents as subspaces, searched with queries such as `a city street & ~at night`: `build` or `open`, then
    `search`."""

    def __init__(self, folder: Path, manifest: Manifest, encoder: HalfVectorEncoder | None, uri: str | None = None):
        self.folder, self.manifest, self.encoder = folder, manifest, encoder
        self.texts = StoredTexts(folder)
        self.searcher = open_searcher(folder, manifest, uri)
        self._constant = half_vector(torch.eye(manifest.dim))
        row, column = torch.triu_indices(manifest.dim, manifest.dim)
        self._entries, self._scale = row * manifest.dim + column, torch.where(row == column, 1.0, 2.0**0.5)
        self._document = None  # of each row; None where every document is one row
        if manifest.rows != manifest.count:
            self._document = torch.from_numpy(np.repeat(np.arange(manifest.count), read_windows(folder)))
        columns = {name: read_column(folder, name, width) for name, width in manifest.columns.items()}
        self._termwise = (
            TermwiseSearch(manifest, self.searcher, encoder, columns, self._document) if encoder is not None else None
        )

    @classmethod
    def build(
        cls,
        documents: str | Path | Iterable[str],
        encoder: TextEncoder,
        out: str | Path,
        *,
        kind: str = "auto",
        engine: str = "embedded",
        uri: str | None = None,
        settings: dict[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> SubspaceIndex:
        """Encode a file of one document per line, or a sequence of texts, into the folder `out`; a killed build
        resumes."""
        folder = build_index(
            documents, encoder, out, kind=kind, engine=engine, uri=uri, settings=settings, progress=progress
        )
        return cls.open(folder, encoder)

    @classmethod
    def of_documents(
        cls, documents: str | Path, encoder: TextEncoder, *, progress: Progress | None = None, verify: bool = False
    ) -> SubspaceIndex:
        """The index of a file, cached beside it as FILE.subspaces, or in the cache folder if that folder is read-only.

        It is built if it is missing, of an older format, or of other documents or another model.
        """
        path = Path(documents)
        if not path.is_file():
            raise UserError(f"{path} does not exist: give a file with one document per line.")
        out = path.with_name(f"{path.name}.subspaces")
        if not os.access(path.parent, os.W_OK):
            if (out / MANIFEST).exists():
                with suppress(StaleIndex):
                    return cls.open(build_index(path, encoder, out), encoder, verify=verify)
            out = cache_folder() / "indexes" / f"{path.name}-{digest(str(path.resolve()))[:16]}"
        try:
            return cls.open(build_index(path, encoder, out, progress=progress), encoder, verify=verify)
        except StaleIndex as error:
            if progress is not None:
                progress.say(f"{str(error).split(':')[0]}: building it again")
            for folder in (out, part_folder(out)):
                shutil.rmtree(folder, ignore_errors=True)
            return cls.build(path, encoder, out, progress=progress)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        encoder: TextEncoder | None = None,
        *,
        uri: str | None = None,
        verify: bool = False,
    ) -> SubspaceIndex:
        """Open an index. Without an encoder it answers matrices only; the encoder of another model is refused.

        The digests of all blocks are compared on the first open, after a change of a file, and with `verify`.
        """
        folder = Path(folder)
        manifest = Manifest.read(folder)
        manifest.check_files(folder, verify)
        if encoder is None:
            return cls(folder, manifest, None, uri)
        manifest.check_encoder(folder, encoder.fingerprint, encoder.dim)
        return cls(folder, manifest, HalfVectorEncoder.of(encoder), uri)

    def save(self, folder: str | Path) -> None:
        """Copy the index to another folder. (A built index is on disk already.)"""
        folder = Path(folder)
        if folder.exists():
            raise UserError(f"{folder} exists: choose another folder.")
        part = part_folder(folder)
        shutil.copytree(self.folder, part)
        part.replace(folder)

    def __len__(self) -> int:
        return self.manifest.count

    @property
    def dim(self) -> int:
        return self.manifest.dim

    @property
    def method(self) -> Method:
        """The default of `search`: the one that the model is searched best with."""
        return self.encoder.profile.method if self.encoder is not None else "product"

    def search(self, query: Asked, top: int = 10, method: Method | None = None, effort: float = CARE) -> list[Hit]:
        """The best documents for a query: a text in the query language, its tree, a subspace, or a matrix (d, d).

        A subspace or a matrix is one term, ranked by inclusion whatever the method.
        """
        return self.search_many([query], top, method, effort)[0]

    def search_many(
        self, queries: Sequence[Asked], top: int = 10, method: Method | None = None, effort: float = CARE
    ) -> list[list[Hit]]:
        """As `search`, for several queries at once: texts are encoded together."""
        if not queries:
            return []
        method = method or self.method
        calibration = self.encoder.profile.calibration(method) if self.encoder is not None else None
        trees = [parse(query) if isinstance(query, str) else query for query in queries]
        encoded = self._encoded(trees)
        answers: dict[int, Answer] = {}
        if calibration is not None and self._termwise is not None:
            count = _checked(top, effort, len(self))
            for place, tree in enumerate(trees):
                if isinstance(tree, Query):
                    answers[place] = self._termwise.search(tree, encoded, calibration, count, effort)
        rest = [place for place in range(len(trees)) if place not in answers]
        if rest:
            conjunction: Conjunction = "product" if method == "calibrated" or method == "hybrid" else method
            matrices = torch.stack([self._matrix(trees[place], encoded, conjunction) for place in rest])
            scores, rows = self.search_matrices(matrices, top, effort)
            for number, place in enumerate(rest):
                answers[place] = scores[number : number + 1], rows[number : number + 1]
        return [
            [
                Hit(score, row, self.texts[row])
                for score, row in zip(scores[0].tolist(), rows[0].tolist(), strict=True)
                if row >= 0
            ]
            for scores, rows in (answers[place] for place in range(len(trees)))
        ]

    def matrices(self, queries: Sequence[Asked], conjunction: Conjunction = "product") -> Tensor:
        """The symmetric matrices (B, d, d) of queries."""
        trees = [parse(query) if isinstance(query, str) else query for query in queries]
        encoded = self._encoded(trees)
        return torch.stack([self._matrix(tree, encoded, conjunction) for tree in trees])

    def _encoded(self, trees: Sequence[Query | Subspace | Tensor]) -> dict[str, Subspace]:
        """The subspace of every term of some queries."""
        texts = list(dict.fromkeys(text for tree in trees if isinstance(tree, Query) for text in terms(tree)))
        if texts and self.encoder is None:
            raise UserError("this index was opened without an encoder: pass one to open, or ask with matrices.")
        return dict(zip(texts, self.encoder.encode(texts), strict=True)) if texts and self.encoder else {}

    def search_matrices(self, queries: Tensor, top: int = 10, effort: float = 1.0) -> Answer:
        """Scores (B, top), best first, and documents (B, top) for symmetric matrices (B, d, d).

        `top` is at most the number of documents. An approximate kind scores `effort` times the candidates that it was
        built for; if it finds fewer than `top` documents, the rest is −1.
        """
        top = _checked(top, effort, len(self))
        half = self._half(queries)
        # Tr(P I)/Tr(P) is 1 for every document. This part of a query, large in a negation, cannot change the order: it
        # is added at the end.
        same = (half @ self._constant / self.dim).unsqueeze(1)
        half = half - same * self._constant
        if self._document is None:
            scores, rows = self.searcher.search(half, top, effort)
        else:
            scores, rows = self._best_windows(half, top, effort)
        return scores + same, rows

    def score_all(self, queries: Tensor) -> Tensor:
        """The scores of all documents (B, N) for symmetric matrices (B, d, d); the kind of the index must be exact."""
        if not isinstance(self.searcher, ExactSearcher):
            raise UserError(f"{self.folder} is of kind {self.manifest.kind}: only an exact index scores all documents.")
        scores = self.searcher.score_all(self._half(queries))
        if self._document is None:
            return scores
        best = scores.new_full((len(scores), len(self)), -torch.inf)
        return best.scatter_reduce_(1, self._document.expand_as(scores), scores, "amax")

    def term_features(self, text: str, calibration: Calibration) -> dict[str, Tensor]:
        """What a calibration reads of one term, (1, rows) for all rows; the kind of the index must be exact."""
        term = Term(text)
        if self._termwise is None:
            raise UserError("this index was opened without an encoder: pass one to open.")
        return self._termwise.features(term, self._encoded([term]), calibration)

    def _best_windows(self, half: Tensor, top: int, effort: float) -> Answer:
        """As the searcher, with each document once, by its best window: ask for more rows until there are enough
        documents."""
        assert self._document is not None
        asked = 2 * top
        while True:
            asked = min(asked, self.manifest.rows)
            scores, rows = self.searcher.search(half, asked, effort)
            documents = torch.where(rows < 0, rows, self._document[rows.clamp_min(0)])
            firsts = [_first_of_each(line) for line in documents.tolist()]
            if asked == self.manifest.rows or min(map(len, firsts)) >= top:
                break
            asked *= 2
        best = torch.full((len(half), top), -torch.inf), torch.full((len(half), top), -1)
        for query, positions in enumerate(firsts):
            kept = torch.tensor(positions[:top], dtype=torch.int64)
            best[0][query, : len(kept)], best[1][query, : len(kept)] = scores[query, kept], documents[query, kept]
        return best

    def _half(self, queries: Tensor) -> Tensor:
        """half_vector of symmetrised matrices, in half the time."""
        if queries.ndim != 3 or tuple(queries.shape[1:]) != (self.dim, self.dim):
            raise UserError(f"queries must have shape (B, {self.dim}, {self.dim}), got {tuple(queries.shape)}.")
        queries = queries.float()
        return ((queries + queries.mT) / 2).flatten(1).index_select(1, self._entries).mul_(self._scale)

    def _matrix(
        self, query: Query | Subspace | Tensor, encoded: dict[str, Subspace], conjunction: Conjunction
    ) -> Tensor:
        if isinstance(query, Query):
            return evaluate(query, encoded, conjunction).float()
        matrix = query.projector if isinstance(query, Subspace) else query
        if not isinstance(matrix, Tensor) or tuple(matrix.shape) != (self.dim, self.dim):
            raise UserError(f"a query is a text, its tree, or one subspace or matrix of dimension {self.dim}.")
        return Subspace(matrix).symmetric().projector.float()


def _checked(top: int, effort: float, count: int) -> int:
    """How many documents to return: at most all."""
    if not effort > 0:
        raise UserError(f"effort must be above 0, got {effort}: 1 is fast, 4 is careful.")
    if top < 1:
        raise UserError(f"cannot return the best {top:,} documents: ask for at least 1.")
    return min(top, count)


def _first_of_each(documents: list[int]) -> list[int]:
    """The first position of each document, in order; −1 is not a document."""
    first: dict[int, int] = {}
    for position, document in enumerate(documents):
        first.setdefault(document, position)
    return [position for document, position in first.items() if document != -1]
