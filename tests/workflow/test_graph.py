"""The whole graph with Snakemake: what comes out, and what a change makes run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import zipfile

import pytest

from subspaces.paper.registry import numbers, tables
from subspaces.recipes import FIGURES, OWN_TABLES
from tests.workflow.conftest import LINK_ROWS, NLI_ROWS, Project, copy_project

pytestmark = pytest.mark.workflow

FIELDS = {"id", "value", "sd", "n", "unit", "better", "scale", "verdict", "reason", "paper", "sample", "seeds", "settings", "data", "key"}
TABLE = "results/tables/reconstruction.tex"
PAGE = "results/report.html"


@pytest.fixture
def safe(built):
    """Put params.yaml and the package back after a test."""
    before = (built.folder / "params.yaml").read_text()
    shutil.copytree(built.folder / "src", built.folder / "src.before")
    yield built
    (built.folder / "params.yaml").write_text(before)
    shutil.rmtree(built.folder / "src")
    (built.folder / "src.before").rename(built.folder / "src")


def read(project: Project, identifier: str) -> dict:
    return json.loads((project.folder / f"results/numbers/{identifier}.json").read_text())


def test_every_number_table_and_figure_is_there(built):
    for identifier, paper in numbers().items():
        found = read(built, identifier)
        assert found.keys() >= FIELDS
        assert found["id"] == identifier
        assert found["paper"] == {"value": paper.value, "sd": paper.sd}
        assert found["scale"] == "quick"
        small = {"link_prediction": LINK_ROWS, "snli": NLI_ROWS, "composition": NLI_ROWS}
        whole = ("reconstruction", "hyperlex", "retrieval_latency", "encoding_time")
        if paper.table in whole or paper.row in small.get(paper.table, ()):
            assert isinstance(found["value"], float)
            assert found["verdict"] == "other scale"
            assert found["sample"] is True, "a number from the sample must say so"
            assert "sample" in found["reason"]
            assert found["n"] == len(found["seeds"]) == 1
        else:
            assert found["value"] is None
            assert found["verdict"] == "not run"
            assert found["reason"]
    for name in [*OWN_TABLES, *tables()]:
        for kind in ("tex", "md"):
            assert (built.folder / f"results/tables/{name}.{kind}").stat().st_size > 200
    for name in FIGURES:
        assert (built.folder / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (built.folder / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_number_holds_no_times_or_machines(built):
    text = (built.folder / "results/numbers/reconstruction/subspace-64/nouns-map.json").read_text()
    assert "seconds" not in text
    assert "machine" not in text
    evaluation = json.loads((built.folder / "results/evaluations/reconstruction/subspace-64/nouns/seed-0.json").read_text())
    assert evaluation["timing"]["train_seconds"] > 0
    assert evaluation["machine"]["threads"] >= 1


def test_nothing_to_do_the_second_time(built):
    assert built.planned("all") == set()
    assert "everything is current" in built.run("subspaces", "status").stdout


def test_touched_files_and_moved_clocks_rerun_nothing(built):
    for path in [*built.folder.glob("src/subspaces/**/*.py"), *built.folder.glob("data/**/*"), built.folder / "params.yaml"]:
        os.utime(path)
    os.utime(built.folder / "results/numbers/reconstruction/subspace-64/nouns-map.json", (1, 1))
    assert built.planned("all") == set()


def test_comments_and_docstrings_rerun_nothing(safe):
    path = safe.folder / "src/subspaces/wordnet/sampling.py"
    path.write_text("# a new comment\n" + path.read_text().replace('"""Negatives', '"""All negatives', 1))
    assert safe.planned("all") == set()


def test_lambda_reruns_the_subspaces_and_nothing_else(safe):
    safe.edit_params(reconstruction__lambda=0.3)
    planned = safe.planned("all")
    models = {one for one in planned if one.startswith("models/")}
    assert {one.split("/")[2] for one in models} == {"subspace-64", "subspace-128"}
    assert len(models) == 4
    rows = {one.split("/")[3] for one in planned if one.startswith("results/numbers/")}
    assert rows == {"subspace-64", "subspace-128"}
    assert {one for one in planned if one.startswith("results/tables/")} == {TABLE, "results/tables/hyperlex.tex"}
    drawn = {"figures/rank_vs_descendants.pdf", "figures/compression.pdf"}
    assert {one for one in planned if one.startswith("figures/")} == drawn
    assert not any("link_prediction" in one for one in planned)
    assert not any(one.startswith("data/") for one in planned)


def test_link_predictions_own_lambda_reruns_its_subspaces(safe):
    safe.edit_params(link_prediction__lambda=0.3)
    planned = safe.planned("all")
    assert {one for one in planned if one.startswith("models/")} == {
        f"models/link_prediction/subspace-64/{coverage}/seed-0/weights.safetensors" for coverage in (0, 10, 25, 50)
    }
    assert {one.split("/")[2] for one in planned if one.startswith("results/numbers/")} == {"link_prediction"}
    assert {one for one in planned if one.startswith("results/tables/")} == {
        "results/tables/link_prediction.tex",
        "results/tables/link_prediction_extra.tex",
    }
    assert {one for one in planned if one.startswith("figures/")} == {
        "figures/link_prediction_coverage.pdf",
        "figures/link_prediction_time.pdf",
    }


def test_a_colour_reruns_one_figure(safe):
    safe.edit_params(figures__rank_vs_descendants__chain="#123456")
    assert safe.planned("all") == {"figures/rank_vs_descendants.pdf", PAGE}


def test_an_edit_of_one_geometry_reruns_its_rows(safe):
    safe.replace("src/subspaces/wordnet/geometries/poincare.py", "_EDGE = 1e-5", "_EDGE = 1.5e-5")
    planned = safe.planned("all")
    assert {"/".join(one.split("/")[1:3]) for one in planned if one.startswith("models/")} == {
        "reconstruction/poincare-10",
        "reconstruction/poincare-5",
    }
    assert {one.split("/")[3] for one in planned if one.startswith("results/numbers/")} == {"poincare-10", "poincare-5"}
    assert not any(one.startswith("figures/") for one in planned)


def test_an_edit_of_the_tables_reruns_tables_only(safe):
    safe.replace("src/subspaces/paper/tables.py", "= reproduced, + better", "= reproduced, + beaten")
    assert {one.split("/")[1] for one in safe.planned("all") - {PAGE}} == {"tables"}


@pytest.mark.parametrize("victim", ["results/numbers/snli/minilm-mlp/accuracy-2way.json", TABLE, "figures/overview.pdf"])
def test_a_deleted_output_comes_back_alone_and_the_same(built, victim):
    path = built.folder / victim
    before = path.read_bytes()
    path.unlink()
    assert built.planned("all") == {victim}
    built.snakemake("all")
    assert path.read_bytes() == before
    assert built.planned("all") == set()


def test_without_snakemakes_memory_and_models_nothing_is_retrained(built, tmp_path):
    """A fresh clone: results in git, no models, no data, no .snakemake; then a parameter is changed."""
    clone = Project(tmp_path / "clone")
    ignored = shutil.ignore_patterns("models", "data", ".snakemake", ".keys", "checkpoints", "logs", "src.before")
    shutil.copytree(built.folder, clone.folder, ignore=ignored, copy_function=shutil.copyfile, symlinks=True)
    # at quick scale the record that a sample stood in is part of the state; a clone with real data has no such record
    (clone.folder / "data/sources").mkdir(parents=True)
    for record in (built.folder / "data/sources").glob("*.json"):
        shutil.copyfile(record, clone.folder / "data/sources" / record.name)
    assert clone.planned(TABLE) == set()
    assert clone.planned("all") == set()
    forced = clone.run("snakemake", "--cores", "2", "--dry-run", "--forcerun", "train_reconstruction", "--", TABLE).stdout
    assert forced.count("rule train_reconstruction:") == 10
    clone.edit_params(reconstruction__lambda=0.5)
    models = {one.split("/")[2] for one in clone.planned(TABLE) if one.startswith("models/")}
    assert models == {"subspace-64", "subspace-128"}


def test_two_runs_make_the_same_bytes(project, built):
    target = "results/numbers/reconstruction/lorentz-10/verbs-map.json"
    project.snakemake(target, "figures/overview.pdf")
    for name in (target, "figures/overview.pdf", "figures/overview.png", "data/wordnet/verbs.npz"):
        assert (project.folder / name).read_bytes() == (built.folder / name).read_bytes(), name


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(project, built):
    weights = "models/reconstruction/subspace-64/nouns/seed-0/weights.safetensors"
    project.edit_params(checkpoint__seconds=0.05)
    command = ["snakemake", "--cores", "2", "--", weights]
    for pause in (6.0, 7.5):
        run = subprocess.Popen(
            command, cwd=project.folder, env=project.environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        time.sleep(pause)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
    project.run("snakemake", "--unlock")
    done = project.snakemake(weights)
    assert (project.folder / weights).exists(), done.stdout[-4000:] + done.stderr[-4000:]
    assert (project.folder / weights).read_bytes() == (built.folder / weights).read_bytes()


def test_unknown_number_and_bad_parameters_are_said_in_words(project):
    done = project.snakemake("results/numbers/reconstruction/subspace-65/nouns-map.json", check=False)
    assert done.returncode
    assert "subspace-65" in done.stdout + done.stderr
    done = project.run("subspaces", "paper", "number", "reconstruction/subspace-65/nouns-map", check=False)
    assert done.returncode == 1
    assert "unknown number" in done.stderr
    assert "Traceback" not in done.stderr
    project.edit_params(reconstruction__lambda=-1)
    done = project.snakemake(TABLE, check=False)
    assert done.returncode
    assert "reconstruction.lambda" in done.stdout + done.stderr
    assert "greater than 0" in done.stdout + done.stderr


def test_a_results_folder_that_cannot_be_written_is_an_error_that_says_so(built, tmp_path):
    target = built.folder / "results/tables/snli.md"
    backup = target.read_bytes()
    target.unlink()
    target.mkdir()  # root may write anywhere, but nobody can replace a folder by a file
    try:
        done = built.run("subspaces", "--scale", "quick", "paper", "table", "snli", check=False)
        assert done.returncode == 1
        assert "cannot write" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        target.rmdir()
        target.write_bytes(backup)


def test_real_scales_refuse_a_sample(project):
    project.edit_params(scale="laptop")
    done = project.snakemake("data/wordnet/verbs.npz", check=False)
    assert done.returncode
    assert "wordnet" in done.stderr
    assert "SUBSPACES_MIRROR" in done.stderr
    assert not (project.folder / "data/wordnet/verbs.npz").exists()


def test_the_committed_results_count_as_built(tmp_path):
    """This repository's own results on a fresh clone: asking for a table that is there starts nothing; a changed λ does."""
    clone = copy_project(tmp_path / "clone", results=True)
    if not (clone.folder / TABLE).exists():
        pytest.skip("no results are committed")
    assert clone.planned("all") == set()
    assert clone.run("subspaces", "status", "--check").stdout == "everything is current\n"
    clone.edit_params(reconstruction__lambda=0.25)
    stale = clone.run("subspaces", "status", "--check", check=False)
    assert stale.returncode == 1 and TABLE in stale.stderr and "models/" not in stale.stderr
    assert any(one.startswith("models/") for one in clone.planned(TABLE))
    table = clone.folder / TABLE
    before = table.read_bytes()
    for command in (
        ("table", "reconstruction"),
        ("number", "reconstruction/subspace-64/nouns-map"),
        ("figure", "rank_vs_descendants"),
        ("page",),
    ):
        done = clone.run("subspaces", "paper", *command, check=False)  # by hand, past Snakemake
        assert done.returncode == 1 and "made from other settings or other code: run `snakemake" in done.stderr, command
    assert table.read_bytes() == before


def test_snakemakes_own_report_has_the_figures_and_their_captions(built, tmp_path):
    built.run("snakemake", "--report", str(tmp_path / "report.zip"))
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        names = archive.namelist()
        text = b"".join(archive.read(name) for name in names if name.endswith((".html", ".js"))).decode(errors="replace")
    for figure in FIGURES:
        assert any(name.endswith(f"{figure}.png") for name in names), figure
    assert "Drawn from computed projectors" in text and "Table 4: " in text
