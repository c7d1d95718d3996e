"""Which images show which concepts: the judge of the compositional retrieval benchmark (our extension of the paper's
last figure, §4.6).

Flickr30k has five captions per image. The first caption is the document; the other four are the judge: an image has a
concept when one of them mentions it. A noun is mentioned by the lemmas of its synset and of all hyponyms whose most
frequent sense lies below it; places and activities are lists of phrases, compared lemma by lemma, where `*` stands for
up to two words.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subspaces.errors import UserError

_WORD = re.compile(r"[a-z]+|-")
_GAP = 2  # words that `*` stands for at most
_CAPTIONS = 5


class Image(NamedTuple):
    document: str
    judges: tuple[str, ...]


class Concept(NamedTuple):
    term: str
    phrases: frozenset[tuple[str, ...]]
    parts: str = "nv"  # parts of speech whose lemmas count: a noun is not mentioned by a verb ("dressed")


def read_images(table: Path) -> list[Image]:
    """The images of the Flickr30k table (split, image, caption_no, caption; plain or gzip), in its order."""
    content = gzip.decompress(table.read_bytes()) if table.suffix == ".gz" else table.read_bytes()
    captions: dict[str, dict[int, str]] = {}
    with io.StringIO(content.decode("utf-8"), newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        if not {"image", "caption_no", "caption"} <= set(rows.fieldnames or []):
            raise UserError(f"{table}: the columns image, caption_no and caption are expected; fetch flickr30k again.")
        for row in rows:
            captions.setdefault(row["image"], {})[int(row["caption_no"])] = " ".join(row["caption"].split())
    wrong = [image for image, texts in captions.items() if sorted(texts) != list(range(1, _CAPTIONS + 1))]
    if wrong or not captions:
        raise UserError(f"{table}: {len(wrong):,} of {len(captions):,} images do not have captions 1 to {_CAPTIONS}.")
    return [Image(texts[1], tuple(texts[number] for number in range(2, _CAPTIONS + 1))) for texts in captions.values()]


class Lemmatiser:
    """Lemmas by WordNet (nltk's morphy), cached per word."""

    def __init__(self, wordnet: Any):
        self.wordnet = wordnet
        self._lemmas = lru_cache(maxsize=None)(self._of)

    def forms(self, text: str, parts: str = "nv") -> list[frozenset[str]]:
        """For each word: the word and its lemmas as noun (n) and verb (v)."""
        return [self._lemmas(word, parts) for word in _WORD.findall(text.lower())]

    def _of(self, word: str, parts: str) -> frozenset[str]:
        lemmas = (self.wordnet.morphy(word, part) for part in parts)
        return frozenset((word, *(lemma for lemma in lemmas if lemma)))


def read_concepts(wordnet: Any) -> list[Concept]:
    """The concepts of concepts.csv."""
    text = resources.files(__package__).joinpath("concepts.csv").read_text(encoding="utf-8")
    concepts = []
    for row in csv.DictReader(text.splitlines()):
        if row["kind"] == "noun":
            phrases = frozenset(_hyponym_lemmas(wordnet, row["definition"].split()))
        else:
            phrases = frozenset(tuple(phrase.split()) for phrase in row["definition"].split("|"))
        concepts.append(Concept(row["term"], phrases, "n" if row["kind"] == "noun" else "nv"))
    return concepts


def _hyponym_lemmas(wordnet: Any, names: Iterable[str]) -> Iterable[tuple[str, ...]]:
    roots = [wordnet.synset(name) for name in names]
    below = {*roots, *(synset for root in roots for synset in root.closure(lambda one: one.hyponyms()))}
    for synset in below:
        for name in synset.lemma_names():
            senses = wordnet.synsets(name, "n")
            if synset in roots or (senses and senses[0] in below):
                yield tuple(name.lower().replace("-", " - ").replace("_", " ").split())


def judgements(images: list[Image], concepts: list[Concept], lemmatiser: Lemmatiser) -> np.ndarray:
    """Boolean (images, concepts): does one of the four other captions mention the concept?"""
    starts: dict[str, dict[str, list[tuple[tuple[str, ...], int]]]] = {}
    for number, concept in enumerate(concepts):
        for phrase in concept.phrases:
            starts.setdefault(concept.parts, {}).setdefault(phrase[0], []).append((phrase, number))
    shown = np.zeros((len(images), len(concepts)), dtype=bool)
    for row, image in enumerate(images):
        for caption in image.judges:
            for parts, first in starts.items():
                words = lemmatiser.forms(caption, parts)
                for position, forms in enumerate(words):
                    for phrase, number in (entry for form in forms for entry in first.get(form, ())):
                        if not shown[row, number] and _matches(phrase, words, position):
                            shown[row, number] = True
    return shown


def _matches(phrase: tuple[str, ...], words: list[frozenset[str]], position: int) -> bool:
    if not phrase:
        return True
    if phrase[0] == "*":
        return any(_matches(phrase[1:], words, position + gap) for gap in range(_GAP + 1))
    if position >= len(words) or phrase[0] not in words[position]:
        return False
    return _matches(phrase[1:], words, position + 1)
