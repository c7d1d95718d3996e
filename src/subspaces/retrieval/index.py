"""An index that answers queries: which documents lie most in a composed subspace (paper §4.5, last figure).

The score of a document is NIS(P_query | P_document) = ⟨hvec(P_document)/Tr(P_document), hvec(Q)⟩: one inner product, whatever the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError
from subspaces.retrieval.build import Progress, build_index
from subspaces.retrieval.documents import StoredTexts
from subspaces.retrieval.encoder import SubspaceEncoder
from subspaces.retrieval.engines import open_searcher
from subspaces.retrieval.kinds.base import Answer
from subspaces.retrieval.manifest import Manifest
from subspaces.retrieval.query import Conjunction, Query, evaluate, parse, terms

CARE = 4.0  # effort for single questions: short, general texts are harder than captions, and a few milliseconds are not felt


class Hit(NamedTuple):
    score: float
    row: int
    text: str


class SubspaceIndex:
    """Documents as subspaces, searched with `a city street & ~at night`."""

    def __init__(self, folder: Path, manifest: Manifest, encoder: SubspaceEncoder | None, uri: str | None = None):
        self.folder, self.manifest, self.encoder = folder, manifest, encoder
        self.texts = StoredTexts(folder)
        self.searcher = open_searcher(folder, manifest, uri)
        self._constant = half_vector(torch.eye(manifest.dim))
        row, column = torch.triu_indices(manifest.dim, manifest.dim)
        self._places, self._scale = row * manifest.dim + column, torch.where(row == column, 1.0, 2.0**0.5)

    @classmethod
    def build(
        cls,
        documents: str | Path | Iterable[str],
        encoder: SubspaceEncoder,
        out: str | Path,
        *,
        kind: str = "auto",
        engine: str = "embedded",
        uri: str | None = None,
        settings: dict[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> SubspaceIndex:
        """Encode a file of one document per line, or a sequence of texts, into the folder `out`; a killed build goes on."""
        made = build_index(documents, encoder, out, kind=kind, engine=engine, uri=uri, settings=settings, progress=progress)
        return cls.load(made, encoder)

    @classmethod
    def load(cls, folder: str | Path, encoder: SubspaceEncoder | None = None, *, uri: str | None = None, thorough: bool = False):
        """Open an index. Without an encoder only matrices can be asked; another model's encoder is refused."""
        folder = Path(folder)
        manifest = Manifest.read(folder)
        manifest.check_files(folder, thorough)
        if encoder is not None:
            manifest.check_encoder(folder, encoder.fingerprint, encoder.dim)
        return cls(folder, manifest, encoder, uri)

    def save(self, folder: str | Path) -> None:
        """Copy the index to another folder. (A built index is on disk already.)"""
        import shutil

        folder = Path(folder)
        if folder.exists():
            raise UserError(f"{folder} exists: choose another folder.")
        part = folder.with_name(folder.name + ".part")
        shutil.copytree(self.folder, part)
        part.replace(folder)

    def __len__(self) -> int:
        return self.manifest.count

    @property
    def dim(self) -> int:
        return self.manifest.dim

    def search(
        self, query: str | Query | Subspace | Tensor, top: int = 10, conjunction: Conjunction = "product", effort: float = CARE
    ) -> list[Hit]:
        """The best documents for a query: a text in the query language, its tree, a subspace, or a matrix (d, d)."""
        return self.search_many([query], top, conjunction, effort)[0]

    def search_many(
        self,
        queries: Sequence[str | Query | Subspace | Tensor],
        top: int = 10,
        conjunction: Conjunction = "product",
        effort: float = CARE,
    ) -> list[list[Hit]]:
        """As `search`, for several queries at once: texts are encoded together, scores are one product of matrices."""
        if not queries:
            return []
        scores, rows = self.search_matrices(self.matrices(queries, conjunction), top, effort)
        found = zip(scores.tolist(), rows.tolist(), strict=True)
        return [[Hit(score, row, self.texts[row]) for score, row in zip(*one, strict=True) if row >= 0] for one in found]

    def matrices(self, queries: Sequence[str | Query | Subspace | Tensor], conjunction: Conjunction = "product") -> Tensor:
        """The symmetric matrices (B, d, d) of some queries."""
        trees = [parse(query) if isinstance(query, str) else query for query in queries]
        texts = list(dict.fromkeys(text for tree in trees if isinstance(tree, Query) for text in terms(tree)))
        if texts and self.encoder is None:
            raise UserError("this index was loaded without an encoder: pass one to load, or ask with matrices.")
        found = dict(zip(texts, self.encoder.encode(texts), strict=True)) if texts else {}
        return torch.stack([self._matrix(tree, found, conjunction) for tree in trees])

    def search_matrices(self, queries: Tensor, top: int = 10, effort: float = 1.0) -> Answer:
        """Scores (B, top), best first, and rows (B, top) for symmetric matrices (B, d, d).

        An approximate kind looks at `effort` times as many candidates as it was built to; one that finds fewer than `top` documents fills
        up with row −1.
        """
        if not effort > 0:
            raise UserError(f"effort must be above 0, got {effort}: 1 is fast, 4 is careful.")
        if queries.ndim != 3 or tuple(queries.shape[1:]) != (self.dim, self.dim):
            raise UserError(f"queries must have shape (B, {self.dim}, {self.dim}), got {tuple(queries.shape)}.")
        if not 1 <= top <= len(self):
            raise UserError(f"cannot return the best {top:,} of {len(self):,} documents: ask for 1 to {len(self):,}.")
        queries = queries.float()
        half = ((queries + queries.mT) / 2).flatten(1).index_select(1, self._places).mul_(self._scale)  # half_vector, in half the time
        # Tr(P I)/Tr(P) is 1 for every document. This part of a query, large in a negation, can decide nothing: it is added at the end.
        same = (half @ self._constant / self.dim).unsqueeze(1)
        scores, rows = self.searcher.search(half - same * self._constant, top, effort)
        return scores + same, rows

    def _matrix(self, query: Query | Subspace | Tensor, found: dict[str, Subspace], conjunction: Conjunction) -> Tensor:
        if isinstance(query, Query):
            return evaluate(query, found, conjunction).float()
        matrix = query.projector if isinstance(query, Subspace) else query
        if not isinstance(matrix, Tensor) or tuple(matrix.shape) != (self.dim, self.dim):
            raise UserError(f"a query is a text, its tree, or one subspace or matrix of dimension {self.dim}.")
        return Subspace(matrix).symmetric().projector.float()
