"""Our backbone against the classes of the transformers library, and what the heads ask of it."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.files import write_json
from subspaces.nli.backbone import Backbone, backbone_config, from_hub, to_hub
from tests.nli.small import sentences
from tests.nli.toys import CONFIG

LENGTHS = [9, 5, 2, 30]


def library(kind: str, seed: int = 0):
    """The library's model with random weights, norms and biases included."""
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    if kind == "bert":
        model = BertModel(BertConfig(**CONFIG), add_pooling_layer=False)
    else:
        model = MPNetModel(MPNetConfig(**CONFIG | {"model_type": "mpnet"}), add_pooling_layer=False)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn(one.shape, generator=generator) * 0.2)
    return model.eval()


def ours(kind: str, theirs, **options) -> Backbone:
    config = CONFIG | {"model_type": kind}
    model = Backbone(config, **options)
    model.load_state_dict(from_hub(theirs.state_dict(), model.config))
    return model.eval()


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_hidden_states_are_those_of_the_library(kind):
    theirs = library(kind)
    model = ours(kind, theirs)
    pad = 1 if kind == "mpnet" else 0
    tokens = sentences(LENGTHS, pad=pad)
    with torch.no_grad():
        expected = theirs(input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True).hidden_states
        assert torch.allclose(model(tokens)[tokens.mask], expected[-1][tokens.mask], atol=1e-5)
        three = model(tokens, last=3).view(len(LENGTHS), 3, -1, 32)
    for place, one in enumerate(expected[-3:]):
        assert torch.allclose(three[:, place][tokens.mask], one[tokens.mask], atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
@pytest.mark.parametrize("last", [1, 2])
def test_several_batches_at_once_are_the_same_function_with_the_same_gradient(kind, last):
    model = ours(kind, library(kind))
    batches = [sentences([4, 4, 4]), sentences([9, 7]), sentences([2])]
    found = []
    for run in (lambda: model.together(batches, last), lambda: [model(one, last) for one in batches]):
        model.zero_grad()
        states = run()
        sum((one[batch.mask.repeat(1, last)] ** 3).sum() for one, batch in zip(states, batches, strict=True)).backward()
        found.append((states, [one.grad.clone() for one in model.parameters()]))
    for together, alone in zip(found[0][0], found[1][0], strict=True):
        assert together.shape == alone.shape
        assert torch.allclose(together, alone, atol=1e-5)
    assert all(torch.allclose(one, other, rtol=1e-3, atol=1e-3) for one, other in zip(found[0][1], found[1][1], strict=True))


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_weights_survive_the_way_there_and_back(kind):
    theirs = library(kind)
    config = CONFIG | {"model_type": kind}
    known = theirs.state_dict()
    back = to_hub(from_hub(known, config), config)
    for name, one in back.items():
        if name == "embeddings.token_type_embeddings.weight":
            assert torch.equal(one[0], known[name][0])  # the second kind of token is never used
        else:
            assert torch.equal(one, known[name]), name
    assert set(back) == set(known) - {"embeddings.position_ids", "embeddings.token_type_ids"}
    other = ours(kind, theirs)
    assert torch.equal(other.state_dict()["layers.0.qkv.weight"], from_hub(back, config)["layers.0.qkv.weight"])


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_the_first_layers_are_a_shorter_model(kind):
    theirs = library(kind)
    model = ours(kind, theirs, layers=1)
    tokens = sentences(LENGTHS, pad=1)
    with torch.no_grad():
        expected = theirs(input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True).hidden_states
        assert torch.allclose(model(tokens)[tokens.mask], expected[1][tokens.mask], atol=1e-5)
    assert len(model.layers) == model.config["num_hidden_layers"] == 1
    assert len(ours(kind, theirs, layers=9).layers) == 2


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_frozen_layers_have_no_gradient_and_the_others_the_same(kind):
    theirs = library(kind)
    tokens = sentences(LENGTHS)
    whole, half = ours(kind, theirs), ours(kind, theirs, frozen=1)
    for model in (whole, half):
        model(tokens)[tokens.mask].square().sum().backward()
    frozen = {name for name, one in half.named_parameters() if not one.requires_grad}
    assert {"words.weight", "positions.weight", "norm.weight", "layers.0.qkv.weight"} <= frozen
    assert ("relative.weight" if kind == "mpnet" else "kind") in frozen
    assert not any(name.startswith("layers.1") for name in frozen)
    expected = dict(whole.named_parameters())
    for name, one in half.named_parameters():
        assert (one.grad is None) == (name in frozen), name
        if one.grad is not None:
            assert torch.allclose(one.grad, expected[name].grad, rtol=1e-3, atol=1e-4), name


def test_dropout_only_while_training_and_never_in_frozen_layers():
    tokens = sentences(LENGTHS)
    model = ours("bert", library("bert"), dropout=0.5)
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))
    still = ours("bert", library("bert"), dropout=0.5, frozen=2).train()
    assert torch.equal(still(tokens), still(tokens))


def test_folders_that_hold_no_backbone(tmp_path):
    with pytest.raises(UserError, match="fetch"):
        backbone_config(tmp_path)
    write_json(tmp_path / "config.json", {"model_type": "t5"})
    with pytest.raises(UserError, match="bert and mpnet"):
        backbone_config(tmp_path)
