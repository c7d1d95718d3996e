"""One changed parameter changes the keys of exactly what depends on it, and so does the origin of data."""

from __future__ import annotations

import copy
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from subspaces.files import write_json
from subspaces.pipeline.params import parse_params
from subspaces.pipeline.project import Project

ROOT = Path(__file__).resolve().parents[2]
COMPUTED = ("data/", "models/", "results/evaluations/", "results/composition/")


@cache
def real() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")) | {"scale": "laptop"}


def keys(content: dict[str, Any], folder: Path = Path()) -> dict[str, str]:
    artefacts = Project(parse_params(content), root=ROOT, folder=folder).artefacts
    return {output: artefact.key for output, artefact in artefacts.items()}


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return keys(real())


def edited(**changes: Any) -> dict[str, Any]:
    """The real parameters with other values; names are dotted paths with __ for the dot."""
    content = copy.deepcopy(real())
    for dotted, value in changes.items():
        *way, last = dotted.split("__")
        place = content
        for part in way:
            place = place.setdefault(part, {})
        place[last] = value
    return content


SNLI = r"data/(snli|retrieval/.*)\.json|models/(snli|shipped)/.*|results/composition/.*|results/evaluations/(snli|composition)/.*"
ON_SNLI = SNLI + r"|results/evaluations/(retrieval_latency|retrieval_queries|compression/snli)\.json"
EXACT = {
    "snli__cut_dev": (4000, ON_SNLI),
    "snli__scales__laptop__data": ("first", ON_SNLI),
    "snli__scales__laptop__rows__gru-order__training__lr": (0.002, r".*/snli/gru-order/.*"),
    "link_prediction__scales__laptop__fifty": (
        "original",
        r"data/link_prediction/50\.json|.*/link_prediction/[^/]+/50/.*",
    ),
    "link_prediction__lambda": (0.3, r".*/link_prediction/subspace-[^/]+/.*"),
    "link_prediction__threshold": ("grid", r"(models|results/evaluations)/link_prediction/.*"),
    "reconstruction__scales__laptop__rows__lorentz-10__verbs__epochs": (9, r".*/reconstruction/lorentz-10/verbs/.*"),
    "hyperlex__alpha": (10.0, r"results/evaluations/hyperlex/.*"),
    "composition__operator": ("product", r"results/evaluations/composition/.*"),
    "composition__premises": (149, r"results/(evaluations/)?composition/.*"),
    "retrieval__top": (9, r"results/evaluations/retrieval_(latency|queries)\.json"),
    "retrieval__taus": ([0.0, 0.5], r"results/evaluations/compression/.*"),
    "retrieval__scales__laptop__sentences": (32, r"results/evaluations/encoding_time\.json"),
    "bounds__draws": (3, r"results/evaluations/soft_projectors\.json"),
    "figures__rank_vs_descendants__points": ("#00aa55", "nothing that is computed"),
    "checkpoint__seconds": (5.0, "nothing"),
    "device": ("cpu", "nothing"),
    "threads__laptop": (7, "nothing"),
    "cluster__minutes__training__laptop": (7, "nothing"),
}


@pytest.mark.parametrize("parameter", EXACT)
def test_a_parameter_changes_exactly_what_is_computed_with_it(before, parameter):
    value, pattern = EXACT[parameter]
    after = keys(edited(**{parameter: value}))
    moved = {output for output in before.keys() & after.keys() if before[output] != after[output]}
    expected = {output for output in before if output.startswith(COMPUTED) and re.fullmatch(pattern, output)}
    assert {output for output in moved if output.startswith(COMPUTED)} == expected
    assert expected or pattern.startswith("nothing")
    if pattern == "nothing":
        assert not moved
    else:
        assert "results/report.html" in moved


def test_a_figures_arguments_are_part_of_its_key(before):
    after = keys(edited(figures__rank_vs_descendants__chain="#00aa55"))
    moved = {output for output in before if before[output] != after[output]}
    assert moved == {"figures/rank_vs_descendants.png", "results/report.html"}


@pytest.mark.parametrize(("data", "sources"), [("full", 1), ("parts", 2), ("first", 1)])
def test_each_choice_of_snli_parts_has_a_key_of_its_own(data, sources):
    artefact = Project(parse_params(edited(snli__scales__laptop__data=data)), root=ROOT).experiment("data").snli()
    assert artefact.settings["data"] == data and len(artefact.inputs) == sources
    others = {"full", "parts", "first"} - {data}
    assert artefact.key not in {keys(edited(snli__scales__laptop__data=other))["data/snli.json"] for other in others}


def test_a_sample_has_another_key_than_the_data_that_it_stands_for(tmp_path):
    quick = edited(scale="quick")
    real_data = keys(quick, tmp_path)
    record = {"source": "wordnet", "origin": "sample", "sample": True, "files": {"wordnet.tsv": "0" * 64}}
    write_json(tmp_path / "data/sources/wordnet.json", record)
    sampled = keys(quick, tmp_path)
    moved = {output for output in real_data if real_data[output] != sampled[output]}
    assert {"data/sources/wordnet.json", "data/wordnet/nouns.json"} <= moved
    assert not any("snli" in output for output in moved if output.startswith(COMPUTED))
