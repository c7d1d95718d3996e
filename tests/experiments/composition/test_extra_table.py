"""The table beside Table 6, from real evaluations of tiny models."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.evaluate import evaluate_composition
from subspaces.report.composition_table import extra_table
from tests.experiments.composition.models import CANDIDATES, tiny_model

SETS = {"elicited": CANDIDATES, "authors": CANDIDATES[:4]}
LABELS = {"subspace": "SPH (SE$^{8}$)", "vector": "MLP$(p,h,p-h)$"}


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("models")

    def one(encoder: str, seed: int = 0) -> dict[str, Any]:
        model = tiny_model(folder / f"{encoder}-{seed}", encoder, seed=seed)
        return evaluate_composition(model, SETS, folder / "out.json", "k", "sandwich-hard", 1, {})

    return {"vector": [one("vector")], "box": [one("box")], "subspace": [one("subspace"), one("subspace", 1)]}


def cells(markdown: str) -> dict[str, dict[str, str]]:
    lines = [
        [part.strip() for part in line.strip("|").split("|")] for line in markdown.splitlines() if line.startswith("|")
    ]
    head, _, *rows = lines
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_markdown(evaluations: dict[str, list[dict[str, Any]]]) -> None:
    markdown, _ = extra_table(evaluations, LABELS, "abc")
    found = cells(markdown)
    assert markdown.startswith("<!-- key:abc -->") and "sandwich-hard unless" in markdown
    assert list(found) == ["MLP(p,h,p-h)", "box", "SPH (SE-8)"]
    assert "sandwich-hard ∧, ∧¬" not in found["box"], "the usual operator stands in Table 6 itself"
    vector, box, subspace = found.values()
    assert vector["∨ sum"] == vector["¬¬"] == vector["product ∧, ∧¬"] == "—"
    control = evaluations["vector"][0]["sets"]["elicited"]["extras"]["control"]
    shown = ", ".join(
        f"{control[kind]['auc']:.1f}" for kind in ("conjunction", "negation", "disjunction", "double-negation")
    )
    assert vector["text ∧, ∧¬, ∨, ¬¬"] == shown
    other = evaluations["box"][0]["sets"]["authors"]["operators"]["intersection"]["conjunction"]["auc"]
    assert box["authors set ∧, ∧¬"] == f"{other:.1f}, —"
    seeds = [one["sets"]["elicited"]["operators"]["product"]["negation"]["auc"] for one in evaluations["subspace"]]
    assert subspace["product ∧, ∧¬"].endswith(f", {fmean(seeds):.1f} ± {stdev(seeds):.1f}")


def test_latex(evaluations: dict[str, list[dict[str, Any]]]) -> None:
    markdown, latex = extra_table(evaluations, LABELS)
    heads = len(next(iter(cells(markdown).values())))
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(evaluations) and all(line.count("&") == heads for line in rows)
    assert LABELS["subspace"] in latex and latex.count("{") == latex.count("}")
    assert not set("∧∨¬—±") & set(latex)


def test_what_cannot_be_tabulated(evaluations: dict[str, list[dict[str, Any]]]) -> None:
    with pytest.raises(UserError, match="no evaluations"):
        extra_table({"box": []})
    box = evaluations["box"][0]
    other = {**box, "settings": {**box["settings"], "set": "authors"}}
    with pytest.raises(UserError, match="different sets"):
        extra_table({"box": [box, other]})
