"""The table behind `subspaces sources`."""

from subspaces.sources.fetch import fetch
from subspaces.sources.registry import SOURCES
from subspaces.sources.status import format_status, status


def test_rows_say_what_is_here(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    rows = {row.name: row for row in status(None, tmp_path / "data")}
    assert list(rows) == list(SOURCES)
    assert not any(row.present for row in rows.values())
    assert "data.noun" in rows["wordnet"].missing and len(rows["wordnet"].missing) == 15
    fetch("wordnet", tmp_path / "data" / "wordnet", allow_sample=True)
    row = status(None, tmp_path / "data")[0]
    assert (row.present, row.sample, row.origin, row.missing) == (True, True, "sample", ())


def test_a_changed_file_is_missing(tmp_path, monkeypatch, mirror):
    monkeypatch.setenv("SUBSPACES_MIRROR", str(mirror))
    out = tmp_path / "composition"
    fetch("composition", out)
    assert {row.name: row for row in status(None, tmp_path)}["composition"].present
    (out / "composite_entailment.txt").write_text("changed")
    row = {row.name: row for row in status(None, tmp_path)}["composition"]
    assert (row.present, row.missing, row.in_mirror) == (False, ("composite_entailment.txt",), True)


def test_rows_with_several_sample_files_and_with_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    for name in ("all-mpnet-base-v2", "snli"):
        fetch(name, tmp_path / name, allow_sample=True)
    rows = {row.name: row for row in status(None, tmp_path)}
    assert rows["all-mpnet-base-v2"].sample and rows["snli"].sample
    assert rows["snli_more"].missing == ("dev.tsv", "train_extra.tsv") and rows["snli_full"].missing == (
        "dev.tsv",
        "test.tsv",
        "train.tsv",
    )
    line = next(line for line in format_status(list(rows.values())).splitlines() if line.startswith("all-mpnet"))
    assert line.split()[:4] == ["all-mpnet-base-v2", "0.0.1", "sample", "sample"]


def test_the_table_is_aligned(tmp_path):
    lines = format_status(status(None, tmp_path)).splitlines()
    assert lines[0].split()[:3] == ["source", "version", "here"]
    assert len(lines) == len(SOURCES) + 2
    column = lines[0].index("here")
    assert all(line[column - 1] == " " and line[column] != " " for line in lines[2:])
    assert "15 files missing" in lines[2] and "10 files missing" in lines[-1]
    assert all(line == line.rstrip() for line in lines)
