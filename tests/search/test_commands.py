"""The four commands, with a real (untrained, tiny) model from a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from subspaces.cli import app
from subspaces.errors import UserError
from subspaces.text.subspace_encoder import SubspaceEncoder
from tests.experiments.composition.models import tiny_model
from tests.invoke import invoke
from tests.search.stand_in import sentences

ROOT = Path(__file__).resolve().parents[2]


def run(*words: object) -> str:
    return invoke(app, *words).stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"), "subspace")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(sentences(120)) + "\n")
    return path


def test_index_and_search(tmp_path: Path, model: Path, texts: Path) -> None:
    said = run("index", "--model", model, "--documents", texts, "--index", tmp_path / "index")
    assert "120 documents in" in said and "kind exact-fp16" in said
    found = run("search", "a man & ~at night", "--model", model, "--index", tmp_path / "index", "--top", 3).splitlines()
    answer = json.loads(
        run("search", "a man & ~at night", "--model", model, "--index", tmp_path / "index", "--top", 3, "--json")
    )
    assert len(found) == len(answer) == 3 and answer[0].keys() == {"score", "row", "text"}
    for line, hit in zip(found, answer, strict=True):
        assert hit["text"] == sentences(120)[hit["row"]] and line.split(maxsplit=1)[1] == hit["text"]
        assert float(line.split()[0]) == pytest.approx(hit["score"], abs=6e-4)
    other = json.loads(
        run(
            "search",
            "a man & at night",
            "--model",
            model,
            "--index",
            tmp_path / "index",
            "--method",
            "sandwich-hard",
            "--json",
        )
    )
    assert len(other) == 10


def test_kinds_and_effort(tmp_path: Path, model: Path, texts: Path) -> None:
    assert "kind compact" in run(
        "index", "--model", model, "--documents", texts, "--index", tmp_path / "compact", "--kind", "compact"
    )
    answer = json.loads(
        run("search", "a man", "--model", model, "--index", tmp_path / "compact", "--effort", 1, "--json")
    )
    assert len(answer) == 10 and answer[0]["score"] >= answer[-1]["score"]


def test_mistakes_are_told(tmp_path: Path, model: Path, texts: Path) -> None:
    with pytest.raises(UserError, match=r"never closed.\n  \(a man\n  \^"):
        run("search", "(a man", "--model", tmp_path / "nothing", "--index", tmp_path / "nothing")
    with pytest.raises(UserError, match="does not exist"):
        run("index", "--model", model, "--documents", tmp_path / "no.txt", "--index", tmp_path / "index")
    with pytest.raises(UserError, match="is not an index"):
        run("search", "a man", "--model", model, "--index", tmp_path)
    run("index", "--model", model, "--documents", texts, "--index", tmp_path / "small")
    found = run("search", "a man", "--model", model, "--index", tmp_path / "small", "--top", 121, "--verify")
    assert len(found.splitlines()) == 120
    another = tiny_model(tmp_path / "another", "subspace", seed=1)
    with pytest.raises(UserError, match="was built with the model"):
        run("search", "a man", "--model", another, "--index", tmp_path / "small")


def test_entail_and_encode(model: Path) -> None:
    premise, hypothesis = "a man runs in the park", "a man runs"
    answer = json.loads(run("entail", premise, hypothesis, "--model", model, "--json"))
    assert 0 < answer["inclusion"] <= 1 and 0 < answer["inclusion_reversed"] <= 1
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    turned = json.loads(run("entail", hypothesis, premise, "--model", model, "--json"))
    assert turned["inclusion"] == pytest.approx(answer["inclusion_reversed"], abs=1e-5)
    assert turned["rank_premise"] == pytest.approx(answer["rank_hypothesis"], abs=1e-4)
    assert f"{answer['inclusion']:.3f}" in run("entail", premise, hypothesis, "--model", model)
    encoded = json.loads(run("encode", premise, hypothesis, "--model", model, "--json"))
    assert encoded["inclusion"][0][1] == pytest.approx(answer["inclusion"], abs=1e-5)
    assert encoded["ranks"][1] == pytest.approx(answer["rank_hypothesis"], abs=1e-4)


def test_texts_beyond_the_limit_are_reported(tmp_path: Path, model: Path, texts: Path) -> None:
    long = " and ".join(sentences(20))
    for words in (("entail", "a man", long), ("encode", long), ("search", f"a man & {long}", "--documents", texts)):
        said = invoke(app, *words, "--model", model)
        assert said.stderr.count("only its beginning is read: 'a ") == 1, said.stderr
    assert "beginning" not in invoke(app, "entail", "a man", "a dog", "--model", model).stderr


def test_encode_a_file_of_documents(tmp_path: Path, model: Path, texts: Path) -> None:
    out = tmp_path / "vectors.safetensors"
    said = run("encode", "--documents", texts, "--out", out, "--precision", "fp16", "--model", model)
    found = load_file(out)
    assert f"120 documents in {out}" in said and len(found["half"]) == len(found["trace"]) == 120
    first = texts.read_text().splitlines()[0]
    assert found["trace"][0].item() == pytest.approx(
        json.loads(run("encode", first, "--model", model, "--json"))["ranks"][0], abs=1e-4
    )
    for wrong in (["a man", "--documents", texts, "--out", out], ["--documents", texts], ["--out", out, "a man"], []):
        with pytest.raises(UserError, match="--documents FILE"):
            run("encode", *wrong, "--model", model)


def test_search_in_a_file_of_documents(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(sentences(30)) + "\n" + " and ".join(sentences(20)) + "\n")
    first = run("search", "a man & ~at night", "--documents", path, "--model", model, "--top", 3)
    assert len(first.splitlines()) == 3 and (tmp_path / "texts.txt.subspaces/manifest.json").exists()
    manifest = json.loads((tmp_path / "texts.txt.subspaces/manifest.json").read_text())
    assert manifest["count"] == 31 and manifest["rows"] > 31  # the last document is longer than 35 tokens
    assert run("search", "a man & ~at night", "--documents", path, "--model", model, "--top", 3) == first
    with pytest.raises(UserError, match="not both"):
        run("search", "a man", "--documents", path, "--index", tmp_path, "--model", model)


def test_without_names_the_projects_own_are_taken(tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"give --documents FILE or --index DIR"):
        run("search", "a man")
    params = (ROOT / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(params)
    (tmp_path / "workflow").mkdir()
    shutil.copyfile(ROOT / "workflow/versions.yaml", tmp_path / "workflow/versions.yaml")
    with pytest.raises(UserError, match=r"data/retrieval/minilm-subspace-128/reduced is missing: run `snakemake"):
        run("search", "a man")
    tiny_model(tmp_path / "models/snli/minilm-subspace-128/2way/seed-0", "subspace")
    run("index", "--documents", texts, "--index", "data/retrieval/minilm-subspace-128/reduced", "--kind", "reduced")
    assert len(run("search", "a man", "--top", 2).splitlines()) == 2
    (tmp_path / "params.yaml").write_text(
        params.replace("kinds: [exact-fp16, ivfpq, reduced, compact]", "kinds: [exact-fp16, ivfpq]")
    )
    with pytest.raises(UserError, match=r"data/retrieval/minilm-subspace-128/exact-fp16 is missing"):
        run("search", "a man")


def test_without_a_project_the_shipped_model_is_taken(
    tmp_path: Path, model: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(texts, tmp_path / "texts.txt")
    loaded = SubspaceEncoder.from_pretrained(model)
    asked: list[object] = []
    monkeypatch.setattr(SubspaceEncoder, "from_pretrained", lambda *words: asked.append(words) or loaded)
    first = run("search", "a man & ~at night", "--documents", "texts.txt", "--top", 3)
    assert len(first.splitlines()) == 3 and asked == [(None, None)]
    built = (tmp_path / "texts.txt.subspaces/manifest.json").stat().st_mtime_ns
    assert run("search", "a man & ~at night", "--documents", "texts.txt", "--top", 3) == first
    assert (tmp_path / "texts.txt.subspaces/manifest.json").stat().st_mtime_ns == built
    assert "premise in hypothesis" in run("entail", "a man runs", "a man")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt", "texts.txt.subspaces"]


def test_methods(tmp_path: Path, model: Path, texts: Path) -> None:
    words = ("search", "a man & ~at night", "--documents", texts, "--model", model, "--json")
    answers = {name: json.loads(run(*words, "--method", name)) for name in ("product", "calibrated")}
    assert run(*words, "--method", "product") == run(*words)  # a model without search.json
    assert all(0 <= hit["score"] <= 1 for hit in answers["calibrated"])
    for name, message in (
        ("hybrid", "no calibration for the method hybrid: choose product"),
        ("maybe", "unknown method"),
    ):
        with pytest.raises(UserError, match=message):
            run(*words, "--method", name)
