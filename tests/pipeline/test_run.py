"""Finished models of SLURM jobs that count as failed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from subspaces import cli
from subspaces.files import sha256_file
from subspaces.pipeline.artefact import Artefact
from subspaces.pipeline.run import JobCheckpoints
from subspaces.training.record import read_settings

ARTEFACT = Artefact("models/table/row/seed-0/settings.json", {"train": 1}, {"epochs": 2})
MODEL = Path(ARTEFACT.output).parent


@pytest.fixture
def checkpoints(tmp_path, monkeypatch) -> JobCheckpoints:
    """Of a model that has just been written in a SLURM job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    MODEL.mkdir(parents=True)
    (MODEL / "weights.safetensors").write_bytes(b"weights")
    settings = {"key": ARTEFACT.key, "weights_sha256": sha256_file(MODEL / "weights.safetensors")}
    (MODEL / "settings.json").write_text(json.dumps(settings))
    return JobCheckpoints(ARTEFACT)


def test_the_next_attempt_takes_a_finished_model_back(checkpoints):
    checkpoints.clear()
    for _ in range(2):
        shutil.rmtree(MODEL)
        assert JobCheckpoints(ARTEFACT).take_back()
        assert {path.name for path in MODEL.iterdir()} == {"weights.safetensors", "settings.json"}


def test_another_job_or_damaged_weights_are_not_taken_back(checkpoints):
    checkpoints.clear()
    shutil.rmtree(MODEL)
    assert not JobCheckpoints(Artefact(ARTEFACT.output, {"train": 1}, {"epochs": 3})).take_back()
    (checkpoints.finished / "weights.safetensors").write_bytes(b"other")
    assert not checkpoints.take_back()
    assert not MODEL.exists()


def test_nothing_is_kept_after_the_evaluation_or_outside_slurm(checkpoints, monkeypatch):
    checkpoints.clear()
    checkpoints.drop_finished()
    assert not checkpoints.take_back()
    monkeypatch.delenv("SLURM_JOB_ID")
    checkpoints.clear()
    assert not checkpoints.finished.exists()


def test_a_damaged_model_of_the_graph_is_set_aside_and_somebodys_own_is_not(checkpoints, monkeypatch, capsys):
    own, graphs = Path("mine/seed-0"), MODEL
    shutil.copytree(MODEL, own)
    monkeypatch.setattr(cli, "in_project", lambda: True)
    monkeypatch.setattr(cli, "project_here", lambda: SimpleNamespace(artefacts={ARTEFACT.output: ARTEFACT}))
    for folder, told in ((own, "copy mine/seed-0 again"), (graphs, "run the same command again to retrain it")):
        (folder / "weights.safetensors").write_bytes(b"other")
        monkeypatch.setattr(cli, "app", lambda folder=folder: read_settings(folder))
        with pytest.raises(SystemExit):
            cli.main()
        assert told in capsys.readouterr().err
    assert own.exists() and not graphs.exists()
    assert Path("checkpoints/table/row/seed-0.damaged/weights.safetensors").read_bytes() == b"other"
