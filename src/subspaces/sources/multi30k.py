"""Flickr30k's captions as one table, joined from the files of Multi30k's task 2.

For each split there is a list of images and five files of captions, line by line in the order of that list.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from subspaces.sources.archives import DAMAGED
from subspaces.sources.download import download
from subspaces.sources.model import OriginError, Source, SourceFile

SPLITS = ("train", "val", "test_2016")
CAPTIONS = 5
LARGEST = 1 << 26
"""Bytes: ten times the largest file, packed or unpacked."""
COLUMNS = ("split", "image", "caption_no", "caption")


@dataclass(frozen=True)
class Multi30k:
    """Task 2 of the repository that lies under `base`."""

    base: str
    network: bool = True
    pause: float = 1

    @property
    def label(self) -> str:
        return self.base

    def fetch(self, source: Source, files: tuple[SourceFile, ...], into: Path, root: Path | None) -> str:
        (table,) = files
        with tempfile.TemporaryDirectory(prefix="multi30k-", dir=into.parent) as folder:
            for split in SPLITS:
                for name in (image_list(split), *caption_files(split)):
                    download(self.base + name, Path(folder) / Path(name).name, limit=LARGEST, pause=self.pause)
            with open(into / table.name, "w", encoding="utf-8", newline="\n") as out:
                out.write("\t".join(COLUMNS) + "\n")
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
        raise OriginError(f"split {split}: {len(images)} images, but {', '.join(str(len(column)) for column in captions)} captions")
    for image, *texts in zip(images, *captions, strict=True):
        for number, text in enumerate(texts, 1):
            yield split, image, str(number), text.strip().replace("\t", " ")


def _lines(path: Path) -> list[str]:
    with gzip.open(path) as stream:
        content = stream.read(LARGEST).decode("utf-8")
    # Only a line feed ends a line: splitlines() would also break at rarer characters.
    return content.removesuffix("\n").split("\n")
