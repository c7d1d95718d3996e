"""A small deterministic encoder for tests: every word has a fixed direction, a text is the span of its words."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache
from itertools import islice, product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from subspaces.projector import soft_projector
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.sources.origins import mirror_folder

ROOT = Path(__file__).resolve().parents[2]
LAM = 0.05


@cache
def direction(word: str, dim: int) -> Tensor:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:7], "little")
    vector = torch.randn(dim, generator=torch.Generator().manual_seed(seed))
    return vector / vector.norm()


def span(texts: list[str], dim: int) -> Tensor:
    words = [re.findall(r"\w+", text.lower()) or [text] for text in texts]
    X = torch.zeros(len(texts), dim, max(map(len, words)))
    for row, some in enumerate(words):
        for column, word in enumerate(some):
            X[row, :, column] = direction(word, dim)
    return soft_projector(X, LAM)


def stand_in(dim: int = 16, name: str = "stand-in") -> HalfVectorEncoder:
    return HalfVectorEncoder(lambda texts: span(texts, dim), dim, f"{name}-{dim}")


def sentences(count: int) -> list[str]:
    """Distinct sentences, always the same."""
    who = [
        "a man",
        "a woman",
        "two children",
        "an old dog",
        "a cyclist",
        "some players",
        "a singer",
        "the crowd",
        "a cook",
        "three girls",
    ]
    does = [
        "runs",
        "sits",
        "sleeps",
        "jumps",
        "waits",
        "dances",
        "reads a book",
        "eats an apple",
        "plays chess",
        "holds an umbrella",
    ]
    where = [
        "on a bench",
        "in the park",
        "at night",
        "near a road",
        "on a city street",
        "at the beach",
        "in the rain",
        "under a tree",
    ]
    when = [
        "",
        "in summer",
        "in winter",
        "before lunch",
        "after work",
        "on a sunny day",
        "with friends",
        "all alone",
        "in silence",
    ]
    order = product(when, where, does, who)
    found = [" ".join(" ".join(parts[::-1]).split()) for parts in islice(order, count)]
    assert len(found) == count
    return found


def captions(count: int) -> list[str]:
    """Real captions, without repetitions; a test that needs them is skipped where they are not."""
    folder = mirror_folder(ROOT)
    path = folder / "flickr30k/captions.txt.gz" if folder else None
    if path is None or not path.exists():
        pytest.skip("the Flickr30k captions are not in a mirror (SUBSPACES_MIRROR)")
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        texts = (line.rstrip("\n").split("\t")[3] for line in islice(handle, 1, None))
        return list(islice(dict.fromkeys(texts), count))
