"""README and docs against the code: commands, options, targets, links, examples, and the size of the README."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from subspaces.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PAGES}
README = TEXTS["README.md"]


def commands(text: str, program: str) -> list[str]:
    """Commands of a program in the code blocks and the inline code of a page."""
    blocks = re.findall(r"^```(?:console|bash|sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    parts = [
        part.strip() for line in lines for part in re.split(r" && |^\w+=\S+ ", line.split("  #")[0].split(" # ")[0])
    ]
    return [part for part in parts if part.startswith(f"{program} ")]


def check(line: str) -> None:
    """The command exists, and so do its options; ValueError otherwise. `a | b` names several commands, `…` any rest."""
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] in {"…", "|"}:
            words = words[1:]
            continue
        if words[0] not in command.commands:
            raise ValueError(f"no such command: {words[0]}")
        command, words = command.commands[words[0]], words[1:]
        if words[:1] == ["|"]:
            return check(f"subspaces {' '.join(words[1:])}")
    if hasattr(command, "commands") and not words:
        return None
    try:
        command.make_parser(command.context_class(command)).parse_args(words)
    except Exception as error:  # click's, or the copy of click inside typer
        raise ValueError(str(error)) from None
    return None


@pytest.mark.parametrize("page", TEXTS)
def test_every_command_of_a_page_exists_with_its_options(page: str) -> None:
    for line in commands(TEXTS[page], "subspaces"):
        try:
            check(line)
        except ValueError as error:
            raise AssertionError(f"{page}: `{line}`: {error}") from None


@pytest.mark.parametrize(
    "line",
    [
        "subspaces adopt --since HEAD",
        "subspaces status --everything",
        "subspaces hierarchy query DIR dog --deep",
        "subspaces index | adopt",
    ],
)
def test_a_wrong_command_or_option_is_noticed(line: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)no such"):
        check(line)


@pytest.mark.parametrize("page", TEXTS)
def test_every_target_of_make_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = {line.split()[1] for line in commands(TEXTS[page], "make")}
    assert asked <= targets


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_leads_to_a_file(page: str) -> None:
    folder = (ROOT / page).parent
    prose = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]
    missing = [link for link in links if link[0] != "#" and not (folder / link.split("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("page", [page for page in TEXTS if page.startswith("docs/")])
def test_the_index_leads_to_every_page(page: str) -> None:
    if page != "docs/index.md":
        assert f"({page.removeprefix('docs/')})" in TEXTS["docs/index.md"]


def test_the_readme_is_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    assert "make run" in README and "make test" in README


def test_a_sentence_of_the_readme_has_at_most_three_numbers() -> None:
    prose = re.sub(r"^```.*?^```|^\|.*?$|`[^`]*`|\]\([^)]*\)|<!--.*?-->", "", README, flags=re.DOTALL | re.MULTILINE)
    for sentence in re.split(r"(?<=[.:;])\s|\n\n", prose):
        assert len(re.findall(r"(?<![\w.])\d[\d.,]*", sentence)) <= 3, sentence


def test_the_readmes_example_prints_what_its_comments_say() -> None:
    example, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    said = [re.split(r"[:\n]", line.split("# ")[1])[0].strip() for line in example.splitlines() if "print(" in line]
    assert said
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == said


def test_the_readmes_text_logic_prints_what_its_comments_say(tmp_path: Path) -> None:
    """With the model that ships, whose backbone is fetched."""
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    said = [float(value) for value in re.findall(r"\d\.\d\d", "".join(re.findall(r"# (.*)", example)))]
    environment = os.environ | {"SUBSPACES_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, env=environment)
    if done.returncode and "all-MiniLM-L6-v2" in done.stderr and "UserError" in done.stderr:
        pytest.skip(f"the backbone is unavailable here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(said, abs=0.02)


def test_the_readmes_search_is_the_committed_answer() -> None:
    (block,) = re.findall(r"<!-- search -->\n```console\n(.*?)```", README, re.DOTALL)
    command, *shown = block.splitlines()
    query = shlex.split(command)[3]
    answers = json.loads((ROOT / "results/evaluations/retrieval_queries.json").read_text(encoding="utf-8"))
    assert f"{answers['documents']:,} captions" in README
    (hits,) = [entry["subspace"] for entry in answers["queries"] if entry["query"] == query]
    assert shown == [f"{hit['score']:6.3f}  {hit['text']}" for hit in hits[: len(shown)]]
