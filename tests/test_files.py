"""Files are whole or absent, whatever goes wrong while they are written; full disks and frozen folders are real where possible."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.files import atomic_file, digest, read_json, sha256_file, write_bytes, write_json, write_text


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def frozen_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nobody can make a file: by its mode, or for root, whom modes do not stop, by the immutable flag."""
    folder = tmp_path / "frozen"
    folder.mkdir()
    (folder / "old.json").write_text('{"value": 1}\n')
    if os.geteuid():
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    try:
        subprocess.run(["chattr", "+i", str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("root ignores modes, and this file system has no immutable flag")
    try:
        yield folder
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)


def test_content_arrives_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.txt"
    write_text(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    write_bytes(path, b"other")
    assert path.read_bytes() == b"other"
    assert entries(path.parent) == ["file.txt"]


def test_text_mode_is_utf8(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a.txt", "w") as handle:
        handle.write("λ")
    assert (tmp_path / "a.txt").read_bytes() == "λ".encode()


def test_the_usual_permissions(tmp_path: Path) -> None:
    """mkstemp makes files that only the owner can read; an output is for everybody whom the umask allows."""
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "failure", [ValueError("no"), KeyboardInterrupt(), UserError("no")], ids=lambda failure: type(failure).__name__
)
def test_an_exception_leaves_the_old_file(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(type(failure)), atomic_file(path) as handle:
        handle.write(b"new" * 100_000)
        raise failure
    assert path.read_text() == "old"
    assert entries(tmp_path) == ["a.txt"]


def test_the_old_file_is_there_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with atomic_file(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_error_of_the_system_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(UserError, match=r"a\.txt.*No space left.*Nothing was changed"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert entries(tmp_path) == ["a.txt"]


def test_a_really_full_disk(small_disk: Path) -> None:
    path = small_disk / "a.bin"
    write_bytes(path, b"old")
    with pytest.raises(UserError, match=r"a\.bin.*No space left.*free some space"):
        write_bytes(path, bytes(1 << 18))
    assert path.read_bytes() == b"old"
    assert entries(small_disk) == ["a.bin"]
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_full_disk_noticed_only_when_the_file_is_closed(small_disk: Path) -> None:
    """The body ends well: what it wrote still sits in the buffer."""
    write_bytes(small_disk / "ballast", bytes(15 << 12))
    write_bytes(small_disk / "a.bin", b"old")
    with pytest.raises(UserError, match="No space left"), atomic_file(small_disk / "a.bin") as handle:
        handle.write(bytes(100))
    assert (small_disk / "a.bin").read_bytes() == b"old"
    assert entries(small_disk) == ["a.bin", "ballast"]


def test_a_frozen_folder(frozen_folder: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*old\.json: .*permissions"):
        write_json(frozen_folder / "old.json", {"value": 2})
    assert read_json(frozen_folder / "old.json") == {"value": 1}
    with pytest.raises(UserError, match="permissions"):
        write_text(frozen_folder / "new" / "a.txt", "x")
    assert entries(frozen_folder) == ["old.json"]


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot write .*a\.txt"):
        write_text(tmp_path / "file" / "a.txt", "y")
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_where_the_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*a\.txt"):
        write_text(tmp_path / "a.txt", "y")
    assert entries(tmp_path) == ["a.txt"]


def test_json_is_stable_and_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "one.json", {"b": [1, 2.5], "a": "λ"})
    write_json(tmp_path / "two.json", {"a": "λ", "b": [1, 2.5]})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.json").read_text() == '{\n  "a": "λ",\n  "b": [\n    1,\n    2.5\n  ]\n}\n'
    assert read_json(tmp_path / "one.json") == {"a": "λ", "b": [1, 2.5]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_json_refuses_what_json_does_not_have(tmp_path: Path, value: float) -> None:
    write_json(tmp_path / "a.json", {"value": 1})
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", {"deep": [{"value": value}]})
    with pytest.raises(ValueError):
        digest({"value": value})
    assert read_json(tmp_path / "a.json") == {"value": 1}
    assert entries(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "content", [b"", b'{"value": 1', b"\xff\xfe\x00", b"{'value': 1}"], ids=["empty", "cut", "binary", "python"]
)
def test_damaged_json_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"damaged\.json is not valid JSON.*Delete it"):
        read_json(path)


def test_missing_json_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.json does not exist"):
        read_json(tmp_path / "absent.json")


def test_digests(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"abc")
    assert sha256_file(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest({"a": 1, "b": 2}) == digest(json.loads('{"b": 2, "a": 1}'))
    assert len({digest(one) for one in ({"a": 1}, {"a": 2}, {"b": 1}, [1], 1, "1", None)}) == 7
