"""Flickr30k's table from Multi30k's files, served by this machine."""

import gzip

import pytest

from subspaces.errors import UserError
from subspaces.sources.fetch import check, fetch_source
from subspaces.sources.registry import get
from subspaces.sources.tables import SPLITS, Multi30k, caption_files, image_list

HEADER = "split\timage\tcaption_no\tcaption\n"


def serve(server, table):
    """Take a table apart into the eighteen files that the repository has."""
    rows = [line.split("\t") for line in table.splitlines()[1:]]
    for split in SPLITS:
        mine = [row for row in rows if row[0] == split]
        images = list(dict.fromkeys(row[1] for row in mine))
        server.serve(f"/{image_list(split)}", "".join(f"{image}\n" for image in images).encode())
        for number, name in enumerate(caption_files(split), 1):
            captions = "".join(f"{row[3]}\n" for row in mine if row[2] == str(number))
            server.serve(f"/{name}", gzip.compress(captions.encode(), 1))


@pytest.fixture
def table():
    rows = [
        f"{split}\t{image}.jpg\t{number}\tCaption {number} of “{image}”, {split}.\n"
        for split, images in zip(SPLITS, (["10", "9", "100"], ["7"], ["8", "1"]), strict=True)
        for image in images
        for number in range(1, 6)
    ]
    return HEADER + "".join(rows)


def test_the_files_are_joined(server, make_source, table, tmp_path):
    serve(server, table)
    source = make_source(Multi30k(server.url), content={"captions.txt": table.encode()})
    assert fetch_source(source, tmp_path / "toy")["origin"] == server.url
    assert (tmp_path / "toy" / "captions.txt").read_text() == table
    assert len(server.requests) == 18
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_white_space_cannot_break_the_table(server, make_source, table, tmp_path):
    serve(server, table)
    server.serve(f"/{caption_files('val')[1]}", gzip.compress(b" A\tman.\x0b \r\n"))
    expected = table.replace("Caption 2 of “7”, val.", "A man.")
    source = make_source(Multi30k(server.url), content={"captions.txt": expected.encode()})
    fetch_source(source, tmp_path / "toy")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(b"one\ntwo\n", mtime=0), "split train: 3 images, but 3, 3, 2, 3, 3 captions"),
        (gzip.compress(b"one\ntwo\nthree\n", mtime=0)[:-9], "a file of the split train is damaged"),
        (b"plain", "a file of the split train is damaged"),
        (gzip.compress(b"\xff\ntwo\nthree\n", mtime=0), "a file of the split train is damaged"),
        (gzip.compress(b"one\ntwo\nthree\n", mtime=0), "refused captions.txt: it has"),
    ],
    ids=["short", "cut", "plain", "other encoding", "other captions"],
)
def test_what_does_not_fit_is_refused(server, make_source, table, tmp_path, body, reason):
    serve(server, table)
    server.serve(f"/{caption_files('train')[2]}", body)
    with pytest.raises(UserError) as caught:
        fetch_source(make_source(Multi30k(server.url), content={"captions.txt": table.encode()}), tmp_path / "toy")
    assert reason in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_real_captions_taken_apart_and_joined(server, mirror, tmp_path):
    """155,070 real captions: the table that comes out has the digest of the registry."""
    file = get("flickr30k").files[0]
    serve(server, gzip.decompress((mirror / file.mirror).read_bytes()).decode())
    into = tmp_path / "new"
    into.mkdir()
    Multi30k(server.url).fetch(get("flickr30k"), (file,), into, None)
    assert check(into / "captions.txt", file) is None
