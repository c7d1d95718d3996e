"""From texts to half-vectors of subspaces, with any encoder (the subspaces of §3.2, the inner products of §3.3).

An encoder is an object with `dim`, `fingerprint` (identifies the model; an index stores it) and `encode(texts)`, which
returns a `Subspace` or projectors (N, d, d). If it also has `windows(texts)`, texts that are longer than the model's
limit are split into overlapping windows, and the best window of a document counts; without it the encoder cuts long
texts as it does by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError
from subspaces.search.calibration import GENERIC, SearchProfile

if TYPE_CHECKING:
    from subspaces.text.load import TextModel

_TEXTS = 512  # encoded together: bounds the memory when only half-vectors are kept
OVERLAP = 0.25  # of a window with the next
HUB, VECTORS, COSINE_HUB = "hub.f32", "vectors.f16", "cosine_hub.f32"  # columns of an index, one file each


class TextEncoder(Protocol):
    @property
    def dim(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Any) -> Any: ...


class HalfVectorEncoder:
    """Wraps a callable from texts to projectors (N, d, d); `HalfVectorEncoder.of` wraps an encoder object.

    `profile` says how its texts are searched best; `vectors(texts)` gives unit vectors (N, h) of the plain backbone, for
    the method `hybrid`.
    """

    def __init__(
        self,
        projectors: Callable[[list[str]], Tensor],
        dim: int,
        fingerprint: str,
        model: Any = None,
        windows: Callable[[list[str]], list[list[str]]] | None = None,
        profile: SearchProfile | None = None,
        vectors: Callable[[list[str]], Tensor] | None = None,
    ):
        self._projectors, self.dim, self.fingerprint, self.model = projectors, dim, fingerprint, model
        self._windows, self._vectors, self.profile = windows, vectors, profile or SearchProfile()

    @classmethod
    def of(cls, encoder: TextEncoder) -> HalfVectorEncoder:
        """Any encoder object; with the trained model inside, if it has one (`text_model`), also its windows and calibration."""
        if isinstance(encoder, cls):
            return encoder
        if (model := getattr(encoder, "text_model", None)) is not None:
            return cls.of_text_model(model)
        missing = [name for name in ("encode", "dim", "fingerprint") if not hasattr(encoder, name)]
        if missing:
            raise UserError(f"{type(encoder).__name__} is not an encoder of subspaces: it has no {', '.join(missing)}.")

        def projectors(texts: list[str]) -> Tensor:
            encoded = encoder.encode(texts)
            return encoded.projector if isinstance(encoded, Subspace) else encoded

        return cls(projectors, encoder.dim, encoder.fingerprint, encoder, getattr(encoder, "windows", None))

    @classmethod
    def from_pretrained(cls, path: str | Path) -> HalfVectorEncoder:
        """The encoder of a model that was trained on SNLI, from its folder."""
        from subspaces.text.load import load_text_model

        return cls.of_text_model(load_text_model(Path(path)))

    @classmethod
    def of_text_model(cls, model: TextModel) -> HalfVectorEncoder:
        """The encoder of a loaded model; texts that are longer than its limit are split into windows."""

        def count(texts: list[str]) -> list[int]:
            return [len(ids) for ids in model.tokeniser.encode(texts, 1 << 30)[0]]

        from subspaces.text.pooling import keeps_backbone, plain_vectors

        vectors = partial(plain_vectors, model) if keeps_backbone(model) else None
        windows, profile = TokenWindows(count, model.limit), SearchProfile.of_model(model)
        return cls(model.projectors, model.dim, model.fingerprint, model, windows, profile, vectors)

    @property
    def width(self) -> int:
        """Entries of a half-vector: d(d+1)/2."""
        return self.dim * (self.dim + 1) // 2

    def encode(self, texts: Sequence[str] | str) -> Subspace:
        """A batch of subspaces, one for each text; for a single string, one subspace."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        texts = list(texts)
        empty = next((number for number, text in enumerate(texts, start=1) if not text.strip()), None)
        if empty is not None:
            raise UserError(f"text {empty} of {len(texts)} is empty: give it at least one word, or leave it out.")
        if not texts:
            return Subspace(torch.zeros(0, self.dim, self.dim))
        with torch.inference_mode():
            P = self._projectors(texts).float().cpu()
        if tuple(P.shape) != (len(texts), self.dim, self.dim):
            raise UserError(
                f"the model gave projectors {tuple(P.shape)} for {len(texts)} texts of dimension {self.dim}."
            )
        return Subspace.from_projector(P.clone(), symmetric=False)

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        """The windows of each text: the text itself unless it is longer than the model's limit."""
        return self._windows(list(texts)) if self._windows is not None else [[text] for text in texts]

    def half_vectors(self, texts: Sequence[str]) -> Tensor:
        """hvec(P), float32 (N, d(d+1)/2): inner products are Tr(P Q)."""
        return torch.cat([torch.zeros(0, self.width), *(half for half, _ in self._blocks(texts))])

    def nis_vectors(self, texts: Sequence[str]) -> Tensor:
        """hvec(P) / Tr(P), float32 (N, d(d+1)/2): the inner product with hvec(Q) is NIS(Q | P)."""
        parts = [half / trace.unsqueeze(1) for half, trace in self._blocks(texts)]
        return torch.cat([torch.zeros(0, self.width), *parts])

    def half_vectors_and_traces(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """hvec(P) (N, d(d+1)/2) and Tr(P) (N,); a text with trace 0 is an error: inclusion divides by the trace."""
        blocks = list(self._blocks(texts))
        if not blocks:
            return torch.zeros(0, self.width), torch.zeros(0)
        return torch.cat([half for half, _ in blocks]), torch.cat([trace for _, trace in blocks])

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors of the plain backbone, float32 (N, h)."""
        if self._vectors is None:
            raise UserError(
                "this model has no plain backbone inside, so no cosines: the method hybrid needs a model that was "
                "trained with adapters."
            )
        return self._vectors(list(texts)).float()

    @cached_property
    def generic(self) -> Tensor:
        """The mean half-vector (d(d+1)/2,) of generic texts: its inner product with a NIS vector is the hub correction."""
        return self.half_vectors(GENERIC).mean(0)

    @cached_property
    def generic_vector(self) -> Tensor:
        """The mean vector (h,) of generic texts by the plain backbone."""
        return self.vectors(GENERIC).mean(0)

    @property
    def columns(self) -> dict[str, int]:
        """What an index stores of each row beside its half-vector, because a calibration reads it: file name -> width."""
        columns = {HUB: 1} if self.profile.hub else {}
        if self.profile.vectors:
            columns |= {VECTORS: len(self.generic_vector), COSINE_HUB: 1}
        return columns

    def column_values(self, texts: Sequence[str], half: Tensor, trace: Tensor) -> dict[str, Tensor]:
        """The values of `columns` (N, width) for texts whose half-vectors and traces are known."""
        values = {HUB: (half @ self.generic / trace)[:, None]} if self.profile.hub else {}
        if self.profile.vectors:
            vectors = self.vectors(texts)
            values |= {VECTORS: vectors, COSINE_HUB: (vectors @ self.generic_vector)[:, None]}
        return values

    def _blocks(self, texts: Sequence[str]) -> Iterator[tuple[Tensor, Tensor]]:
        texts = list(texts)
        for start in range(0, len(texts), _TEXTS):
            block = texts[start : start + _TEXTS]
            subspace = self.encode(block)
            trace = subspace.rank
            zero = torch.nonzero(trace <= self.dim * torch.finfo(trace.dtype).eps).flatten().tolist()
            if zero:
                raise UserError(
                    f"the model gives {block[zero[0]]!r} a subspace of trace 0, which cannot be ranked. "
                    "Leave the text out, or check that the model is trained."
                )
            yield half_vector(subspace.projector), trace


class TokenWindows:
    """Splits long texts between words into windows of at most `limit` tokens, special tokens included.

    `count(texts)` gives the number of tokens of each text. Tokens of a word are counted once: tokenisers of BERT's
    family split at spaces first. A single word that is longer than a window is a window of its own, which the model
    cuts.
    """

    def __init__(self, count: Callable[[list[str]], list[int]], limit: int, overlap: float = OVERLAP):
        self._count, self._limit, self._overlap = count, limit, overlap
        one, two = count(["a", "a a"])
        self._special = 2 * one - two

    def __call__(self, texts: list[str]) -> list[list[str]]:
        return [self._split(text) if length > self._limit else [text] for text, length in self._lengths(texts)]

    def _lengths(self, texts: list[str]) -> Iterator[tuple[str, int]]:
        """A text with fewer characters than the limit has fewer tokens, too: most need no count."""
        long = [text for text in texts if len(text) + self._special > self._limit]
        counts = dict(zip(long, self._count(long), strict=True)) if long else {}
        return ((text, counts.get(text, 0)) for text in texts)

    def _split(self, text: str) -> list[str]:
        words = text.split()
        sizes = [count - self._special for count in self._count(words)]
        room = self._limit - self._special
        windows, start = [], 0
        while True:
            stop, used = start, 0
            while stop < len(words) and (stop == start or used + sizes[stop] <= room):
                used += sizes[stop]
                stop += 1
            windows.append(" ".join(words[start:stop]))
            if stop == len(words):
                return windows
            back, shared = stop, 0
            while back - 1 > start and shared + sizes[back - 1] <= self._overlap * room:
                back -= 1
                shared += sizes[back]
            start = back
