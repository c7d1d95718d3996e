"""Claims follow the numbers: each verdict changes with the values and is withheld without comparable budgets."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from subspaces.files import write_json
from subspaces.report import numbers as measured_numbers
from subspaces.report.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    MEANINGS,
    PART,
    UNKNOWN,
    Results,
    compare,
    fold,
    judge,
)
from subspaces.report.own_tables import OWN_TABLES
from subspaces.report.registry import numbers

ROOT = Path(__file__).resolve().parents[2]


def frame(folder: Path, table: str, values: dict[str, float], **training) -> pd.DataFrame:
    """All numbers; those of `table` have the value that `values` gives to the first word that their id contains."""
    rows = []
    for entry in numbers().values():
        row = {"id": entry.id, "table": entry.table, "row": entry.row, "column": entry.column, "better": entry.better}
        row |= {"paper": entry.value, "paper_sd": entry.sd, "value": None, "verdict": "not run", "evidence": []}
        word = next((word for word in values if word in entry.id), None)
        if entry.table == table and word:
            path = f"results/evaluations/{entry.id}.json"
            known = {"epochs": 10, "pairs": 175_162} | {k: v for k, v in training.items() if not isinstance(v, dict)}
            known |= training.get(word, {})
            settings = {"training": {"epochs": known["epochs"]}, "trained_on": {"pairs": known["pairs"]}}
            write_json(
                folder / path, {"settings": settings, "scale": known.get("scale", "laptop"), "data": {"sample": False}}
            )
            row |= {"value": values[word], "verdict": "short", "evidence": [path]}
        rows.append(row)
    return pd.DataFrame(rows)


def verdict_of(name: str, shown: pd.DataFrame, folder: Path) -> str:
    return next(claim.verdict for claim in judge(shown, folder) if claim.name == name)


def test_nothing_run_means_nothing_can_be_told_and_says_what_is_needed(tmp_path):
    judged = judge(frame(tmp_path, "none", {}), tmp_path)
    assert {claim.verdict for claim in judged} == {UNKNOWN}
    assert all("Needed: " in claim.evidence for claim in judged)
    assert len(judged) == len(CLAIMS) == 16


@pytest.mark.parametrize(
    ("subspace", "other", "verdict"), [(95.0, 90.0, HOLDS), (90.0, 95.0, FAILS)], ids=["above", "below"]
)
def test_hyperlex_follows_the_values(tmp_path, subspace, other, verdict):
    values = {"subspace": subspace / 100, "hyperlex": other / 100}
    shown = frame(tmp_path, "hyperlex", values)
    shown.loc[shown["table"] == "hyperlex", "paper"] = 0.5
    assert verdict_of("hyperlex", shown, tmp_path) == verdict


def test_a_win_counts_only_against_a_rival_that_was_trained_as_long(tmp_path):
    a, b = "link_prediction/subspace-64/f1-10", "link_prediction/umbral-10/f1-10"
    for epochs, wins, loses in ((5, None, False), (10, True, False), (20, True, None)):
        for value, expected in ((97.0, wins), (70.0, loses)):
            values = {"subspace": value, "umbral": 95.0}
            shown = frame(tmp_path, "link_prediction", values, umbral={"epochs": epochs})
            assert compare(Results(shown, tmp_path), a, b) is expected, (epochs, value)


def test_budgets_do_not_matter_for_a_rival_that_reaches_the_paper(tmp_path):
    shown = frame(tmp_path, "link_prediction", {"subspace": 90.0, "umbral": 80.0}, umbral={"epochs": 1})
    a, b = "link_prediction/subspace-64/f1-10", "link_prediction/umbral-10/f1-10"
    assert compare(Results(shown, tmp_path), a, b) is None
    shown.loc[shown["id"] == b, "verdict"] = "reproduced"
    assert compare(Results(shown, tmp_path), a, b) is True


def test_a_rival_far_below_its_own_paper_value_proves_nothing(tmp_path):
    shown = frame(tmp_path, "link_prediction", {"subspace": 50.0, "umbral": 10.0})
    assert (
        compare(Results(shown, tmp_path), "link_prediction/subspace-64/f1-10", "link_prediction/umbral-10/f1-10")
        is None
    )


def test_rows_of_two_scales_are_not_compared(tmp_path):
    shown = frame(tmp_path, "link_prediction", {"subspace": 90.0, "umbral": 80.0}, umbral={"scale": "quick"})
    assert (
        compare(Results(shown, tmp_path), "link_prediction/subspace-64/f1-10", "link_prediction/umbral-10/f1-10")
        is None
    )


def test_sentence_models_are_judged_from_enough_pairs_only(tmp_path):
    values = {"subspace": 92.0, "snli": 91.0}
    assert verdict_of("snli", frame(tmp_path, "snli", values), tmp_path) == HOLDS
    assert verdict_of("snli", frame(tmp_path, "snli", values, pairs=1_000), tmp_path) == UNKNOWN
    assert verdict_of("snli", frame(tmp_path, "snli", {"subspace": 80.0, "snli": 91.0}), tmp_path) == FAILS


def test_failing_ninety_per_cent_counts_only_with_all_pairs(tmp_path):
    for pairs, value, verdict in ((175_162, 92.0, HOLDS), (175_162, 85.0, UNKNOWN), (549_367, 85.0, FAILS)):
        shown = frame(tmp_path, "composition", {"subspace": value}, pairs=pairs)
        assert verdict_of("negation-subspaces", shown, tmp_path) == verdict


@pytest.mark.parametrize(("layers", "verdict"), [(None, HOLDS), (2, UNKNOWN)])
def test_the_cost_of_the_head_is_told_with_the_whole_backbone_only(tmp_path, layers, verdict):
    shown = frame(tmp_path, "encoding_time", {"mpnet-subspace-128/batch-128": 10.0, "mpnet/batch-128": 9.9})
    path = shown.loc[shown["id"] == "encoding_time/mpnet-subspace-128/batch-128", "evidence"].item()[0]
    write_json(tmp_path / path, {"settings": {"backbone": {"layers": layers}}})
    assert verdict_of("head-cost", shown, tmp_path) == verdict


@pytest.mark.parametrize(
    ("documents", "latency", "verdict"),
    [(155_070, 0.1, HOLDS), (155_070, 2.0, FAILS), (1_200, 0.1, UNKNOWN)],
    ids=["faster", "slower", "few captions"],
)
def test_the_speed_of_search_is_told_over_all_captions_only(tmp_path, documents, latency, verdict):
    shown = frame(tmp_path, "retrieval_latency", {"faiss": latency, "poincare-10-exact": 1.0})
    path = shown.loc[shown["id"] == "retrieval_latency/subspace-128-faiss/latency", "evidence"].item()[0]
    write_json(tmp_path / path, {"documents": documents})
    assert verdict_of("search-speed", shown, tmp_path) == verdict


@pytest.mark.parametrize(
    ("last", "pairs", "verdict"), [(89.5, 175_162, PART), (80.0, 175_162, FAILS), (89.5, 256, UNKNOWN)]
)
def test_compression_is_told_of_models_that_have_learnt_only(tmp_path, last, pairs, verdict):
    measured = {"full_rank": 64, "rank": [64.0, 20.0, 12.0], "accuracy": [90.0, last, last]}
    shown = frame(tmp_path, "snli", {"minilm-subspace-64/accuracy-2way": 90.0}, pairs=pairs)
    write_json(
        tmp_path / "results/evaluations/compression/snli.json", {"model": "minilm-subspace-64", "snli": measured}
    )
    assert verdict_of("compression", shown, tmp_path) == verdict


def test_several_outcomes_give_one_verdict():
    assert fold([True, True]) == HOLDS
    assert fold([True, False]) == fold([True, None]) == PART
    assert fold([False, None]) == fold([False]) == FAILS
    assert fold([None, None]) == UNKNOWN


def test_the_committed_claims_and_their_table(monkeypatch):
    judged = judge(measured_numbers.frame(ROOT), ROOT)
    assert all(claim.verdict in MEANINGS and claim.evidence for claim in judged)
    assert all(identifier in numbers() for claim in judged for identifier in claim.numbers)
    assert next(claim for claim in judged if claim.name == "bounds").verdict == HOLDS
    assert all("Needed: " in claim.evidence for claim in judged if claim.verdict == UNKNOWN)
    monkeypatch.chdir(ROOT)
    table = OWN_TABLES["claims"].make([])
    markdown, latex = table.markdown("a" * 64), table.latex("a" * 64, "claims")
    for text in (markdown, latex):
        assert f"key:{'a' * 64}" in text
        assert all(claim.verdict in text for claim in judged)
    assert all(f"| {claim.title} | {claim.section} | **{claim.verdict}** |" in markdown for claim in judged)
    body = latex.split(r"\midrule")[1]
    assert "_" not in body.replace(r"\_", "") and "%" not in body.replace(r"\%", "")
