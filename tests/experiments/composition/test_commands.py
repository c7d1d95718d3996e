"""The four commands, one after the other, as a person would type them."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import load_candidates, load_reviewed
from subspaces.experiments.composition.commands import app
from tests.experiments.composition.conftest import KEY, Service


def run(*words: object, typed: str = "") -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize("settings", ["google-genai"], indirect=True)
def test_from_a_prompt_to_a_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], service: Service
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(yaml.safe_dump({"scale": "quick", "composition": {"elicitation": settings}}))
    service.script = [service.says("I would rather not.")]
    said = run("elicit", "--out", "answers.jsonl", "--endpoint", service.url)
    assert (
        "3 candidates from 4 answers" in said
        and "160 tokens" in said
        and "subspaces composition parse answers.jsonl" in said
    )

    said = run("parse", "answers.jsonl")
    assert "3 candidates in answers.csv, 1 rejects in answers.rejects.csv" in said
    assert [one.id for one in load_candidates(Path("answers.csv"))] == ["e0002", "e0003", "e0004"]
    assert [row["text"] for row in rows(Path("answers.rejects.csv"))] == ["I would rather not."]

    said = run("check", "answers.csv")
    assert said == "0 of 3 candidates have flags\n"
    Path("flawed.csv").write_text(Path("answers.csv").read_text().replace("Team 3 is asleep", "Team 3 is not asleep"))
    assert run("check", "flawed.csv") == "e0003\th3-negated:not\n1 of 3 candidates have flags: 1 h3-negated\n"

    said = run("review", "answers.csv", typed="k\n2 too alike\n")
    assert "1 kept, 1 discarded, 1 open" in said
    reviewed = load_reviewed(Path("answers.reviewed.csv"))
    assert [one.decision for one in reviewed] == ["keep", "discard", ""] and reviewed[1].note == "too alike"
    assert KEY not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_settings_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"params\.yaml was not found"):
        run("elicit", "--out", "a.jsonl")
    for content in ("scale: quick\n", "composition:\n", "[1]\n"):
        Path("params.yaml").write_text(content)
        with pytest.raises(UserError, match="no settings for the elicitation"):
            run("elicit", "--out", "a.jsonl")
    Path("params.yaml").write_text("a: [\n")
    with pytest.raises(UserError, match="not valid YAML"):
        run("elicit", "--out", "a.jsonl")
    assert [path.name for path in Path().iterdir()] == ["params.yaml"]


@pytest.mark.parametrize("settings", ["google-genai"], indirect=True)
def test_parse_protects_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], service: Service
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(yaml.safe_dump(settings))
    run("elicit", "--out", "a.jsonl", "--settings", "s.yaml", "--endpoint", service.url)
    run("parse", "a.jsonl")
    run("parse", "a.jsonl")
    run("review", "a.csv", "--out", "r.csv", typed="k\n")
    before = Path("r.csv").read_bytes()
    with pytest.raises(UserError, match="holds decisions of a review"):
        run("parse", "a.jsonl", "--out", "r.csv")
    with pytest.raises(UserError, match="three different files"):
        run("parse", "a.jsonl", "--out", "a.jsonl")
    assert Path("r.csv").read_bytes() == before


def test_an_elicitation_without_a_single_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], service: Service
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(yaml.safe_dump({**settings, "max_requests": 2}))
    service.script = [service.says("No."), service.says("Never.")]
    with pytest.raises(UserError, match="0 of 3 candidates are kept"):
        run("elicit", "--out", "a.jsonl", "--settings", "s.yaml", "--endpoint", service.url)
    with pytest.raises(UserError, match=r"no answer in a\.jsonl could be read.*a\.rejects\.csv"):
        run("parse", "a.jsonl")
    assert len(rows(Path("a.rejects.csv"))) == 2 and not Path("a.csv").exists()


def test_help_does_not_load_the_clients() -> None:
    heavy = ("torch", "numpy", "google.genai", "google.generativeai", "pydantic", "yaml")
    program = f"import sys; import subspaces.experiments.composition.commands; print([one for one in {heavy} if one in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
