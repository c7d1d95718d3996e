"""A subspace model among the sentence-transformers: written, read back, and the same embeddings as our own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from subspaces.algebra import half_vector, unhalf_vector
from subspaces.errors import UserError
from subspaces.files import sha256_file, write_json, write_text
from subspaces.text.load import TextModel, load_text_model
from subspaces.text.texts import sample_tokeniser
from tests.text.small import small_model

pytest.importorskip("sentence_transformers")

WORDS = ["a", "the", "dog", "cat", "runs", "sleeps", "near", "big", "tree", "red", "car", "on", "road", "in", "sun"]
NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TEXTS = ["a dog runs", "the red car on the road in the sun near a big tree", "a cat", "a dog runs"]
LONG = "the dog " * 40


def trained(folder: Path, encoder: str = "subspace", kind: str = "bert", **options) -> Path:
    """A folder as training leaves it, of a model with random weights."""
    options = {"dim": 8, "heads": 4} | options if encoder != "vector" else options
    model = small_model(encoder, kind=kind, **options)
    folder.mkdir()
    save_file({name: one.contiguous() for name, one in model.state_dict().items()}, folder / "weights.safetensors")
    words = folder.parent / "words.txt"
    names = ["<s>", "<pad>", "</s>", "<mask>", *NAMES] if kind == "mpnet" else NAMES
    write_text(words, "\n".join(names))
    write_text(folder / "tokenizer.json", sample_tokeniser(words))
    settings = {
        "weights_sha256": sha256_file(folder / "weights.safetensors"),
        "backbone": {"name": "toy", "wanted": "toy", "layers": None, "frozen": 0, "dropout": 0.0},
        "config": model.backbone.config,
        "model": {"encoder": encoder, "backbone": "toy", **options},
        "ways": 2,
        "limit": 12,
    }
    write_json(folder / "settings.json", settings)
    return folder


def ours(folder: Path, texts: list[str]) -> torch.Tensor:
    return half_vector(load_text_model(folder).projectors(texts))


@pytest.mark.parametrize("options", [{}, {"last": 2}, {"layer_norm": True, "vectors": 5}, {"kind": "mpnet"}], ids=str)
def test_an_exported_model_gives_our_embeddings(tmp_path, options):
    from subspaces.text.sentence_transformer import export, open_exported

    folder = trained(tmp_path / "model", **options)
    out = export(folder, tmp_path / "exported")
    texts = [*TEXTS, LONG]
    expected = ours(folder, texts)
    found = open_exported(out).encode(texts, convert_to_tensor=True)
    assert found.shape == (5, 36)
    assert torch.allclose(found, expected, atol=1e-4)
    assert not torch.allclose(found[0], found[1], atol=1e-2)
    assert not list(tmp_path.glob(".exported*"))
    again = export(folder, tmp_path / "again")
    assert sha256_file(again / "model.safetensors") == sha256_file(out / "model.safetensors")


def test_the_library_reads_it_by_itself_and_again_after_saving(tmp_path):
    from sentence_transformers import SentenceTransformer

    from subspaces.text.sentence_transformer import SubspacePooling, export

    folder = trained(tmp_path / "model")
    out = export(load_text_model(folder), tmp_path / "exported")
    first = SentenceTransformer(str(out), trust_remote_code=True, device="cpu")
    assert isinstance(first[1], SubspacePooling)
    assert first.get_embedding_dimension() == 36
    assert first.max_seq_length == 12
    first.save(str(tmp_path / "again"))
    second = SentenceTransformer(str(tmp_path / "again"), trust_remote_code=True, device="cpu")
    found = second.encode(TEXTS, convert_to_tensor=True)
    assert torch.allclose(found, ours(folder, TEXTS), atol=1e-4)
    assert not [
        path for path in (*out.rglob("*"), *(tmp_path / "again").rglob("*")) if path.suffix in (".bin", ".pt", ".pkl")
    ]


def test_the_dot_product_is_the_subspace_similarity(tmp_path):
    from subspaces.text.sentence_transformer import export, open_exported

    folder = trained(tmp_path / "model")
    model = open_exported(export(folder, tmp_path / "exported"))
    found = model.encode(TEXTS, convert_to_tensor=True)
    P = load_text_model(folder).projectors(TEXTS)
    expected = torch.einsum("aij,bji->ab", P, P)
    assert torch.allclose(model.similarity(found, found), expected, atol=1e-4)
    assert torch.allclose(unhalf_vector(found), P, atol=1e-4)


def test_what_cannot_be_exported(tmp_path):
    from subspaces.text.sentence_transformer import export, open_exported

    with pytest.raises(UserError, match="only subspace models"):
        export(trained(tmp_path / "vector", "vector"), tmp_path / "out")
    with pytest.raises(UserError, match="masked"):
        export(trained(tmp_path / "unmasked", masked=False), tmp_path / "out")
    good = trained(tmp_path / "good")
    (tmp_path / "full").mkdir()
    write_text(tmp_path / "full" / "a.txt", "mine")
    with pytest.raises(UserError, match="not empty"):
        export(good, tmp_path / "full")
    assert (tmp_path / "full" / "a.txt").read_text() == "mine"
    with pytest.raises(UserError, match="no exported"):
        open_exported(tmp_path / "full")
    assert not (tmp_path / "out").exists()


def test_three_layers_need_hidden_states(tmp_path):
    from subspaces.text.sentence_transformer import SubspacePooling

    pooling = SubspacePooling(32, 8, heads=4, last=3)
    features = {"token_embeddings": torch.ones(1, 2, 32), "attention_mask": torch.ones(1, 2, dtype=torch.long)}
    with pytest.raises(UserError, match="output_hidden_states"):
        pooling(features)


def test_a_text_model_is_taken_as_it_is(tmp_path):
    """Weights changed in memory are the weights that are exported."""
    from subspaces.text.sentence_transformer import export, open_exported

    model: TextModel = load_text_model(trained(tmp_path / "model"))
    with torch.no_grad():
        model.model.head.down.weight.mul_(3.0)
    found = open_exported(export(model, tmp_path / "exported")).encode(TEXTS, convert_to_tensor=True)
    assert torch.allclose(found, half_vector(model.projectors(TEXTS)), atol=1e-4)
