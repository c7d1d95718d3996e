"""From text to subspaces: whatever turns texts into projectors, behind one small door (paper §3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subspaces.algebra import Subspace, half_vector
from subspaces.errors import UserError

_TEXTS = 512  # encoded together: bounds the memory when only half-vectors are kept


class SubspaceEncoder:
    """Wraps a callable from texts to projectors (N, d, d). `fingerprint` names the model: an index remembers it."""

    def __init__(self, projectors: Callable[[list[str]], Tensor], dim: int, fingerprint: str, model: Any = None):
        self._projectors, self.dim, self.fingerprint, self.model = projectors, dim, fingerprint, model

    @classmethod
    def from_pretrained(cls, path: str | Path) -> SubspaceEncoder:
        """The encoder of a model that was trained on SNLI, from its folder."""
        from subspaces.nli.load import load_text_model

        model = load_text_model(Path(path))
        return cls(model.projectors, model.dim, model.fingerprint, model)

    @property
    def width(self) -> int:
        """Entries of a half-vector: d(d+1)/2."""
        return self.dim * (self.dim + 1) // 2

    def encode(self, texts: Sequence[str] | str) -> Subspace:
        """A batch of subspaces, one for each text; for a single string, one subspace."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        texts = list(texts)
        empty = next((place for place, text in enumerate(texts) if not text.strip()), None)
        if empty is not None:
            raise UserError(f"text {empty + 1} of {len(texts)} is empty: give it at least one word, or leave it out.")
        if not texts:
            return Subspace(torch.zeros(0, self.dim, self.dim))
        with torch.inference_mode():
            P = self._projectors(texts).float().cpu()
        if tuple(P.shape) != (len(texts), self.dim, self.dim):
            raise UserError(f"the model gave projectors {tuple(P.shape)} for {len(texts)} texts of dimension {self.dim}.")
        return Subspace.from_projector(P.clone(), symmetric=False)

    def half_vectors(self, texts: Sequence[str]) -> Tensor:
        """hvec(P), float32 (N, d(d+1)/2): inner products are Tr(P Q)."""
        return self._stack(self.half_blocks(texts))

    def nis_vectors(self, texts: Sequence[str]) -> Tensor:
        """hvec(P) / Tr(P), float32 (N, d(d+1)/2): the inner product with hvec(Q) is NIS(Q | P)."""
        return self._stack(half / trace.unsqueeze(1) for half, trace in self._blocks(texts))

    def half_blocks(self, texts: Sequence[str]) -> Iterator[Tensor]:
        return (half for half, _ in self._blocks(texts))

    def half_vectors_and_traces(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """hvec(P) (N, d(d+1)/2) and Tr(P) (N,); a text without a subspace is an error, as nothing can be a share of it."""
        blocks = list(self._blocks(texts))
        if not blocks:
            return torch.zeros(0, self.width), torch.zeros(0)
        return torch.cat([half for half, _ in blocks]), torch.cat([trace for _, trace in blocks])

    def _blocks(self, texts: Sequence[str]) -> Iterator[tuple[Tensor, Tensor]]:
        texts = list(texts)
        for start in range(0, len(texts), _TEXTS):
            some = texts[start : start + _TEXTS]
            subspace = self.encode(some)
            trace = subspace.rank
            zero = torch.nonzero(trace <= self.dim * torch.finfo(trace.dtype).eps).flatten().tolist()
            if zero:
                raise UserError(
                    f"the model gives {some[zero[0]]!r} no subspace at all (its trace is 0), so it cannot be ranked. "
                    "Leave the text out, or look whether the model is trained."
                )
            yield half_vector(subspace.projector), trace

    def _stack(self, blocks: Iterator[Tensor]) -> Tensor:
        return torch.cat([torch.zeros(0, self.width), *blocks])
