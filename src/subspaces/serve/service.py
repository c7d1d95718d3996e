"""What the page answers, without HTTP: a model, an index of documents and, if given, a fitted hierarchy.

Requests come from several threads; the arithmetic of one request runs at a time. No result is cached between requests:
sums of floats depend on what is encoded together, so an answer must follow from its request alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import get_args

import torch

from subspaces.algebra import Subspace
from subspaces.hierarchy.model import Hierarchy
from subspaces.search.build import Progress
from subspaces.search.calibration import Method
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from subspaces.search.query import Conjunction, Not, Query, Term, parse
from subspaces.serve.schemas import (
    EntailAnswer,
    HierarchyStatus,
    Limits,
    NodeAnswer,
    NodeNames,
    RelatedNode,
    SearchAnswer,
    SearchHit,
    SearchTerm,
    Status,
)
from subspaces.text.subspace_encoder import SubspaceEncoder

SAMPLE = Path(__file__).with_name("sample.txt")
_CLOSE_NAMES = 20_000  # nodes up to which misspelt names are looked up: the comparison takes 0.1 s per 10,000


class UnknownNode(KeyError):
    """The hierarchy has no such node; `close` are names that look like it."""

    def __init__(self, name: str, close: list[str]):
        super().__init__(name)
        self.name, self.close = name, close


class Service:
    """Answers of the page."""

    def __init__(
        self, encoder: SubspaceEncoder, index: SubspaceIndex, documents: str, hierarchy: Hierarchy | None = None
    ):
        self.encoder, self.index, self.documents, self.hierarchy = encoder, index, documents, hierarchy
        assert index.encoder is not None
        self._texts: HalfVectorEncoder = index.encoder
        self._lock = Lock()

    @classmethod
    def open(
        cls,
        encoder: SubspaceEncoder,
        documents: Path | None = None,
        hierarchy: Path | None = None,
        progress: Progress | None = None,
    ) -> Service:
        """Index the documents, or the sentences that ship with the package, and load the hierarchy."""
        loaded = Hierarchy.load(hierarchy) if hierarchy is not None else None
        texts = HalfVectorEncoder.of_text_model(encoder.text_model)
        if documents is not None:
            index = SubspaceIndex.of_documents(documents, texts, progress=progress)
            return cls(encoder, index, documents.name, loaded)
        holder = TemporaryDirectory(prefix="subspaces-serve-")  # the package may be read-only, and this takes a second
        service = cls(encoder, SubspaceIndex.build(SAMPLE, texts, Path(holder.name) / "index"), "sample", loaded)
        service._holder = holder  # deleted with the service
        return service

    _holder: TemporaryDirectory | None = None

    def status(self) -> Status:
        hierarchy, backbone = self.hierarchy, self.encoder.text_model.spec.backbone
        return Status(
            model=self.encoder.text_model.folder.name,
            backbone=backbone.name if backbone is not None else None,
            weights=self.encoder.fingerprint,
            dim=self.encoder.dim,
            documents=self.documents,
            count=len(self.index),
            hierarchy=HierarchyStatus(
                name=hierarchy.folder.resolve().name,
                nodes=len(hierarchy),
                dim=hierarchy.dim,
                threshold=hierarchy.threshold,
                examples=self._general_nodes,
            )
            if hierarchy is not None
            else None,
            methods=[*get_args(Conjunction), *self._texts.profile.calibrations],
            limits=Limits(),
        )

    def search(self, query: str, top: int, method: Method | None) -> SearchAnswer:
        """The best documents, and how much of each lies in each term of the query."""
        tree = parse(query)
        excluded = {text: all(signs) for text, signs in _signs(tree).items()}
        with self._lock:
            found = self.index.search(tree, top, method)
            windows = self._texts.windows([hit.text for hit in found])
            flat = [window for split in windows for window in split]
            encoded = self._texts.encode([*excluded, *flat])
        terms, documents = encoded[: len(excluded)], encoded[len(excluded) :]
        shares, ranks = _inclusions(documents, terms), documents.rank
        wanted = torch.tensor([-1.0 if out else 1.0 for out in excluded.values()])
        hits, first = [], 0
        for place, (hit, split) in enumerate(zip(found, windows, strict=True), start=1):
            own = slice(first, first + len(split))
            best = first + int((shares[own] @ wanted).argmax())  # of a long document, the window that fits best
            first += len(split)
            hits.append(
                SearchHit(
                    place=place,
                    score=hit.score,
                    row=hit.row,
                    text=hit.text,
                    rank=float(ranks[best]),
                    inclusions=shares[best].tolist(),
                )
            )
        return SearchAnswer(
            query=str(tree),
            terms=[
                SearchTerm(text=text, excluded=out, rank=rank)
                for (text, out), rank in zip(excluded.items(), terms.rank.tolist(), strict=True)
            ],
            hits=hits,
        )

    def entail(self, premise: str, hypothesis: str) -> EntailAnswer:
        model = self.encoder.text_model
        with self._lock:
            answer = self.encoder.entail(premise, hypothesis)
            cut = [bool(model.tokeniser.encode([text], model.limit)[1]) for text in (premise, hypothesis)]
        shared = answer.inclusion * answer.premise_rank  # Tr(P_p P_h)
        return EntailAnswer(
            two_way=answer.two_way,
            three_way=answer.three_way,
            inclusion=answer.inclusion,
            inclusion_reversed=shared / answer.hypothesis_rank,
            premise_rank=answer.premise_rank,
            hypothesis_rank=answer.hypothesis_rank,
            shared_rank=shared,
            dim=self.encoder.dim,
            premise_cut=cut[0],
            hypothesis_cut=cut[1],
        )

    def nodes(self, like: str, top: int) -> NodeNames:
        """Names that contain a text: those that begin with it first, then short ones."""
        wanted = " ".join(like.casefold().split())
        if not wanted:
            return NodeNames(names=self._general_nodes[:top], matches=len(self._folded_names))
        matching = [(not folded.startswith(wanted), len(name), name) for name, folded in self._containing(wanted)]
        return NodeNames(names=[name for *_, name in sorted(matching)[:top]], matches=len(matching))

    def node(self, name: str, top: int) -> NodeAnswer:
        """A node's rank, and its ancestors and descendants by inclusion."""
        hierarchy = self._fitted()
        if name not in hierarchy:
            raise UnknownNode(name, self._close_names(name))
        with self._lock:
            above, below = hierarchy.ancestors(name, top), hierarchy.descendants(name, top)
        threshold = hierarchy.threshold
        return NodeAnswer(
            name=name,
            rank=hierarchy.rank(name),
            dim=hierarchy.dim,
            threshold=threshold,
            ancestors=[RelatedNode(**asdict(one), entailed=one.inclusion >= threshold) for one in above],
            descendants=[RelatedNode(**asdict(one), entailed=one.inclusion >= threshold) for one in below],
        )

    def _fitted(self) -> Hierarchy:
        if self.hierarchy is None:
            raise UnknownNode("", [])
        return self.hierarchy

    @cached_property
    def _folded_names(self) -> list[tuple[str, str]]:
        return [(name, name.casefold()) for name in self._fitted().names]

    @cached_property
    def _general_nodes(self) -> list[str]:
        hierarchy = self._fitted()
        largest = hierarchy.features.trace.argsort(descending=True, stable=True)[:8]
        return [hierarchy.names[place] for place in largest.tolist()]

    def _containing(self, wanted: str) -> Iterator[tuple[str, str]]:
        return ((name, folded) for name, folded in self._folded_names if wanted in folded)

    def _close_names(self, name: str) -> list[str]:
        close = self.nodes(name, 5).names if name.strip() else []
        if not close and len(self._folded_names) <= _CLOSE_NAMES:
            close = get_close_matches(name, self._fitted().names, n=5)
        return close


def _signs(query: Query, negated: bool = False) -> dict[str, list[bool]]:
    """For each text of a query, in order: is it negated, at each place where it stands?"""
    if isinstance(query, Term):
        return {query.text: [negated]}
    if isinstance(query, Not):
        return _signs(query.of, not negated)
    signs = _signs(query.left, negated)
    for text, more in _signs(query.right, negated).items():
        signs[text] = [*signs.get(text, []), *more]
    return signs


def _inclusions(documents: Subspace, terms: Subspace) -> torch.Tensor:
    """NIS(P_term | P_document), (documents, terms)."""
    similarity = torch.einsum("nij,kij->nk", documents.projector, terms.projector)
    return similarity / documents.rank[:, None]
