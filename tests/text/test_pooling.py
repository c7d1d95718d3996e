"""Vectors of the plain backbone inside a model with adapters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from peft.tuners.tuners_utils import BaseTunerLayer

from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.sources.origins import SAMPLES
from subspaces.text.backbone import Backbone
from subspaces.text.load import TextModel
from subspaces.text.pair_model import PairModel, Texts, make_model, read_encoder
from subspaces.text.pooling import keeps_backbone, plain_vectors, pooled
from subspaces.text.texts import TokenTable, WordPieces, sample_tokeniser

TEXTS = ["a man is outside", "a dog runs in the park with a woman", "a man is outside"]
SPEC = {"encoder": "subspace", "backbone": "tiny", "dim": 8, "heads": 4, "lam": 0.05, "adapters": {"r": 2}}


def adapted() -> PairModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make_model(read_encoder(SPEC), 2, Backbone.from_folder(SAMPLES, None, 0, 0.0))
        for name, part in model.named_parameters():
            if "lora_B" in name:  # zeros at the start: then adapters change nothing
                torch.nn.init.normal_(part)
    return model.eval()


def opened(model: PairModel, folder: Path) -> TextModel:
    record = {"model": SPEC, "backbone": {"name": "tiny", "wanted": "tiny"}, "ways": 2, "limit": 35, "config": None}
    tokeniser = WordPieces(text=sample_tokeniser(SAMPLES / "tiny-vocab.txt"))
    return TextModel(model, record | {"weights_sha256": "0" * 64}, tokeniser, folder)


def test_plain_vectors_are_those_of_the_backbone_alone(tmp_path: Path) -> None:
    model = opened(adapted(), tmp_path)
    assert keeps_backbone(model)
    trained = {name for name, part in model.model.named_parameters() if part.requires_grad}
    before = model.projectors(TEXTS)
    expected = pooled(Backbone.from_folder(SAMPLES, None, 0, 0.0).eval(), model.tokeniser, TEXTS, 35)
    found = plain_vectors(model, TEXTS)
    assert torch.equal(found, expected)
    assert torch.allclose(found.norm(dim=1), torch.ones(3), atol=1e-5) and torch.equal(found[0], found[2])
    assert not torch.allclose(pooled(model.model.backbone, model.tokeniser, TEXTS, 35), expected, atol=1e-2)
    assert torch.equal(model.projectors(TEXTS), before)
    assert {name for name, part in model.model.named_parameters() if part.requires_grad} == trained
    assert torch.equal(HalfVectorEncoder.of_text_model(model).vectors(TEXTS), found)


def test_a_loaded_model_has_its_adapters_in_the_weights(tmp_path: Path) -> None:
    model = adapted()
    tokeniser = WordPieces(text=sample_tokeniser(SAMPLES / "tiny-vocab.txt"))
    table = TokenTable.of(TEXTS, tokeniser, 35)
    expected = Texts(table).encode_all(model, np.arange(len(TEXTS)))
    assert torch.allclose(opened(model, tmp_path).projectors(TEXTS), expected, atol=1e-5)
    layers = [part for part in model.modules() if isinstance(part, BaseTunerLayer)]
    assert layers and all(layer.merged for layer in layers)
