"""Building, loading and searching: results against the algebra, and everything that is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from subspaces.errors import UserError
from subspaces.search.index import SubspaceIndex
from subspaces.search.kinds.base import best_of_blocks
from subspaces.search.query import parse
from tests.search.stand_in import sentences, stand_in

TEXTS = sentences(600)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubspaceIndex]:
    folder = tmp_path_factory.mktemp("indexes")
    kinds = ("exact-fp32", "exact-fp16", "reduced", "compact", "ivfpq")
    return {kind: SubspaceIndex.build(TEXTS, stand_in(), folder / kind, kind=kind) for kind in kinds}


@pytest.mark.parametrize("text", ["a man", "a city street & ~at night", "an umbrella | a tree", "~(a dog & at night)"])
def test_exact_scores_are_inclusions(built: dict[str, SubspaceIndex], text: str) -> None:
    encoder = stand_in()
    documents = encoder.encode(TEXTS)
    found = {
        name: encoder.encode(name) for name in ("a man", "a city street", "at night", "an umbrella", "a tree", "a dog")
    }
    composed = {
        "a man": found["a man"],
        "a city street & ~at night": found["a city street"] & ~found["at night"],
        "an umbrella | a tree": found["an umbrella"] | found["a tree"],
        "~(a dog & at night)": ~(found["a dog"] & found["at night"]),
    }
    expected = documents.inclusion(composed[text])
    hits = built["exact-fp32"].search(text, top=600)
    assert sorted(hit.row for hit in hits) == list(range(600))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits[:20]:
        assert hit.text == TEXTS[hit.row] and hit.score == pytest.approx(float(expected[hit.row]), abs=2e-6)
    sixteen = built["exact-fp16"].search(text, top=600)
    assert max(abs(hit.score - float(expected[hit.row])) for hit in sixteen) < 1e-4


def recall(index: SubspaceIndex, truth: SubspaceIndex, queries: list[str]) -> float:
    matrices = truth.matrices(queries)
    rows, true = index.search_matrices(matrices)[1], truth.search_matrices(matrices)[1]
    return float((rows.unsqueeze(1) == true.unsqueeze(2)).any(2).float().mean())


QUERIES = {
    "plain": ["a man runs", "at night", "two children in winter", "plays chess", "on a bench", "all alone"],
    "conjunction": [
        "a man & in winter",
        "plays chess & in the park",
        "a cook & with friends",
        "sits & on a bench & at night",
    ],
    "negation": [
        "a man & ~in winter",
        "plays chess & ~in the park",
        "~a cook",
        "on a bench & ~at night",
        "~(sits | runs)",
    ],
}


@pytest.mark.parametrize("form", QUERIES)
def test_recall_of_the_approximate_kinds(built: dict[str, SubspaceIndex], form: str) -> None:
    exact = built["exact-fp32"]
    assert recall(built["exact-fp16"], exact, QUERIES[form]) >= 0.98
    assert recall(built["reduced"], exact, QUERIES[form]) >= 0.98
    assert recall(built["compact"], exact, QUERIES[form]) >= 0.8
    assert recall(built["ivfpq"], exact, QUERIES[form]) > 10 * 10 / len(TEXTS)  # far from good, farther from chance


def test_kinds_differ_in_size(built: dict[str, SubspaceIndex]) -> None:
    def vectors(kind: str) -> int:
        files = built[kind].manifest.files
        assert built[kind].manifest.bytes == sum(
            path.stat().st_size for path in built[kind].folder.iterdir()
        ) - manifest_size(kind)
        return sum(files[name].bytes for name in files if name.startswith(("half", "levels")))

    def manifest_size(kind: str) -> int:
        return (built[kind].folder / "manifest.json").stat().st_size

    assert vectors("exact-fp32") == 2 * vectors("exact-fp16") == 4 * 600 * 136
    assert vectors("compact") == 600 * 46 and vectors("ivfpq") == 0


def test_queries_as_text_tree_subspace_and_matrix_agree(built: dict[str, SubspaceIndex]) -> None:
    index, encoder = built["exact-fp16"], stand_in()
    text = "a man & ~at night"
    composed = encoder.encode("a man") & ~encoder.encode("at night")
    expected = index.search(text)
    assert index.search(parse(text)) == expected
    for form in (composed, composed.projector):
        for one, other in zip(index.search(form), expected, strict=True):
            assert one.row == other.row and one.score == pytest.approx(other.score, abs=1e-6)
    both = index.search_many([text, "sleeps"], top=3)
    assert [hit.row for hit in both[0]] == [hit.row for hit in expected[:3]]
    assert [hit.row for hit in both[1]] == [hit.row for hit in index.search("sleeps", top=3)]
    assert index.search_many([]) == []


def test_conjunctions_are_passed_on(built: dict[str, SubspaceIndex]) -> None:
    index = built["exact-fp32"]
    assert index.search("a man & at night", method="sandwich-hard") != index.search("a man & at night")


def test_save_and_load(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    for kind, index in built.items():
        index.save(tmp_path / kind)
        again = SubspaceIndex.open(tmp_path / kind, stand_in(), verify=True)
        assert again.search("a man & ~at night") == index.search("a man & ~at night"), kind
    with pytest.raises(UserError, match="exists"):
        index.save(tmp_path / kind)


def test_another_model_is_refused_and_both_are_named(built: dict[str, SubspaceIndex]) -> None:
    with pytest.raises(UserError, match=r"built with the model stand-in-16 \(d = 16\), and this is the model other-16"):
        SubspaceIndex.open(built["reduced"].folder, stand_in(16, "other"))


def test_without_an_encoder_only_matrices_can_be_asked(built: dict[str, SubspaceIndex]) -> None:
    index = SubspaceIndex.open(built["exact-fp16"].folder)
    assert len(index.search(torch.eye(16))) == 10
    with pytest.raises(UserError, match="without an encoder"):
        index.search("a man")


def test_bad_requests(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    index = built["exact-fp16"]
    assert len(index.search("a man", top=601)) == len(index.search("a man", top=10_000)) == 600
    with pytest.raises(UserError, match="best 0"):
        index.search("a man", top=0)
    with pytest.raises(UserError, match="never closed"):
        index.search("(a man")
    with pytest.raises(UserError, match="dimension 16"):
        index.search(torch.eye(8))
    with pytest.raises(UserError, match=r"\(B, 16, 16\)"):
        index.search_matrices(torch.eye(16))
    with pytest.raises(UserError, match=r"unknown kind of index 'hnsw': choose exact-fp32"):
        SubspaceIndex.build(TEXTS, stand_in(), tmp_path / "a", kind="hnsw")
    with pytest.raises(UserError, match=r"ivfpq needs at least 16 documents, there are 3"):
        SubspaceIndex.build(TEXTS[:3], stand_in(), tmp_path / "a", kind="ivfpq")
    with pytest.raises(UserError, match="knows no setting speed: it has first"):
        SubspaceIndex.build(TEXTS, stand_in(), tmp_path / "a", kind="reduced", settings={"speed": 1})
    with pytest.raises(UserError, match="is not an index"):
        SubspaceIndex.open(tmp_path)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_flipped_byte_is_noticed_on_the_first_open_after_it(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    for kind, name in (("exact-fp16", "half.f16"), ("reduced", "first.faiss"), ("compact", "documents.txt")):
        built[kind].save(tmp_path / kind)
        SubspaceIndex.open(tmp_path / kind)
        flip(tmp_path / kind / name, 1000)
        for verify in (False, True):
            with pytest.raises(UserError, match=rf"{name} is damaged: it has changed in block 0"):
                SubspaceIndex.open(tmp_path / kind, verify=verify)


def test_verify_notices_what_times_of_change_do_not_show(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    built["exact-fp16"].save(tmp_path / "copy")
    path = tmp_path / "copy/half.f16"
    SubspaceIndex.open(tmp_path / "copy")
    before = path.stat()
    flip(path, 1000)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    SubspaceIndex.open(tmp_path / "copy")  # same size and time: compared before
    with pytest.raises(UserError, match=r"half\.f16 is damaged"):
        SubspaceIndex.open(tmp_path / "copy", verify=True)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(UserError, match=r"half\.f16 is damaged: it is missing or has another size"):
        SubspaceIndex.open(tmp_path / "copy")


def test_other_formats_are_named(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    built["exact-fp16"].save(tmp_path / "copy")
    path = tmp_path / "copy/manifest.json"
    content = json.loads(path.read_text())
    for version, message in ((1, r"an older format \(1; this version reads 2\)"), (99, r"a newer format \(99")):
        path.write_text(json.dumps(content | {"format": version}))
        with pytest.raises(UserError, match=message):
            SubspaceIndex.open(tmp_path / "copy")
    path.write_text(json.dumps({"format": 2}))
    with pytest.raises(UserError, match=r"manifest\.json is damaged"):
        SubspaceIndex.open(tmp_path / "copy")


def test_the_manifest_says_what_it_is(built: dict[str, SubspaceIndex]) -> None:
    manifest = built["compact"].manifest
    assert (manifest.kind, manifest.encoder, manifest.dim, manifest.count) == ("compact", "stand-in-16", 16, 600)
    assert manifest.documents.start == 0 and manifest.documents.stop == manifest.documents.total == 600
    assert set(manifest.files) == {
        "documents.txt",
        "lines.u64",
        "windows.u32",
        "reduction.safetensors",
        "first.faiss",
        "unit.f32",
    } | {
        "coordinates.i8",
        "spread.f32",
        "levels.u8",
    }
    assert manifest.settings["first"] == 96 <= manifest.settings["dims"] <= 136 and manifest.settings["fine"] == 8


def test_of_equal_scores_the_smaller_rows_win() -> None:
    scores = torch.tensor([[1.0, 3, 2, 2, 2, 0, 2, 3, 1], [5.0, 5, 5, 5, 5, 5, 5, 5, 5], [0.0, 1, 2, 3, 4, 5, 6, 7, 8]])
    for size in (1, 2, 3, 4, 9):
        blocks = ((start, scores[:, start : start + size]) for start in range(0, 9, size))
        values, rows = best_of_blocks(blocks, 4)
        assert rows.tolist() == [[1, 7, 2, 3], [0, 1, 2, 3], [8, 7, 6, 5]], size
        assert values.tolist() == [[3, 3, 2, 2], [5, 5, 5, 5], [8, 7, 6, 5]]


def test_reading_vectors_does_not_change_the_index(built: dict[str, SubspaceIndex]) -> None:
    index = built["exact-fp32"]
    store, before = index.searcher.store, index.search("a man", 5)
    first = store.nis(slice(0, 10)).clone()
    assert torch.equal(store.nis(slice(0, 10)), first) and torch.equal(store.sample(600, 0)[:10], first)
    assert index.search("a man", 5) == before
