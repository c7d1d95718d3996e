"""Documents: streamed, checked before any work, the same in every form."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.search.documents import Documents, StoredTexts
from tests.search.stand_in import sentences


def test_file_gzip_and_list_are_the_same_documents(tmp_path: Path) -> None:
    texts = [*sentences(5), "Zwölf Boxkämpfer", "人々が走る", "  spaces stay  "]
    plain, windows, packed = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.gz"
    plain.write_text("\n".join(texts), encoding="utf-8")  # no newline at the end
    windows.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*texts, ""]).encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    forms = [Documents.check(source) for source in (texts, plain, str(windows), packed, iter(texts))]
    assert {(one.count, one.sha256) for one in forms} == {(8, forms[0].sha256)}
    for one in forms:
        assert list(one.texts()) == texts and list(one.texts(2, 4)) == texts[2:4] and list(one.texts(7)) == texts[7:]


def test_all_bad_lines_are_counted_and_five_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    lines = [b"good"] * 40
    for number in (3, 4, 10, 11, 12, 13, 39):
        lines[number - 1] = b" \t"
    lines[4], lines[20] = b"caf\xe9", b"two\rlines"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(UserError) as caught:
        Documents.check(path)
    message = str(caught.value)
    assert (
        "no text in 7 lines (3, 4, 10, 11, 12, …)" in message and "not one line of UTF-8 in 2 lines (5, 21)." in message
    )
    with pytest.raises(UserError, match="the documents: no text in line 2"):
        Documents.check(["a", "", "b"])
    with pytest.raises(UserError, match="not one line of UTF-8 in line 1"):
        Documents.check(["a\nb"])
    with pytest.raises(UserError, match="not one line of UTF-8 in line 1"):
        Documents.check(["\ud800"])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        Documents.check(tmp_path / "nothing.txt")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(UserError, match="holds no documents"):
        Documents.check(tmp_path / "empty.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a dog\n" * 1000)[:-9])
    with pytest.raises(UserError, match="damaged gzip"):
        Documents.check(tmp_path / "cut.gz")
    with pytest.raises(UserError, match="cannot read"):
        Documents.check(tmp_path)


def test_stored_texts_find_any_row(tmp_path: Path) -> None:
    texts = [*sentences(20), "人々が走る", "last"]
    StoredTexts.write(tmp_path, texts)
    stored = StoredTexts(tmp_path)
    assert len(stored) == 22 and [stored[row] for row in range(22)] == texts


def test_binary_files_and_very_long_lines(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(UserError, match=r"image\.png is a binary file \(line 3"):
        Documents.check(tmp_path / "image.png")
    (tmp_path / "long.txt").write_text("a dog\n" + "word " * 200_000 + "\n")
    with pytest.raises(UserError, match="more than 100,000 characters in line 2"):
        Documents.check(tmp_path / "long.txt")
    assert Documents.check(["a dog"]).count == 1
