"""Documents that are longer than the model's limit: split into windows, the best window counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from subspaces.search.build import build_index, build_shard, merge
from subspaces.search.half_vectors import HalfVectorEncoder, TokenWindows
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import sentences, span

SPECIAL = 2


def count(texts: list[str]) -> list[int]:
    """One token per word, and two special tokens."""
    return [len(text.split()) + SPECIAL for text in texts]


def encoder(limit: int = 12) -> HalfVectorEncoder:
    def projectors(texts: list[str]) -> torch.Tensor:
        assert max(count(texts)) <= limit, "the model would cut this text"
        return span(texts, 32)

    return HalfVectorEncoder(projectors, 32, f"windows-{limit}", windows=TokenWindows(count, limit))


def test_windows_overlap_and_cover_every_word() -> None:
    split = TokenWindows(count, 10)
    words = [f"w{number}" for number in range(30)]
    (windows, short) = split([" ".join(words), "a dog"])
    assert short == ["a dog"] and len(windows) > 3
    assert windows[0].split() == words[:8] and windows[1].split() == words[6:14]
    assert list(dict.fromkeys(" ".join(windows).split())) == words and windows[-1].split()[-1] == "w29"
    exactly = " ".join(words[:8])
    assert split([exactly]) == [[exactly]]


def test_a_word_longer_than_a_window_ends() -> None:
    split = TokenWindows(lambda texts: [sum(max(1, len(word) // 4) for word in t.split()) + 2 for t in texts], 10)
    assert split(["b " + "x" * 100 + " c d"]) == [["b", "x" * 100, "c d"]]


TEXTS = [*sentences(600), " ".join(sentences(40)[3:9]) + " a volcano erupts", "a volcano", *sentences(700)[600:]]


@pytest.mark.parametrize("kind", ["exact-fp32", "reduced"])
def test_the_best_window_counts_and_a_document_is_returned_once(tmp_path: Path, kind: str) -> None:
    index = SubspaceIndex.build(TEXTS, encoder(), tmp_path / kind, kind=kind)
    assert len(index) == len(TEXTS) < index.manifest.rows
    hits = index.search("a volcano erupts", top=20, effort=100)
    assert {hits[0].row, hits[1].row} == {600, 601} and len({hit.row for hit in hits}) == 20
    assert all(hit.text == TEXTS[hit.row] for hit in hits)
    everything = index.search("a man", top=5000, effort=100)
    assert sorted(hit.row for hit in everything) == list(range(len(TEXTS)))
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    if kind == "exact-fp32":
        scores = index.score_all(index.matrices(["a man"]))[0]
        assert all(hit.score == pytest.approx(float(scores[hit.row]), abs=1e-5) for hit in everything)


def test_shards_with_windows_merge_to_the_same_bytes(tmp_path: Path) -> None:
    shards = [build_shard(TEXTS, *rows, encoder(), tmp_path / str(rows[0])) for rows in ((0, 512), (512, len(TEXTS)))]
    merged = merge(shards, tmp_path / "merged")
    whole = build_index(TEXTS, encoder(), tmp_path / "whole")
    assert {path.name: path.read_bytes() for path in merged.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


def test_a_stopped_build_with_windows_resumes(tmp_path: Path) -> None:
    stopping, blocks = encoder(), []
    half_vectors = stopping.half_vectors_and_traces

    def stop_at_the_second(texts):
        blocks.append(len(texts))
        if len(blocks) == 2:
            raise KeyboardInterrupt
        return half_vectors(texts)

    stopping.half_vectors_and_traces = stop_at_the_second
    long_first = TEXTS[590:] + TEXTS[:590]
    with pytest.raises(KeyboardInterrupt):
        build_index(long_first, stopping, tmp_path / "out")
    assert blocks[0] > 512
    build_index(long_first, encoder(), tmp_path / "out")
    whole = build_index(long_first, encoder(), tmp_path / "whole")
    for path in whole.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes(), path.name
