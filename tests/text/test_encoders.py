"""What all encoders on a backbone share: they learn, nothing looks across pairs, and a batch may be cut anywhere."""

from __future__ import annotations

import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.snli.evaluate import CHAINS
from subspaces.text.encoders.vector import mean_pool
from subspaces.text.pair_model import PairModel, make_model, read_encoder
from subspaces.text.texts import TokenTable, Words
from tests.text.small import sentences, small_model
from tests.text.toys import toy_pairs

OPTIONS = {
    "subspace-2": ("subspace", 2, {"dim": 16, "heads": 4}),
    "subspace-3": ("subspace", 3, {"dim": 8, "heads": 4, "neutral_width": 32}),
    "vector-2": ("vector", 2, {}),
    "vector-3": ("vector", 3, {"difference": True}),
    "box-2": ("box", 2, {"dim": 8}),
}


def made(name: str, seed: int = 0) -> PairModel:
    encoder, ways, options = OPTIONS[name]
    return small_model(encoder, ways, seed, **options)


@pytest.mark.parametrize("name", OPTIONS)
def test_sixty_pairs_are_learnt(name):
    model, pairs = made(name), toy_pairs(20)
    texts = TokenTable.of(pairs.texts, Words.of(pairs.texts), 35)
    premise, hypothesis = texts.batch(pairs.premise), texts.batch(pairs.hypothesis)
    labels = torch.from_numpy(pairs.labels(model.ways))
    (optimiser,) = model.optimisers(5e-3)
    model.train()
    for _ in range(90):
        optimiser.zero_grad()
        model.loss(model.encode(premise), model.encode(hypothesis), labels, 0.1).backward()
        optimiser.step()
        model.settle()
    model.eval()
    with torch.no_grad():
        right = model.logits(model.encode(premise), model.encode(hypothesis)).argmax(1) == labels
    assert len(labels) == 60
    assert right.double().mean() >= 0.9


@pytest.mark.parametrize("name", OPTIONS)
def test_the_loss_of_a_batch_is_the_weighted_mean_of_its_parts(name):
    model = made(name).train()
    lengths = [4, 9, 6, 3, 7, 5, 8]
    premise, hypothesis, labels = sentences(lengths), sentences(lengths, seed=1), torch.arange(7) % model.ways

    def loss(rows: slice) -> torch.Tensor:
        parts = [type(one)(one.ids[rows], one.mask[rows]) for one in (premise, hypothesis)]
        return model.loss(model.encode(parts[0]), model.encode(parts[1]), labels[rows], 0.1)

    def slopes() -> list[torch.Tensor]:
        return [one.grad.clone() for one in model.parameters()]

    model.zero_grad()
    whole = loss(slice(0, 7))
    whole.backward()
    expected = slopes()
    model.zero_grad()
    parts = [(loss(slice(0, 2)), 2), (loss(slice(2, 7)), 5)]
    total = sum(one * count / 7 for one, count in parts)
    total.backward()
    assert total.item() == pytest.approx(whole.item(), rel=1e-5)
    for ours, one in zip(slopes(), expected, strict=True):
        assert torch.allclose(ours, one, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("name", OPTIONS)
def test_equal_seeds_make_equal_models(name):
    one, two, other = made(name).state_dict(), made(name).state_dict(), made(name, 1).state_dict()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


def test_the_mean_leaves_padding_out():
    states, mask = torch.tensor([[[1.0], [3.0], [8.0]]]), torch.tensor([[True, True, False]])
    assert mean_pool(states, mask).item() == 2.0
    assert mean_pool(states, mask, masked=False).item() == 4.0


@pytest.mark.parametrize("masked", [True, False])
def test_vectors(masked):
    model = small_model("vector", masked=masked).eval()
    with torch.no_grad():
        narrow, wide = model.encode(sentences([5, 4])), model.encode(sentences([5, 4], width=20))
    assert narrow.shape == (2, 32)
    assert torch.allclose(narrow[0], wide[0], atol=1e-5) == masked
    assert model.inclusion(narrow, narrow) is None


@pytest.mark.parametrize("encoder", ["vector", "box"])
def test_a_backbone_is_needed(encoder):
    with pytest.raises(UserError, match="backbone"):
        make_model(read_encoder({"encoder": encoder, "backbone": "tiny"}), 2, None)


def test_chains_go_from_the_specific_to_the_general():
    assert len(CHAINS) == 3
    assert CHAINS[0] == ("A red car drives down the street.", "A vehicle is on the road.", "A vehicle.")
    assert all(3 <= len(chain) <= 5 and len(set(chain)) == len(chain) for chain in CHAINS)
    assert all(len(chain[0]) > len(chain[-1]) for chain in CHAINS)
