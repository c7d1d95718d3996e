"""What is measured for Tables 7 and 8 and the figures: right quantities, equal answers, nothing that looks at a clock."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import pytest

from subspaces.errors import UserError
from subspaces.experiments.efficiency.composed_queries import as_text, find, signed_terms, write_captions
from subspaces.experiments.efficiency.encoding import BARE, HEAD, encoding_times
from subspaces.experiments.efficiency.latency import measure_latency
from subspaces.experiments.efficiency.settings import LatencySettings
from subspaces.experiments.efficiency.timing import FORMS
from subspaces.files import read_json
from subspaces.search.build import build_index
from subspaces.search.index import SubspaceIndex
from subspaces.search.query import parse
from subspaces.sources.origins import SAMPLES
from subspaces.text.pair_model import read_encoder
from subspaces.text.texts import Words
from tests.search.stand_in import sentences, stand_in
from tests.text.toys import tiny_backbone


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return sentences(400)


def test_captions_are_one_per_line_and_counted(tmp_path):
    record = write_captions(SAMPLES / "captions.txt", 20, tmp_path / "captions", "k" * 64, {"sample": True})
    lines = (tmp_path / "captions.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == record["captions"] == 20 and record["of"] == 150
    with open(SAMPLES / "captions.txt", encoding="utf-8", newline="") as handle:
        first = next(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))["caption"]
    assert lines[0] == first


def test_a_table_without_captions_is_refused(tmp_path):
    (tmp_path / "table.txt").write_text("a\tb\n1\t2\n")
    with pytest.raises(UserError, match="a column caption"):
        write_captions(tmp_path / "table.txt", None, tmp_path / "out", "k" * 64, {})


def test_latency_writes_every_row_with_recall_and_bytes(tmp_path, texts):
    encoder = stand_in()
    (tmp_path / "captions.txt").write_text("\n".join(texts) + "\n")
    write_captions(_table(tmp_path, texts), None, tmp_path / "captions", "k" * 64, {"sample": True, "origin": "test"})
    indexes = {
        kind: SubspaceIndex.open(build_index(texts, encoder, tmp_path / kind, kind=kind), encoder)
        for kind in ("exact-fp16", "ivfpq")
    }
    out = tmp_path / "latency.json"
    settings = LatencySettings(queries=12, repeats=1, batch=8, top=5, seed=0)
    with pytest.raises(UserError, match="needs the kind ivfpq"):
        measure_latency(
            settings, {"exact-fp16": indexes["exact-fp16"]}, tmp_path / "captions.txt", out, "k" * 64, 1, "quick"
        )
    assert not out.exists()
    found = measure_latency(settings, indexes, tmp_path / "captions.txt", out, "k" * 64, 1, "quick")
    assert found["rows"]["exact-fp16"]["recall"] == dict.fromkeys(FORMS, 1.0)
    assert all(0 <= value <= 1 for value in found["rows"]["ivfpq"]["recall"].values())
    assert found["half_over_full"] > 0 and found["best"] == "exact-fp16"
    content = read_json(out)
    rows = {"poincare-10-exact", "subspace-64-exact", "subspace-128-exact", "subspace-128-faiss"}
    assert {*content["metrics"]} == rows and all(value > 0 for value in content["metrics"].values())
    assert content["extent"]["comparable"] is False and content["key"] == "k" * 64
    assert content["settings"]["seed"] == 0 and content["data"]["sample"] is True
    forms = [point["form"] for point in found["points"]]
    assert "exact-fp16" in forms and any(form.startswith("rank-k") for form in forms)


def _table(folder: Path, texts: list[str]) -> Path:
    path = folder / "table.tsv"
    path.write_text("split\timage\tcaption_no\tcaption\n" + "".join(f"train\tx\t1\t{text}\n" for text in texts))
    return path


def test_encoding_times_cover_both_rows_and_every_batch(tmp_path, monkeypatch):
    import subspaces.experiments.efficiency.encoding as module

    backbone = tiny_backbone(dropout=0.0)
    monkeypatch.setattr(module.Backbone, "from_folder", lambda *_: backbone)
    monkeypatch.setattr(module, "backbone_tokeniser", lambda *_: Words.of(sentences(50)))
    model = read_encoder({"encoder": "subspace", "backbone": "toy", "dim": 8, "lam": 0.05})
    job = SimpleNamespace(model=model, backbone=SimpleNamespace(name="toy", layers=None), ways=2, limit=35)
    found = encoding_times(job, sentences(50), tmp_path, [1, 8, 64], sentences=16, repeats=1, seed=0)
    assert {*found} == {BARE, HEAD} and all({*row} == {"batch-1", "batch-8", "batch-64"} for row in found.values())
    assert all(value > 0 for row in found.values() for value in row.values())


def test_terms_know_whether_they_are_asked_for():
    assert signed_terms(parse("a street & ~(at night | in the rain)")) == [
        ("a street", 1),
        ("at night", -1),
        ("in the rain", -1),
    ]
    assert as_text('a street & ~"at night"') == "a street and not at night"


def test_queries_are_answered_in_three_ways(tmp_path, texts):
    encoder = stand_in(32)
    index = SubspaceIndex.open(build_index(texts, encoder, tmp_path / "index", kind="exact-fp16"), encoder)
    backbone = tiny_backbone(dropout=0.0)
    (answer,) = find(index, ["a man & ~at night"], backbone.eval(), Words.of(texts, most=60), 35, 3, "product")
    assert {"query", "as_text", "subspace", "text", "vector"} == {*answer}
    assert all(len(answer[name]) == 3 for name in ("subspace", "text", "vector"))
    assert all("man" in hit["text"] and "night" not in hit["text"] for hit in answer["subspace"])
