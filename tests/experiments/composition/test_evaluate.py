"""One model judged on sets of composites: the file, its numbers, its provenance, and what is refused."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import Candidate
from subspaces.experiments.composition.compose import compose
from subspaces.experiments.composition.evaluate import PAIR_COLUMNS, evaluate_composition, measure, score_set, write_set
from subspaces.experiments.composition.filter import take
from subspaces.files import read_json, sha256_file
from subspaces.text.load import load_text_model
from tests.experiments.composition.models import CANDIDATES, tiny_model

AUTHORS = [replace(one, id=f"a{place}", origin="authors") for place, one in enumerate(CANDIDATES[:4])]
SETS = {"elicited": CANDIDATES, "authors": AUTHORS}


def report_of(used: list[Candidate], wanted: int) -> dict[str, Any]:
    found = {"baselines": {"minilm-mlp": {"dropped": 1}}, "candidates": len(used) + 1, "dropped": 1}
    return take(used, wanted, found)[1]


def evaluated(tmp_path: Path, encoder: str, operator: str = "product", **more: Any) -> dict[str, Any]:
    folder = tiny_model(tmp_path / encoder, encoder)
    return evaluate_composition(folder, SETS, tmp_path / "out.json", "k" * 64, operator, 1, {"row": encoder}, **more)


def test_the_numbers_of_a_subspace_model_are_those_of_the_definition(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "subspace")
    text_model = load_text_model(tmp_path / "subspace")

    def projector(text: str) -> np.ndarray:
        return text_model.projectors([text])[0].double().numpy()

    for kind in ("conjunction", "negation"):
        truth, scores = [], []
        for one in compose(CANDIDATES):
            if one.kind == kind:
                p, a, b = projector(one.premise), projector(one.left), projector(one.right)
                b = np.eye(len(b)) - b if one.negated else b
                truth.append(one.entailed)
                scores.append(np.trace(p @ a @ b) / np.trace(p))
        assert found["metrics"][f"auc-{kind}"] == pytest.approx(100 * roc_auc_score(truth, scores), abs=1e-6)
    assert found == read_json(tmp_path / "out.json")


@pytest.mark.parametrize(
    ("encoder", "operators"),
    [("subspace", ["product", "sandwich-hard", "exact"]), ("box", ["intersection"]), ("vector", ["mean-difference"])],
)
def test_every_kind_of_model_has_its_operators_and_extras(tmp_path: Path, encoder: str, operators: list[str]) -> None:
    found = evaluated(tmp_path, encoder, "sandwich-hard", control=SETS)
    for name, candidates in SETS.items():
        measured = found["sets"][name]
        assert measured["premises"] == len(candidates) and measured["pairs"] == 4 * len(candidates)
        assert list(measured["operators"]) == operators
        for one in measured["operators"].values():
            for kind, value in one.items():
                if encoder == "box" and kind == "negation":
                    assert value is None
                else:
                    assert value["n"] == 2 * len(candidates) == 2 * value["premises"]
                    assert 0 <= value["low"] <= value["auc"] <= value["high"] <= 100
        extras = measured["extras"]
        assert set(extras["disjunction"]) == ({"sum", "span"} if encoder == "subspace" else set())
        assert (extras["double-negation"] is not None) == (encoder == "subspace")
        kinds = ("conjunction", "negation", "disjunction", "double-negation")
        assert all(0 <= extras["control"][kind]["auc"] <= 100 for kind in kinds), "a text can be read by any model"
        assert extras["control"]["cut"] == 0
    assert found["settings"]["operator"] == ("sandwich-hard" if encoder == "subspace" else operators[0])
    chosen = found["sets"]["elicited"]["operators"][found["settings"]["operator"]]
    for kind in ("conjunction", "negation"):
        one = chosen[kind]
        assert found["metrics"][f"auc-{kind}"] == (one and one["auc"])
        assert found["interval"][f"auc-{kind}"] == (one and [one["low"], one["high"]])


def test_double_negation_is_the_plain_score(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "subspace")["sets"]["elicited"]["extras"]["double-negation"]
    assert found["largest_difference"] < 1e-5


def test_scores_that_are_exactly_zero_are_counted() -> None:
    found = measure(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 0.0, -1.0]))
    assert found["zero"] == 3 / 6 and found["n"] == 6 and found["premises"] == 3
    assert found["auc"] == pytest.approx(100 * (2 * 0.5 + 1 + 3 + 3) / 9)
    assert measure(torch.ones(1), torch.zeros(1)) is None and measure(None, torch.zeros(3)) is None


def test_the_same_bytes_twice(tmp_path: Path) -> None:
    first, second = evaluated(tmp_path, "subspace"), evaluated(tmp_path, "subspace")
    for one in (first, second):
        one.pop("timing")
    assert first == second


def test_the_control_is_read_on_the_chosen_set_and_where_it_is_asked_for(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "vector", "vector")

    def read(**more: Any) -> list[str]:
        found = evaluate_composition(folder, SETS, tmp_path / "out.json", "k", "product", 1, {}, **more)
        return [name for name, one in found["sets"].items() if one["extras"]["control"] is not None]

    assert read() == ["elicited"] and read(chosen="authors") == ["authors"]
    assert read(control=()) == [] and read(control=("authors",)) == ["authors"]


def test_long_sentences_are_counted_as_cut(tmp_path: Path) -> None:
    text_model = load_text_model(tiny_model(tmp_path, "vector", limit=16))
    assert score_set(text_model, CANDIDATES)["extras"]["control"]["cut"] > 0


def test_provenance_and_extent(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "vector", chosen="authors")
    settings = read_json(tmp_path / "vector/settings.json")
    assert (
        found["row"] == "vector" and found["key"] == "k" * 64 and found["weights_sha256"] == settings["weights_sha256"]
    )
    kept = {name: settings[name] for name in ("model", "backbone", "ways", "training", "pairs", "trained_on", "seed")}
    assert found["settings"] == kept | {"set": "authors", "operator": "mean-difference", "filter": None}
    assert found["data"]["sample"] is False and found["data"]["composition"]["authors"]["origins"] == ["authors"]
    digests = {name: one["sha256"] for name, one in found["data"]["composition"].items()}
    assert len(set(digests.values())) == 2
    assert not found["extent"]["comparable"], "the backbone is a stand-in"
    assert found["extent"]["text"].startswith(
        "4 premises of the authors set (authors), mean-difference; not filtered here; 100 training pairs"
    )


def test_a_number_compares_only_with_the_whole_model_and_the_whole_set(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "whole", "box", backbone_sample=False)
    for wanted, comparable in ((len(CANDIDATES), True), (len(CANDIDATES) + 1, False)):
        report = report_of(CANDIDATES, wanted)
        found = evaluate_composition(
            folder, SETS, tmp_path / "out.json", "", "product", 1, {}, reports={"elicited": report}
        )
        assert found["extent"]["comparable"] is comparable and report["text"] in found["extent"]["text"]
        assert found["settings"]["filter"] == report


def test_what_is_refused_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    def refused(
        folder: Path,
        match: str,
        sets: dict[str, list[Candidate]] = SETS,
        operator: str = "product",
        chosen: str = "elicited",
    ):
        with pytest.raises(UserError, match=match):
            evaluate_composition(folder, sets, out, "k", operator, 1, {}, chosen=chosen)
        assert not out.exists()

    vector = tiny_model(tmp_path / "vector", "vector")
    refused(tiny_model(tmp_path / "three", "subspace", ways=3), "3-way model")
    refused(tiny_model(tmp_path / "gru", "gru_order"), "no operators")
    refused(vector, "one premise", {"elicited": CANDIDATES[:1]})
    refused(vector, "no premises", {"elicited": CANDIDATES, "authors": []})
    refused(vector, "h3 of t1 is missing", {"elicited": [replace(CANDIDATES[0], h3=""), CANDIDATES[1]]})
    refused(vector, "unknown set 'mine'", chosen="mine")
    refused(vector, "unknown operator", operator="and")


def test_the_set_as_files(tmp_path: Path) -> None:
    out, report = tmp_path / "pairs.csv", report_of(CANDIDATES, 150)
    write_set(out, CANDIDATES, report, "k" * 64)
    with out.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert tuple(rows[0]) == PAIR_COLUMNS and len(rows) == 4 * len(CANDIDATES)
    assert rows[1] == {
        "id": "t1/h1-and-not-h3",
        "premise": CANDIDATES[0].premise,
        "kind": "negation",
        "left": CANDIDATES[0].h1,
        "right": CANDIDATES[0].h3,
        "negated": "true",
        "label": "entailed",
        "origin": "test",
    }
    record = read_json(tmp_path / "pairs.json")
    assert record["filter"] == json.loads(json.dumps(report)) and record["key"] == "k" * 64
    assert record["sha256"] == sha256_file(out)
    assert record["counts"] == {"premises": 5, "pairs": 20, "conjunction": 10, "negation": 10}
    with pytest.raises(UserError, match=r"ends in \.csv"):
        write_set(tmp_path / "pairs.json", CANDIDATES, report, "")
