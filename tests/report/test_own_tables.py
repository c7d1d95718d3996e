"""Tables of what the paper does not print, from made-up evaluations."""

from __future__ import annotations

import pytest

from subspaces.report import registry
from subspaces.report.own_tables import OWN_TABLES, encoding_overhead, link_prediction_extra, retrieval_extra


def link(row: str, coverage: int, auprc: float, seed: int = 0) -> dict:
    metrics = {"auprc": auprc, "f1_reversed": 50.0, "auprc_reversed": 99.0}
    settings = {"training": {"epochs": 6}}
    return {
        "row": row,
        "coverage": coverage,
        "seed": seed,
        "metrics": metrics,
        "settings": settings,
        "timing": {"train_seconds": 90},
    }


def timed(milliseconds: float, recall: dict | None = None) -> dict:
    return {
        "latency_ms": milliseconds,
        "recall": recall or {},
        "bytes_per_document": 48.0,
        "batch": 128,
        "top": 10,
        "threads": 1,
    }


def test_link_prediction_shows_coverages_side_by_side_and_means_over_seeds():
    table = link_prediction_extra(
        [link("cones-10", 0, 20.0), link("cones-10", 10, 40.0), link("cones-10", 10, 50.0, 1)]
    )
    assert table.rows == [["Cones$^{10}$", "20.0 / 45.0", "50.0 / 50.0", "99.0 / 99.0", "6 / 6", "1.5 / 1.5"]]
    text = table.markdown("k" * 64)
    assert "| Cones-10 | 20.0 / 45.0 |" in text and "k" * 64 in text


def test_a_row_that_was_not_run_at_one_coverage_has_a_dash_there():
    table = link_prediction_extra([link("order-10", 0, 20.0), link("cones-10", 10, 40.0)])
    assert [row[1] for row in table.rows] == ["20.0 / —", "— / 40.0"]


def test_f1_by_parent_is_shown_where_an_evaluation_has_it():
    old, new = link("cones-10", 0, 20.0), link("cones-10", 10, 40.0)
    assert "F1 by parent (%)" not in link_prediction_extra([old]).heads
    new["metrics"]["f1_by_parent"] = 61.04
    table = link_prediction_extra([old, new])
    assert table.rows[0][1 + table.heads.index("F1 by parent (%)")] == "— / 61.0" and "outside the parent" in table.note


def test_retrieval_shows_recall_and_the_time_against_poincare():
    recall = {"plain": 0.95, "conjunction": 0.99, "negation": 0.98}
    rows = {"reduced": timed(1.5, recall), "poincare-10": timed(0.5), "half": timed(1.0), "full": timed(2.0)}
    table = retrieval_extra([{"rows": rows, "documents": 155070, "half_over_full": 0.5}])
    assert [row[1:3] for row in table.rows] == [["0.50", "1.0×"], ["1.50", "3.0×"]]
    assert table.rows[1][3:6] == ["0.950", "0.990", "0.980"]
    assert "155,070 captions" in table.note and r"$\times$" in table.latex("k", "retrieval_extra")


def test_the_overhead_of_the_head_stands_beside_that_of_the_papers_times():
    metrics = {"mpnet": {"batch-1": 2.0}, "mpnet-subspace-128": {"batch-1": 3.0}}
    ours, paper = encoding_overhead([{"metrics": metrics, "extent": {"text": "cpu"}}]).rows
    assert ours[:3] == ["ours", "1.50×", "—"]
    printed = [registry.number(f"encoding_time/{row}/batch-1").value for row in ("mpnet-subspace-128", "mpnet")]
    assert paper[1] == f"{printed[0] / printed[1]:.2f}×"


@pytest.mark.parametrize("name", OWN_TABLES)
def test_labels_in_latex_have_no_underscores(name):
    table = link_prediction_extra([link("cones-10", 0, 20.0)])
    assert rf"\label{{tab:{name.replace('_', '-')}}}" in table.latex("k", name)
