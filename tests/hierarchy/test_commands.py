"""The commands, and the documentation's own example."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from subspaces.errors import UserError
from subspaces.hierarchy.commands import app
from subspaces.hierarchy.relation import read_taxonomy
from tests.hierarchy.trees import tree_edges, write_edges
from tests.invoke import invoke

PAGE = Path(__file__).resolve().parents[2] / "docs/hierarchy.md"


def run(*words: object) -> str:
    return invoke(app, *words).output


def test_fit_reports_and_says_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "edges.tsv", tree_edges(40))
    words = ("fit", edges, "--out", tmp_path / "out", "--dim", 8, "--epochs", 3, "--lambda", 0.3)
    said = run(*words)
    assert "40 nodes, 39 edges" in said and "over all ordered pairs" in said and "worst of the 20 most general" in said
    assert "nothing to do" not in said
    assert "nothing to do" in run(*words)
    settings = json.loads((tmp_path / "out/hierarchy.json").read_text())["asked"]["settings"]
    assert settings["lam"] == 0.3 and settings["epochs"] == 3
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
    other = write_edges(tmp_path / "case.tsv", [("node 1", "NODE 0")])  # a question would find it
    with pytest.raises(UserError, match=r"has no node 'NODE 0': did you mean 'node 0'\? Correct the line"):
        run("score", fitted, other)
    assert "0 pairs scored, 1 left out" in run("score", fitted, other, "--skip-unknown")
    said = run("score", fitted, pairs, "--skip-unknown")
    assert "node 1\tnode 0\t0." in said and "nod 3" not in said
    assert "1 pairs scored, 2 left out" in said


def test_a_fit_from_standard_input_says_its_shape(tmp_path: Path) -> None:
    text = "parent,child\n" + "".join(f"{parent},{child}\n" for child, parent in tree_edges(40))
    words = ["fit", "-", "--out", str(tmp_path / "out"), "--dim", "8", "--epochs", "2"]
    result = CliRunner().invoke(app, words, input=text)
    assert result.exit_code == 0, result.output
    assert (
        "40 nodes, 39 edges" in result.stderr
        and "1 root" in result.stderr
        and "largest: node 0 (39 below)" in result.stderr
    )
    pairs = CliRunner().invoke(app, ["score", str(tmp_path / "out"), "-"], input="node 1\tnode 0\n")
    assert "node 1\tnode 0\t" in pairs.output


def test_reversed_columns_are_warned_about_and_turned(tmp_path: Path) -> None:
    turned = write_edges(tmp_path / "edges.tsv", [pair[::-1] for pair in tree_edges(40)])
    words = ("fit", turned, "--dim", 8, "--epochs", 2)
    assert "warning: 30 nodes have no parent" in run(*words, "--out", tmp_path / "wrong")
    said = run(*words, "--out", tmp_path / "right", "--parent-first")
    assert "warning" not in said and "largest: node 0 (39 below)" in said


def test_ctrl_c_in_a_terminal_saves_and_says_how_to_resume(tmp_path: Path) -> None:
    """As a user does it: the process gets SIGINT in its training, long before the first checkpoint of the clock."""
    edges = write_edges(tmp_path / "edges.tsv", tree_edges(300))
    words = [sys.executable, "-m", "subspaces", "hierarchy", "fit", str(edges), "--out", str(tmp_path / "out")]
    process = subprocess.Popen([*words, "--dim", "32", "--epochs", "2000"], stdout=-1, stderr=-1, text=True)
    for line in process.stderr:
        if "epoch 2/" in line:
            process.send_signal(signal.SIGINT)
            break
    said, noise = process.communicate(timeout=60)
    assert process.returncode == 130, noise
    assert "saving a checkpoint" in noise and "interrupted. A checkpoint is saved; the same command resumes" in said
    assert list((tmp_path / "out").glob("checkpoints/*/step-*.json"))
    again = subprocess.Popen([*words, "--dim", "32", "--epochs", "2000"], stderr=-1, text=True)
    assert any("resuming at step" in line for line in iter(again.stderr.readline, "") if "epoch" not in line)
    again.kill()
    again.wait()


def test_plot_export_and_import(tmp_path: Path, fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("plot", fitted, "--around", "NODE 5").strip() == "node-5.png"
    assert (tmp_path / "node-5.png").stat().st_size > 10_000
    run("export", fitted, "--out", "plain")
    assert "300 nodes" in run("import", "plain", "--out", "again")
    assert run("query", "again", "node 5") == run("query", fitted, "node 5")


def test_the_documented_example_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The page from top to bottom: every command, every line of Python, and every answer that a comment promises."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    said = ""
    promises = commands = 0
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), names)
            promised = re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.MULTILINE)
            assert capsys.readouterr().out.splitlines() == promised
            promises += len(promised)
            continue
        for command in re.findall(r"^\$ subspaces hierarchy (.*)$", block, flags=re.MULTILINE):
            said += run(*shlex.split(command))
            commands += 1
    assert promises == 9 and commands == 4
    assert "365 nodes, 366 edges, 1,696 in the closure" in said and "dog.n.01: effective rank" in said
    quality = json.loads((tmp_path / "wordnet/hierarchy.json").read_text())["quality"]
    assert quality["f1"] >= 98 and quality["precision"] >= 97  # what the page promises of real taxonomies
    assert all(node["precision"] >= 95 for node in quality["general"])
    assert (tmp_path / "dog.png").stat().st_size > 10_000
    assert len((tmp_path / "scores.tsv").read_text().splitlines()) == 367


def test_a_baseline_is_judged_on_the_same_pairs_and_answers_nothing(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "edges.tsv", [*tree_edges(60), ("beside", "another root")])
    for geometry, least in (("order", 95), ("poincare", 50)):
        words = ("fit", edges, "--out", tmp_path / geometry, "--dim", 8, "--geometry", geometry, "--epochs", 400)
        said = run(*words)
        assert "over all ordered pairs" in said and "for comparison only" in said
        record = json.loads((tmp_path / geometry / "hierarchy.json").read_text())
        quality, graph = record["quality"], read_taxonomy(edges)
        assert quality["edges"] == len(graph.closure)
        assert quality["non_edges"] == graph.nodes * (graph.nodes - 1) - len(graph.closure)
        assert quality["f1"] >= least
        assert "nothing to do" in run(*words)
        with pytest.raises(UserError, match=f"a baseline .{geometry}., which is judged only"):
            run("query", tmp_path / geometry, "node 5")
    assert record["quality"]["tuned"].keys() == {"alpha"}
    with pytest.raises(UserError, match="unknown geometry 'cube': choose subspace, poincare or order"):
        run("fit", edges, "--out", tmp_path / "cube", "--geometry", "cube")
