"""The worked examples of CONTRIBUTING.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator

import pytest
import yaml

from tests.workflow.conftest import ROOT, Project, copy_project, make_tiny

pytestmark = pytest.mark.workflow
BLOCK = r"```\w*\n(.*?)```"
SECTIONS = (
    "Add a geometry",
    "Add a sentence encoder",
    "Add a table of our own",
    "Add a metric",
    "Add a source",
)
SKIPPED = "left out of this test, which is about new rows"


def section_of(heading: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split(f"## {heading}\n")[1].split("\n## ")[0]


def merge(old: dict, new: dict) -> dict:
    """`old` with the entries of `new`, which may be nested."""
    merged = {
        name: merge(old[name], value) if isinstance(old.get(name), dict) else value for name, value in new.items()
    }
    return old | merged


def follow(project: Project, heading: str) -> set[str]:
    """Make the files, rows and replacements of one section; returns the files that were touched."""
    section, touched = section_of(heading), set()

    def write(path: str, content: str) -> None:
        (project.folder / path).write_text(content, encoding="utf-8")
        touched.add(path)

    def read(path: str) -> str:
        return (project.folder / path).read_text(encoding="utf-8")

    for path, content in re.findall(rf"<!-- file: (\S+) -->\n{BLOCK}", section, re.DOTALL):
        write(path, content)
    for path, content in re.findall(rf"<!-- append: (\S+) -->\n{BLOCK}", section, re.DOTALL):
        write(path, f"{read(path).rstrip()}\n\n\n{content}")
    for path, rows in re.findall(rf"<!-- rows: (\S+) -->\n{BLOCK}", section, re.DOTALL):
        write(path, f"{read(path).rstrip()}\n{rows}")
    for path, old, new in re.findall(rf"<!-- replace: (\S+) -->\n{BLOCK}\n<!-- with -->\n{BLOCK}", section, re.DOTALL):
        project.replace(path, old, new)
        touched.add(path)
    for rows in re.findall(rf"<!-- params -->\n{BLOCK}", section, re.DOTALL):
        params = merge(yaml.safe_load(read("params.yaml")), yaml.safe_load(rows))
        write("params.yaml", yaml.safe_dump(params, sort_keys=False))
    return touched


def commands_of(headings: Iterable[str]) -> tuple[list[str], list[str]]:
    """(other commands, each once; all targets of Snakemake) of some sections."""
    others, targets = [], []
    for heading in headings:
        for block in re.findall(rf"<!-- commands -->\n{BLOCK}", section_of(heading), re.DOTALL):
            for line in block.strip().splitlines():
                if line.startswith("snakemake"):
                    targets += line.split(" -- ")[1].split()
                else:
                    others += [command for command in line.split(" && ") if command not in others]
    return others, targets


def skip_other_rows(project: Project) -> None:
    """Of three tables only the rows that the examples add are run, and two more for the sake of figures and tables."""
    params = yaml.safe_load((project.folder / "params.yaml").read_text())
    reconstruction = {row: {"nouns": SKIPPED, "verbs": SKIPPED} for row in params["reconstruction"]["models"]}
    reconstruction["subspace-64"].pop("nouns")
    link = {row: {f"at_{at}": SKIPPED for at in (0, 10, 25, 50)} for row in params["link_prediction"]["models"]}
    link["cones-10"].pop("at_10")
    snli = params["snli"]["scales"]["quick"]["not_run"] | {"minilm-mlp-diff": {"two": SKIPPED, "three": SKIPPED}}
    project.edit_params(
        reconstruction__scales__quick__not_run=reconstruction,
        link_prediction__scales__quick__not_run=link,
        snli__scales__quick__not_run=snli,
    )


@pytest.fixture(scope="module")
def followed(tmp_path_factory) -> Iterator[tuple[Project, dict[str, set[str]]]]:
    """A copy of the project in which every section was carried out; and the files that each one touched."""
    project = copy_project(tmp_path_factory.mktemp("contributing") / "project")
    make_tiny(project)
    skip_other_rows(project)
    touched = {heading: follow(project, heading) for heading in SECTIONS}
    for path in sorted(set.union(*touched.values())):
        if path.endswith(".py"):
            project.run("ruff", "check", path)
            project.run("ruff", "format", "--check", path)
    others, targets = commands_of(SECTIONS)
    for command in others:
        project.run(*command.split())
    project.run("subspaces", "warm", "--", "snakemake", "--cores", "2", "--", *targets)
    yield project, touched
    shutil.rmtree(project.folder)


def rows_of(project: Project, table: str, label: str) -> list[str]:
    text = (project.folder / f"results/tables/{table}.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith(f"| {label} |")]


def test_a_geometry_is_one_file_and_rows(followed):
    project, touched = followed
    files = {"src/subspaces/geometries/manhattan.py", "params.yaml", "src/subspaces/report/numbers.csv"}
    assert touched["Add a geometry"] == files
    for table in ("reconstruction", "link_prediction"):
        (row,) = rows_of(project, table, "Manhattan-10")
        assert row.count(" ~ [") == 2, row


def test_an_encoder_is_one_file_and_rows(followed):
    project, touched = followed
    files = {"src/subspaces/text/encoders/bilinear.py", "params.yaml", "src/subspaces/report/numbers.csv"}
    assert touched["Add a sentence encoder"] == files
    (row,) = rows_of(project, "snli", "minilm-bilinear")
    assert row.count(" ~ [") == 2, row


def test_a_table_is_one_function(followed):
    project, touched = followed
    assert touched["Add a table of our own"] == {"src/subspaces/report/own_tables.py"}
    table = (project.folder / "results/tables/bounds_cases.md").read_text(encoding="utf-8")
    assert "| Projector |" in table and "<!-- key:" in table
    assert (project.folder / "results/tables/bounds_cases.tex").exists()
    assert "table_bounds_cases:" in (project.folder / "dvc.yaml").read_text()


def test_a_metric_is_one_function_and_one_row(followed):
    project, touched = followed
    files = {"src/subspaces/experiments/metrics.py", "src/subspaces/report/own_tables.py"}
    assert touched["Add a metric"] == files
    lines = (project.folder / "results/tables/link_prediction_extra.md").read_text(encoding="utf-8").splitlines()
    heads, cones = ([cell.strip() for cell in line.split("|")] for line in (lines[3], lines[5]))
    assert cones[1] == "Cones-10"
    values = cones[heads.index("accuracy (%)")].split(" / ")
    assert [value == "—" for value in values] == [True, False, True, True]
    assert 0 <= float(values[1]) <= 100


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Project, set[str]]:
    """A copy with the committed results, and what is missing in it: data and models."""
    project = copy_project(tmp_path_factory.mktemp("whole") / "project", results=True)
    return project, set(project.run("subspaces", "status").stdout.splitlines()[:-1])


@pytest.fixture
def clone(whole) -> Iterator[tuple[Project, set[str]]]:
    """The same, for a test that edits params.yaml and the package."""
    project, missing = whole
    shutil.copy(project.folder / "params.yaml", project.folder / "params.before")
    shutil.copytree(project.folder / "src", project.folder / "src.before")
    yield project, missing
    shutil.move(project.folder / "params.before", project.folder / "params.yaml")
    shutil.rmtree(project.folder / "src")
    shutil.move(project.folder / "src.before", project.folder / "src")


@pytest.mark.parametrize(
    ("heading", "concerned"),
    [
        ("Add a geometry", r"manhattan-10|/(reconstruction|link_prediction)\.json|link_prediction_\w+\.png"),
        ("Add a sentence encoder", r"minilm-bilinear|/snli\.json|training_curves"),
        ("Add a table of our own", r"bounds_cases"),
        ("Add a metric", r"evaluations/link_prediction|/link_prediction\.json|link_prediction_\w+\.png|_extra"),
    ],
)
def test_nothing_else_becomes_stale(clone, heading, concerned):
    """Beside the tables, the data frame and the page, which are made from all numbers."""
    project, before = clone
    after = project.run("subspaces", "status").stdout.splitlines()[:-1] if follow(project, heading) else []
    shared = r"results/tables/|results/numbers\.csv|results/report\.html"
    changed = [output for output in after if output not in before]
    assert [output for output in changed if not re.search(f"{concerned}|{shared}", output)] == []
    assert any(re.search(concerned, output) for output in changed)


def test_a_source_is_one_row_and_its_files(followed):
    project, touched = followed
    assert touched["Add a source"] == {"src/subspaces/sources/registry.py", "src/subspaces/sources/files.csv"}
    refused = project.run("subspaces", "fetch", "colours", check=False)
    assert refused.returncode == 1 and "colours/colours.txt" in refused.stderr
    mirror = project.folder / "no-mirror/colours"
    mirror.mkdir(parents=True)
    (mirror / "colours.txt").write_text("red\ngreen\nyellow\n")
    assert project.run("subspaces", "fetch", "colours", check=False).returncode == 1, (
        "another content than the digest's"
    )
    (mirror / "colours.txt").write_text("red\ngreen\nblue\n")
    assert "1 files from mirror" in project.run("subspaces", "fetch", "colours").stdout
