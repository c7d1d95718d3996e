"""The three commands, and the documentation's own example."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.hierarchy.commands import app
from tests.hierarchy.trees import tree_edges, write_edges
from tests.invoke import invoke

PAGE = Path(__file__).resolve().parents[2] / "docs/hierarchy.md"


def run(*words: object) -> str:
    return invoke(app, *words).output


def test_fit_reports_and_says_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "edges.tsv", tree_edges(40))
    words = ("fit", edges, "--out", tmp_path / "out", "--dim", 8, "--epochs", 3, "--lambda", 0.3)
    said = run(*words)
    assert "40 nodes, 39 edges" in said and "mAP" in said and "Spearman" in said and "entailed from inclusion" in said
    assert "nothing to do" not in said
    assert "nothing to do" in run(*words)
    settings = json.loads((tmp_path / "out/settings.json").read_text())
    assert settings["model"]["lam"] == 0.3 and settings["training"]["epochs"] == 3
    with pytest.raises(UserError, match="auto or a whole number"):
        run("fit", edges, "--out", tmp_path / "other", "--epochs", "many")
    assert "paused at step" in run("fit", edges, "--out", tmp_path / "other", "--dim", 8, "--minutes", 1e-9)


def test_query_as_table_and_as_json(fitted: Path) -> None:
    table = run("query", fitted, "node 5", "--top", 3)
    assert re.search(r"node 5: effective rank \d+\.\d\d of 16", table)
    assert re.search(r"0\.\d{4} +\d+\.\d\d +\* node 1\n", table)
    assert re.search(r"0\.\d{4} +\d+\.\d\d +\+ node 0\n", table)
    answer = json.loads(run("query", fitted, "node 5", "--top", 3, "--json"))
    assert answer["name"] == "node 5" and len(answer["ancestors"]) == len(answer["descendants"]) == 3
    assert answer["ancestors"][0].keys() == {"name", "inclusion", "rank", "known"}
    with pytest.raises(UserError, match="did you mean"):
        run("query", fitted, "nodee 5")


def test_a_root_has_no_ancestors(fitted: Path) -> None:
    assert "ancestors: none" in run("query", fitted, "node 0")


def test_score_streams_a_table(tmp_path: Path, fitted: Path) -> None:
    pairs = [(child, parent) for child, parent in tree_edges(300)] * 9  # more than one batch
    out = tmp_path / "scores.tsv"
    run("score", fitted, write_edges(tmp_path / "pairs.tsv", pairs), "--out", out)
    lines = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == ["child", "parent", "inclusion", "entailed"]
    assert [tuple(line[:2]) for line in lines[1:]] == pairs
    assert sum(line[3] == "yes" for line in lines[1:]) >= 0.97 * len(pairs)
    run("score", fitted, write_edges(tmp_path / "turned.tsv", [pair[::-1] for pair in pairs]), "--out", out)
    assert sum(line.endswith("\tno") for line in out.read_text().splitlines()) >= 0.95 * len(pairs)


def test_unknown_names_stop_the_scoring_or_are_counted(tmp_path: Path, fitted: Path) -> None:
    pairs = write_edges(tmp_path / "pairs.tsv", [("node 1", "node 0"), ("node 1", "nod 3"), ("x", "node 0")])
    out = tmp_path / "scores.tsv"
    with pytest.raises(UserError, match=r"pairs\.tsv, line 2: .* has no node 'nod 3': did you mean .*--skip-unknown"):
        run("score", fitted, pairs, "--out", out)
    assert not out.exists()
    said = run("score", fitted, pairs, "--skip-unknown")
    assert "node 1\tnode 0\t0." in said and "nod 3" not in said
    assert "1 pairs scored, 2 left out" in said


def test_the_documented_example_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = dict(re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))
    exec(compile(blocks["python"], str(PAGE), "exec"), {})
    promised = re.findall(r"^print\(.*\)  # (.*)$", blocks["python"], flags=re.MULTILINE)
    assert len(promised) >= 3 and capsys.readouterr().out.splitlines() == promised
    commands = re.findall(r"^\$ subspaces hierarchy (.*)$", blocks["console"], flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        run(*shlex.split(command))
