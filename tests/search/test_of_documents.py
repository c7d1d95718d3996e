"""`SubspaceIndex.of_documents`: the index of a file, built once, beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import sentences, span, stand_in


class Encoder:
    """Any object with `encode`, `dim` and `fingerprint`."""

    dim, fingerprint = 16, "stand-in-16"

    def __init__(self) -> None:
        self.texts = 0

    def encode(self, texts: list[str]) -> Subspace:
        self.texts += len(texts)
        return Subspace(span(texts, self.dim))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(sentences(50)) + "\n")
    return path


def test_it_is_built_once(documents: Path) -> None:
    encoder = Encoder()
    index = SubspaceIndex.of_documents(documents, encoder)
    assert index.folder == documents.with_name("texts.txt.subspaces") and encoder.texts == 50
    hits = index.search("a man & ~in the park")
    again = SubspaceIndex.of_documents(documents, encoder)
    assert encoder.texts == 52 and again.search("a man & ~in the park") == hits
    assert SubspaceIndex.open(index.folder, stand_in()).search("a man & ~in the park") == hits


def test_other_documents_models_and_formats_are_built_again(documents: Path) -> None:
    SubspaceIndex.of_documents(documents, stand_in())
    documents.write_text("a volcano\n")
    index = SubspaceIndex.of_documents(documents, stand_in())
    assert len(index) == 1 and index.search("a man", top=10)[0].text == "a volcano"
    other = SubspaceIndex.of_documents(documents, stand_in(8))
    assert other.dim == 8
    manifest = other.folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 1}))
    assert SubspaceIndex.of_documents(documents, stand_in(8)).manifest.format == 2
    (other.folder / "half.f16").write_bytes(b"")
    assert len(SubspaceIndex.of_documents(documents, stand_in(8)).search("a man")) == 1


def test_a_folder_of_the_user_is_not_deleted(documents: Path) -> None:
    own = documents.with_name("texts.txt.subspaces")
    own.mkdir()
    (own / "notes.md").write_text("mine")
    with pytest.raises(UserError, match="exists and is not an index"):
        SubspaceIndex.of_documents(documents, stand_in())
    assert (own / "notes.md").read_text() == "mine"


def test_a_read_only_folder(documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != documents.parent)  # root may write everywhere
    index = SubspaceIndex.of_documents(documents, stand_in())
    assert index.folder.parent == tmp_path / "cache/indexes" and len(index) == 50
    assert not documents.with_name("texts.txt.subspaces").exists()


def test_a_stale_index_in_a_read_only_folder(documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fits is used where it is; another one is left alone, and the cache folder has its own, built once."""
    beside = SubspaceIndex.of_documents(documents, stand_in())
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != documents.parent)
    assert SubspaceIndex.of_documents(documents, stand_in()).folder == beside.folder
    documents.write_text("a volcano\n")
    encoder = Encoder()
    for _ in range(2):
        index = SubspaceIndex.of_documents(documents, encoder)
        assert index.folder.parent == tmp_path / "cache/indexes" and len(index) == encoder.texts == 1
    assert len(SubspaceIndex.open(beside.folder, stand_in())) == 50


def test_what_is_refused(documents: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no\.txt does not exist"):
        SubspaceIndex.of_documents(tmp_path / "no.txt", stand_in())
    documents.write_text("")
    with pytest.raises(UserError, match="holds no documents"):
        SubspaceIndex.of_documents(documents, stand_in())
    with pytest.raises(UserError, match="str is not an encoder of subspaces: it has no dim, fingerprint"):
        SubspaceIndex.build(["a"], "name", tmp_path / "out")  # type: ignore[arg-type]
