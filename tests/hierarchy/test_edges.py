"""Edge lists: what is read, and what is refused with file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.hierarchy.edges import read_hierarchy, read_pairs


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_comments_blank_lines_header_spaces_crlf_and_a_mark_are_understood(tmp_path: Path) -> None:
    text = "\ufeff# made by hand\r\n\r\nChild\tParent\r\nmaine coon\tcat \r\n  cat\tanimal\r\n3\tanimal"
    path = write(tmp_path / "edges.tsv", text.encode())
    assert list(read_pairs(path)) == [(4, "maine coon", "cat"), (5, "cat", "animal"), (6, "3", "animal")]


def test_only_the_first_line_is_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "edges.tsv", b"boy\tchild\nchild\tparent\n")
    assert [pair[1:] for pair in read_pairs(path)] == [("boy", "child"), ("child", "parent")]


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    plain = "katze\ttier\nhündin\ttier\n".encode()
    one = read_hierarchy(write(tmp_path / "plain.gz", plain))  # the name lies
    other = read_hierarchy(write(tmp_path / "packed", gzip.compress(plain, mtime=0)))
    assert one.names == other.names == ["hündin", "katze", "tier"]
    assert one.edges.tolist() == other.edges.tolist() == [[0, 2], [1, 2]]


def test_the_order_of_lines_and_double_lines_do_not_matter(tmp_path: Path) -> None:
    one = read_hierarchy(write(tmp_path / "a", b"a\tb\nb\tc\nd\tc\n"))
    other = read_hierarchy(write(tmp_path / "b", b"d\tc\nb\tc\na\tb\nd\tc\n"))
    assert one.names == other.names
    assert one.edges.tolist() == other.edges.tolist()
    assert one.ancestors.tolist() == other.ancestors.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\na b\n", r"edges\.tsv, line 2: expected child TAB parent, found 1 field\."),
        (b"a\tb\tc\n", r"edges\.tsv, line 1: expected child TAB parent, found 3 fields\."),
        (b"# x\na\t \n", r"edges\.tsv, line 2: the parent's name is empty"),
        (b"\tb\n", r"edges\.tsv, line 1: the child's name is empty"),
        (b"a\tb\nb\tb\n", r"edges\.tsv, line 2: 'b' is its own parent"),
        (b"a\tb\nb\tc\nc\ta\n", r"edges\.tsv: the hierarchy has a cycle: .* → .*Remove one"),
        (b"", r"edges\.tsv has no edges"),
        (b"child\tparent\n# nothing\n", r"edges\.tsv has no edges"),
        (b"a\tb\nk\xe4se\tb\n", r"edges\.tsv, line 2: not UTF-8 \(byte 2 of the line\)"),
        (gzip.compress(b"a\tb\n" * 1000, mtime=0)[:-12], r"edges\.tsv is a damaged gzip file"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_hierarchy(write(tmp_path / "edges.tsv", content))


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_hierarchy(tmp_path / "nothing.tsv")
    with pytest.raises(UserError, match="cannot read"):
        read_hierarchy(tmp_path)
