"""The benchmark: judge, queries, systems and metrics on small data; the committed queries against the captions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.compositional_retrieval.benchmark import compare, measure, summarise
from subspaces.experiments.compositional_retrieval.judge import Concept, Image, Lemmatiser, judgements, read_images
from subspaces.experiments.compositional_retrieval.queries import (
    FORMS,
    RELEVANT,
    committed_queries,
    draw_queries,
    excluded,
    relevance,
)
from subspaces.experiments.compositional_retrieval.systems import (
    LexicalEvidence,
    SubspaceEvidence,
    VectorEvidence,
    english,
    lexical_systems,
    logic,
    subspace_systems,
)
from subspaces.search.query import parse
from tests.search.stand_in import sentences, stand_in


class Stems:
    """Stands for nltk's WordNet reader where only lemmas are needed."""

    def morphy(self, word: str, part: str) -> str | None:
        known = {"n": {"dogs": "dog", "dresses": "dress"}, "v": {"dressed": "dress", "plays": "play"}}
        return known[part].get(word)


def test_an_image_shows_what_its_other_captions_mention() -> None:
    images = [
        Image("a cat", ("Two dogs.", "A man.", "x", "x")),
        Image("a dog", ("She is dressed in red.", "He plays an old guitar.", "x", "x")),
        Image("x", ("Girls in dresses.", "He plays with a very large old guitar.", "x", "x")),
    ]
    concepts = [
        Concept("a dog", frozenset({("dog",)}), "n"),
        Concept("a dress", frozenset({("dress",)}), "n"),
        Concept("playing guitar", frozenset({("play", "*", "guitar")})),
    ]
    shown = judgements(images, concepts, Lemmatiser(Stems()))
    assert shown.tolist() == [[True, False, False], [False, False, True], [False, True, False]]


def test_relevance_is_boolean_logic() -> None:
    shown = {"a": np.array([1, 1, 0, 0], bool), "b": np.array([1, 0, 1, 0], bool)}
    assert relevance(parse("a & ~b"), shown.__getitem__).tolist() == [False, True, False, False]
    assert relevance(parse("a | b"), shown.__getitem__).tolist() == [True, True, True, False]
    assert excluded(parse("a & b & ~c")) == ["c"] and english(parse("a & b & ~c")) == "a and b without c"


def test_drawn_queries_meet_their_conditions() -> None:
    shown = np.random.default_rng(0).random((3000, 12)) < np.linspace(0.1, 0.4, 12)
    names = [f"t{number}" for number in range(12)]
    queries = draw_queries(names, shown, seed=1, per_form=10)
    assert queries == draw_queries(names, shown, seed=1, per_form=10) != draw_queries(names, shown, 2, 10)
    columns = dict(zip(names, shown.T, strict=True))
    for query in queries:
        assert relevance(query.tree, columns.__getitem__).sum() == query.relevant >= RELEVANT
    assert Counter((query.form, query.half) for query in queries)[("a & b", "choosing")] == 5


def test_the_committed_queries() -> None:
    counts = Counter((query.form, query.half) for query in committed_queries())
    assert {form for form, _ in counts} == set(FORMS) and min(counts.values()) >= 30
    assert min(query.relevant for query in committed_queries()) >= RELEVANT
    choosing = {query.query for query in committed_queries("choosing")}
    assert not choosing & {query.query for query in committed_queries("reporting")}


def test_metrics() -> None:
    relevant = np.zeros(100, bool)
    relevant[:20] = True
    unwanted = ~relevant
    assert measure(-np.arange(100.0), relevant, unwanted) == {
        "precision": 100,
        "ndcg": pytest.approx(100),
        "average_precision": pytest.approx(100),
        "excluded": 0,
    }
    worst = measure(np.arange(100.0), relevant, unwanted)
    assert worst["precision"] == worst["ndcg"] == 0 and worst["excluded"] == 100 and worst["average_precision"] < 20


def test_logic_of_values() -> None:
    leaf = {"a": np.array([0.5]), "b": np.array([0.2])}.__getitem__
    assert logic(parse("a & ~b"), leaf) == pytest.approx(0.4)
    assert logic(parse("a | b"), leaf) == pytest.approx(0.6)


def test_systems_rank_what_is_asked_for() -> None:
    texts = sentences(400)
    judged = {text: np.array([text in document for document in texts]) for text in ("sits", "runs", "on a bench")}
    vectors = VectorEvidence(torch.nn.functional.normalize(torch.randn(400, 8), dim=1), lambda some: torch.ones(1, 8))
    half = SubspaceEvidence(texts, stand_in(32), lambda P, H: (P * H).sum((1, 2)) / P.diagonal(0, 1, 2).sum(1))
    systems = subspace_systems(half, vectors, judged) | lexical_systems(LexicalEvidence(texts, Lemmatiser(Stems())))
    assert {"product", "sandwich-hard, hub", "exact", "entailment logic", "hybrid, hub", "BM25, Boolean"} <= set(
        systems
    )
    query = parse("sits & ~on a bench")
    for name in ("product", "entailment logic", "inclusion logic", "hybrid", "BM25, Boolean"):
        best = [texts[row] for row in np.argsort(-systems[name](query))[:5]]
        assert all("sits" in text and "bench" not in text for text in best), (name, best)
    assert np.allclose(
        half.inclusion("sits"), stand_in(32).encode(texts).inclusion(stand_in(32).encode("sits")), atol=1e-3
    )


def test_summaries_have_intervals_and_paired_differences() -> None:
    import pandas as pd

    rows = [
        {"system": name, "form": "a", "query": str(number), "ndcg": number + add, "precision": 1.0}
        for number in range(20)
        for name, add in (("x", 5), ("y", 0))
    ]
    table = summarise(pd.DataFrame(rows))
    ndcg = table[(table.system == "x") & (table.metric == "ndcg")].iloc[0]
    assert ndcg["low"] < ndcg["mean"] < ndcg["high"] and ndcg["mean"] == pytest.approx(14.5) and ndcg["queries"] == 20
    assert compare(pd.DataFrame(rows), "x", "y").iloc[0].tolist() == ["a", 5.0, 5.0, 5.0]


def test_a_table_with_missing_captions_is_refused(tmp_path) -> None:
    path = tmp_path / "captions.txt"
    head = "split\timage\tcaption_no\tcaption\n"
    path.write_text(head + "".join(f"train\t1.jpg\t{number}\tcaption {number}\n" for number in range(1, 6)))
    assert read_images(path) == [Image("caption 1", tuple(f"caption {number}" for number in range(2, 6)))]
    path.write_text(head + "train\t1.jpg\t1\tcaption\n")
    with pytest.raises(UserError, match="1 of 1 images do not have captions 1 to 5"):
        read_images(path)
