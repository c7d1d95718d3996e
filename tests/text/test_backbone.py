"""Backbones of several architectures: packed batches are the same function as padded ones, and what is refused."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.files import write_json
from subspaces.text.backbone import Backbone, backbone_config
from subspaces.text.texts import backbone_tokeniser
from tests.text.small import sentences
from tests.text.toys import CONFIG, tiny_backbone

LENGTHS = [9, 5, 2, 30]
KINDS = {"bert": 0, "distilbert": 0, "roberta": 1, "mpnet": None}  # the first position of packed sentences
PAD = {"roberta": 0, "mpnet": 1}


def backbone(kind: str, **options) -> Backbone:
    """Random weights, norms and biases included."""
    model = tiny_backbone(kind, **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", [1, 2])
def test_states_are_those_of_the_library(kind, last):
    model, tokens = backbone(kind), sentences(LENGTHS, pad=PAD.get(kind, 0))
    assert model.first_position == KINDS[kind]
    with torch.no_grad():
        states = model(tokens, last).view(len(LENGTHS), last, -1, 32)
        found = model.model(input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True)
    for place, expected in enumerate(found.hidden_states[-last:]):
        assert torch.allclose(states[:, place][tokens.mask], expected[tokens.mask], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_several_batches_at_once_are_the_same_function_with_the_same_gradient(kind):
    model = backbone(kind)
    batches = [sentences([4, 4, 4]), sentences([9, 7], pad=PAD.get(kind, 0)), sentences([2])]
    results = []
    for run in (lambda: model.together(batches), lambda: [model(tokens) for tokens in batches]):
        model.zero_grad()
        states = run()
        sum((one[tokens.mask] ** 3).sum() for one, tokens in zip(states, batches, strict=True)).backward()
        results.append((states, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}))
    (together, gradient), (alone, expected) = results
    assert all(
        torch.allclose(a[b.mask], c[b.mask], atol=1e-5) for a, b, c in zip(together, batches, alone, strict=True)
    )
    assert gradient.keys() == expected.keys()
    assert all(torch.allclose(gradient[name], expected[name], rtol=1e-3, atol=1e-2) for name in gradient)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_layers_have_no_gradient_and_no_dropout(kind):
    tokens = sentences(LENGTHS, pad=PAD.get(kind, 0))
    model = backbone(kind, frozen=1, dropout=0.5).train()
    model(tokens).square().sum().backward()
    first = {id(parameter) for parameter in model.layers[0][0].parameters()}
    for name, parameter in model.named_parameters():
        frozen = id(parameter) in first or "embeddings" in name or "relative" in name
        assert (parameter.grad is None) == frozen, name
    assert not torch.equal(model(tokens), model(tokens))
    still = backbone(kind, frozen=2, dropout=0.5).train()
    assert torch.equal(still(tokens), still(tokens))


def test_a_folder_written_by_the_library_is_read_with_fewer_layers(tmp_path):
    model = backbone("distilbert")
    model.model.save_pretrained(tmp_path)
    tokens = sentences(LENGTHS)
    with torch.no_grad():
        found = model.model(input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True)
        for layers in (1, 2, None):
            opened = Backbone.from_folder(tmp_path, layers).eval()
            expected = found.hidden_states[layers or 2]
            assert torch.allclose(opened(tokens)[tokens.mask], expected[tokens.mask], atol=1e-5)


def test_positions_limit_the_length():
    assert backbone("bert").longest == 40
    assert backbone("roberta").longest == 39


@pytest.mark.parametrize(
    ("kind", "message"),
    [("gpt2", "left to right"), ("t5", "encoder with a decoder"), ("vit", "does not read tokens")],
)
def test_models_that_are_not_text_encoders_are_refused(kind, message):
    config = {"model_type": kind, "num_hidden_layers": 2} | (CONFIG | {"model_type": kind} if kind == "gpt2" else {})
    if kind == "t5":
        config |= {
            "d_model": 32,
            "num_layers": 2,
            "num_heads": 4,
            "d_ff": 32,
            "vocab_size": 64,
            "decoder_start_token_id": 0,
        }
    if kind == "vit":
        config |= {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 32}
    with pytest.raises(UserError, match=message):
        Backbone.from_config(config)


def test_folders_that_hold_no_backbone_or_no_fast_tokeniser(tmp_path):
    with pytest.raises(UserError, match="subspaces fetch"):
        backbone_config(tmp_path)
    write_json(tmp_path / "config.json", {"hidden_size": 3})
    with pytest.raises(UserError, match="model_type"):
        backbone_config(tmp_path)
    write_json(tmp_path / "config.json", CONFIG)
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        backbone_tokeniser(tmp_path)
