"""The benchmark: judge, queries, systems and metrics on small data; the committed queries against the captions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, ndcg_score

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.experiments.compositional_retrieval.benchmark import Benchmark, compare, measure, summarise
from subspaces.experiments.compositional_retrieval.evaluate import (
    AGAINST,
    evaluate_benchmark,
    methods,
    write_evaluation,
)
from subspaces.experiments.compositional_retrieval.judge import Concept, Image, Lemmatiser, judgements, read_images
from subspaces.experiments.compositional_retrieval.queries import (
    FORMS,
    RELEVANT,
    BenchmarkQuery,
    committed_queries,
    draw_queries,
    excluded,
    relevance,
)
from subspaces.experiments.compositional_retrieval.systems import (
    EVERYTHING,
    Evidence,
    LexicalEvidence,
    all_systems,
    english,
    fitted_calibrations,
)
from subspaces.pipeline.dvc import dvc_stages
from subspaces.pipeline.params import load_params
from subspaces.pipeline.project import Project
from subspaces.report.figures.compositional_retrieval import draw_benchmark
from subspaces.report.own_tables import compositional_retrieval
from subspaces.search.calibration import Calibration, SearchProfile
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from subspaces.search.query import parse
from subspaces.sources.origins import SAMPLES
from subspaces.text.load import load_text_model
from tests.experiments.composition.models import tiny_model
from tests.search.stand_in import ROOT, direction, sentences, span


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


def random_judgements(count: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=count).round(2), generator.random(count) < share


@pytest.mark.parametrize(("count", "share"), [(400, 0.1), (400, 0.01), (12, 0.9)])
def test_metrics_are_those_of_scikit_learn(count: int, share: float) -> None:
    for seed in range(5):
        scores, relevant = random_judgements(count, share, seed)
        relevant[0] = True
        untied = scores - 1e-6 * np.arange(count)  # of equal scores the first document counts as better
        found = measure(scores, relevant, None)
        assert found["ndcg"] == pytest.approx(100 * ndcg_score(relevant[None].astype(float), untied[None], k=10))
        assert found["average_precision"] == pytest.approx(100 * average_precision_score(relevant, untied))


TERMS = ("sits", "runs", "sleeps", "on a bench", "in the park", "at night", "a man", "a cook")


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    texts = sentences(500)
    shown = {text: np.array([text in document for document in texts]) for text in TERMS}
    asked = {
        "a": [*TERMS],
        "a & b": ["sits & a man", "runs & a cook", "sleeps & in the park", "a man & in the park"],
        "a & ~b": ["sits & ~on a bench", "runs & ~in the park", "a man & ~runs", "a cook & ~sits"],
    }
    queries = [
        BenchmarkQuery(form, query, ("choosing", "reporting")[number % 2], 0)
        for form, some in asked.items()
        for number, query in enumerate(some)
    ]
    return Benchmark(texts, shown, Lemmatiser(Stems()), queries)


def vectors(texts: list[str]) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.stack([sum(direction(w, 32) for w in text.split()) for text in texts]), dim=1
    )


@pytest.fixture(scope="module")
def encoder() -> HalfVectorEncoder:
    beta = Calibration(weights={"log_inclusion": 4.0, "log_rest": -4.0})
    profile = SearchProfile(calibrations={"calibrated": beta, "hybrid": EVERYTHING})
    return HalfVectorEncoder(lambda texts: span(texts, 32), 32, "stand-in-32", None, None, profile, vectors)


@pytest.fixture(scope="module")
def found(benchmark: Benchmark, encoder: HalfVectorEncoder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return evaluate_benchmark(benchmark, encoder, tmp_path_factory.mktemp("benchmark") / "index", hybrid=True)


def test_systems_rank_what_is_asked_for(benchmark: Benchmark, encoder: HalfVectorEncoder, tmp_path: Path) -> None:
    evidence = Evidence(SubspaceIndex.build(benchmark.documents, encoder, tmp_path / "index", kind="exact-fp16"))
    calibrations = fitted_calibrations(evidence, benchmark.choosing_terms())
    systems = all_systems(evidence, LexicalEvidence(benchmark.documents, benchmark.lemmatiser), calibrations)
    assert {"product", "sandwich-hard, hub", "exact", "Beta head", "hybrid, hub", "BM25, Boolean"} <= set(systems)
    query, texts = parse("sits & ~on a bench"), benchmark.documents
    for name in ("product", "Beta head", "calibrated", "hybrid", "BM25, Boolean"):
        best = [texts[row] for row in np.argsort(-systems[name](query))[:5]]
        assert all("sits" in text and "bench" not in text for text in best), (name, best)
    inclusion = Subspace(span(texts, 32)).inclusion(Subspace(span(["sits"], 32)[0]))
    assert torch.allclose(evidence.features("sits")["inclusion"], inclusion, atol=1e-3)
    # the index, with the calibration in its profile, answers as the benchmark does
    for name, method in (("hybrid, hub", "hybrid"), ("calibrated", "calibrated")):
        profile = SearchProfile(method=method, calibrations={method: calibrations[name]})
        own = HalfVectorEncoder(lambda some: span(some, 32), 32, "stand-in-32", None, None, profile, vectors)
        index = SubspaceIndex.build(texts, own, tmp_path / method, kind="exact-fp16")
        scores = systems[name](query)
        rows = [hit.row for hit in index.search(query, 10)]
        assert scores[rows] == pytest.approx(np.sort(scores)[::-1][:10], abs=1e-4)


def test_an_evaluation_chooses_and_reports(found: dict[str, Any]) -> None:
    quality, profile = found["choosing_ndcg"], SearchProfile.model_validate(found["profile"])
    runnable = methods(dict.fromkeys(found["calibrations"], EVERYTHING), True)
    assert quality[found["chosen"]] == max(quality[name] for name in runnable)
    assert profile.method == runnable[found["chosen"]] and set(profile.calibrations) == {"calibrated", "hybrid"}
    assert "text" not in runnable and "cosine logic" not in runnable
    assert "hybrid" not in methods(dict.fromkeys(found["calibrations"], EVERYTHING), False)
    assert {(row["half"], row["form"]) for row in found["summary"]} == {
        (half, form) for half in ("choosing", "reporting") for form in ("a", "a & b", "a & ~b")
    }
    assert [example["query"] for example in found["examples"]] == [
        "runs & a cook",
        "a man & in the park",
        "runs & ~in the park",
        "a cook & ~sits",
    ]
    assert {row["against"] for row in found["differences"]} == set(AGAINST)


def test_the_evaluation_of_a_trained_model(benchmark: Benchmark, tmp_path: Path) -> None:
    model = load_text_model(tiny_model(tmp_path / "model", "subspace"))
    out = tmp_path / "benchmark.json"
    settings = {"model": "tiny", "backbone": "tiny", "seed": 0}
    write_evaluation(model, SAMPLES, benchmark, tmp_path / "index", settings, out, "k" * 64, 1, "laptop")
    written = json.loads(out.read_text())
    assert written["key"] == "k" * 64 and written["weights_sha256"] == model.fingerprint
    assert written["documents"] == 500 and "Beta head" in written["choosing_ndcg"]
    profile = SearchProfile.model_validate(written["profile"])
    assert profile.method != "hybrid" and "hybrid" not in profile.calibrations  # no plain backbone inside the model
    profile.write(model.folder)
    assert (
        SubspaceIndex.of_documents(_lines(tmp_path, benchmark.documents), HalfVectorEncoder.of_text_model(model)).method
        == profile.method
    )


def _lines(folder: Path, texts: list[str]) -> Path:
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return path


def test_the_table_and_the_figure(found: dict[str, Any]) -> None:
    table = compositional_retrieval([json.loads(json.dumps(found | {"scale": "laptop"}))])
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.heads == ["a", "a & b", "a & ~b", "excluded, a & ~b"]
    assert sum(label.endswith("(default)") for label in rows) == 1 and f"{found['chosen']} (default)" in rows
    cell = next(
        row
        for row in found["summary"]
        if (row["half"], row["system"], row["form"], row["metric"]) == ("reporting", "product", "a & b", "ndcg")
    )
    assert rows["product"][1].startswith(f"{cell['mean']:.1f} [")
    assert "500 Flickr30k images" in table.note and r"\&" in table.latex("k", "compositional_retrieval")
    figure = draw_benchmark(found)
    assert [panel.get_title() for panel in figure.axes] == ["a", "a & b", "a & ~b"]
    drawn = [line.get_xdata()[0] for line in figure.axes[1].lines if len(line.get_xdata()) == 1]
    assert any(value == pytest.approx(cell["mean"]) for value in drawn)


@pytest.mark.parametrize(
    ("not_run", "scale", "outputs"), [("because", "laptop", 0), (None, "quick", 0), (None, "laptop", 3)]
)
def test_the_benchmark_is_part_of_the_project_when_it_is_run(not_run: str | None, scale: str, outputs: int) -> None:
    params = load_params(ROOT / "params.yaml", scale)
    chosen = params.compositional_retrieval.model_copy(update={"not_run": not_run, "model": "minilm-subspace-128"})
    project = Project(params.model_copy(update={"compositional_retrieval": chosen}), ROOT)
    named = [name for name in project.artefacts if "compositional_retrieval" in name]
    files = [name for name in named if name.startswith(("results/", "figures/"))]
    assert len(files) == outputs, files
    if outputs:
        assert project.artefacts["results/tables/compositional_retrieval.tex"].inputs == (
            project.artefacts["results/evaluations/compositional_retrieval/benchmark.json"],
        )
        assert "measure_compositional_retrieval_benchmark" in dvc_stages(project)["stages"]


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
