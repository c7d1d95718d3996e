"""Captions as documents, and the paper's composed queries over them (§4.6, last figure): subspace logic beside two uses
of vectors.

The two other columns use the same backbone as it was published, mean-pooled and normalised: the query as one plain text
("a city street and not at night"), and vector arithmetic (sum of the terms, minus those that are negated).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from subspaces.errors import UserError
from subspaces.experiments.efficiency.settings import QueriesSettings
from subspaces.files import atomic_file, read_json, sha256_file, write_json
from subspaces.search.index import SubspaceIndex
from subspaces.search.query import And, Conjunction, Not, Or, Query, Term, parse
from subspaces.text.backbone import Backbone
from subspaces.text.pooling import pooled
from subspaces.text.texts import WordPieces, Words, backbone_tokeniser
from subspaces.training.loop import set_threads


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
    parts = (sign * vectors[text] for text, sign in signed_terms(query))
    return F.normalize(sum(parts, start=torch.zeros(())), dim=-1)


def find(
    index: SubspaceIndex,
    queries: list[str],
    backbone: Backbone,
    tokeniser: WordPieces | Words,
    limit: int,
    top: int,
    conjunction: Conjunction,
    captions: int | None = None,
) -> list[dict[str, Any]]:
    """The best of the first `captions` captions (null: all) for each query, in three ways. The index is an exact
    one."""
    count = min(captions or len(index), len(index))
    texts = [index.texts[row] for row in range(count)]
    documents = pooled(backbone, tokeniser, texts, limit)
    trees = {query: parse(query) for query in queries}
    terms = sorted({text for tree in trees.values() for text, _ in signed_terms(tree)})
    asked = pooled(backbone, tokeniser, [*terms, *(as_text(query) for query in queries)], limit)
    vectors = dict(zip(terms, asked, strict=False))
    found = []
    for place, query in enumerate(queries):
        scores, rows = index.score_all(index.matrices([query], conjunction))[0, :count].topk(top)
        columns = {
            "subspace": [
                {"text": texts[row], "score": score} for score, row in zip(scores.tolist(), rows.tolist(), strict=True)
            ]
        }
        for name, vector in (("text", asked[len(terms) + place]), ("vector", arithmetic(trees[query], vectors))):
            scores, rows = (documents @ vector).topk(top)
            columns[name] = [
                {"text": texts[row], "score": score} for score, row in zip(scores.tolist(), rows.tolist(), strict=True)
            ]
        found.append({"query": query, "as_text": as_text(query), **columns})
    return found


def write_found(
    index: SubspaceIndex,
    settings: QueriesSettings,
    backbone: Path,
    job: Any,
    out: Path,
    key: str,
    threads: int,
    scale: str,
) -> dict[str, Any]:
    set_threads(threads)
    top = min(settings.top, settings.captions or len(index), len(index))
    encoder = Backbone.from_folder(backbone, job.backbone.layers, 0, 0.0).eval()
    tokeniser = backbone_tokeniser(backbone)
    queries = find(index, settings.queries, encoder, tokeniser, job.limit, top, settings.conjunction, settings.captions)
    captions = read_json("data/captions.json")
    content = {
        "key": key,
        "scale": scale,
        "model": index.manifest.encoder,
        "documents": min(settings.captions or len(index), len(index)),
        "sample": captions["sample"],
        "settings": settings.model_dump(),
        "queries": queries,
    }
    write_json(out, content)
    return content


def write_captions(table: Path, count: int | None, out: Path, key: str, extra: dict[str, Any]) -> dict[str, Any]:
    """OUT.txt with the first `count` captions (null: all), OUT.json with how many and where from."""
    with open(table, encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        if "caption" not in (rows.fieldnames or []):
            raise UserError(f"{table}: the first line must name a column caption; fetch flickr30k again.")
        texts = [" ".join(row["caption"].split()) for row in rows]
    total, texts = len(texts), texts[:count]
    if not texts or not all(texts):
        raise UserError(
            f"{table} holds no captions, or an empty one (line {texts.index('') + 2 if texts else 1}): fetch flickr30k again."
        )
    with atomic_file(out.with_suffix(".txt"), "w") as handle:
        handle.writelines(f"{text}\n" for text in texts)
    record = {"key": key, "captions": len(texts), "of": total, "sha256": sha256_file(out.with_suffix(".txt")), **extra}
    write_json(out.with_suffix(".json"), record)
    return record
