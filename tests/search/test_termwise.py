"""Term-wise search on every kind of index: it equals brute force, and logic holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.search.build import build_shard, merge
from subspaces.search.calibration import GENERIC, Calibration, SearchProfile
from subspaces.search.half_vectors import COSINE_HUB, HUB, VECTORS, HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import direction, sentences, span

TEXTS = sentences(300)
KINDS = ("exact-fp32", "exact-fp16", "reduced", "compact", "ivfpq")
PLAIN = Calibration(weights={"inclusion": 12.0}, intercept=-4.0)
FULL = Calibration(
    weights={"log_inclusion": 1.0, "inclusion": 9.0, "hub": -6.0, "cosine": 4.0, "cosine_hub": -2.0}, intercept=-3.0
)
QUERIES = (
    "a man",
    "a man & at night",
    "sits & ~on a bench",
    "~a man",
    "a man | a cook",
    "a man & sits & ~(at night | in winter)",
)


def mean_direction(texts: list[str]) -> Tensor:
    """Unit vectors (N, 12) as of a plain backbone."""
    return torch.nn.functional.normalize(
        torch.stack([sum(direction(w, 12) for w in text.split()) for text in texts]), dim=1
    )


def encoder(calibration: Calibration, method: str = "hybrid", words: int = 0) -> HalfVectorEncoder:
    def windows(texts: list[str]) -> list[list[str]]:
        return [[" ".join(text.split()[a : a + words]) for a in range(0, len(text.split()), words)] for text in texts]

    profile = SearchProfile(method=method, calibrations={"hybrid": calibration, "calibrated": PLAIN})
    name = f"stand-in-{words}"
    return HalfVectorEncoder(
        lambda texts: span(texts, 16), 16, name, None, windows if words else None, profile, mean_direction
    )


def features(documents: list[str], term: str) -> dict[str, Tensor]:
    """By the definitions, without an index."""
    found = encoder(FULL)
    P = found.encode(documents)
    vectors = mean_direction(documents)
    generic = torch.stack([P.inclusion(found.encode(text)) for text in GENERIC])
    return {
        "inclusion": P.inclusion(found.encode(term)),
        "hub": generic.mean(0),
        "cosine": vectors @ mean_direction([term])[0],
        "cosine_hub": (vectors @ mean_direction(list(GENERIC)).T).mean(1),
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubspaceIndex]:
    folder = tmp_path_factory.mktemp("indexes")
    return {kind: SubspaceIndex.build(TEXTS, encoder(FULL), folder / kind, kind=kind) for kind in KINDS}


@pytest.mark.parametrize("query", QUERIES)
def test_an_exact_index_is_brute_force(built: dict[str, SubspaceIndex], query: str) -> None:
    probability = {
        text: torch.sigmoid(FULL.log_odds(features(TEXTS, text)))
        for text in ("a man", "at night", "sits", "on a bench", "a cook", "in winter")
    }
    man, night = probability["a man"], probability["at night"]
    expected = {
        "a man": man,
        "a man & at night": man * night,
        "sits & ~on a bench": probability["sits"] * (1 - probability["on a bench"]),
        "~a man": 1 - man,
        "a man | a cook": 1 - (1 - man) * (1 - probability["a cook"]),
        "a man & sits & ~(at night | in winter)": man
        * probability["sits"]
        * (1 - night)
        * (1 - probability["in winter"]),
    }[query]
    hits = built["exact-fp32"].search(query, top=len(TEXTS))
    assert sorted(hit.row for hit in hits) == list(range(len(TEXTS)))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    # the vectors of the index have 16 bits
    assert max(abs(hit.score - float(expected[hit.row])) for hit in hits) < 5e-3


@pytest.mark.parametrize("kind", KINDS[1:])
def test_every_kind_finds_what_brute_force_finds(built: dict[str, SubspaceIndex], kind: str) -> None:
    tolerance = {"ivfpq": 0.75, "compact": 0.85}.get(kind, 0.95)
    for method in ("calibrated", "hybrid"):
        shared = [
            len(
                {hit.row for hit in built[kind].search(query, 10, method)}
                & {hit.row for hit in built["exact-fp32"].search(query, 10, method)}
            )
            for query in QUERIES
        ]
        assert sum(shared) / (10 * len(QUERIES)) >= tolerance, (method, shared)


@pytest.mark.parametrize("kind", KINDS)
def test_logic_holds(built: dict[str, SubspaceIndex], kind: str) -> None:
    index, count = built[kind], len(TEXTS)

    def scores(query: str) -> dict[int, float]:
        return {hit.row: hit.score for hit in index.search(query, top=count, effort=20)}

    man, night, both, no_man = scores("a man"), scores("at night"), scores("a man & at night"), scores("~a man")
    assert set(man) == set(night) == set(both) == set(no_man) == set(range(count))
    for row, score in both.items():
        assert score <= min(man[row], night[row]) + 1e-6
        assert no_man[row] == pytest.approx(1 - man[row], abs=1e-6)
    order = [man[hit.row] for hit in index.search("~a man", top=count, effort=20)]
    assert order == sorted(order)


def test_the_default_is_that_of_the_model(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    index = built["exact-fp32"]
    assert index.method == "hybrid" and index.search("a man") == index.search("a man", method="hybrid")
    assert index.search("a man") != index.search("a man", method="product")
    assert SubspaceIndex.open(index.folder, encoder(FULL, "product")).search("a man") == index.search(
        "a man", method="product"
    )
    subspace = index.encoder.encode("a man")  # a subspace is one term, ranked by inclusion
    assert index.search(subspace) == index.search("a man", method="product")
    assert index.search_many(["a man", subspace]) == [index.search("a man"), index.search(subspace)]
    assert SubspaceIndex.open(index.folder).method == "product"


def test_what_a_calibration_reads_is_stored(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    assert set(built["compact"].manifest.columns) == {HUB, VECTORS, COSINE_HUB}
    plain = SubspaceIndex.build(TEXTS, encoder(PLAIN), tmp_path / "plain", kind="exact-fp32")
    assert not plain.manifest.columns and not (plain.folder / HUB).exists()
    with pytest.raises(UserError, match=r"built without hub\.f32, which the calibration of this model reads"):
        SubspaceIndex.open(plain.folder, encoder(FULL)).search("a man")
    with pytest.raises(UserError, match="other documents, model or settings"):
        SubspaceIndex.build(TEXTS, encoder(FULL), tmp_path / "plain", kind="exact-fp32")


def test_shards_keep_the_columns(built: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    parts = [build_shard(TEXTS, a, b, encoder(FULL), tmp_path / str(a)) for a, b in ((0, 100), (100, 300))]
    index = SubspaceIndex.open(merge(parts, tmp_path / "merged", kind="exact-fp16"), encoder(FULL))
    for query in QUERIES:
        found, expected = index.search(query), built["exact-fp16"].search(query)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)


def test_each_term_takes_its_best_window(tmp_path: Path) -> None:
    texts = ["a man runs zzz yyy sits on a bench", *TEXTS[:70]]
    long = encoder(PLAIN, "calibrated", words=5)
    for kind in ("exact-fp32", "reduced"):
        index = SubspaceIndex.build(texts, long, tmp_path / kind, kind=kind)
        assert index.manifest.rows > len(texts)

        def p(term: str, index: SubspaceIndex = index) -> float:
            return next(hit.score for hit in index.search(term, top=len(texts), effort=20) if hit.row == 0)

        windows = span(["a man runs zzz yyy", "sits on a bench"], 16)
        traces = windows.diagonal(dim1=1, dim2=2).sum(1)
        for term, window in (("a man runs", 0), ("on a bench", 1)):
            inclusion = (windows[window] * span([term], 16)[0]).sum() / traces[window]
            assert p(term) == pytest.approx(float(torch.sigmoid(12 * inclusion - 4)), abs=2e-3)
        assert p("a man runs & on a bench") == pytest.approx(p("a man runs") * p("on a bench"), abs=1e-5)
        assert p("a man runs & ~on a bench") == pytest.approx(p("a man runs") * (1 - p("on a bench")), abs=1e-5)
