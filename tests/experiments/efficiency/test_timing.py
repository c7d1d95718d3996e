"""What Table 8 measures: right answers of the opponents, recall, bytes; times are only checked to exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.experiments.efficiency.timing import (
    FORMS,
    as_json,
    full_candidate,
    index_candidate,
    measure,
    poincare_candidates,
    query_forms,
    recall,
    recalls,
    using_threads,
)
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import sentences, stand_in

TEXTS = sentences(500)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_forms_are_what_their_names_say() -> None:
    a, b = stand_in(8).encode(sentences(4)[:2]), stand_in(8).encode(sentences(4)[2:])
    forms = query_forms(torch.cat([a.projector, b.projector]))
    assert tuple(forms) == FORMS
    assert torch.equal(forms["plain"], a.projector)
    assert torch.allclose(forms["conjunction"], (a & b).symmetric().projector, atol=1e-6)
    assert torch.allclose(forms["negation"], (a & ~b).symmetric().projector, atol=1e-6)
    with pytest.raises(UserError, match="even number"):
        query_forms(a.projector[:1])


def test_recall_counts_what_was_found() -> None:
    true = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert recall(true.flip(1), true) == 1.0
    assert recall(torch.tensor([[1, 2, 9, -1], [0, 0, 0, 0]]), true) == 0.25


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubspaceIndex]:
    folder = tmp_path_factory.mktemp("indexes")
    return {
        kind: SubspaceIndex.build(TEXTS, stand_in(), folder / kind, kind=kind)
        for kind in ("exact-fp16", "compact", "ivfpq")
    }


def test_rows_of_the_table(indexes: dict[str, SubspaceIndex]) -> None:
    exact = indexes["exact-fp16"]
    forms = query_forms(stand_in().encode(sentences(620)[500:]).projector)
    candidates = {kind: index_candidate(index, forms, exact) for kind, index in indexes.items()}
    candidates |= poincare_candidates(500, 60, seeded(0))
    candidates["full"] = full_candidate(exact.searcher.store, forms, limit=300)
    rows = {row.name: row for row in measure(candidates, rounds=2, batch=25, threads=1)}
    assert list(rows) == list(candidates)
    for row in rows.values():
        assert (
            row.latency_ms > 0 and row.cpu_ms > 0 and len(row.rounds_ms) == 2 and row.batch == 25 and row.threads == 1
        )
        assert min(row.rounds_ms) <= row.latency_ms <= max(row.rounds_ms)
    assert (
        rows["exact-fp16"].recall == dict.fromkeys(FORMS, 1.0) and rows["exact-fp16"].bytes_per_document == 2 * 136 + 4
    )
    assert rows["full"].documents == 300 and rows["full"].bytes_per_document == 4 * 256
    assert all(rows["compact"].recall[form] > rows["ivfpq"].recall[form] for form in FORMS)
    assert as_json(list(rows.values()))[0]["recall"]["plain"] == 1.0


def test_full_vectors_give_the_scores_of_half_vectors(indexes: dict[str, SubspaceIndex]) -> None:
    exact = indexes["exact-fp16"]
    matrices = query_forms(stand_in().encode(sentences(520)[500:]).projector)["negation"]
    scores, rows = full_candidate(exact.searcher.store, {"plain": matrices}, limit=500).search(matrices, 10)
    expected, expected_rows = exact.search_matrices(matrices)
    assert torch.equal(rows, expected_rows) and torch.allclose(scores, expected, atol=1e-5)


def test_bad_requests(indexes: dict[str, SubspaceIndex], tmp_path: Path) -> None:
    forms = query_forms(stand_in().encode(TEXTS[:20]).projector)
    candidate = index_candidate(indexes["exact-fp16"], forms)
    assert candidate.recall == {}
    with pytest.raises(UserError, match="has 10 queries, a batch has 128"):
        measure({"exact": candidate})
    with pytest.raises(UserError, match="at least 1"):
        measure({"exact": candidate}, rounds=0, batch=10)
    other = SubspaceIndex.build(TEXTS[1:], stand_in(), tmp_path / "other")
    with pytest.raises(UserError, match="different documents or models"):
        recalls(indexes["compact"], other, forms)


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_a_score_is_an_inclusion(indexes: dict[str, SubspaceIndex]) -> None:
    forms = query_forms(stand_in().encode(TEXTS[:2]).projector)
    scores, rows = indexes["exact-fp16"].search_matrices(forms["negation"], 3)
    document = stand_in().encode(TEXTS[int(rows[0, 0])])
    assert float(scores[0, 0]) == pytest.approx(float(document.inclusion(Subspace(forms["negation"][0]))), abs=1e-4)
