"""Edge lists: what is read, and what is refused with file and line."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.hierarchy.edges import read_pairs
from subspaces.hierarchy.relation import read_taxonomy


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
    one = read_taxonomy(write(tmp_path / "plain.gz", plain))  # the name lies
    other = read_taxonomy(write(tmp_path / "packed", gzip.compress(plain, mtime=0)))
    assert one.names == other.names == ["hündin", "katze", "tier"]
    assert one.edges.tolist() == other.edges.tolist() == [[0, 2], [1, 2]]


def test_the_order_of_lines_and_double_lines_do_not_matter(tmp_path: Path) -> None:
    one = read_taxonomy(write(tmp_path / "a", b"a\tb\nb\tc\nd\tc\n"))
    other = read_taxonomy(write(tmp_path / "b", b"d\tc\nb\tc\na\tb\nd\tc\n"))
    assert one.names == other.names
    assert one.edges.tolist() == other.edges.tolist()
    assert one.ancestors.tolist() == other.ancestors.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\na b\n", r"edges\.tsv, line 2: expected child TAB parent, found 1 field\. .*not by spaces"),
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
        read_taxonomy(write(tmp_path / "edges.tsv", content))


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_taxonomy(tmp_path / "nothing.tsv")
    with pytest.raises(UserError, match="cannot read"):
        read_taxonomy(tmp_path)


def pairs_of(path: Path, **options) -> list[tuple[str, str]]:
    return [pair[1:] for pair in read_pairs(path, **options)]


def test_commas_are_understood_with_quotes_and_a_header_in_any_order(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", b'cat,animal\n"dog, old",animal\n')
    assert pairs_of(plain) == [("cat", "animal"), ("dog, old", "animal")]
    table = write(tmp_path / "t.csv", b"count,Parent,Child\n3,animal,cat\n1,,animal\n")
    assert pairs_of(table) == [("cat", "animal")]  # a row without a parent is a root
    semicolons = write(tmp_path / "s.csv", b"id;parent_id\n7;3\n")
    assert pairs_of(semicolons) == [("7", "3")]


def test_paths_are_named_by_their_whole_path(tmp_path: Path) -> None:
    path = write(
        tmp_path / "products.txt", b"# Google\nToys, Games\nToys, Games > Puzzles\nToys, Games > Puzzles > Cubes\n"
    )
    assert pairs_of(path) == [
        ("Toys, Games > Puzzles", "Toys, Games"),
        ("Toys, Games > Puzzles", "Toys, Games"),
        ("Toys, Games > Puzzles > Cubes", "Toys, Games > Puzzles"),
    ]
    tabs = write(tmp_path / "tabs.tsv", b"A > B\tA\n")
    assert pairs_of(tabs) == [("A > B", "A")]
    with pytest.raises(UserError, match="line 2: a name of the path is empty"):
        pairs_of(write(tmp_path / "bad", b"A > B\nA > B > \n"))


def test_the_parent_may_come_first(tmp_path: Path) -> None:
    path = write(tmp_path / "edges.tsv", b"animal\tcat\n")
    assert pairs_of(path, parent_first=True) == [("cat", "animal")]
    with pytest.raises(UserError, match=r"line 1 names the columns: omit --parent-first"):
        pairs_of(write(tmp_path / "named.tsv", b"child\tparent\ncat\tanimal\n"), parent_first=True)


def test_unicode_is_composed(tmp_path: Path) -> None:
    path = write(tmp_path / "edges.tsv", "cafe\u0301\tplace\nbar\tcaf\u00e9\n".encode())
    assert read_taxonomy(path).names == ["bar", "caf\u00e9", "place"]


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(gzip.compress(b"cat\tanimal\nx y\n"))

    monkeypatch.setattr("sys.stdin", Piped)
    with pytest.raises(UserError, match="standard input, line 2: expected child TAB parent"):
        pairs_of(Path("-"))


def test_a_wrong_separator_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 2: .*found 1 field\. Is this file comma-separated\?"):
        pairs_of(write(tmp_path / "mixed", b"a\tb\nc,d\n"))
    with pytest.raises(
        UserError, match=r"line 1: expected child comma parent, found 3 fields\. .*a first line must name"
    ):
        pairs_of(write(tmp_path / "wide.csv", b"a,b,c\n"))
