"""The queries of the benchmark: drawn from frequent concepts with a seed, committed as concept names with counts
(queries.csv).

Every query has at least 20 relevant images. The operands of a conjunction do not imply each other, and of the images
that a negation could return, a tenth to seven tenths show what it excludes. Each form is split in two halves: one for
choosing, one for reporting.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from importlib import resources
from itertools import combinations, permutations
from typing import Literal, NamedTuple

import numpy as np

from subspaces.search.query import And, Not, Or, Query, Term, parse, terms

FORMS = ("a", "a & b", "a & ~b", "a | b", "a & b & ~c")
RELEVANT = 20  # images at least
PER_FORM = 80  # queries at most
_EXCLUDED = (0.1, 0.7)  # share of the images that the negation must remove
_IMPLIED = 0.7  # operands of a conjunction share less than this part of the smaller one
Half = Literal["choosing", "reporting"]


class BenchmarkQuery(NamedTuple):
    form: str
    query: str
    half: str
    relevant: int

    @property
    def tree(self) -> Query:
        return parse(self.query)


def relevance(query: Query, shown: Callable[[str], np.ndarray]) -> np.ndarray:
    """Boolean logic over the judgements of terms: (images,)."""
    match query:
        case Term(text):
            return shown(text)
        case Not(of=inner):
            return ~relevance(inner, shown)
        case And(left, right):
            return relevance(left, shown) & relevance(right, shown)
        case Or(left, right):
            return relevance(left, shown) | relevance(right, shown)
    raise TypeError(query)


def excluded(query: Query) -> list[str]:
    """The terms that a query excludes."""
    match query:
        case Term():
            return []
        case Not(of=inner):
            return terms(inner)
        case And(left, right) | Or(left, right):
            return excluded(left) + excluded(right)
    raise TypeError(query)


def draw_queries(names: list[str], shown: np.ndarray, seed: int, per_form: int = PER_FORM) -> list[BenchmarkQuery]:
    """At most `per_form` queries of each form from judgements (images, concepts)."""
    generator = np.random.default_rng(seed)
    drawn = []
    for form in FORMS:
        candidates = sorted(_candidates(form, names, shown))
        order = generator.permutation(len(candidates))[:per_form]
        for number, position in enumerate(order):
            query, relevant = candidates[position]
            drawn.append(BenchmarkQuery(form, query, ("choosing", "reporting")[number % 2], relevant))
    return drawn


def _candidates(form: str, names: list[str], shown: np.ndarray) -> Iterator[tuple[str, int]]:
    counts = shown.sum(0)
    both = shown.T.astype(np.int32) @ shown.astype(np.int32)
    frequent = [number for number in range(len(names)) if counts[number] >= RELEVANT]

    def independent(a: int, b: int) -> bool:
        return both[a, b] < _IMPLIED * min(counts[a], counts[b])

    def removes(removed: int, total: int) -> bool:
        return _EXCLUDED[0] <= removed / total <= _EXCLUDED[1] and total - removed >= RELEVANT

    if form == "a":
        yield from ((names[a], int(counts[a])) for a in frequent)
    elif form == "a | b":
        for a, b in combinations(frequent, 2):
            if independent(a, b):
                yield f"{names[a]} | {names[b]}", int(counts[a] + counts[b] - both[a, b])
    elif form == "a & b":
        for a, b in combinations(frequent, 2):
            if both[a, b] >= RELEVANT and independent(a, b):
                yield f"{names[a]} & {names[b]}", int(both[a, b])
    elif form == "a & ~b":
        for a, b in permutations(frequent, 2):
            if removes(both[a, b], counts[a]):
                yield f"{names[a]} & ~{names[b]}", int(counts[a] - both[a, b])
    else:
        for a, b in combinations(frequent, 2):
            if both[a, b] < 2 * RELEVANT or not independent(a, b):
                continue
            pair = shown[:, a] & shown[:, b]
            with_third = shown[pair].sum(0)
            for c in frequent:
                if c not in (a, b) and removes(with_third[c], both[a, b]):
                    yield f"{names[a]} & {names[b]} & ~{names[c]}", int(both[a, b] - with_third[c])


def write_csv(queries: list[BenchmarkQuery]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(BenchmarkQuery._fields)
    writer.writerows(queries)
    return out.getvalue()


def committed_queries(half: Half | None = None) -> list[BenchmarkQuery]:
    """The queries of queries.csv; of one half, or all."""
    text = resources.files(__package__).joinpath("queries.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    queries = [BenchmarkQuery(row["form"], row["query"], row["half"], int(row["relevant"])) for row in rows]
    return [query for query in queries if half in (None, query.half)]
