"""From values of evaluations to numbers, tables, summary and headline."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.report import tables
from subspaces.report.claims import CLAIMS
from subspaces.report.layouts import LAYOUTS
from subspaces.report.numbers import (
    FRAME,
    committed_numbers,
    frame,
    frame_of,
    measured,
    unmeasured,
    write_frame,
    write_numbers,
)
from subspaces.report.registry import number, numbers, of_table
from subspaces.report.summary import TRY_NEXT, fill_headline, headline, summarise

IDENTIFIER = "reconstruction/subspace-64/nouns-map"
WHOLE = (True, "whole hierarchy, 3 epochs")

ROOT = Path(__file__).resolve().parents[2]


def evaluation(seed: int, sample: bool = False) -> dict:
    return {
        "settings": {"model": {"geometry": "subspace"}, "training": {"epochs": 3}, "seed": seed, "steps": 5},
        "data": {"sample": sample, "origin": "somewhere", "sha256": "0" * 64},
        "weights_sha256": f"{seed}" * 64,
        "timing": {"train_seconds": 1.0},
    }


def make(*values: float, identifier: str = IDENTIFIER, extent=WHOLE, sample: bool = False) -> dict:
    evaluations = {f"seed-{seed}.json": evaluation(seed, sample) for seed in range(len(values))}
    return measured(number(identifier), "laptop", values, evaluations, extent)


def not_run(identifier: str) -> dict:
    return unmeasured(number(identifier), "laptop", f"no experiment for {identifier}")


def test_mean_and_deviation_over_seeds():
    values = [90.0, 92.0, 97.0]
    found = make(*values)
    assert found["value"] == pytest.approx(statistics.fmean(values))
    assert found["sd"] == pytest.approx(statistics.stdev(values))
    assert (found["seeds"], found["values"]) == (3, values)
    assert found["evidence"] == ["seed-0.json", "seed-1.json", "seed-2.json"]


def test_one_seed_has_no_deviation_and_is_judged():
    found = make(number(IDENTIFIER).value - 20)
    assert (found["sd"], found["seeds"], found["verdict"], found["reason"]) == (None, 1, "short", WHOLE[1])
    assert found["paper"] == {"value": number(IDENTIFIER).value, "sd": None}


def test_what_does_not_compare_is_another_scale_however_good():
    found = make(100.0, extent=(False, "subtree mammal.n.01"), sample=True)
    assert (found["verdict"], found["sample"]) == ("other scale", True)
    assert "mammal.n.01" in found["reason"]


def test_where_the_bytes_came_from_and_when_is_not_part_of_a_number():
    text = str(make(95.0))
    assert "somewhere" not in text
    assert "train_seconds" not in text


@pytest.fixture
def reconstruction(tmp_path):
    """Files of every table; one row of reconstruction was measured."""
    for name in LAYOUTS:
        numbers = [
            make(98.76, identifier=one.id) if one.row == "subspace-64" and name == "reconstruction" else not_run(one.id)
            for one in of_table(name)
        ]
        write_numbers(name, numbers, "a" * 64, tmp_path)
    return tmp_path


def test_a_metrics_file_holds_the_value_and_nothing_else(reconstruction):
    assert read_json(reconstruction / f"results/numbers/{IDENTIFIER}.json") == {"value": 98.76}
    assert read_json(reconstruction / "results/numbers/snli/mpnet-mlp/accuracy-2way.json") == {}


def test_the_frame_has_one_row_per_number_and_is_the_committed_table(reconstruction):
    import pandas as pd

    found = frame(reconstruction)
    assert len(found) == len(numbers()) and found["id"].is_unique
    row = found.set_index("id").loc[IDENTIFIER]
    assert (row["value"], row["paper"], row["seeds"]) == (98.76, number(IDENTIFIER).value, 1)
    write_frame("b" * 64, reconstruction)
    assert (reconstruction / FRAME).read_text().startswith("# key:" + "b" * 64)
    read = pd.read_csv(reconstruction / FRAME, comment="#")
    assert list(read["id"]) == list(found["id"]) and (read["verdict"] == found["verdict"]).all()


def test_a_table_that_was_not_built_says_how_to_build_it(tmp_path):
    with pytest.raises(UserError, match="run `snakemake"):
        frame_of("snli", tmp_path)


def test_a_table_shows_ours_and_the_papers(reconstruction):
    layout, numbers = LAYOUTS["reconstruction"], frame_of("reconstruction", reconstruction)
    text, latex = (write(layout, numbers, "c" * 64) for write in (tables.markdown, tables.latex))
    paper = number(IDENTIFIER).value
    assert f"98.8 + [{paper:.1f}]" in text or f"98.8 = [{paper:.1f}]" in text
    assert "| R-128 | — [" in text
    assert "c" * 64 in text and "c" * 64 in latex
    assert latex.count(r"\\") == 1 + len(layout.rows)
    assert rf"{{\scriptsize[${paper:.1f}$]}}" in latex
    assert latex.count("{") == latex.count("}")
    columns = latex.split(r"\begin{tabular}{")[1].split("}")[0]
    for line in latex.splitlines():
        if line.endswith(r"\\"):
            assert line.count("&") == len(columns) - 1


def test_what_is_not_run_stands_beside_the_projects_own_value(tmp_path):
    committed, elsewhere, one = tmp_path / "project", tmp_path / "quick", number(IDENTIFIER)
    for table in LAYOUTS:
        content = [make(one.value) if found.id == IDENTIFIER else not_run(found.id) for found in of_table(table)]
        write_numbers(table, content, "a", committed)
    write_frame("a", committed)
    own = committed_numbers(committed, "quick")
    assert own == {IDENTIFIER: {"value": one.value, "sd": None, "verdict": "reproduced", "scale": "laptop"}}
    assert committed_numbers(committed, "laptop") == committed_numbers(tmp_path, "quick") == {}

    left_out = unmeasured(one, "quick", "its training takes an hour", own[IDENTIFIER])
    write_numbers("reconstruction", [left_out], "b", elsewhere)
    layout, found = LAYOUTS["reconstruction"], frame_of("reconstruction", elsewhere)
    assert f"| ({one.value} laptop =) [{one.value}] |" in tables.markdown(layout, found, "b")
    assert rf"(${one.value}$) {{\scriptsize[${one.value}$]}}" in tables.latex(layout, found, "b")
    assert "committed value at laptop scale" in tables.note(found)
    write_numbers(
        "reconstruction", [left_out, make(99.0, identifier="reconstruction/subspace-64/verbs-map")], "b", elsewhere
    )
    assert f"({one.value}) [{one.value}] reproduced" in summarise(elsewhere, colour=False)


def test_every_layout_makes_a_table_of_not_run_numbers(reconstruction):
    for name, layout in LAYOUTS.items():
        if name != "reconstruction":
            text = tables.markdown(layout, frame_of(name, reconstruction), "d" * 64)
            assert text.count("—") >= len(of_table(name))


def test_the_summary_names_table_verdict_files_and_time(reconstruction):
    text = summarise(reconstruction, 95.0)
    assert "Table 2" in text and "SE-64" in text
    assert "not run" in text
    assert "1 min 35 s" in text
    assert "results/tables" in text
    assert all(command in text for command in TRY_NEXT)
    assert "Does the paper hold?" in text


def test_the_summary_shows_every_claim_and_the_page_when_all_numbers_are_there():
    text = summarise(ROOT)
    assert all(title in text for title, _, _ in CLAIMS.values())
    assert f"Page:    {ROOT / 'results/report.html'}" in text


def test_the_headline_goes_between_its_marks(reconstruction):
    block = headline(reconstruction)
    rows = block.splitlines()[2:]
    assert len(rows) <= 8
    assert rows[0].startswith("| 2: reconstruction | SE-64 | Nouns mAP ↑ | **98.8** | 97.8 |")
    assert any(row.startswith("| 4: link prediction |") and "| — |" in row and "| not run |" in row for row in rows)
    readme = "before\n<!-- headline -->\nold\n<!-- end -->\nafter\n"
    filled = fill_headline(readme, block)
    assert filled.startswith("before\n") and filled.endswith("after\n") and "old" not in filled
    assert fill_headline(filled, block) == filled


def test_labels_as_plain_text():
    assert tables.plain(r"$\mathcal{P}^{10}$") == "P-10"
    assert tables.plain("SE$^{64}$") == "SE-64"
