"""The model in the package: what its card says was measured, and it is the model that params.yaml describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subspaces.files import read_json, sha256_file
from subspaces.pipeline.project import Project
from subspaces.search.calibration import SearchProfile
from subspaces.text.subspace_encoder import DEFAULT, SHIPPED

ROOT = Path(__file__).resolve().parents[2]
FOLDER = SHIPPED / DEFAULT
EVALUATIONS = ROOT / "results/evaluations"


def test_it_is_small_and_the_weights_are_those_that_were_judged() -> None:
    sha256 = sha256_file(FOLDER / "weights.safetensors")
    assert (FOLDER / "weights.safetensors").stat().st_size < 5e6
    assert read_json(FOLDER / "settings.json")["weights_sha256"] == sha256
    judged = [EVALUATIONS / f"snli/minilm-adapters-64/{ways}/seed-0.json" for ways in ("2way", "3way")]
    judged += [EVALUATIONS / "composition/minilm-adapters-64/seed-0.json"]
    judged += [EVALUATIONS / "compositional_retrieval/benchmark.json"]
    assert {read_json(path)["weights_sha256"] for path in judged} == {sha256}


def test_it_is_the_model_of_the_parameters() -> None:
    shipped = Project.open(ROOT / "params.yaml", "laptop").experiment("snli").shipped()
    assert read_json(FOLDER / "settings.json")["key"] == shipped.key


def test_the_card_has_the_measured_values() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for ways in ("2way", "3way"):
        value = read_json(EVALUATIONS / f"snli/minilm-adapters-64/{ways}/seed-0.json")["metrics"]["accuracy"]
        assert f"| {value:.2f} % |" in card
    for value in read_json(EVALUATIONS / "composition/minilm-adapters-64/seed-0.json")["metrics"].values():
        assert f"| {value:.2f} % |" in card


def test_it_is_searched_as_the_benchmark_chose() -> None:
    benchmark = read_json(EVALUATIONS / "compositional_retrieval/benchmark.json")
    assert json.loads((FOLDER / "search.json").read_text()) == benchmark["profile"]
    assert SearchProfile.model_validate(benchmark["profile"]).method == "hybrid"


def test_without_backbone_and_network_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from subspaces import SubspaceEncoder
    from subspaces.errors import UserError

    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    monkeypatch.delenv("SUBSPACES_MIRROR", raising=False)
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "empty"))
    with pytest.raises(UserError, match=r"(?s)all-MiniLM-L6-v2 .* unavailable.*set SUBSPACES_MIRROR to a folder"):
        SubspaceEncoder.from_pretrained()
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def encoder(sources: Path):
    """The real model; its backbone comes from wherever the sources of this machine have it."""
    from subspaces import SubspaceEncoder
    from subspaces.errors import UserError

    try:
        return SubspaceEncoder.from_pretrained(sources=sources)
    except UserError as error:
        pytest.skip(f"the backbone is unavailable here: {error}")


def test_it_knows_entailment_and_logic(encoder) -> None:
    yes = encoder.entail("A dog runs on grass.", "An animal is outside.")
    no = encoder.entail("A dog runs on grass.", "A man is cooking in a kitchen.")
    assert yes.two_way["entailment"] > 0.5 > no.two_way["entailment"]
    assert yes.three_way is not None and max(yes.three_way, key=yes.three_way.__getitem__) == "entailment"
    dog, leash = encoder.encode("a dog"), encoder.encode("on a leash")
    free, held = encoder.encode("A dog runs on the beach."), encoder.encode("A dog on a leash walks with its owner.")
    assert float(free.inclusion(dog & ~leash)) > float(held.inclusion(dog & ~leash))


def test_saving_and_loading_round_trips(encoder, sources: Path, tmp_path: Path) -> None:
    import torch

    from subspaces import SubspaceEncoder

    folder = encoder.save(tmp_path / "mine")
    again = SubspaceEncoder.from_pretrained(folder, sources=sources)
    text = "Two children play in the snow."
    assert torch.equal(encoder.encode(text).projector, again.encode(text).projector)
