"""WordNet as names and edges (protocol, section 2): from the database files, or from the sample table.

The database files are parsed directly: it takes a second where nltk takes six and depends on global state. Names and order are
nltk's; a test compares them one by one.
"""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

from subspaces.errors import UserError

POS = {"nouns": ("noun", "n"), "verbs": ("verb", "v")}
HYPERNYM, INSTANCE_HYPERNYM = b"@", b"@i"
SAMPLE = "wordnet.tsv"
SAMPLE_COLUMNS = ["pos", "child", "parent", "kind"]

Graph = tuple[list[str], list[tuple[int, int]]]

_nltk_lock = threading.Lock()


def read_wordnet(folder: Path, pos: str, instance_hypernyms: bool = False) -> Graph:
    """All synsets of one part of speech and their `hypernyms()` edges (child index, parent index).

    Nodes stand in the order of the data file, that is by byte offset, as nltk's `all_synsets` yields them; edges stand by child,
    and for one child in the order of the file. No root is added and nothing is reduced. In the sample, nodes stand in the order in
    which the table first lists them as a child, and edges by child and parent.
    """
    folder = Path(folder)
    if pos not in POS:
        raise UserError(f"pos must be one of {', '.join(POS)}, not {pos!r}.")
    long, short = POS[pos]
    if (folder / SAMPLE).is_file():
        return _read_sample(folder / SAMPLE, short, instance_hypernyms)
    missing = [name for name in (f"data.{long}", f"index.{long}") if not (folder / name).is_file()]
    if missing:
        raise UserError(f"{folder} does not hold WordNet ({', '.join(missing)} missing). Fetch the source wordnet into it first.")
    return _read_database(folder / f"data.{long}", folder / f"index.{long}", short, instance_hypernyms)


def _read_database(data: Path, index: Path, pos: str, instance_hypernyms: bool) -> Graph:
    """Format: wndb(5WN). A line: offset, file number, pos, number of words (hex), words with ids, number of pointers, pointers."""
    senses = _read_senses(index)
    wanted = {HYPERNYM, INSTANCE_HYPERNYM} if instance_hypernyms else {HYPERNYM}
    names: list[str] = []
    position: dict[bytes, int] = {}
    parents: list[list[bytes]] = []
    for number, line in _lines(data):
        try:
            fields = line.partition(b"|")[0].split()
            offset, words = fields[0], int(fields[3], 16)
            # A synset is named after its first word and that word's sense number.
            lemma = fields[4].lower()
            sense = senses[lemma].index(offset) + 1
            first = 5 + 2 * words
            last = first + 4 * int(fields[first - 1])
            pointers = fields[first:last]
            if len(pointers) != last - first:
                raise ValueError("pointers are missing")
        except (IndexError, KeyError, ValueError) as error:
            raise UserError(
                f"{data.name}, line {number}, is not WordNet 3.0 ({error}). Delete the folder and fetch the source again."
            ) from error
        position[offset] = len(names)
        names.append(f"{lemma.decode()}.{pos}.{sense:02d}")
        targets = zip(pointers[0::4], pointers[1::4], pointers[2::4], strict=True)
        parents.append(list(dict.fromkeys(target for symbol, target, kind in targets if symbol in wanted and kind == pos.encode())))
    try:
        return names, [(child, position[parent]) for child, targets in enumerate(parents) for parent in targets]
    except KeyError as error:
        raise UserError(f"{data.name} points to a synset that it does not hold. Delete the folder and fetch the source again.") from error


def _read_senses(index: Path) -> dict[bytes, list[bytes]]:
    """For each word the offsets of its synsets, most frequent sense first: the end of the line, as many as the third field says."""
    senses = {}
    for number, line in _lines(index):
        fields = line.split()
        try:
            senses[fields[0]] = fields[-int(fields[2]) :]
        except (IndexError, ValueError) as error:
            raise UserError(f"{index.name}, line {number}, is not WordNet 3.0. Delete the folder and fetch the source again.") from error
    return senses


def _lines(path: Path) -> list[tuple[int, bytes]]:
    """The numbered lines after the licence, which is indented."""
    content = path.read_bytes().split(b"\n")
    return [(number, line) for number, line in enumerate(content, 1) if line and not line[:1].isspace()]


def _read_sample(path: Path, pos: str, instance_hypernyms: bool) -> Graph:
    """Columns pos, child, parent, kind; an empty parent marks a root or a node that stands alone."""
    header, *rows = path.read_text(encoding="utf-8").splitlines() or [""]
    if header.split("\t") != SAMPLE_COLUMNS:
        raise UserError(f"{path.name} must begin with the columns {', '.join(SAMPLE_COLUMNS)}.")
    position: dict[str, int] = {}
    links: list[tuple[int, str, str]] = []
    for number, row in enumerate(rows, 2):
        fields = row.split("\t")
        if len(fields) != len(SAMPLE_COLUMNS) or fields[3] not in ("hypernym", "instance"):
            raise UserError(f"{path.name}, line {number}: {len(SAMPLE_COLUMNS)} columns are needed, the last hypernym or instance.")
        if fields[0] != pos:
            continue
        _, child, parent, kind = fields
        position.setdefault(child, len(position))
        if parent and (kind == "hypernym" or instance_hypernyms):
            links.append((number, child, parent))
    for number, _, parent in links:
        if parent not in position:
            raise UserError(f"{path.name}, line {number}: the parent {parent} is not listed as a child anywhere.")
    return list(position), sorted((position[child], position[parent]) for _, child, parent in links)


def open_nltk(folder: Path) -> Any:
    """nltk's WordNetCorpusReader over any folder, for what needs words rather than the graph (`synsets(word)`, `morphy`).

    nltk opens files only below its data path, so the folder is added to it. The base class then looks for a second, global copy of
    WordNet in order to map other languages; this project has none, and that step is left out. Nothing is downloaded.
    """
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class FolderReader(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            return None

    place = str(Path(folder).resolve())
    if not (Path(place) / "lexnames").is_file():
        raise UserError(f"{folder} does not hold WordNet's files (the sample has none). Fetch the source wordnet into it first.")
    with _nltk_lock:
        if place not in nltk.data.path:
            nltk.data.path.append(place)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The multilingual functions")
            return FolderReader(place, None)
