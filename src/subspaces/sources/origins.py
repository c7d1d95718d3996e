"""Where sources come from. Each origin is one small class; the registry lists them in the order in which they are tried."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath

from subspaces.sources.archives import deliver, deliver_tar_stream
from subspaces.sources.download import download
from subspaces.sources.model import OriginError, Source, SourceFile

MIRROR = "SUBSPACES_MIRROR"
SAMPLES = Path(__file__).parent / "samples"


def mirror_folder(root: Path | None) -> Path | None:
    """The mirror: what SUBSPACES_MIRROR names, else shared/data beside the project, else nothing."""
    if named := os.environ.get(MIRROR):
        return Path(named).expanduser()
    beside = root.resolve().parent / "shared" / "data" if root is not None else None
    return beside if beside is not None and beside.is_dir() else None


def mirror_places(source: Source, file: SourceFile) -> list[PurePosixPath]:
    """Where a mirror may keep a file: as listed, or plain under the source's name."""
    plain = PurePosixPath(source.name) / file.name
    return [PurePosixPath(file.mirror), plain] if file.mirror else [plain]


@dataclass(frozen=True)
class Mirror:
    """A folder of files that somebody brought here by other means."""

    label: str = "mirror"
    network: bool = False

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        folder = mirror_folder(root)
        if folder is None:
            raise OriginError(f"{MIRROR} is not set")
        if not folder.is_dir():
            raise OriginError(f"{MIRROR} names a folder that does not exist", str(folder))
        holders: dict[Path, list[SourceFile]] = {}
        absent = []
        for file in files:
            holder = next((folder / place for place in mirror_places(source, file) if (folder / place).is_file()), None)
            if holder is None:
                absent.append(str(mirror_places(source, file)[0]))
            else:
                holders.setdefault(holder, []).append(file)
        for holder, held in holders.items():
            deliver(holder, held, into)
        if absent:
            names = sorted(set(absent))
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise OriginError(f"it does not hold {', '.join(names[:3])}{more}", str(folder))
        return self.label


@dataclass(frozen=True)
class Written:
    """Small factual tables that this package writes itself."""

    texts: Mapping[str, str]
    label: str = "table in this package"
    network: bool = False

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        names = [file.name for file in files if file.name in self.texts]
        for name in names:
            (into / name).write_bytes(self.texts[name].encode())
        return f"{self.label} ({', '.join(names)})"


@dataclass(frozen=True)
class DebianPackages:
    """Packages downloaded with the ordinary client and unpacked without installing them, so without root."""

    packages: tuple[str, ...]
    network: bool = True

    @property
    def label(self) -> str:
        return f"debian packages {', '.join(self.packages)}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        if shutil.which("apt-get") is None:
            raise OriginError("apt-get is not on this machine")
        with tempfile.TemporaryDirectory(prefix="subspaces-") as folder:
            self._download(Path(folder))
            found = sorted(Path(folder).glob("*.deb"))
            for package in found:
                with BytesIO(package_content(package)) as content:
                    deliver_tar_stream(content, files, into)
        return "debian packages " + ", ".join(package_title(path.name) for path in found)

    def _download(self, folder: Path) -> None:
        command = ["apt-get", "download", "-q", "-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=20", *self.packages]
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        if root:
            command[1:1] = ["-o", "APT::Sandbox::User=root"]
        result = run(command, folder)
        if result.returncode and root:
            # A fresh container has no package lists, and only root may fetch them.
            run(["apt-get", "update", "-q"], folder)
            result = run(command, folder)
        if result.returncode:
            advice = "" if root else "; `sudo apt-get update` may help"
            raise OriginError(f"apt-get download failed{advice}", last_line(result.stderr))


def run(command: list[str], folder: Path, *, seconds: float = 300) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise OriginError(f"{Path(command[0]).name} took longer than {seconds:.0f} s") from error
    except OSError as error:
        raise OriginError(f"{Path(command[0]).name} cannot be started", str(error.strerror)) from error


def last_line(output: bytes) -> str:
    """The last line that a tool said, without addresses: whoever reads it cannot use them."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return re.sub(r"\w+://\S+", "…", lines[-1]) if lines else ""


def package_title(name: str) -> str:
    """wordnet-base_1%3a3.0-37_all.deb → wordnet-base 1:3.0-37."""
    package, version, *_ = urllib.parse.unquote(name).split("_")
    return f"{package} {version}"


def package_content(package: Path) -> bytes:
    """The tar of files inside a .deb: by dpkg-deb, or where it is missing by hand."""
    if shutil.which("dpkg-deb"):
        result = run(["dpkg-deb", "--fsys-tarfile", str(package)], package.parent)
        if result.returncode:
            raise OriginError(f"{package_title(package.name)} is damaged", last_line(result.stderr))
        return result.stdout
    return read_ar(package)


def read_ar(package: Path) -> bytes:
    """A .deb is an `ar` archive: a magic line, then members with a header of 60 bytes, padded to even length."""
    content = package.read_bytes()
    position = 8
    while content.startswith(b"!<arch>\n") and position + 60 <= len(content):
        header = content[position : position + 60]
        size = header[48:58].strip()
        if not size.isdigit():
            break
        body = content[position + 60 : position + 60 + int(size)]
        if header[:16].startswith(b"data.tar"):
            if header[:16].startswith(b"data.tar.zst"):
                raise OriginError("this package needs dpkg-deb to be unpacked")
            try:
                return lzma.decompress(body) if header[:16].startswith(b"data.tar.xz") else body
            except lzma.LZMAError as error:
                raise OriginError(f"{package_title(package.name)} is damaged: {error}") from error
        position += 60 + int(size) + int(size) % 2
    raise OriginError(f"{package_title(package.name)} is damaged")


@dataclass(frozen=True)
class Url:
    """Files that lie one by one under one address; `paths` gives those whose name there differs."""

    base: str
    paths: Mapping[str, str] | None = None
    network: bool = True
    pause: float = 1

    @property
    def label(self) -> str:
        return self.base

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="subspaces-") as folder:
            for file in files:
                path = (self.paths or {}).get(file.name, file.name)
                target = Path(folder) / PurePosixPath(file.name).name
                # Twice the size leaves room for a compressed form that grew.
                limit = {} if file.size is None else {"limit": 2 * file.size + 4096}
                download(self.base + urllib.parse.quote(path), target, pause=self.pause, **limit)
                deliver(target, (file,), into)
        return self.label


@dataclass(frozen=True)
class UrlArchive:
    """One archive that holds the files."""

    address: str
    network: bool = True
    pause: float = 1

    @property
    def label(self) -> str:
        return self.address

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="subspaces-") as folder:
            target = Path(folder) / PurePosixPath(urllib.parse.urlsplit(self.address).path).name
            download(self.address, target, pause=self.pause)
            deliver(target, files, into)
        return self.label


@dataclass(frozen=True)
class Sample:
    """A small stand-in written for this project. `fetch` uses it last, and only when the caller allows it."""

    label: str = "sample"
    network: bool = False

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        if not source.samples:
            raise OriginError("no sample has been written for this source")
        for name in source.samples:
            shutil.copyfile(SAMPLES / name, into / name)
        return self.label
