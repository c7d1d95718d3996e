"""Where sources come from. Each origin is one class; the registry lists them in the order in which they are tried."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from subspaces.sources.archives import deliver, raise_if_disk
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
    """A folder of files that were copied here by other means."""

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


def download(address: str, target: Path, sha256: str | None = None, *, timeout: float = 30, attempts: int = 3) -> None:
    """Fetch `address` into `target` with pooch: a progress bar, retries, the sha256 if known, and no partial file on failure.

    `timeout` is the longest silence of the server in seconds. pooch's errors become reasons without addresses, because
    reasons are written to records.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    known = None if sha256 is None else f"sha256:{sha256}"
    files = pooch.create(
        target.parent, "", registry={target.name: known}, urls={target.name: address}, retry_if_failed=attempts - 1
    )
    progress = sys.stderr.isatty()
    agent = {"User-Agent": "subspaces"}
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=(min(timeout, 10), timeout), headers=agent)
    try:
        files.fetch(target.name, downloader=downloader)
    except requests.HTTPError as error:
        raise OriginError(
            f"the server answered {getattr(error.response, 'status_code', 'with an error')}", address
        ) from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise OriginError("the download was cut short", f"{address}: {error}") from error
    except requests.Timeout as error:
        raise OriginError("the server did not answer in time", address) from error
    except requests.ConnectionError as error:
        silent = "timed out" in str(error)
        raise OriginError(
            "the server did not answer in time" if silent else "the server is unreachable", f"{address}: {error}"
        ) from error
    except requests.RequestException as error:
        raise OriginError("the download failed", f"{address}: {error}") from error
    except ValueError as error:
        raise OriginError(f"the sha256 of {target.name} is wrong (another version, or a web page)", address) from error
    except OSError as error:
        raise_if_disk(error)
        raise OriginError("the download failed", f"{address}: {error.strerror or error}") from error


@dataclass(frozen=True)
class Url:
    """Unpacked files under one address."""

    base: str
    network: bool = True

    @property
    def label(self) -> str:
        return self.base

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        for file in files:
            target = into / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            download(self.base + urllib.parse.quote(file.name), target, file.sha256)
        return self.label


@dataclass(frozen=True)
class UrlArchive:
    """One archive that holds the files."""

    address: str
    network: bool = True

    @property
    def label(self) -> str:
        return self.address

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="archive-", dir=into.parent) as folder:
            target = Path(folder) / PurePosixPath(urllib.parse.urlsplit(self.address).path).name
            download(self.address, target)
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
