"""The worked examples of CONTRIBUTING.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import ROOT, Project, copy_project

pytestmark = pytest.mark.workflow
BLOCK = r"```\w*\n(.*?)```"
SKIPPED = "left out of this test, which is about one new row"


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
    for path in touched:
        if path.endswith(".py"):
            project.run("ruff", "check", path)
            project.run("ruff", "format", "--check", path)
    return touched


def run_commands(project: Project, heading: str) -> None:
    """All commands of a section, behind one warm process."""
    (commands,) = re.findall(rf"<!-- commands -->\n{BLOCK}", section_of(heading), re.DOTALL)
    project.run("subspaces", "warm", "--", "bash", "-euc", commands)


def skip_other_rows(project: Project) -> None:
    """No row of reconstruction and link prediction is run but those that a test adds; subspaces stay for a figure's sake."""
    link = yaml.safe_load((project.folder / "params.yaml").read_text())
    reconstruction = {row: {"nouns": SKIPPED, "verbs": SKIPPED} for row in link["reconstruction"]["models"]}
    reconstruction["subspace-64"].pop("nouns")
    rows = {
        row: {f"at_{coverage}": SKIPPED for coverage in (0, 10, 25, 50)} for row in link["link_prediction"]["models"]
    }
    rows["cones-10"].pop("at_10")
    project.edit_params(
        reconstruction__scales__quick__not_run=reconstruction, link_prediction__scales__quick__not_run=rows
    )


def trained(project: Project, *targets: str) -> set[str]:
    """experiment/row of every training that Snakemake plans for some targets."""
    planned = (Path(output).parts for output in project.planned(*targets))
    return {"/".join(parts[1:3]) for parts in planned if parts[0] == "models"}


def test_a_geometry_is_one_file_and_rows(project, tmp_path):
    skip_other_rows(project)
    touched = follow(project, "Add a geometry")
    assert touched == {"src/subspaces/geometries/manhattan.py", "params.yaml", "src/subspaces/report/numbers.csv"}
    run_commands(project, "Add a geometry")
    for table in ("reconstruction", "link_prediction"):
        text = (project.folder / f"results/tables/{table}.md").read_text(encoding="utf-8")
        (row,) = [line for line in text.splitlines() if line.startswith("| Manhattan-10 |")]
        assert row.count(" ~ [") == 2, row
    clone = copy_project(tmp_path / "clone", results=True)
    follow(clone, "Add a geometry")
    tables = ("results/tables/reconstruction.tex", "results/tables/link_prediction.tex", "results/report.html")
    assert trained(clone, *tables) == {"reconstruction/manhattan-10", "link_prediction/manhattan-10"}


def test_an_encoder_is_one_file_and_rows(project, tmp_path):
    touched = follow(project, "Add a sentence encoder")
    assert touched == {"src/subspaces/text/encoders/bilinear.py", "params.yaml", "src/subspaces/report/numbers.csv"}
    skipped = dict.fromkeys(("two", "three"), SKIPPED)
    content = yaml.safe_load((project.folder / "params.yaml").read_text())
    not_run = content["snli"]["scales"]["quick"]["not_run"]
    project.edit_params(snli__scales__quick__not_run=not_run | {"minilm-mlp-diff": skipped})
    run_commands(project, "Add a sentence encoder")
    text = (project.folder / "results/tables/snli.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| minilm-bilinear |")]
    assert row.count(" ~ [") == 2, row
    clone = copy_project(tmp_path / "clone", results=True)
    follow(clone, "Add a sentence encoder")
    assert trained(clone, "results/tables/snli.tex", "results/report.html") == {"snli/minilm-bilinear"}


def test_a_table_is_one_function(project):
    assert follow(project, "Add a table of our own") == {"src/subspaces/report/own_tables.py"}
    run_commands(project, "Add a table of our own")
    table = (project.folder / "results/tables/bounds_cases.md").read_text(encoding="utf-8")
    assert "| Projector |" in table and "<!-- key:" in table
    assert (project.folder / "results/tables/bounds_cases.tex").exists()
    assert "table_bounds_cases:" in (project.folder / "dvc.yaml").read_text()


def test_a_metric_is_one_function_and_one_row(project, tmp_path):
    skip_other_rows(project)
    touched = follow(project, "Add a metric")
    assert touched == {"src/subspaces/experiments/metrics.py", "src/subspaces/report/own_tables.py"}
    run_commands(project, "Add a metric")
    lines = (project.folder / "results/tables/link_prediction_extra.md").read_text(encoding="utf-8").splitlines()
    heads, cones = ([cell.strip() for cell in line.split("|")] for line in (lines[3], lines[5]))
    assert 0 <= float(cones[heads.index("accuracy (%)")]) <= 100
    clone = copy_project(tmp_path / "clone", results=True)
    follow(clone, "Add a metric")
    stale = clone.run("subspaces", "status").stdout.splitlines()
    judged = {line for line in stale if line.startswith("results/evaluations/")}
    assert judged and all(line.startswith("results/evaluations/link_prediction/") for line in judged)


def test_a_source_is_one_row_and_its_files(project):
    touched = follow(project, "Add a source")
    assert touched == {"src/subspaces/sources/registry.py", "src/subspaces/sources/files.csv"}
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
