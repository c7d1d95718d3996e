"""What a source is: the words that the registry, the origins and `fetch` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class OriginError(Exception):
    """One origin could not deliver.

    The reason goes into manifest.json, so it names no path, address or time; `detail` is shown to people only.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class SourceFile:
    """One file as it lies in data/: unpacked, so that every origin must give the same bytes. The name may have a folder (`a/b.json`).

    `sha256` and `size` are those of the unpacked content; None means that they are unknown.
    `mirror` is where the mirror folder keeps it, possibly compressed or inside an archive. `git_blob` is git's own digest of the file, for
    one that is known from its repository only; `lines` is all that is known of a file that an origin writes from another form.
    """

    name: str
    sha256: str | None
    size: int | None
    mirror: str | None = None
    git_blob: str | None = None
    lines: int | None = None


class Origin(Protocol):
    """A place that can deliver some or all files of a source."""

    @property
    def label(self) -> str: ...

    @property
    def network(self) -> bool: ...

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        """Write the available ones of `files` to `into` and return the text for the manifest, or raise OriginError.

        The folder that holds `into` is temporary and on the same disk: a place for large downloads on the way.
        """
        ...


@dataclass(frozen=True)
class Source:
    """One row of the registry."""

    name: str
    version: str
    title: str
    licence: str
    citation: str
    homepage: str
    files: tuple[SourceFile, ...]
    origins: tuple[Origin, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    sample: str | tuple[str, ...] | None = None
    used_by: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[str, ...]:
        """The sample's files: none, one or several."""
        return (self.sample,) if isinstance(self.sample, str) else self.sample or ()
