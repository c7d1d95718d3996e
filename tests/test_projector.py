"""The soft projector and its closed-form gradient against the textbook formula, computed in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from subspaces.errors import UserError
from subspaces.projector import complement, gradient, inverse_spd, projector_of, soft_projector

SHAPES = [(8, 3), (8, 8), (8, 20), (8, 1), (1, 1), (1, 5), (40, 7), (40, 40), (3, 6, 4), (2, 2, 5, 5)]
KINDS = ["random", "rank-deficient", "zero", "tiny", "huge"]
LAM = 0.2


def example(kind: str, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """A float64 matrix whose entries float32 can hold exactly, so that both precisions see the same X."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(shape, generator=generator, dtype=torch.float64)
    if kind == "rank-deficient":
        rank = max(1, min(shape[-2:]) // 2)
        left = torch.randn(*shape[:-1], rank, generator=generator, dtype=torch.float64)
        X = left @ torch.randn(*shape[:-2], rank, shape[-1], generator=generator, dtype=torch.float64)
    X = X * {"zero": 0.0, "tiny": 1e-4, "huge": 1e3}.get(kind, 1.0)
    return X.float().double()


def textbook(X: Tensor, lam: float) -> Tensor:
    """X(XᵀX+λI)⁻¹Xᵀ, the formula as the paper prints it."""
    return X @ torch.linalg.solve(X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype), X.mT)


def exact_gradient(X: Tensor, lam: float, G: Tensor) -> Tensor:
    """∂⟨G, P⟩/∂X from the singular values of X, without a difference of nearly equal numbers.

    With P = UDUᵀ the in-span entries of the derivative weigh λ/(σ²+λ), the others 1; autograd through a solve gets the first
    kind as 1 − σ²/(σ²+λ), which for large X has no correct digit left even in float64.
    """
    U, sigma, Vt = torch.linalg.svd(X, full_matrices=True)
    outside = torch.ones(*X.shape[:-1], dtype=X.dtype)
    outside[..., : sigma.shape[-1]] = lam / (sigma**2 + lam)
    factor = sigma / (sigma**2 + lam)
    width = sigma.shape[-1]
    inner = U.mT @ (0.5 * (G + G.mT)) @ U
    return 2 * (U * outside[..., None, :]) @ (inner[..., :width] * factor[..., None, :]) @ Vt[..., :width, :]


def gradients(X: Tensor, lam: float, G: Tensor, function=soft_projector) -> Tensor:
    leaf = X.clone().requires_grad_()
    (result,) = torch.autograd.grad((function(leaf, lam) * G).sum(), leaf)
    return result


def worst(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).abs().max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_projector_agrees_with_the_textbook(kind: str, shape: tuple[int, ...]) -> None:
    X = example(kind, shape)
    expected = textbook(X, LAM)
    single, double = soft_projector(X.float(), LAM), soft_projector(X, LAM)
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    assert single.shape == double.shape == (*shape[:-1], shape[-2])
    assert worst(single, expected) < 1e-5
    # Two float64 roads to a projector part by about eps·‖X‖²/λ: for entries of 1e3 that is a millionth, otherwise nothing.
    assert worst(double, expected) < (1e-6 if kind == "huge" else 1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_agrees_with_autograd_through_a_solve(kind: str, shape: tuple[int, ...]) -> None:
    X = example(kind, shape)
    G = torch.randn(*shape[:-1], shape[-2], generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    expected = exact_gradient(X, LAM, G) if kind == "huge" else gradients(X, LAM, G, textbook)
    single, double = gradients(X.float(), LAM, G.float()), gradients(X, LAM, G)
    assert single.dtype == torch.float32
    largest = float(expected.abs().max())
    if kind == "zero":
        assert largest == 0 and not single.any() and not double.any()
        return
    assert worst(single, expected) < 1e-4 * largest
    assert worst(double, expected) < (1e-4 if kind == "huge" else 1e-9) * largest


@pytest.mark.parametrize("shape", [(6, 2), (6, 6), (6, 9)], ids=str)
def test_the_exact_gradient_of_these_tests_is_the_textbook_one(shape: tuple[int, ...]) -> None:
    X = example("random", shape)
    G = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert worst(exact_gradient(X, LAM, G), gradients(X, LAM, G, textbook)) < 1e-12


@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (4, 6), (4, 1), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("kind", ["random", "rank-deficient", "zero"])
def test_gradcheck(kind: str, shape: tuple[int, ...]) -> None:
    X = example(kind, shape).requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: soft_projector(leaf, LAM), (X,))


@settings(max_examples=40)
@given(
    d=st.integers(1, 12),
    n=st.integers(1, 12),
    lam=st.floats(1e-3, 10.0),
    scale=st.floats(0.01, 30.0),
    seed=st.integers(0, 10**6),
)
def test_eigenvalues_are_shrunk_squares(d: int, n: int, lam: float, scale: float, seed: int) -> None:
    X = example("random", (d, n), seed) * scale
    squares = torch.zeros(d, dtype=torch.float64)
    squares[: min(d, n)] = torch.linalg.svdvals(X) ** 2
    P = soft_projector(X, lam)
    assert torch.equal(P, P.mT) or worst(P, P.mT) < 1e-12
    assert worst(torch.linalg.eigvalsh(P).flip(0), squares / (squares + lam)) < 1e-7


def test_zero_gives_the_empty_subspace() -> None:
    for shape in ((5, 2), (5, 5), (5, 9), (4, 40, 40)):
        assert not soft_projector(torch.zeros(shape), LAM).any()


def test_an_empty_batch_stays_empty() -> None:
    assert soft_projector(torch.zeros(0, 5, 2), LAM).shape == (0, 5, 5)


@pytest.mark.parametrize("n", [4, 9, 15])
def test_memory_layout_does_not_matter(n: int) -> None:
    plain = example("random", (3, 9, n)).float()
    turned = plain.mT.contiguous().mT
    spaced = torch.zeros(3, 9, 2 * n)
    spaced[..., ::2] = plain
    everyone = torch.randn(5, 9, n)
    for X in (turned, spaced[..., ::2], plain[:1].expand(3, 9, n), everyone[::2]):
        assert not X.is_contiguous()
        assert worst(soft_projector(X, LAM), textbook(X.double(), LAM)) < 1e-5
        G = torch.randn(3, 9, 9)
        assert worst(gradients(X, LAM, G), gradients(X.double(), LAM, G.double(), textbook)) < 1e-4


def test_the_input_is_left_alone() -> None:
    X = example("random", (6, 6))
    before = X.clone()
    gradients(X, LAM, torch.ones(6, 6, dtype=torch.float64))
    assert torch.equal(X, before)


def test_a_batch_is_its_members_one_by_one() -> None:
    X = example("random", (4, 7, 5))
    assert worst(soft_projector(X, LAM), torch.stack([soft_projector(one, LAM) for one in X])) < 1e-12


@pytest.mark.parametrize(
    ("X", "lam", "words"),
    [
        (torch.tensor([[1.0, float("nan")]]), 0.2, "NaN or infinity"),
        (torch.tensor([[1.0], [float("inf")]]), 0.2, "NaN or infinity"),
        (torch.full((2, 2), 1e30), 0.2, "float64"),
        (torch.ones(3, 2), 0.0, "λ must be a positive"),
        (torch.ones(3, 2), -1.0, "λ must be a positive"),
        (torch.ones(3, 2), float("nan"), "λ must be a positive"),
        (torch.ones(3, 2), float("inf"), "λ must be a positive"),
        (torch.ones(3, 2, dtype=torch.int64), 0.2, "floating point"),
        ([[1.0, 2.0]], 0.2, "floating point"),
        (torch.ones(3, 2, dtype=torch.float16), 0.2, r"X\.float\(\)"),
        (torch.ones(3, 2, dtype=torch.bfloat16), 0.2, r"X\.float\(\)"),
        (torch.ones(3), 0.2, r"shape \(…, d, n\)"),
        (torch.tensor(1.0), 0.2, r"shape \(…, d, n\)"),
        (torch.ones(3, 0), 0.2, "n ≥ 1"),
        (torch.ones(0, 3), 0.2, "d ≥ 1"),
    ],
    ids=lambda value: str(value).replace("\n", "")[:30],
)
def test_wrong_input_is_explained(X, lam: float, words: str) -> None:
    with pytest.raises(UserError, match=words):
        soft_projector(X, lam)


@pytest.mark.parametrize("shape", [(4, 2), (4, 4)], ids=str)
def test_a_lambda_below_rounding_is_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="λ"):
        soft_projector(torch.ones(shape), 1e-30)


@pytest.mark.parametrize("d", [1, 5, 31, 32, 33, 64, 100, 128])
def test_inverse_of_symmetric_positive_definite_matrices(d: int) -> None:
    root = torch.randn(3, d, d + 4, generator=torch.Generator().manual_seed(d), dtype=torch.float64) / d**0.5
    matrix = root @ root.mT + 0.2 * torch.eye(d, dtype=torch.float64)
    expected = torch.linalg.inv(matrix)
    assert worst(inverse_spd(matrix), expected) < 1e-11
    assert worst(inverse_spd(matrix.float()), expected) < 2e-5
    assert worst(inverse_spd(matrix[0]), expected[0]) < 1e-11


@pytest.mark.parametrize("n", [3, 6, 10])
def test_the_parts_that_training_uses(n: int) -> None:
    X = example("random", (4, 6, n))
    K = complement(X, LAM)
    P = projector_of(K)
    assert worst(P, textbook(X, LAM)) < 1e-12
    assert worst(K, torch.eye(6, dtype=torch.float64) - P) < 1e-15
    G = torch.randn(4, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    G = G + G.mT
    assert worst(gradient(K, K @ X, G * (2 / LAM)), gradients(X, LAM, G, textbook)) < 1e-11


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_on_cuda(shape: tuple[int, ...]) -> None:
    X = example("random", shape)
    G = torch.randn(*shape[:-1], shape[-2], dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    P = soft_projector(X.float().cuda(), LAM)
    assert P.device.type == "cuda" and worst(P.cpu(), textbook(X, LAM)) < 1e-5
    expected = gradients(X, LAM, G, textbook)
    assert worst(gradients(X.float().cuda(), LAM, G.float().cuda()).cpu(), expected) < 1e-4 * float(
        expected.abs().max()
    )


def test_second_derivatives_and_vmap_work_or_say_what_to_use():
    X = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(torch.func.vmap(lambda x: soft_projector(x, 0.2))(X), soft_projector(X, 0.2), atol=1e-10)
    leaf = X[0].clone().requires_grad_()
    with pytest.raises(ValueError, match="closed_form=False"):
        torch.autograd.grad(soft_projector(leaf, 0.2).sum(), leaf, create_graph=True)
    assert torch.autograd.gradgradcheck(lambda x: soft_projector(x, 0.2, closed_form=False), (leaf,))
