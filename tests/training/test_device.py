"""Devices: the choice, and that one training step of every geometry keeps all its tensors on one device.

A machine without a GPU can check the second too: meta tensors have a device of their own that does not mix with the host's.
"""

import pytest
import torch

from subspaces.errors import UserError
from subspaces.geometries.base import make_geometry
from subspaces.hierarchy.reconstruction import info_nce
from subspaces.hierarchy.sampling import Batch
from subspaces.training.device import choose_device


def test_auto_is_the_processor_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == "cpu"
    with pytest.raises(UserError, match="--device cpu"):
        choose_device("cuda")
    with pytest.raises(UserError, match="auto, cpu or cuda"):
        choose_device("tpu")


def test_auto_takes_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert choose_device("auto") == choose_device("cuda") == "cuda"
    assert choose_device("cpu") == "cpu"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "name, options",
    [("euclidean", {}), ("euclidean", {"score": "inner"}), ("poincare", {}), ("lorentz", {}), ("subspace", {})],
)
def test_a_step_stays_on_its_device(name: str, options: dict, shared: bool) -> None:
    if name == "subspace" and not shared:
        pytest.skip("sparse products know no meta tensors")
    geometry = make_geometry(name, 40, 8, "meta", ranking=True, **options)
    state = geometry.state()
    assert {tensor.device.type for key, tensor in state.items() if key != "adam.count"} == {"meta"}
    if "adam.count" in state:  # read by the host at every step
        assert state["adam.count"].device.type == "cpu"
    drawn = torch.arange(4)
    batch = Batch(
        torch.arange(12), drawn, None if shared else torch.ones(4, 3, dtype=torch.int64), drawn, torch.zeros(4, 12) > 0
    )
    batch = batch.to(geometry.device)
    opened = geometry.open(batch.rows)
    scores = geometry.scores(opened, batch.anchors, batch.candidates)
    assert scores.is_meta and scores.shape == (4, 12 if shared else 3)
    loss, upstream, first = info_nce(scores, batch)
    assert loss.is_meta and upstream.is_meta and first.is_meta
    if name not in ("poincare", "lorentz"):  # geoopt's maps look at values
        geometry.update(opened, batch.anchors, batch.candidates, upstream, 0.1, 0.1)
    assert geometry.features(slice(0, 5)).is_meta
    assert geometry.generality().is_meta
