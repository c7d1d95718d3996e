"""The vectors of documents in one safetensors file: right, resumable, never half a file under the whole one's name."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.search.build import BLOCK
from subspaces.search.export import write_vectors
from tests.search.stand_in import stand_in
from tests.search.test_build import COUNT, TEXTS, Counting

NAME = "vectors.safetensors"


@pytest.mark.parametrize(("precision", "dtype", "off"), [("fp32", torch.float32, 1e-6), ("fp16", torch.float16, 1e-3)])
def test_rows_are_the_half_vectors_and_traces_of_the_documents(
    tmp_path: Path, precision: str, dtype: torch.dtype, off: float
) -> None:
    texts = TEXTS[:700]
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    assert write_vectors(tmp_path / "texts.txt", stand_in(), tmp_path / NAME, precision=precision) == 700
    found = load_file(tmp_path / NAME)
    half, trace = stand_in().half_vectors_and_traces(texts)
    assert found["half"].dtype == dtype and torch.allclose(found["half"].float(), half, atol=off)
    assert torch.equal(found["trace"], trace)
    with safe_open(tmp_path / NAME, framework="pt") as content:
        assert content.metadata()["model"] == stand_in().fingerprint
        assert torch.equal(content.get_slice("half")[3:5], found["half"][3:5])
    a, b = stand_in().encode(texts[0]), stand_in().encode(texts[1])
    inclusion = found["half"][0].float() @ found["half"][1].float() / found["trace"][0]
    assert inclusion.item() == pytest.approx(a.inclusion(b).item(), abs=10 * off)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    write_vectors(TEXTS, Counting().encoder(), tmp_path / "whole.safetensors")
    with pytest.raises(KeyboardInterrupt):
        write_vectors(TEXTS, Counting(stop_at=2 * BLOCK).encoder(), tmp_path / NAME)
    assert not (tmp_path / NAME).exists() and read_json(tmp_path / f"{NAME}.part.json")["rows"] == 2 * BLOCK
    again = Counting()
    write_vectors(TEXTS, again.encoder(), tmp_path / NAME)
    assert again.texts == COUNT - 2 * BLOCK
    assert (tmp_path / NAME).read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "whole.safetensors"]


def test_a_part_that_lost_its_end_is_encoded_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_vectors(TEXTS, Counting(stop_at=2 * BLOCK).encoder(), tmp_path / NAME)
    os.truncate(tmp_path / f"{NAME}.part", 1000)
    again = Counting()
    write_vectors(TEXTS, again.encoder(), tmp_path / NAME)
    assert again.texts == COUNT and len(load_file(tmp_path / NAME)["trace"]) == COUNT


def test_the_same_request_does_nothing_and_another_is_refused(tmp_path: Path) -> None:
    texts = TEXTS[:80]
    write_vectors(texts, stand_in(), tmp_path / NAME)
    before = (tmp_path / NAME).stat().st_mtime_ns
    assert write_vectors(texts, stand_in(), tmp_path / NAME) == 80
    assert (tmp_path / NAME).stat().st_mtime_ns == before
    (tmp_path / "mine.safetensors").write_text("my own notes")
    for documents, encoder, name, precision in (
        (texts[:-1], stand_in(), NAME, "fp32"),
        (texts, stand_in(16, "other"), NAME, "fp32"),
        (texts, stand_in(), NAME, "fp16"),
        (texts, stand_in(), "mine.safetensors", "fp32"),
    ):
        with pytest.raises(UserError, match="choose another name"):
            write_vectors(documents, encoder, tmp_path / name, precision=precision)
    assert (tmp_path / "mine.safetensors").read_text() == "my own notes"


def test_requests_that_cannot_be_met(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="choose fp32 or fp16"):
        write_vectors(TEXTS, stand_in(), tmp_path / NAME, precision="int8")
    with pytest.raises(UserError, match=r"call the file vectors\.safetensors"):
        write_vectors(TEXTS, stand_in(), tmp_path / "vectors.npy")
    with pytest.raises(KeyboardInterrupt):
        write_vectors(TEXTS, Counting(stop_at=BLOCK).encoder(), tmp_path / NAME)
    with pytest.raises(UserError, match="is unfinished and of other documents"):
        write_vectors(TEXTS[:-1], Counting().encoder(), tmp_path / NAME)
    with open(tmp_path / f"{NAME}.part", "r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another run is writing"):
            write_vectors(TEXTS, Counting().encoder(), tmp_path / NAME)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        write_vectors(TEXTS, stand_in(), tmp_path / "file" / NAME)
