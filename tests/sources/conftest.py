"""Shared fixtures: a small made-up source, a shelf for pip, a web server that misbehaves on request, the real mirror where there is one."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from subspaces.files import sha256_file
from subspaces.sources.model import OriginError, Source, SourceFile
from subspaces.sources.origins import mirror_folder
from subspaces.sources.packages import Package

ROOT = Path(__file__).resolve().parents[2]
CONTENT = {"one.txt": b"first\n" * 5000, "two.txt": b"second\n" * 300}


def file_of(name: str, content: bytes, mirror: str | None = None) -> SourceFile:
    return SourceFile(name, hashlib.sha256(content).hexdigest(), len(content), mirror)


class Nowhere:
    """An origin that never delivers."""

    network = False

    def __init__(self, label: str = "nowhere", reason: str = "there is nothing") -> None:
        self.label, self.reason = label, reason

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        raise OriginError(self.reason)


@pytest.fixture
def make_source() -> Callable[..., Source]:
    """A source of two small files, or of those that a test gives, with the test's origins."""

    def make(
        *origins,
        mirror: str | None = None,
        sample: str | tuple[str, ...] | None = None,
        content: dict[str, bytes] | None = None,
    ) -> Source:
        files = tuple(file_of(name, body, mirror) for name, body in (content or CONTENT).items())
        return Source("toy", "1", "Toy", "MIT", "nobody", "https://example.org/", files, origins, sample=sample)

    return make


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """No test sees the developer's mirror or switches unless it asks for the mirror."""
    if "mirror" not in request.fixturenames:
        monkeypatch.delenv("SUBSPACES_MIRROR", raising=False)
    monkeypatch.delenv("SUBSPACES_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="session")
def mirror() -> Path:
    folder = mirror_folder(ROOT)
    if folder is None or not folder.is_dir():
        pytest.skip("needs the mirror: set SUBSPACES_MIRROR, or put it in ../shared/data beside the project")
    return folder


@pytest.fixture(scope="session")
def real_wordnet(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WordNet fetched once from the mirror; tests must not change it."""
    from subspaces.sources.fetch import fetch

    out = tmp_path_factory.mktemp("data") / "wordnet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_OFFLINE", "1")
        fetch("wordnet", out, root=ROOT)
    return out


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip can see: no index, no settings of this machine."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def make_wheel(shelf: Path, name: str, members: dict[str, bytes]) -> Package:
    """A wheel that pip accepts."""
    module = name.replace("-", "_")
    path = shelf / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return Package(name, "1.0", sha256_file(path))


BACKEND = """
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, settings=None):
    info = Path(folder) / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: toy\\nVersion: 1.0\\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return info.name

def build_wheel(*arguments, **options):
    raise NotImplementedError
"""


def make_sdist(shelf: Path, members: dict[str, bytes]) -> Package:
    """An sdist that says its own name, so that pip needs no build tools."""
    path = shelf / "toy-1.0.tar.gz"
    setup = {
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.encode(),
        "PKG-INFO": b"Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {**setup, **members}.items():
            info = tarfile.TarInfo(f"toy-1.0/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return Package("toy", "1.0", sha256_file(path))


class Server:
    """Answers by path through `routes`; counts requests; `stuck` is set while a handler waits in the middle of a body."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[str] = []
        self.stuck = threading.Event()
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                outer.routes.get(self.path, lambda handler: handler.send_error(404))(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def serve(
        self, path: str, body: bytes, *, declared: int | None = None, kind: str = "application/octet-stream"
    ) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(len(body) if declared is None else declared))
            handler.end_headers()
            handler.wfile.write(body)

        self.routes[path] = answer

    def serve_half(self, path: str, body: bytes) -> None:
        """Send half of the body, then wait: the client has to be interrupted."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[: len(body) // 2])
            handler.wfile.flush()
            self.stuck.set()
            self.release.wait(30)

        self.routes[path] = answer

    def fail(self, path: str, code: int) -> None:
        self.routes[path] = lambda handler: handler.send_error(code)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.release.set()
    server.http.shutdown()
    server.http.server_close()
