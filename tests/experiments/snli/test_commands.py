"""`subspaces train`: a model from the user's own pairs, on a tiny backbone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from subspaces.cli import app
from subspaces.errors import UserError
from subspaces.experiments.snli import commands
from subspaces.experiments.snli.task import EntailmentTask
from subspaces.sources.origins import SAMPLES
from tests.invoke import invoke


def run(*words: object) -> str:
    return invoke(app, *words).stdout


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = ["premise\thypothesis\tlabel"]
    for number in range(24):
        lines.append(f"a man is outside with {number} dogs\ta man is outside\tentailment")
        lines.append(
            f"a man is outside with {number} dogs\ta woman sits\t{('neutral', 'contradiction', 'other')[number % 3]}"
        )
    path = tmp_path / "my.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def backbone(tmp_path: Path) -> Path:
    folder = tmp_path / "backbone"
    folder.mkdir()
    for path in SAMPLES.glob("tiny-*"):
        shutil.copyfile(path, folder / path.name)
    return folder


def words(pairs: Path, backbone: Path, out: Path) -> tuple[object, ...]:
    size = ("--dim", 8, "--epochs", 2, "--batch", 8, "--device", "cpu")
    return ("train", "--pairs", pairs, "--backbone", backbone, "--out", out, *size)


@pytest.mark.parametrize("full", [False, True])
def test_a_model_of_own_pairs_answers(pairs: Path, backbone: Path, tmp_path: Path, full: bool) -> None:
    asked = (*words(pairs, backbone, tmp_path / "model"), *(["--full"] if full else []))
    assert "validation accuracy" in run(*asked)
    answer = json.loads(run("entail", "a man is outside", "a man", "--model", tmp_path / "model", "--json"))
    assert 0 < answer["inclusion"] <= 1
    weights = (tmp_path / "model/weights.safetensors").stat().st_mtime_ns
    run(*asked)  # again: nothing to do
    assert (tmp_path / "model/weights.safetensors").stat().st_mtime_ns == weights
    assert not list(tmp_path.glob("model.*"))
    with pytest.raises(UserError, match="other pairs or settings"):
        run(*asked, "--seed", 1)


def test_a_killed_run_resumes(pairs: Path, backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*words(pairs, backbone, tmp_path / "whole"))
    step, taken = EntailmentTask.step, []

    def counted(self: EntailmentTask, epoch: int, number: int, generator: object) -> dict[str, float]:
        if len(taken) == 8:
            raise KeyboardInterrupt
        taken.append((epoch, number))
        return step(self, epoch, number, generator)

    monkeypatch.setattr(EntailmentTask, "step", counted)
    with pytest.raises(KeyboardInterrupt):
        commands.train(pairs, tmp_path / "model", str(backbone), 8, epochs=2, batch=8, device="cpu")
    assert (tmp_path / "model.checkpoints").is_dir()
    monkeypatch.setattr(EntailmentTask, "step", step)
    run(*words(pairs, backbone, tmp_path / "model"))
    same = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("whole", "model")]
    assert same[0] == same[1] and json.loads((tmp_path / "model/timing.json").read_text())["resumed"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the first line must name the columns"),
        (b"premise\thypothesis\tlabel\na\tb\tmaybe\n", "line 2: the label 'maybe'"),
        (b"premise\thypothesis\tlabel\na\tb\tentailment\n", "1 labelled pairs: both"),
        (b"premise\thypothesis\tlabel\na\t\tentailment\n", "line 2: premise or hypothesis is empty"),
        (b"premise\thypothesis\tlabel\n\xff\xfe\tb\tentailment\n", "not a text file in UTF-8"),
        (b"premise\thypothesis\tlabel\na\tb\tentailment\na\tc\tother\n", "the same premise"),
    ],
)
def test_bad_pairs_are_refused(content: bytes, message: str, backbone: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        run(*words(path, backbone, tmp_path / "model"))
    with pytest.raises(UserError, match="neither a folder nor a source"):
        run("train", "--pairs", _two(tmp_path), "--backbone", "no-such", "--out", tmp_path / "model")


def _two(folder: Path) -> Path:
    path = folder / "two.tsv"
    path.write_text("sentence1\tsentence2\tgold_label\na\tb\tentailment\nc\td\tneutral\ne\tf\t-\n")
    assert commands.read_pairs(path) == [("a", "b", 0), ("c", "d", 1)]
    return path
