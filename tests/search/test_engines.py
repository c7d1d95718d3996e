"""Both engines give the same answers; the place of the vectors is checked, and nothing secret is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.projector import soft_projector
from subspaces.search.engines import check_uri, collection_name
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import captions, sentences, stand_in

needs_milvus = pytest.mark.skipif(
    not all(__import__("importlib.util").util.find_spec(name) for name in ("pymilvus", "milvus_lite")),
    reason="pymilvus and milvus-lite are not installed: pip install 'subspaces[milvus]'",
)
QUERIES = [
    "a city street & ~at night",
    "an umbrella & ~it's raining",
    "people & sitting & on a bench",
    "a dog | a cat",
    "~a man",
]


def same_answers(one: SubspaceIndex, other: SubspaceIndex, matrices: torch.Tensor) -> None:
    scores, rows = one.search_matrices(matrices)
    others, other_rows = other.search_matrices(matrices)
    assert torch.equal(rows, other_rows)
    assert torch.allclose(scores, others, atol=2e-6)


@needs_milvus
def test_both_engines_find_the_same_captions(tmp_path: Path) -> None:
    texts, encoder = captions(3000), stand_in(16)
    here = SubspaceIndex.build(texts, encoder, tmp_path / "here", kind="exact-fp32")
    there = SubspaceIndex.build(texts, encoder, tmp_path / "there", engine="milvus", uri=str(tmp_path / "captions.db"))
    assert there.manifest.kind == "exact-fp32" and set(there.manifest.files) == {
        "documents.txt",
        "lines.u64",
        "windows.u32",
    }
    matrices = torch.cat([here.matrices(QUERIES), encoder.encode(texts[:20]).projector])
    same_answers(here, there, matrices)
    assert [hit.text for hit in here.search(QUERIES[0])] == [hit.text for hit in there.search(QUERIES[0])]
    again = SubspaceIndex.open(tmp_path / "there", encoder)
    same_answers(here, again, matrices[:5])
    half, rows = half_vector(matrices[:2]), torch.tensor([7, 2999, 0])
    assert torch.allclose(there.searcher.scores(half, rows), here.searcher.scores(half, rows), atol=2e-6)


@needs_milvus
def test_as_wide_as_the_paper(tmp_path: Path) -> None:
    """d = 128: 8,256 entries."""
    generator = torch.Generator().manual_seed(0)
    texts = sentences(300)
    P = soft_projector(torch.randn(300, 128, 8, generator=generator), 0.05)
    places = {text: place for place, text in enumerate(texts)}
    encoder = HalfVectorEncoder(lambda some: P[[places[text] for text in some]], 128, "random-128")
    here = SubspaceIndex.build(texts, encoder, tmp_path / "here", kind="exact-fp32")
    there = SubspaceIndex.build(texts, encoder, tmp_path / "there", engine="milvus", uri=str(tmp_path / "wide.db"))
    assert half_vector(P[0]).shape == (8256,)
    matrices = P[:30] @ (torch.eye(128) - P[30:60])
    same_answers(here, there, torch.cat([P[60:70], (matrices + matrices.mT) / 2]))


@needs_milvus
def test_a_collection_that_is_not_the_one(tmp_path: Path) -> None:
    uri, encoder = str(tmp_path / "some.db"), stand_in(8)
    index = SubspaceIndex.build(sentences(50), encoder, tmp_path / "index", engine="milvus", uri=uri)
    with pytest.raises(UserError, match="has no collection subspaces_"):
        SubspaceIndex.open(tmp_path / "index", encoder, uri=str(tmp_path / "other.db"))
    name = collection_name(index.manifest.request)
    index.searcher.client.delete(name, ids=[3])
    index.searcher.client.flush(name)
    with pytest.raises(UserError, match="has 49 rows instead of 50"):
        SubspaceIndex.open(tmp_path / "index", encoder)


def test_requests_that_are_refused_before_any_work(tmp_path: Path) -> None:
    texts, encoder, out = sentences(80), stand_in(8), tmp_path / "index"
    with pytest.raises(UserError, match="needs --uri"):
        SubspaceIndex.build(texts, encoder, out, engine="milvus")
    with pytest.raises(UserError, match="searches exactly, in 32 bits"):
        SubspaceIndex.build(texts, encoder, out, engine="milvus", uri="./a.db", kind="reduced")
    with pytest.raises(UserError, match="unknown engine 'lucene': choose embedded or milvus"):
        SubspaceIndex.build(texts, encoder, out, engine="lucene")
    with pytest.raises(UserError, match="belongs to the engine milvus"):
        SubspaceIndex.build(texts, encoder, out, uri="./a.db")
    with pytest.raises(UserError, match="must end in"):
        check_uri("captions")
    assert not list(tmp_path.iterdir())


def test_no_password_in_an_address() -> None:
    with pytest.raises(UserError, match="MILVUS_TOKEN") as caught:
        check_uri("http://me:hunter2@somewhere:19530")
    assert "hunter2" not in str(caught.value)
