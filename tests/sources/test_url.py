"""Addresses, against a real server on this machine that does everything wrong."""

import socket
import subprocess
import sys
import textwrap
import zipfile
from io import BytesIO

import pytest

from subspaces.errors import UserError
from subspaces.sources.fetch import fetch_source, verify
from subspaces.sources.model import OriginError
from subspaces.sources.origins import Url, UrlArchive, download

from .conftest import CONTENT

ONE = CONTENT["one.txt"]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """pooch waits a second and more before it tries again."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


def refused(source, tmp_path):
    """Fetch, expect a failure, and expect no trace of it."""
    with pytest.raises(UserError) as caught:
        fetch_source(source, tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []
    return str(caught.value)


@pytest.fixture
def source(make_source, server):
    for name, content in CONTENT.items():
        server.serve(f"/{name}", content)
    return make_source(Url(server.url))


def test_files_one_by_one(source, server, tmp_path):
    assert fetch_source(source, tmp_path / "toy")["origin"] == server.url
    assert verify(tmp_path / "toy", source) == []


def test_an_archive(make_source, server, tmp_path):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in CONTENT.items():
            archive.writestr(f"folder/{name}", content)
            archive.writestr(f"__MACOSX/{name}", b"not it")
    server.serve("/all.zip", buffer.getvalue())
    source = make_source(UrlArchive(server.url + "all.zip"))
    assert fetch_source(source, tmp_path / "toy")["origin"] == server.url + "all.zip"


def test_a_truncated_body(source, server, tmp_path):
    server.serve("/one.txt", ONE[:1000], declared=len(ONE))
    assert "cut short" in refused(source, tmp_path)
    assert server.requests.count("/one.txt") == 3, "a passing failure is tried again"


def test_a_body_that_is_short_but_honest(source, server, tmp_path):
    server.serve("/one.txt", ONE[:1000])
    assert "the sha256 of one.txt is wrong" in refused(source, tmp_path)


def test_a_wrong_hash(source, server, tmp_path):
    server.serve("/one.txt", ONE.replace(b"f", b"g"))
    message = refused(source, tmp_path)
    assert "the sha256 of one.txt is wrong" in message


@pytest.mark.parametrize("code", [503, 404])
def test_error_codes(source, server, tmp_path, code):
    server.fail("/one.txt", code)
    assert f"the server answered {code}" in refused(source, tmp_path)
    assert server.requests.count("/one.txt") == 3


def test_a_redirect_to_a_page(source, server, tmp_path):
    def moved(handler):
        handler.send_response(302)
        handler.send_header("Location", "/login")
        handler.end_headers()

    server.routes["/one.txt"] = moved
    server.serve("/login", b"<html>", kind="text/html")
    assert "the sha256 of one.txt is wrong (another version, or a web page)" in refused(source, tmp_path)


def test_a_refused_connection(make_source, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/"
    assert "the server is unreachable" in refused(make_source(Url(address)), tmp_path)


def test_a_silent_server(server, tmp_path):
    server.serve_half("/one.txt", ONE)
    with pytest.raises(OriginError, match="did not answer in time"):
        download(server.url + "one.txt", tmp_path / "one.txt", timeout=0.2, attempts=1)
    assert list(tmp_path.iterdir()) == []


def test_a_passing_failure_passes(source, server, tmp_path):
    good = server.routes["/one.txt"]

    def first_fails(handler):
        server.routes["/one.txt"] = good
        handler.send_error(503)

    server.routes["/one.txt"] = first_fails
    assert fetch_source(source, tmp_path / "toy")["tried"] == [{"origin": server.url, "result": "complete"}]


def test_offline_asks_nobody(source, server, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    assert "SUBSPACES_OFFLINE" in refused(source, tmp_path)
    assert server.requests == []


def test_control_c_in_the_middle_leaves_nothing(server, tmp_path):
    """A real process, interrupted while the server holds the second half back."""
    server.serve_half("/one.txt", ONE)
    script = f"""
        import signal, sys
        from pathlib import Path
        from subspaces.sources.fetch import fetch_source
        from subspaces.sources.model import Source, SourceFile
        from subspaces.sources.origins import Url
        signal.signal(signal.SIGINT, signal.default_int_handler)
        files = (SourceFile("one.txt", "0" * 64, {len(ONE)}),)
        source = Source("toy", "1", "", "", "", "", files, (Url({server.url!r}),))
        try:
            fetch_source(source, Path(sys.argv[1]))
        except KeyboardInterrupt:
            sys.exit(7)
    """
    out = tmp_path / "data" / "toy"
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), str(out)])
    try:
        assert server.stuck.wait(20)
        assert not out.exists()
        child.send_signal(2)
        assert child.wait(20) == 7
    finally:
        child.kill()
    assert list(out.parent.iterdir()) == []
