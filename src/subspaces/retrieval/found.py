"""Compositional retrieval for the paper's queries (last figure): by subspace logic, and beside it by what vectors can do.

The two other columns use the same backbone as it was published, mean-pooled and normalised: the query as one plain text ("a city street
and not at night"), and vector arithmetic (sum of the terms, minus those that are negated).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.files import read_json, write_json
from subspaces.nli.backbone import Backbone
from subspaces.nli.encoders.vector import mean_pool
from subspaces.nli.texts import TokenTable, WordPieces, Words
from subspaces.retrieval.index import SubspaceIndex
from subspaces.retrieval.query import And, Not, Or, Query, Term, parse
from subspaces.training.loop import set_threads

_BLOCK = 4096


@torch.inference_mode()
def pooled(backbone: Backbone, tokeniser: WordPieces | Words, texts: Sequence[str], limit: int, batch: int = 128) -> Tensor:
    """Unit vectors (N, h) of texts: the mean of the last hidden states."""
    table = TokenTable.of(list(texts), tokeniser, limit)
    order = np.argsort(table.lengths, kind="stable")
    found = torch.empty(len(table), backbone.size)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        tokens = table.batch(rows)
        found[torch.from_numpy(rows)] = F.normalize(mean_pool(backbone(tokens), tokens.mask), dim=-1)
    return found


def signed_terms(query: Query, sign: int = 1) -> list[tuple[str, int]]:
    """The terms of a query and whether each is asked for (+1) or ruled out (−1)."""
    match query:
        case Term(text):
            return [(text, sign)]
        case Not(of=inner):
            return signed_terms(inner, -sign)
        case And(left, right) | Or(left, right):
            return signed_terms(left, sign) + signed_terms(right, sign)
    raise TypeError(query)


def as_text(query: str) -> str:
    """A query as people would type it: & is "and", | is "or", ~ is "not"."""
    words = query.replace("&", " and ").replace("|", " or ").replace("~", " not ")
    return re.sub(r"\s+", " ", re.sub(r'["()]', " ", words)).strip()


def arithmetic(query: Query, vectors: dict[str, Tensor]) -> Tensor:
    """Sum of the wanted terms minus the ruled-out ones, normalised."""
    return F.normalize(sum(sign * vectors[text] for text, sign in signed_terms(query)), dim=-1)


def scored(index: SubspaceIndex, query: str, conjunction: str, count: int) -> Tensor:
    """NIS(query | caption) of the first `count` captions, from the exact half-vectors."""
    half, store = half_vector(index.matrices([query], conjunction))[0], index.searcher.store
    parts = [store.half[start : min(start + _BLOCK, count)].float() @ half for start in range(0, count, _BLOCK)]
    return torch.cat(parts) / store.trace[:count]


def find(
    index: SubspaceIndex,
    queries: list[str],
    backbone: Backbone,
    tokeniser: WordPieces | Words,
    limit: int,
    top: int,
    conjunction: str,
    captions: int | None = None,
) -> list[dict[str, Any]]:
    """The best of the first so many captions (null: all) for each query, in three ways. The index is an exact one."""
    count = min(captions or len(index), len(index))
    texts = [index.texts[row] for row in range(count)]
    documents = pooled(backbone, tokeniser, texts, limit)
    trees = {query: parse(query) for query in queries}
    terms = sorted({text for tree in trees.values() for text, _ in signed_terms(tree)})
    asked = pooled(backbone, tokeniser, [*terms, *(as_text(query) for query in queries)], limit)
    vectors = dict(zip(terms, asked, strict=False))
    found = []
    for place, query in enumerate(queries):
        scores, rows = scored(index, query, conjunction, count).topk(top)
        columns = {"subspace": [{"text": texts[row], "score": score} for score, row in zip(scores.tolist(), rows.tolist(), strict=True)]}
        for name, vector in (("text", asked[len(terms) + place]), ("vector", arithmetic(trees[query], vectors))):
            scores, rows = (documents @ vector).topk(top)
            columns[name] = [{"text": texts[row], "score": score} for score, row in zip(scores.tolist(), rows.tolist(), strict=True)]
        found.append({"query": query, "as_text": as_text(query), **columns})
    return found


def write_found(
    index: SubspaceIndex, settings: dict[str, Any], backbone: Path, job: dict[str, Any], out: Path, key: str, threads: int, scale: str
) -> dict[str, Any]:
    from subspaces.nli.tokenisers import tokeniser_of

    set_threads(threads)
    top = min(settings["top"], settings["captions"] or len(index), len(index))
    encoder = Backbone.from_folder(backbone, job["backbone"]["layers"], 0, 0.0).eval()
    tokeniser = tokeniser_of(job, [], backbone.parent)
    queries = find(index, settings["queries"], encoder, tokeniser, job["limit"], top, settings["conjunction"], settings["captions"])
    captions = read_json("data/captions.json")
    content = {
        "key": key,
        "scale": scale,
        "model": index.manifest.encoder,
        "documents": min(settings["captions"] or len(index), len(index)),
        "sample": captions["sample"],
        "settings": settings,
        "queries": queries,
    }
    write_json(out, content)
    return content
