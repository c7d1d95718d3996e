"""The whole graph with Snakemake: what comes out, and what a change makes run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import zipfile

import pytest

from subspaces.report.figures import FIGURES
from subspaces.report.own_tables import OWN_TABLES
from subspaces.report.registry import numbers, tables
from tests.workflow.conftest import LINK_ROWS, NLI_ROWS, Project, copy_project

pytestmark = pytest.mark.workflow

TABLE = "results/tables/reconstruction.tex"
PAGE = "results/report.html"

NOT_QUICK = {"compositional_retrieval"}  # tables and figures that need more data


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
    table = identifier.split("/")[0]
    return json.loads((project.folder / f"results/numbers/{table}.json").read_text())["numbers"][identifier]


def test_every_number_table_and_figure_is_there(built):
    for identifier, paper in numbers().items():
        found = read(built, identifier)
        assert found["id"] == identifier
        assert found["paper"] == {"value": paper.value, "sd": paper.sd}
        assert found["scale"] == "quick"
        metrics = json.loads((built.folder / f"results/numbers/{identifier}.json").read_text())
        small = {"link_prediction": LINK_ROWS, "snli": NLI_ROWS, "composition": NLI_ROWS}
        whole = ("reconstruction", "hyperlex", "retrieval_latency", "encoding_time")
        if paper.table in whole or paper.row in small.get(paper.table, ()):
            assert isinstance(found["value"], float)
            assert metrics == {"value": found["value"]}
            assert found["verdict"] == "other scale"
            assert found["sample"] is True, "a number from the sample must say so"
            assert found["reason"]
            assert found["seeds"] == len(found["evidence"]) == 1
        else:
            assert found["value"] is None
            assert metrics == {}
            assert found["verdict"] == "not run"
            assert found["reason"]
    for name in [*OWN_TABLES.keys() - NOT_QUICK, *tables()]:
        for kind in ("tex", "md"):
            assert (built.folder / f"results/tables/{name}.{kind}").stat().st_size > 200
    for name in FIGURES.keys() - NOT_QUICK:
        assert (built.folder / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (built.folder / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_number_holds_no_times_or_machines(built):
    text = json.dumps(read(built, "reconstruction/subspace-64/nouns-map"))
    assert "seconds" not in text
    assert "machine" not in text
    evaluation = json.loads(
        (built.folder / "results/evaluations/reconstruction/subspace-64/nouns/seed-0.json").read_text()
    )
    assert evaluation["timing"]["train_seconds"] > 0
    assert evaluation["machine"]["threads"] >= 1


def test_nothing_to_do_the_second_time(built):
    assert built.planned("all") == set()
    assert "everything is current" in built.run("subspaces", "status").stdout


def test_touched_files_and_moved_clocks_rerun_nothing(built):
    for path in [
        *built.folder.glob("src/subspaces/**/*.py"),
        *built.folder.glob("data/**/*"),
        built.folder / "params.yaml",
    ]:
        os.utime(path)
    os.utime(built.folder / "results/numbers/reconstruction/subspace-64/nouns-map.json", (1, 1))
    assert built.planned("all") == set()


def test_edited_and_moved_code_reruns_nothing(safe):
    path = safe.folder / "src/subspaces/hierarchy/sampling.py"
    path.write_text("# a new comment\n" + path.read_text() + "\n\nUNUSED = 1\n")
    assert safe.planned("all") == set()


def test_a_raised_version_reruns_what_it_computes(safe):
    safe.replace("workflow/versions.yaml", "  poincare: 1", "  poincare: 2")
    planned = safe.planned("all")
    safe.replace("workflow/versions.yaml", "  poincare: 2", "  poincare: 1")
    assert {"/".join(path.split("/")[1:3]) for path in planned if path.startswith("models/")} == {
        "reconstruction/poincare-10",
        "reconstruction/poincare-5",
    }
    evaluated = {path for path in planned if path.startswith("results/evaluations/")}
    assert evaluated and all("poincare" in path for path in evaluated)
    assert numbers_of(planned) == {"reconstruction", "hyperlex"}


def numbers_of(planned: set[str]) -> set[str]:
    """The tables whose numbers are written."""
    prefix = "results/numbers/"
    return {path.removeprefix(prefix).removesuffix(".json") for path in planned if path.startswith(prefix)}


def test_lambda_reruns_the_subspaces_and_nothing_else(safe):
    safe.edit_params(reconstruction__lambda=0.3)
    planned = safe.planned("all")
    models = {path for path in planned if path.startswith("models/")}
    assert {path.split("/")[2] for path in models} == {"subspace-64", "subspace-128"}
    assert len(models) == 4
    assert numbers_of(planned) == {"reconstruction", "hyperlex"}
    tables = {TABLE, "results/tables/hyperlex.tex", "results/tables/claims.tex"}
    assert {path for path in planned if path.startswith("results/tables/")} == tables
    drawn = {"figures/rank_vs_descendants.png", "figures/compression.png"}
    assert {path for path in planned if path.startswith("figures/")} == drawn
    assert not any("link_prediction" in path for path in planned)
    assert not any(path.startswith("data/") for path in planned)


def test_link_predictions_own_lambda_reruns_its_subspaces(safe):
    safe.edit_params(link_prediction__lambda=0.3)
    planned = safe.planned("all")
    assert {path for path in planned if path.startswith("models/")} == {
        f"models/link_prediction/subspace-64/{coverage}/seed-0/settings.json" for coverage in (0, 10, 25, 50)
    }
    assert numbers_of(planned) == {"link_prediction"}
    assert {path for path in planned if path.startswith("results/tables/")} == {
        "results/tables/claims.tex",
        "results/tables/link_prediction.tex",
        "results/tables/link_prediction_extra.tex",
    }
    assert {path for path in planned if path.startswith("figures/")} == {
        "figures/link_prediction_coverage.png",
        "figures/link_prediction_time.png",
    }


def test_a_colour_reruns_one_figure(safe):
    safe.edit_params(figures__rank_vs_descendants__chain="#123456")
    assert safe.planned("all") == {"figures/rank_vs_descendants.png", PAGE}


@pytest.mark.parametrize(
    ("victim", "made"),
    [
        ("results/numbers/snli/minilm-mlp/accuracy-2way.json", "results/numbers/snli.json"),
        (TABLE, TABLE),
        ("figures/overview.pdf", "figures/overview.png"),
    ],
)
def test_a_deleted_output_comes_back_alone_and_the_same(built, victim, made):
    path = built.folder / victim
    before = path.read_bytes()
    path.unlink()
    assert built.planned("all") == {made}
    built.snakemake("all")
    assert path.read_bytes() == before
    assert built.planned("all") == set()


def test_without_snakemakes_memory_and_models_nothing_is_retrained(built, tmp_path):
    """A fresh clone: results in git, no models, no data but the samples, no .snakemake; then a parameter is changed."""
    clone = Project(tmp_path / "clone")
    left = {
        "models",
        "data",
        ".snakemake",
        ".keys",
        "checkpoints",
        "logs",
        "src.before",
    }  # at the top; results/models is in git

    def ignored(folder: str, names: list[str]) -> set[str]:
        return left.intersection(names) if folder == str(built.folder) else set()

    shutil.copytree(built.folder, clone.folder, ignore=ignored, copy_function=shutil.copyfile, symlinks=True)
    shutil.copytree(built.folder / "data/sources", clone.folder / "data/sources")  # part of the keys: no real data
    assert clone.planned(TABLE) == set()
    assert clone.planned("all") == set()
    forced = clone.run(
        "snakemake", "--cores", "2", "--dry-run", "--forcerun", "train_reconstruction", "--", TABLE
    ).stdout
    assert forced.count("rule train_reconstruction:") == 10
    clone.edit_params(reconstruction__lambda=0.5)
    models = {one.split("/")[2] for one in clone.planned(TABLE) if one.startswith("models/")}
    assert models == {"subspace-64", "subspace-128"}


def test_two_runs_make_the_same_bytes(project, built):
    target = "results/numbers/reconstruction/lorentz-10/verbs-map.json"
    project.snakemake(target, "figures/overview.pdf")
    for name in (target, "figures/overview.pdf", "figures/overview.png", "data/wordnet/verbs.npz"):
        assert (project.folder / name).read_bytes() == (built.folder / name).read_bytes(), name


def test_a_killed_run_resumes_and_ends_with_the_same_weights(project, built):
    folder = "models/reconstruction/subspace-64/nouns/seed-0"
    project.edit_params(checkpoint__seconds=0.01)
    for _ in range(2):
        run = project.start("snakemake", "--cores", "2", "--", f"{folder}/settings.json")
        old = set(project.folder.glob("checkpoints/**/step-*.json"))
        while not set(project.folder.glob("checkpoints/**/step-*.json")) - old:  # training has begun
            assert run.poll() is None, run.stdout.read()
            time.sleep(0.005)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        project.run("snakemake", "--unlock")
    assert not (project.folder / folder / "settings.json").exists()
    assert "resuming at step" in project.snakemake(f"{folder}/settings.json").stderr
    weights = f"{folder}/weights.safetensors"
    assert (project.folder / weights).read_bytes() == (built.folder / weights).read_bytes()


def test_unknown_number_and_bad_parameters_are_said_in_words(project):
    done = project.snakemake("results/numbers/reconstruction/subspace-65/nouns-map.json", check=False)
    assert done.returncode
    assert "subspace-65" in done.stdout + done.stderr
    done = project.run("subspaces", "make", "results/tables/reconstructions.tex", check=False)
    assert done.returncode == 1
    assert "no job makes results/tables/reconstructions.tex" in done.stderr
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
        done = built.run("subspaces", "make", "results/tables/snli.tex", check=False)
        assert done.returncode == 1
        assert "cannot write" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        target.rmdir()
        target.write_bytes(backup)


def test_real_scales_refuse_a_sample(project):
    project.edit_params(scale="laptop")
    done = project.snakemake("data/wordnet/verbs.json", check=False)
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
    assert stale.returncode == 1 and TABLE in stale.stderr and " models/" not in stale.stderr
    trained = {one.split("/")[2] for one in clone.planned(TABLE) if one.startswith("models/")}
    assert trained == {"subspace-64", "subspace-128"}
    before = (clone.folder / TABLE).read_bytes()
    for output in (TABLE, "results/numbers/reconstruction.json", "figures/rank_vs_descendants.png", PAGE):
        done = clone.run("subspaces", "make", output, check=False)  # by hand, past Snakemake
        assert done.returncode == 1 and "stale inputs: " in done.stderr, output
    assert (clone.folder / TABLE).read_bytes() == before


def test_snakemakes_own_report_has_the_figures_and_their_captions(built, tmp_path):
    built.run("snakemake", "--report", str(tmp_path / "report.zip"))
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        names = archive.namelist()
        text = b"".join(archive.read(name) for name in names if name.endswith((".html", ".js"))).decode(
            errors="replace"
        )
    for figure in FIGURES.keys() - NOT_QUICK:
        assert any(name.endswith(f"{figure}.png") for name in names), figure
    assert "Drawn from computed projectors" in text and "Table 4: " in text
