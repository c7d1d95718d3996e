"""The Subspace Projection Head: the same function and gradient as written in the paper, whatever the order of the products (§3.2)."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from subspaces.errors import UserError
from subspaces.text.encoders.subspace import Settings, SubspaceProjectionHead, projector
from subspaces.text.pair_model import make_model
from tests.text.small import sentences, small_model

LENGTHS = [4, 7, 3, 7, 2, 6]


def written_out(head: SubspaceProjectionHead, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """X by the library's multi-head attention and the MLP, one layer after the other."""
    size, batch = head.size, len(states)
    attention = torch.nn.MultiheadAttention(size, head.heads, batch_first=True).to(states.dtype)
    weights = {"in_proj_weight": torch.cat([head.query.weight, head.key_value.weight])}
    weights |= {"in_proj_bias": torch.cat([head.query.bias, head.key_value.bias])}
    weights |= {"out_proj.weight": head.joined.weight, "out_proj.bias": head.joined.bias}
    call = (head.queries.expand(batch, -1, -1), states, states)
    options = {"need_weights": False, "key_padding_mask": None if mask is None else ~mask}
    gathered, _ = torch.func.functional_call(attention, weights, call, options)
    hidden = F.leaky_relu(head.up(gathered))
    return head.down(hidden if head.norm is None else head.norm(hidden)).mT


def written_projector(X: torch.Tensor, lam: float) -> torch.Tensor:
    gram = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
    return X @ torch.linalg.solve(gram, X.mT)


def head_of(vectors: int, layer_norm: bool = False, size: int = 64) -> SubspaceProjectionHead:
    torch.manual_seed(0)
    head = SubspaceProjectionHead(size, 12, vectors, heads=4, layer_norm=layer_norm).double()
    for name, one in head.named_parameters():  # biases start at zero, which would hide a mistake
        if name.endswith("bias"):
            torch.nn.init.normal_(one, std=0.3)
    return head


# Few rows, short sentences and long ones each take their own order of products.
CASES = {"few rows": (1, 5, 16), "short": (6, 7, 16), "long": (6, 20, 16), "fewer vectors than tokens": (20, 7, 8)}


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "unmasked"])
@pytest.mark.parametrize("layer_norm", [False, True], ids=["plain", "norm"])
@pytest.mark.parametrize("case", CASES)
def test_value_and_gradient_are_those_of_the_formulas(case, layer_norm, masked):
    batch, length, vectors = CASES[case]
    head = head_of(vectors, layer_norm)
    states = torch.randn(batch, length, 64, dtype=torch.float64, requires_grad=True)
    mask = (torch.arange(length) < torch.randint(1, length + 1, (batch, 1))) if masked else None
    upstream = torch.randn(batch, 12, vectors, dtype=torch.float64)
    values, slopes = [], []
    for make in (head, lambda *given: written_out(head, *given)):
        head.zero_grad()
        states.grad = None
        X = make(states, mask)
        X.backward(upstream)
        values.append(X.detach())
        slopes.append([states.grad.clone(), *(one.grad.clone() for one in head.parameters())])
    assert torch.allclose(*values, atol=1e-12)
    for ours, theirs in zip(*slopes, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("vectors", [5, 12, 20])
@pytest.mark.parametrize("size", [0.05, 1.0, 30.0])
def test_the_projector_and_its_gradient(training, vectors, size):
    """Also of vectors so long that single precision would not do."""
    generator = torch.Generator().manual_seed(0)
    X = (torch.randn(3, 12, vectors, generator=generator) * size).requires_grad_()
    upstream = torch.randn(3, 12, 12, generator=generator)
    P = projector(X, 0.05, training)
    P.backward(upstream)
    exact = X.detach().double().requires_grad_()
    Q = written_projector(exact, 0.05)
    Q.backward(upstream.double())
    assert P.dtype == torch.float32
    tolerance = 1e-3 if training else 1e-5
    assert torch.allclose(P.double(), Q, atol=tolerance)
    assert (X.grad - exact.grad).norm() <= 2 * tolerance * exact.grad.norm() + 1e-6


@pytest.mark.parametrize("ways", [2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"last": 2, "squared": True, "layer_norm": True, "vectors": 5}], ids=["paper", "released code"]
)
def test_gradients_through_the_whole_model(ways, options):
    """Closed-form gradient and reordered products against plain autograd from the loss down to the word embeddings."""
    model = small_model("subspace", ways, dim=8, heads=4, neutral_width=16, **options).train()
    premise, hypothesis, labels = sentences(LENGTHS), sentences(LENGTHS[::-1], seed=1), torch.tensor([0, 1, 1, 0, 1, 0])

    def plain(tokens):
        mask = tokens.mask.repeat(1, model.last)
        return written_projector(written_out(model.head, model.backbone(tokens, model.last), mask), model.lam)

    losses, slopes = [], []
    for encode in (model.encode, plain):
        model.zero_grad()
        loss = model.loss(encode(premise), encode(hypothesis), labels, 0.1)
        loss.backward()
        losses.append(loss.item())
        slopes.append({name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None})
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert set(slopes[0]) == set(slopes[1]) == {name for name, _ in model.named_parameters()}
    largest = max(one.norm() for one in slopes[1].values())
    for name, one in slopes[1].items():
        assert (slopes[0][name] - one).norm() <= 2e-3 * one.norm() + 1e-5 * largest, name


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("dim", [8, 16, 32])
@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_start_between_none_and_all(dim, layer_norm, seed):
    """A mean Tr(P) of a quarter to a half of d, at the λ of the experiments."""
    model = small_model("subspace", seed=seed, dim=dim, heads=8, layer_norm=layer_norm).eval()
    with torch.no_grad():
        P = model.encode(sentences([6, 9, 12, 15, 18, 21] * 4, seed=seed))
    rank = P.diagonal(dim1=1, dim2=2).sum(-1)
    assert 0.2 * dim < rank.mean() < 0.55 * dim
    assert rank.std() < 0.2 * dim


def test_ranks_do_not_depend_on_the_size_of_the_states():
    """Backbones end with norms of very different weights; the start allows for that."""
    ranks = []
    for size in (0.1, 1.0, 5.0):
        model = small_model("subspace", dim=16)
        with torch.no_grad():
            model.backbone.layers[0][-1].output.LayerNorm.weight.fill_(size)
            torch.manual_seed(0)
            model = Settings(backbone="tiny", dim=16).build(2, model.backbone).eval()
            ranks.append(model.encode(sentences([8] * 12)).diagonal(dim1=1, dim2=2).sum(-1).mean().item())
    assert max(ranks) - min(ranks) < 0.5


@pytest.mark.parametrize("last", [1, 2])
def test_masked_padding_changes_nothing_and_unmasked_does(last):
    narrow, wide = sentences([5, 5]), sentences([5, 5], width=17)
    masked = small_model("subspace", dim=8, heads=4, last=last).eval()
    unmasked = small_model("subspace", dim=8, heads=4, last=last, masked=False).eval()
    unmasked.load_state_dict(masked.state_dict())
    with torch.no_grad():
        assert torch.allclose(masked.encode(narrow), masked.encode(wide), atol=1e-5)
        assert torch.allclose(masked.encode(narrow), unmasked.encode(narrow), atol=1e-5)
        assert (unmasked.encode(narrow) - unmasked.encode(wide)).abs().max() > 1e-3


@pytest.mark.parametrize("ways", [2, 3])
def test_shapes_and_ranges(ways):
    model = small_model("subspace", ways, dim=8, heads=4, neutral_width=16).eval()
    with torch.no_grad():
        P, Q = model.encode(sentences(LENGTHS)), model.encode(sentences(LENGTHS, seed=1))
        logits, score = model.logits(P, Q), model.inclusion(P, Q)
    assert P.shape == (6, 8, 8) and logits.shape == (6, ways) and score.shape == (6,)
    assert torch.equal(P, P.mT)
    values = torch.linalg.eigvalsh(P.double())
    assert values.min() > -1e-5 and values.max() < 1
    assert (score > 0).all() and (score < 1).all()
    assert torch.allclose(
        score, torch.stack([(p @ q).trace() / p.trace() for p, q in zip(P, Q, strict=True)]), atol=1e-6
    )


def test_two_way_decides_by_inclusion_alone():
    model = small_model("subspace", dim=4, heads=4)
    all_of, half = torch.eye(4)[None], torch.diag(torch.tensor([1.0, 1.0, 0.0, 0.0]))[None]
    with torch.no_grad():
        assert model.inclusion(half, all_of).item() == 1 and model.inclusion(all_of, half).item() == 0.5
        assert model.logits(half, all_of).argmax() == 0
        assert model.logits(half, torch.eye(4)[None] - half).argmax() == 1
        squared = small_model("subspace", dim=4, heads=4, squared=True)
        assert torch.allclose(squared.logits(all_of, half), squared.beta(torch.tensor([0.25])))
        assert squared.inclusion(all_of, half).item() == 0.5


def test_wild_parameters_are_settled():
    model = small_model("subspace", dim=4, heads=4)
    with torch.no_grad():
        model.beta.shapes.mul_(-50)
        model.settle()
    assert (model.beta.shapes >= 1).all() and (model.beta.shapes <= 20).all()


def test_single_precision_inside_autocast():
    """Mixed precision stops before the projector, and the gradient comes back through it."""
    model = small_model("subspace", dim=8, heads=4).train()
    with torch.autocast("cpu", dtype=torch.float16):
        P = model.encode(sentences(LENGTHS))
    assert P.dtype == torch.float32
    P.square().sum().backward()
    assert torch.isfinite(model.head.queries.grad).all() and model.head.queries.grad.abs().sum() > 0


def test_requests_that_cannot_be_met():
    with pytest.raises(UserError, match="backbone"):
        make_model(Settings(backbone="tiny", dim=8), 2, None)
    with pytest.raises(UserError, match="heads"):
        small_model("subspace", dim=8, heads=5)
