"""The checkpoint files themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from subspaces.errors import UserError
from subspaces.files import sha256_file
from subspaces.training import checkpoint as checkpoint_module
from subspaces.training.checkpoint import Checkpoints, write_tensors

KEY = "k" * 64


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "X": torch.randn(7, 3, 3, generator=generator),
        "count": torch.tensor([seed], dtype=torch.int64),
        "table": torch.randn(5, 2, generator=generator, dtype=torch.float64),
    }


def blank() -> dict[str, torch.Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in tensors().items()}


@pytest.mark.parametrize("chunk", [1 << 26, 10])
def test_the_file_is_a_safetensors_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(checkpoint_module, "_CHUNK", chunk)
    content = {**tensors(), "turned": torch.randn(3, 4).T, "empty": torch.zeros(0, 3)}
    assert write_tensors(tmp_path / "a.safetensors", content) == sha256_file(tmp_path / "a.safetensors")
    loaded = load_file(tmp_path / "a.safetensors")
    assert loaded.keys() == content.keys()
    assert all(torch.equal(loaded[name], content[name]) for name in content)


@pytest.mark.parametrize("chunk", [1 << 26, 10])
def test_a_checkpoint_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(checkpoint_module, "_CHUNK", chunk)
    checkpoints = Checkpoints(tmp_path, KEY)
    assert checkpoints.restore(blank()) is None
    checkpoints.save(5, tensors(1), {"history": [1], "sums": {}})
    checkpoints.save(6, tensors(2), {"history": [1, 2], "sums": {"loss": 0.1 + 0.2}})
    into = blank()
    addresses = {name: tensor.data_ptr() for name, tensor in into.items()}
    assert checkpoints.restore(into) == {"step": 6, "history": [1, 2], "sums": {"loss": 0.1 + 0.2}}
    assert all(torch.equal(into[name], value) for name, value in tensors(2).items())
    assert addresses == {
        name: tensor.data_ptr() for name, tensor in into.items()
    }  # in place: a second copy may not fit


def test_tensors_that_are_not_contiguous_are_filled_too(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, KEY)
    content = {"a": torch.randn(4, 3)}
    checkpoints.save(1, content, {})
    into = {"a": torch.zeros(3, 4).T}
    assert checkpoints.restore(into) == {"step": 1}
    assert torch.equal(into["a"], content["a"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    Checkpoints(folder, KEY).save(1, tensors(1), {})
    return folder


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_flipped_bit_goes_unnoticed(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Wherever one bit of the tensors' file is wrong, the checkpoint does not count."""
    source = sound / KEY[:16]
    folder = tmp_path_factory.mktemp("flipped") / KEY[:16]
    folder.mkdir()
    content = bytearray((source / "step-000000001.safetensors").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "step-000000001.safetensors").write_bytes(content)
    (folder / "step-000000001.json").write_bytes((source / "step-000000001.json").read_bytes())
    said: list[str] = []
    assert Checkpoints(folder.parent, KEY, said.append).restore(blank()) is None
    assert len(said) == 1 and "damaged" in said[0]


def test_another_shape_or_name_is_not_this_model(tmp_path: Path) -> None:
    for wrong in (
        {"X": torch.zeros(7, 3, 2)},
        {"Y": torch.zeros(7, 3, 3)},
        {"X": torch.zeros(7, 3, 3, dtype=torch.float64)},
    ):
        checkpoints = Checkpoints(tmp_path, KEY, said := [].append)
        checkpoints.save(1, tensors(), {})
        assert checkpoints.restore(wrong) is None
        assert "missing or has another shape" in said.__self__[0]


def test_remains_of_a_killed_run_are_swept_away(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, KEY)
    checkpoints.save(1, tensors(), {})
    (checkpoints.folder / ".step-000000002.safetensors.abc.part").write_bytes(b"half")
    (checkpoints.folder / "step-000000002.safetensors").write_bytes(b"whole, but without its record")
    assert checkpoints.restore(blank()) == {"step": 1}
    checkpoints.save(3, tensors(), {})
    names = {path.name for path in checkpoints.folder.iterdir()}
    assert names == {f"step-00000000{step}.{ending}" for step in (1, 3) for ending in ("json", "safetensors")}
    with checkpoints.lock():
        checkpoints.clear()
    assert [path.name for path in checkpoints.folder.iterdir()] == ["lock"]


def _hold(folder: Path, ready, wait) -> None:
    with Checkpoints(folder, KEY).lock():
        ready.set()
        wait.wait(60)


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path, processes) -> None:
    ready, wait = processes.Event(), processes.Event()
    holder = processes.Process(target=_hold, args=(tmp_path, ready, wait))
    holder.start()
    assert ready.wait(60)
    with pytest.raises(UserError, match="another run is training"), Checkpoints(tmp_path, KEY).lock():
        pass
    holder.kill()
    holder.join()
    with Checkpoints(tmp_path, KEY).lock():
        pass
