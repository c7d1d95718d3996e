"""From evaluation files to numbers, tables, summary and headline, on files written by the test."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict

import pytest

from subspaces.errors import UserError
from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.numbers import write_number
from subspaces.paper.registry import number, of_table
from subspaces.paper.summary import fill_headline, headline, summarise
from subspaces.paper.tables import plain, write_table

IDENTIFIER = "reconstruction/subspace-64/nouns-map"


def evaluation(seed: int, value: float, sample: bool = False, subtree: str | None = None) -> dict:
    return {
        "metrics": {"map": value, "mr": 1.5, "rho": 50.0},
        "settings": {
            "model": {"geometry": "subspace"},
            "training": {"epochs": 3, "sampling": "shared"},
            "subtree": subtree,
            "seed": seed,
            "graph": {"nodes": 10},
            "steps": 5,
        },
        "data": {"sample": sample, "origin": "somewhere", "sha256": "0" * 64},
        "weights_sha256": f"{seed}" * 64,
        "timing": {"train_seconds": 1.0},
        "machine": {"threads": 2},
    }


def make(tmp_path, *evaluations: dict, identifier: str = IDENTIFIER, scale: str = "laptop") -> dict:
    paths = []
    for place, content in enumerate(evaluations):
        paths.append(tmp_path / f"evaluation-{place}.json")
        paths[-1].write_text(json.dumps(content))
    out = tmp_path / f"results/numbers/{identifier}.json"
    reason = None if evaluations else f"no experiment for {identifier}"
    write_number(asdict(number(identifier)), scale, paths, out, "a" * 64, "b" * 64, reason)
    return json.loads(out.read_text())


def test_mean_and_deviation_over_seeds(tmp_path):
    values = [90.0, 92.0, 97.0]
    found = make(tmp_path, *(evaluation(seed, value) for seed, value in enumerate(values)))
    assert found["value"] == pytest.approx(statistics.fmean(values))
    assert found["sd"] == pytest.approx(statistics.stdev(values))
    assert (found["n"], found["seeds"], found["values"]) == (3, [0, 1, 2], values)


def test_one_seed_has_no_deviation_and_is_judged(tmp_path):
    found = make(tmp_path, evaluation(0, number(IDENTIFIER).value - 20))
    assert (found["sd"], found["n"], found["verdict"]) == (None, 1, "short")
    assert "3 epochs" in found["reason"]
    assert found["paper"] == {"value": number(IDENTIFIER).value, "sd": None}


def test_a_sample_or_a_subtree_is_another_scale_however_good(tmp_path):
    assert make(tmp_path, evaluation(0, 100.0, sample=True))["verdict"] == "other scale"
    found = make(tmp_path, evaluation(0, 100.0, subtree="mammal.n.01"))
    assert found["verdict"] == "other scale"
    assert "mammal.n.01" in found["reason"]


def test_where_the_bytes_came_from_and_when_is_not_part_of_a_number(tmp_path):
    text = json.dumps(make(tmp_path, evaluation(0, 95.0)))
    assert "somewhere" not in text
    assert "train_seconds" not in text


def test_without_an_experiment_a_number_is_not_run_and_says_why(tmp_path):
    found = make(tmp_path, identifier="snli/mpnet-mlp/accuracy-2way")
    assert (found["value"], found["n"], found["verdict"]) == (None, 0, "not run")
    assert "snli" in found["reason"]


def test_a_column_without_a_metric_is_refused(tmp_path):
    with pytest.raises(UserError, match="no metric"):
        make(tmp_path, evaluation(0, 1.0), identifier="snli/mpnet-mlp/accuracy-2way")


@pytest.fixture
def reconstruction(tmp_path):
    for one in of_table("reconstruction"):
        if one.row == "subspace-64":
            make(tmp_path, evaluation(0, 98.76), identifier=one.id)
        else:
            make(tmp_path, identifier=one.id)
    return tmp_path


def test_a_table_shows_ours_and_the_papers(reconstruction):
    paths = [reconstruction / f"results/numbers/{one.id}.json" for one in of_table("reconstruction")]
    tex, md = reconstruction / "t.tex", reconstruction / "t.md"
    write_table("reconstruction", paths, tex, md, "c" * 64)
    paper = number(IDENTIFIER).value
    text = md.read_text()
    assert f"98.8 + [{paper:.1f}]" in text or f"98.8 = [{paper:.1f}]" in text
    assert "| R-128 | — [" in text
    assert "c" * 64 in text and "c" * 64 in tex.read_text()
    latex = tex.read_text()
    assert latex.count(r"\\") == 1 + len(LAYOUTS["reconstruction"].rows)
    assert rf"{{\scriptsize[${paper:.1f}$]}}" in latex
    assert latex.count("{") == latex.count("}")
    columns = latex.split(r"\begin{tabular}{")[1].split("}")[0]
    for line in latex.splitlines():
        if line.endswith(r"\\"):
            assert line.count("&") == len(columns) - 1


def test_every_layout_makes_a_table_of_not_run_numbers(tmp_path):
    for name in LAYOUTS:
        for one in of_table(name):
            make(tmp_path, identifier=one.id)
        paths = [tmp_path / f"results/numbers/{one.id}.json" for one in of_table(name)]
        write_table(name, paths, tmp_path / f"{name}.tex", tmp_path / f"{name}.md", "d" * 64)
        assert (tmp_path / f"{name}.md").read_text().count("—") >= len(paths)


def test_the_summary_names_table_verdict_files_and_time(reconstruction):
    text = summarise(reconstruction, 95.0)
    assert "Table 2" in text and "SE-64" in text
    assert "not run" in text
    assert "1 min 35 s" in text
    assert "results/tables" in text


def test_the_headline_goes_between_its_marks(reconstruction):
    block = headline(reconstruction)
    assert "| SE-64 | **98.8** [" in block
    assert "Table 4: link prediction" in block
    readme = "before\n<!-- headline -->\nold\n<!-- end -->\nafter\n"
    filled = fill_headline(readme, block)
    assert filled.startswith("before\n") and filled.endswith("after\n") and "old" not in filled
    assert fill_headline(filled, block) == filled


def test_labels_as_plain_text():
    assert plain(r"$\mathcal{P}^{10}$") == "P-10"
    assert plain("SE$^{64}$") == "SE-64"
