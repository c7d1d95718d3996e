"""The encoder's forms agree with the algebra, and bad texts or models are named."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.search.half_vectors import HalfVectorEncoder
from tests.search.stand_in import sentences, stand_in


def test_forms_agree_with_the_algebra() -> None:
    encoder = stand_in(12)
    texts = sentences(7)
    subspaces = encoder.encode(texts)
    half, nis = encoder.half_vectors(texts), encoder.nis_vectors(texts)
    assert half.shape == nis.shape == (7, 78) == (7, encoder.width) and half.dtype == nis.dtype == torch.float32
    query = encoder.encode("in the park")
    assert torch.allclose(half @ query.half_vector(), subspaces.similarity(query), atol=1e-5)
    assert torch.allclose(nis @ query.half_vector(), subspaces.inclusion(query), atol=1e-5)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = sentences(11)
    whole = stand_in().nis_vectors(texts)
    monkeypatch.setattr("subspaces.search.half_vectors._TEXTS", 3)
    assert torch.equal(stand_in().nis_vectors(texts), whole)


def test_nothing_in_nothing_out() -> None:
    encoder = stand_in(8)
    assert encoder.half_vectors([]).shape == encoder.nis_vectors([]).shape == (0, 36)
    assert len(encoder.encode([])) == 0


def test_bad_texts_and_models_are_named() -> None:
    with pytest.raises(UserError, match="text 2 of 2 is empty"):
        stand_in().encode(["a dog", " "])
    wrong = HalfVectorEncoder(lambda texts: torch.zeros(len(texts), 3, 3), 4, "wrong")
    with pytest.raises(UserError, match=r"\(1, 3, 3\) for 1 texts of dimension 4"):
        wrong.encode(["a dog"])
    nothing = HalfVectorEncoder(lambda texts: torch.zeros(len(texts), 4, 4), 4, "nothing")
    with pytest.raises(UserError, match="'a dog' a subspace of trace 0"):
        nothing.nis_vectors(["a dog"])
    broken = HalfVectorEncoder(lambda texts: torch.full((len(texts), 4, 4), torch.nan), 4, "broken")
    with pytest.raises(UserError, match="NaN"):
        broken.encode(["a dog"])
