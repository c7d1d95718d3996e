"""Debian packages: the pieces on made-up packages, the whole with the real client where it works."""

import io
import lzma
import os
import shutil
import stat
import subprocess
import tarfile

import pytest

from subspaces.errors import UserError
from subspaces.sources import packages
from subspaces.sources.fetch import fetch, fetch_source, verify
from subspaces.sources.model import OriginError
from subspaces.sources.packages import DebianPackages, last_line, package_title, read_ar


def test_titles_carry_the_version():
    assert package_title("wordnet-base_1%3a3.0-37_all.deb") == "wordnet-base 1:3.0-37"


def test_messages_of_tools_lose_their_addresses():
    assert last_line(b"W: x\nE: Failed to fetch http://host.example/pool/a.deb 404\n") == "E: Failed to fetch … 404"
    assert last_line(b"") == ""


def deb_of(members):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": lzma.compress(tar.getvalue())}
    deb = b"!<arch>\n"
    for name, body in parts.items():
        deb += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
    return deb


def test_a_package_can_be_read_without_dpkg(tmp_path):
    package = tmp_path / "toy_1_all.deb"
    package.write_bytes(deb_of({"usr/share/toy/one.txt": b"one"}))
    with tarfile.open(fileobj=io.BytesIO(read_ar(package))) as archive:
        assert archive.getnames() == ["usr/share/toy/one.txt"]
    for bad in (b"", b"!<arch>\n", package.read_bytes()[:-30], b"<html>", b"!<arch>\n" + b"x" * 70):
        package.write_bytes(bad)
        with pytest.raises(OriginError, match="toy 1 is damaged"):
            read_ar(package)


def stand_in(folder, monkeypatch, script):
    """Put a program called apt-get first on the path."""
    program = folder / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def test_packages_that_cannot_be_downloaded(make_source, tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, "echo 'E: Unable to locate package toy' >&2; exit 100")
    with pytest.raises(UserError) as caught:
        fetch_source(make_source(DebianPackages(("toy",))), tmp_path / "data" / "toy")
    assert "debian packages toy: apt-get download failed" in str(caught.value)
    assert "Unable to locate package toy" in str(caught.value)
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a POSIX system")
@pytest.mark.parametrize(("user", "updates"), [(0, 1), (1000, 0)])
def test_only_root_fetches_package_lists(make_source, tmp_path, monkeypatch, user, updates):
    stand_in(tmp_path, monkeypatch, f'echo "$@" >> {tmp_path}/calls; exit 100')
    monkeypatch.setattr(packages.os, "geteuid", lambda: user)
    with pytest.raises(UserError) as caught:
        fetch_source(make_source(DebianPackages(("toy",))), tmp_path / "data" / "toy")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sum(call.startswith("update") for call in calls) == updates
    assert ("sudo apt-get update" in str(caught.value)) == (not updates)


def test_damaged_packages_are_refused(make_source, tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, "echo broken > toy_1_all.deb")
    with pytest.raises(UserError, match="toy 1 is damaged"):
        fetch_source(make_source(DebianPackages(("toy",))), tmp_path / "data" / "toy")


def test_machines_without_apt(make_source, tmp_path, monkeypatch):
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="apt-get is not on this machine"):
        fetch_source(make_source(DebianPackages(("toy",))), tmp_path / "toy")


@pytest.fixture(scope="module")
def real_packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apt")
    if shutil.which("apt-get") is None:
        pytest.skip("needs apt-get")
    command = ["apt-get", "download", "-q", "wordnet-sense-index"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        done = False
    if not done:
        pytest.skip("needs `apt-get download` to work here (package lists and a reachable archive)")


@pytest.mark.parametrize("dpkg", [True, False], ids=["dpkg-deb", "by hand"])
def test_wordnet_from_the_real_packages(real_packages, tmp_path, monkeypatch, dpkg):
    """Every file has the registry's sha256, which is that of the mirror."""
    if not dpkg:
        found = shutil.which
        monkeypatch.setattr(packages.shutil, "which", lambda name: None if name == "dpkg-deb" else found(name))
    manifest = fetch("wordnet", tmp_path / "wordnet", root=tmp_path / "project")
    assert manifest["origin"].startswith("table in this package (lexnames) + debian packages wordnet-base 1:3.0")
    assert verify(tmp_path / "wordnet", "wordnet") == []
