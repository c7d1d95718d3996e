"""README and docs against the code: commands, options, targets, links, examples, and the size of the README."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from subspaces.cli import app
from subspaces.errors import UserError
from tests.invoke import invoke

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PAGES}
README = TEXTS["README.md"]


def shell_blocks(text: str) -> list[str]:
    """The code blocks of a page that are for a shell."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for language, block in blocks if language in ("", "console", "bash", "sh")]


def commands(text: str, program: str) -> list[str]:
    """Commands of a program in the code blocks and the inline code of a page."""
    blocks = shell_blocks(text)
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


@pytest.mark.parametrize("page", [page for page in TEXTS if page not in ("README.md", "docs/results.md")])
def test_a_page_begins_with_whom_it_is_for(page: str) -> None:
    title, _, first = TEXTS[page].partition("\n\n")
    assert title.startswith("# ") and first.startswith("For "), first[:80]


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


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the backbone of the model that ships."""
    from subspaces import SubspaceEncoder

    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_CACHE", str(folder))
        try:
            SubspaceEncoder.from_pretrained()
        except UserError as error:
            pytest.skip(f"the backbone is unavailable here: {error}")
    return folder


def test_the_readmes_text_logic_prints_what_its_comments_say(cache: Path) -> None:
    """With the model that ships, whose backbone is fetched."""
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    said = [float(value) for value in re.findall(r"\d\.\d\d", "".join(re.findall(r"# (.*)", example)))]
    environment = os.environ | {"SUBSPACES_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, env=environment)
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


# --- every command of a code block is run by a test, or takes hours and says so ------------------------------------------

# a page, or how a command begins -> what runs it
RUN_BY = {
    "CONTRIBUTING.md": "tests/workflow/test_contributing.py",
    "docs/cluster.md": "tests/slurm",
    "docs/composition.md": "tests/experiments/composition/test_commands.py",
    "docs/hierarchy.md": "tests/hierarchy/test_commands.py",
    "docs/install.md": "Makefile",  # below
    "dvc repro": "tests/workflow/test_dvc.py",
    "dvc metrics": "tests/workflow/test_dvc_lifecycle.py",
    "dvc status": "tests/workflow/test_dvc.py",
    "make bench": "tests/test_benchmarks.py",
    "make run": ".github/workflows/ci.yml",
    "make test": ".ci/run",
    "subspaces lock": "tests/workflow/test_dvc.py",
    "subspaces plan": "tests/workflow/test_dvc.py",
    "subspaces restore": "tests/workflow/test_dvc_lifecycle.py",
    'subspaces search "a child': "tests/test_docs.py",  # above
    "subspaces serve": "tests/browser/test_serve_browser.py",
    "subspaces status --check": ".ci/lint.sh",
}
READER = re.compile(r"subspaces (hierarchy|search --|index|entail|encode) ?")  # in a folder with files of one's own
PROJECT = re.compile(r"subspaces (status( --all)?|summary|sources)$")  # in the project's folder
TEXT_LINES = [
    "A dog runs on the beach.",
    "A city street at night.",
    "A dog on a leash walks.",
    "Children play outside.",
]


def lines_to_run() -> list[tuple[str, str]]:
    """(page, command) of every code block, without commands that take hours."""
    found = []
    for page, text in TEXTS.items():
        for block in shell_blocks(text):
            lines = [line.removeprefix("$ ") for line in block.splitlines()]
            kept = [re.split(r"\s# ", line)[0] for line in lines if not re.search(r"\s# .*\bhours\b", line)]
            found += [(page, part.strip()) for line in kept for part in line.split(" && ")]
    return [(page, line) for page, line in found if line.startswith(("subspaces ", "snakemake ", "dvc ", "make "))]


def _run_elsewhere(page: str, line: str) -> bool:
    return page in RUN_BY or any(line.startswith(beginning) for beginning in RUN_BY if " " in beginning)


HERE = [(page, line) for page, line in lines_to_run() if not _run_elsewhere(page, line)]
PLANNED = sorted({line for _, line in HERE if line.startswith("snakemake ")})


def test_every_command_is_run_by_a_test_or_takes_hours() -> None:
    left = [line for _, line in HERE if not READER.match(line) and not PROJECT.match(line) and line not in PLANNED]
    assert left == []
    assert all((ROOT / name).exists() for name in RUN_BY.values())


@pytest.mark.workflow
def test_the_targets_of_snakemake_exist() -> None:
    assert len(PLANNED) >= 4
    for line in PLANNED:
        program, *words = shlex.split(line)
        command = [str(Path(sys.executable).parent / program), "--dry-run", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_what_the_project_says_about_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for line in sorted({line for _, line in HERE if PROJECT.match(line)}):
        assert invoke(app, *shlex.split(line)[1:]).output


@pytest.mark.parametrize("page", sorted({page for page, line in HERE if READER.match(line)}))
def test_a_reader_can_run_the_commands_of_a_page(page: str, cache: Path, tmp_path: Path, monkeypatch) -> None:
    """In the order of the page, with the model that ships and a few lines of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUBSPACES_CACHE", str(cache))
    (tmp_path / "texts.txt").write_text("\n".join(TEXT_LINES * 3) + "\n")
    edges = "dog\tmammal\ncat\tmammal\nmammal\tanimal\nwren\tbird\nbird\tanimal\n"
    (tmp_path / "edges.tsv").write_text(edges)
    (tmp_path / "pairs.tsv").write_text(edges)
    for line in [line for name, line in HERE if name == page and READER.match(line)]:
        if "milvus" in line:
            pytest.importorskip("pymilvus")
        assert invoke(app, *shlex.split(line)[1:]).output, line


def test_the_commands_without_make_are_those_of_make() -> None:
    (block,) = re.findall(r"```\n(.*?)```", TEXTS["docs/install.md"], re.DOTALL)
    lines = [line for line in block.splitlines() if not line.startswith("source ")]
    program = shutil.which("make")
    if program is None:
        pytest.skip("no make here")
    command = [program, "-n", "-B", "setup", "run", "lint", "test", "CORES=2"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    recipes = " ".join(shown.replace("\\\n", " ").replace('"', "").split())
    assert [line for line in lines if line not in recipes] == []
