"""SNLI's tables: from the lines of a package, and from a hub on this machine that answers what `huggingface_hub` asks."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import textwrap

import pytest

from subspaces.errors import UserError
from subspaces.sources.fetch import fetch_source, verify
from subspaces.sources.model import OriginError, Source, SourceFile
from subspaces.sources.registry import get
from subspaces.sources.tables import COLUMNS, SnliHub, SnliPackage, official_rows, write_table, write_tables

from .conftest import make_sdist

REVISION = "c" * 40
ROWS = [
    {
        "gold_label": "neutral",
        "sentence1": "A man\tsits.",
        "sentence2": "He\nwaits.",
        "pairID": "1.jpg#0r1n",
        "captionID": "1.jpg#0",
    },
    {
        "gold_label": "-",
        "sentence1": 'Ein "Café".',
        "sentence2": "A bar.",
        "pairID": "2.jpg#0r1e",
        "annotator_labels": [],
    },
]
TABLE = (
    'gold_label\tsentence1\tsentence2\tpairID\nneutral\tA man sits.\tHe waits.\t1.jpg#0r1n\n-\tEin "Café".\tA bar.\t2.jpg#0r1e\n'
).encode()


def lines_of(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def origin_of(shelf, lines):
    return SnliPackage(
        make_sdist(shelf, {"data/test.jsonl": lines, "data/other.jsonl": b"not json\n"}), {"test.tsv": "test.jsonl"}
    )


def test_the_package_gives_the_same_bytes_as_the_table(shelf, make_source, tmp_path):
    source = make_source(origin_of(shelf, lines_of(ROWS)), content={"test.tsv": TABLE})
    assert fetch_source(source, tmp_path / "data" / "toy")["origin"] == "pip package toy 1.0"
    assert (tmp_path / "data" / "toy" / "test.tsv").read_bytes() == TABLE
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"toy"}


@pytest.mark.parametrize(
    "lines",
    [b"{\n", b"[]\n", b"\xff\n", b'{"gold_label": "neutral"}\n', lines_of([{**ROWS[0], "pairID": 1}])],
    ids=range(5),
)
def test_lines_in_another_form_are_refused(tmp_path, lines):
    make_sdist(tmp_path, {"data/test.jsonl": lines_of(ROWS[:1]) + lines})
    with pytest.raises(OriginError, match=r"toy-1.0.tar.gz is damaged or has changed"):
        write_tables(tmp_path / "toy-1.0.tar.gz", {"test.jsonl": "test.tsv"}, tmp_path)


def test_a_damaged_package_is_refused(tmp_path):
    make_sdist(tmp_path, {"data/test.jsonl": lines_of(ROWS * 5000)})
    path = tmp_path / "toy-1.0.tar.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(OriginError, match=r"toy-1.0.tar.gz is damaged"):
        write_tables(path, {"test.jsonl": "test.tsv"}, tmp_path)


def test_a_package_is_not_asked_for_what_it_does_not_hold(shelf, make_source, tmp_path):
    source = make_source(origin_of(shelf, lines_of(ROWS)), content={"dev.tsv": b"x"})
    with pytest.raises(UserError, match=r"it holds test\.tsv only"):
        fetch_source(source, tmp_path / "data" / "toy")


def test_the_real_test_set_survives_the_way_through_json(mirror, tmp_path):
    """The real lines, made from the mirror's table, give the digest of the registry."""
    file = next(file for file in get("snli").files if file.name == "test.tsv")
    rows = gzip.decompress((mirror / file.mirror).read_bytes()).decode().splitlines()[1:]
    lines = lines_of(dict(zip(COLUMNS, row.split("\t"), strict=True)) for row in rows)
    write_table(tmp_path / "test.tsv", COLUMNS, official_rows(io.BytesIO(lines)))
    assert hashlib.sha256((tmp_path / "test.tsv").read_bytes()).hexdigest() == file.sha256


# The hub


def parquet_of(rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    premise, hypothesis, label = zip(*rows, strict=True)
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"premise": premise, "hypothesis": hypothesis, "label": pa.array(label, pa.int64())}), buffer
    )
    return buffer.getvalue()


CARD = b"""---
configs:
- config_name: plain_text
  data_files:
  - split: train
    path: plain_text/train-*
  - split: validation
    path: plain_text/validation-*
---
"""


@pytest.fixture
def hub(server):
    """One dataset, `toy/snli`, at one revision."""
    files = {
        "README.md": CARD,
        "plain_text/train-0.parquet": parquet_of(
            [("A dog\truns.", "It moves.", 0), ("A dog.", "A cat.", -1), ("Rain.", "Sun.", 2)]
        ),
        "plain_text/validation-0.parquet": parquet_of([("Two men.", "Friends.", 1)]),
    }

    def entry(name):
        return {"type": "file", "path": name, "size": len(files[name]), "oid": hashlib.sha1(files[name]).hexdigest()}

    def answer(handler):
        path = handler.path.partition("?")[0]
        server.requests.append(path)
        name = path.partition(f"/resolve/{REVISION}/")[2]
        headers, body = {"Content-Type": "application/json"}, None
        if path == f"/api/datasets/toy/snli/revision/{REVISION}":
            body = {
                "_id": "1",
                "id": "toy/snli",
                "sha": REVISION,
                "siblings": [{"rfilename": one} for one in files],
                "tags": [],
            }
        elif path == f"/api/datasets/toy/snli/tree/{REVISION}":
            body = [entry(one) for one in files]
        elif name in files:
            headers, body = {"ETag": f'"{entry(name)["oid"]}"', "X-Repo-Commit": REVISION}, files[name]
        if body is None:
            handler.send_error(404)
            return
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(key, value)
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(body)

    handler = server.http.RequestHandlerClass
    handler.do_GET = handler.do_HEAD = handler.do_POST = answer
    return server


def test_the_full_set_through_the_real_library(hub, tmp_path):
    """In a process of its own: the library reads its address when it is imported."""
    script = f"""
        import json, sys
        from pathlib import Path
        from subspaces.sources.fetch import fetch_source, verify
        from subspaces.sources.model import OriginError, Source, SourceFile
        from subspaces.sources.tables import SnliHub
        origin = SnliHub("toy/snli", "{REVISION}", {{"train.tsv": "train", "dev.tsv": "validation"}})
        files = (SourceFile("train.tsv", None, None, lines=3), SourceFile("dev.tsv", None, None, lines=2))
        source = Source("toy", "1", "", "", "", "", files, (origin,))
        print(json.dumps(fetch_source(source, Path(sys.argv[1]))), verify(Path(sys.argv[1]), source))
    """
    settings = {
        "HF_ENDPOINT": hub.url.rstrip("/"),
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
        "no_proxy": "127.0.0.1",
    }
    out = tmp_path / "data" / "toy"
    command = [sys.executable, "-c", textwrap.dedent(script), str(out)]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"origin": "hub toy/snli at cccccccc"' in done.stdout and done.stdout.endswith(" []\n")
    assert (
        (out / "train.tsv").read_text()
        == "gold_label\tsentence1\tsentence2\nentailment\tA dog runs.\tIt moves.\ncontradiction\tRain.\tSun.\n"
    )
    assert (out / "dev.tsv").read_text() == "gold_label\tsentence1\tsentence2\nneutral\tTwo men.\tFriends.\n"
    assert [path.name for path in out.parent.iterdir()] == ["toy"]


def failing_hub(address, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", address)
    origin = SnliHub("toy/snli", REVISION, {"train.tsv": "train"})
    source = Source("toy", "1", "", "", "", "", (SourceFile("train.tsv", None, None, lines=2),), (origin,))
    with pytest.raises(UserError) as caught:
        fetch_source(source, tmp_path / "data" / "toy")
    assert list((tmp_path / "data").iterdir()) == []
    assert verify(tmp_path / "data" / "toy", source)
    return str(caught.value)


def test_a_hub_out_of_reach_is_asked_once(server, tmp_path, monkeypatch):
    assert "the server answered 404" in failing_hub(server.url, tmp_path, monkeypatch)
    asked = [path for path in server.requests if "/datasets/" in path]
    assert len(asked) == 1 and REVISION in asked[0]
    server.http.shutdown()
    server.http.server_close()
    assert "the server is unreachable" in failing_hub(server.url, tmp_path, monkeypatch)
