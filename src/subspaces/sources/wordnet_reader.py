"""WordNet as names and edges: nltk reads the database files, the sample is a table of links.

Nodes are all synsets of one part of speech, edges are `hypernyms()` (and `instance_hypernyms()` on request). Building
the noun hierarchy took 9 and 13 s this way and 1.4 and 1.6 s with a parser of our own (single runs at a load of about 4 on
2 cores); it happens once per hierarchy, and nltk is the reader that others use.
"""

from __future__ import annotations

import gc
import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subspaces.errors import UserError

POS = {"nouns": "n", "verbs": "v"}
SAMPLE = "wordnet.tsv"
SAMPLE_COLUMNS = ["pos", "child", "parent", "kind"]

Graph = tuple[list[str], list[tuple[int, int]]]

_nltk_lock = threading.Lock()

_LEXNAME_POS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
_NOUN_TOPICS = """Tops act animal artifact attribute body cognition communication event feeling food group location motive
object person phenomenon plant possession process quantity relation shape state substance time"""
_VERB_TOPICS = """body change cognition communication competition consumption contact creation emotion motion perception
possession social stative weather"""
_LEXNAMES = (
    "adj.all",
    "adj.pert",
    "adv.all",
    *(f"noun.{topic}" for topic in _NOUN_TOPICS.split()),
    *(f"verb.{topic}" for topic in _VERB_TOPICS.split()),
    "adj.ppl",
)


def lexnames_text() -> str:
    """The file `lexnames`: number, name and part of speech of the 45 lexicographer files, as in lexnames(5WN).

    nltk requires the file; the Debian packages contain the table only as a manual page.
    """
    rows = (f"{number:02d}\t{name}\t{_LEXNAME_POS[name.split('.')[0]]}\n" for number, name in enumerate(_LEXNAMES))
    return "".join(rows)


def read_wordnet(folder: Path, pos: str, instance_hypernyms: bool = False) -> Graph:
    """All synsets of one part of speech and their hypernym edges (child index, parent index).

    Nodes are in the order of nltk's `all_synsets`, which is that of the data file. Edges are sorted by child and parent.
    No root is added and no edge is removed. In the sample, nodes are in the order of their first row as a child.
    """
    folder = Path(folder)
    if pos not in POS:
        raise UserError(f"pos must be one of {', '.join(POS)}, not {pos!r}.")
    if (folder / SAMPLE).is_file():
        return _read_sample(folder / SAMPLE, POS[pos], instance_hypernyms)
    reader = open_nltk(folder)
    try:
        with _without_garbage_collection(), warnings.catch_warnings():
            warnings.simplefilter("error")  # nltk only warns about a hypernym that does not exist
            synsets = list(reader.all_synsets(POS[pos]))
            index = {synset.name(): node for node, synset in enumerate(synsets)}
            edges = {
                (child, index[parent.name()])
                for child, synset in enumerate(synsets)
                for parent in synset.hypernyms() + (synset.instance_hypernyms() if instance_hypernyms else [])
            }
    except Exception as error:  # nltk reports damaged files by errors and warnings of many types
        raise _damaged(folder, error) from error
    return list(index), sorted(edges)


def open_nltk(folder: Path) -> Any:
    """nltk's WordNetCorpusReader over any folder. Nothing is downloaded.

    nltk opens files only below its data path, so the folder is appended to it.
    Two methods are replaced. `open` reads a file at once: WordNet is ASCII, so positions in the text are byte offsets.
    With nltk's own streams, opening took 6.0 s instead of 3.5 s (one run). `map_wn` maps other languages through a second,
    global copy of WordNet, which this project does not have.
    """
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    folder = Path(folder).resolve()
    missing = [name for name in WordNetCorpusReader._FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{folder} does not hold WordNet's database ({len(missing)} files are missing, the first is {missing[0]}; "
            "the sample has none). Run `subspaces fetch wordnet`."
        )

    class FolderReader(WordNetCorpusReader):
        def open(self, file: str) -> io.StringIO:
            return io.StringIO((folder / file).read_text(encoding="ascii"))

        def map_wn(self, version: str = "wordnet") -> None:
            return None

    try:
        with _nltk_lock, _without_garbage_collection(), warnings.catch_warnings():
            if str(folder) not in nltk.data.path:
                nltk.data.path.append(str(folder))
            warnings.filterwarnings("ignore", message="The multilingual functions")
            return FolderReader(str(folder), None)
    except Exception as error:
        raise _damaged(folder, error) from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """nltk makes a million small objects and frees none. Without collection, all nouns took 6.1 s instead of 9.3 s (one run)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(
        f"nltk cannot read {folder} as WordNet 3.0 ({type(error).__name__}: {str(error)[:200]}). "
        "Delete the folder and run `subspaces fetch wordnet`."
    )


def _read_sample(path: Path, pos: str, instance_hypernyms: bool) -> Graph:
    """Columns pos, child, parent, kind; an empty parent marks a root or a node without edges."""
    header, *rows = path.read_text(encoding="utf-8").splitlines() or [""]
    if header.split("\t") != SAMPLE_COLUMNS:
        raise UserError(f"{path.name} must begin with the columns {', '.join(SAMPLE_COLUMNS)}.")
    index: dict[str, int] = {}
    links: list[tuple[int, str, str]] = []
    for number, row in enumerate(rows, 2):
        fields = row.split("\t")
        if len(fields) != len(SAMPLE_COLUMNS) or fields[3] not in ("hypernym", "instance"):
            raise UserError(
                f"{path.name}, line {number}: {len(SAMPLE_COLUMNS)} columns are needed, the last hypernym or instance."
            )
        if fields[0] != pos:
            continue
        _, child, parent, kind = fields
        index.setdefault(child, len(index))
        if parent and (kind == "hypernym" or instance_hypernyms):
            links.append((number, child, parent))
    for number, _, parent in links:
        if parent not in index:
            raise UserError(f"{path.name}, line {number}: the parent {parent} is not listed as a child anywhere.")
    return list(index), sorted((index[child], index[parent]) for _, child, parent in links)
