"""The worked examples of CONTRIBUTING.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.workflow.conftest import ROOT, Project

pytestmark = pytest.mark.workflow
BLOCK = r"```(?:python)?\n(.*?)```"


def follow(project: Project, heading: str) -> str:
    """Make the files, replacements and parameters of one section; returns its text."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    for path, content in re.findall(rf"<!-- file: (\S+) -->\n{BLOCK}", section, re.DOTALL):
        (project.folder / path).write_text(content, encoding="utf-8")
    for path, old, new in re.findall(rf"<!-- replace: (\S+) -->\n{BLOCK}\n<!-- with -->\n{BLOCK}", section, re.DOTALL):
        project.replace(path, old, new)
    for dotted, value in re.findall(r"<!-- params: (\S+) = (.*?) -->", section):
        project.edit_params(**{dotted.replace(".", "__"): yaml.safe_load(value)})
    return section


def test_a_geometry_is_one_file_a_type_and_a_row(project):
    section = follow(project, "Add a geometry")
    (commands,) = re.findall(r"<!-- params: .*? -->\n```\n(.*?)```", section, re.DOTALL)
    for command in commands.strip().splitlines():
        project.run("bash", "-c", command)
    settings = (project.folder / "models/reconstruction/manhattan-10/verbs/seed-0/settings.json").read_text()
    assert '"geometry": "manhattan"' in settings
    for path in (
        "src/subspaces/geometries/symmetric/manhattan.py",
        "src/subspaces/experiments/reconstruction/settings.py",
    ):
        project.run("ruff", "check", path)


def test_a_source_is_one_row(project):
    follow(project, "Add a source")
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


def test_a_table_is_a_function_and_a_line(project):
    section = follow(project, "Add a table")
    (commands,) = re.findall(r"<!-- commands -->\n```\n(.*?)```", section, re.DOTALL)
    for command in commands.strip().splitlines():
        project.run("bash", "-c", command)
    table = (project.folder / "results/tables/bounds_cases.md").read_text(encoding="utf-8")
    assert "| Projector |" in table and "<!-- key:" in table
    assert (project.folder / "results/tables/bounds_cases.tex").exists()
    assert "table_bounds_cases:" in (project.folder / "dvc.yaml").read_text()
    for path in ("src/subspaces/report/extras.py", "src/subspaces/pipeline/recipes/paper.py"):
        project.run("ruff", "check", path)
