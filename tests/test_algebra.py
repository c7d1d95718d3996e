"""The algebra of subspaces: laws, choices, batches, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from subspaces.algebra import Subspace, half_vector, unhalf_vector
from subspaces.errors import UserError
from subspaces.projector import soft_projector

torch.set_num_threads(1)
laws = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**31 - 1)
F64 = torch.float64


def vectors(seed: int, *shape: int, dtype: torch.dtype = F64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


@st.composite
def hard_pairs(draw) -> tuple[Subspace, Subspace]:
    """Two orthogonal projectors of R^d that share `common` directions."""
    d = draw(st.integers(1, 7))
    common = draw(st.integers(0, d))
    a, b = draw(st.integers(0, d - common)), draw(st.integers(0, d - common))
    X = vectors(draw(seeds), d, common + a + b)
    left, right = X[:, : common + a], torch.cat([X[:, :common], X[:, common + a :]], dim=1)
    return Subspace.from_vectors(left, None), Subspace.from_vectors(right, None)


@st.composite
def soft_pairs(draw) -> tuple[Subspace, Subspace]:
    d, n = draw(st.integers(1, 7)), draw(st.integers(1, 9))
    lam = draw(st.sampled_from([0.01, 0.2, 1.0]))
    X = vectors(draw(seeds), 2, d, n)
    return Subspace.from_vectors(X[0], lam), Subspace.from_vectors(X[1], lam)


def both_pairs() -> st.SearchStrategy[tuple[Subspace, Subspace]]:
    return st.one_of(hard_pairs(), soft_pairs())


@laws
@given(both_pairs())
def test_de_morgan_with_the_paper_operators(pair):
    a, b = pair
    assert (~(a | b)).isclose(~a & ~b, 1e-12)
    assert (~(a & b)).isclose(~a | ~b, 1e-12)


@laws
@given(both_pairs())
def test_de_morgan_with_exact_meet_and_span(pair):
    a, b = pair
    assert (~a.join(b, "span")).isclose((~a).meet(~b, "exact"), 1e-9)
    assert (~a.meet(b, "exact")).isclose((~a).join(~b, "span"), 1e-9)


@laws
@given(both_pairs())
def test_double_negation(pair):
    assert (~~pair[0]).isclose(pair[0], 1e-12)


@laws
@given(hard_pairs())
def test_hard_projectors_are_idempotent(pair):
    a, b = pair
    for s in (a, ~a, a.meet(b, "exact"), a.join(b, "span"), a.meet(b, "sandwich-hard")):
        assert (s & s).isclose(s, 1e-9)
        assert (s | s).isclose(s, 1e-9)
        assert s.rank.item() == pytest.approx(round(s.rank.item()), abs=1e-9)
    assert a.meet(a, "exact").isclose(a, 1e-9)
    assert a.join(a, "span").isclose(a, 1e-9)


@laws
@given(hard_pairs())
def test_order(pair):
    a, b = pair
    for meet in (a & b, a.meet(b, "exact")):
        assert meet.inclusion(a).item() == pytest.approx(1, abs=1e-8)
    for join in (a | b, a.join(b, "span")):
        assert a.inclusion(join).item() == pytest.approx(1, abs=1e-8)
    assert a.meet(b, "exact").inclusion(b).item() == pytest.approx(1, abs=1e-8)


@laws
@given(hard_pairs())
def test_exact_meet_and_span_have_the_dimensions_of_linear_algebra(pair):
    a, b = pair
    meet, join = a.meet(b, "exact"), a.join(b, "span")
    assert (meet.rank + join.rank).item() == pytest.approx((a.rank + b.rank).item(), abs=1e-8)
    stacked = torch.cat([a.projector, b.projector], dim=1)
    assert join.rank.item() == pytest.approx(torch.linalg.matrix_rank(stacked).item(), abs=1e-8)


def test_exact_meet_is_the_limit_of_the_alternating_product():
    X = vectors(3, 6, 6)
    a, b = Subspace.from_vectors(X[:, :4], None), Subspace.from_vectors(X[:, 2:], None)
    product = a.projector @ b.projector
    assert a.meet(b, "exact").isclose(Subspace(torch.linalg.matrix_power(product, 4096)), 1e-7)
    assert not (a & b).isclose(a.meet(b, "exact"), 1e-3)


def test_exact_meet_of_soft_subspaces_is_zero_unless_a_tolerance_is_given():
    a = Subspace.from_vectors(torch.eye(4, dtype=F64)[:, :2], 0.01)
    assert a.meet(a, "exact").rank.item() == 0
    assert a.meet(a, "exact", tol=0.05).rank.item() == pytest.approx(2)
    assert a.truncate(0.5, hard=True).meet(a.truncate(0.5, hard=True), "exact").rank.item() == pytest.approx(2)


@laws
@given(st.integers(2, 7), st.integers(1, 7), seeds)
def test_nested_spans_are_included(d, inner, seed):
    X = vectors(seed, d, d)
    small, large = Subspace.from_vectors(X[:, : min(inner, d)], None), Subspace.from_vectors(X, None)
    assert small.inclusion(large).item() == pytest.approx(1, abs=1e-8)
    assert large.inclusion(small).item() == pytest.approx(min(inner, d) / d, abs=1e-8)


def test_the_example_of_figure_1():
    x1, x2, x3 = torch.eye(3, dtype=F64).unsqueeze(-1)
    man_on_a_boat = Subspace.from_vectors(torch.cat([x1, x2], dim=1), None)
    is_fishing = Subspace.from_vectors(torch.cat([x1, x3], dim=1), None)
    man_fishing_on_a_boat = man_on_a_boat & is_fishing
    man_fishing_not_on_a_boat = ~man_on_a_boat & is_fishing
    man_fishing = man_fishing_on_a_boat | man_fishing_not_on_a_boat
    assert man_fishing_on_a_boat.isclose(Subspace.from_vectors(x1, None))
    assert (~man_on_a_boat).isclose(Subspace.from_vectors(x3, None))
    assert man_fishing_not_on_a_boat.isclose(Subspace.from_vectors(x3, None))
    assert man_fishing.isclose(is_fishing)
    assert man_fishing_on_a_boat.inclusion(man_on_a_boat) == 1
    assert man_on_a_boat.inclusion(man_fishing_on_a_boat) == 0.5
    assert man_fishing_not_on_a_boat.inclusion(man_on_a_boat) == 0


@laws
@given(both_pairs())
def test_half_vectors_keep_every_inner_product(pair):
    a, b = pair
    assert torch.dot(a.half_vector(), b.half_vector()).item() == pytest.approx(a.similarity(b).item(), abs=1e-10)
    assert len(a.half_vector()) == a.dim * (a.dim + 1) // 2
    assert Subspace.from_half_vector(a.half_vector()).isclose(a, 1e-12)
    query = a & b
    assert (~a).similarity(query).item() == pytest.approx((~a).similarity(query.symmetric()).item(), abs=1e-10)
    assert torch.dot((~a).half_vector(), query.half_vector()).item() == pytest.approx(
        (~a).similarity(query).item(), abs=1e-10
    )


def test_half_vector_is_the_upper_triangle_row_by_row():
    P = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    assert torch.allclose(half_vector(P), torch.tensor([1.0, 2.0 * 2**0.5, 3.0]))
    assert torch.allclose(unhalf_vector(half_vector(P)), P)
    assert half_vector(torch.eye(3).expand(4, 5, 3, 3)).shape == (4, 5, 6)


@pytest.mark.parametrize(
    "bad", [torch.zeros(4), torch.zeros(2, 7), torch.tensor(1.0), torch.zeros(3, dtype=torch.long)]
)
def test_half_vector_of_impossible_length(bad):
    with pytest.raises(UserError):
        unhalf_vector(bad)


OPERATIONS = {
    "product": lambda a, b: (a & b).projector,
    "sandwich": lambda a, b: a.meet(b, "sandwich").projector,
    "sandwich-hard": lambda a, b: a.meet(b, "sandwich-hard").projector,
    "exact": lambda a, b: a.meet(b, "exact").projector,
    "sum": lambda a, b: (a | b).projector,
    "span": lambda a, b: a.join(b, "span").projector,
    "soft span": lambda a, b: a.join(b, "span", lam=0.1).projector,
    "not": lambda a, b: (~a).projector,
    "truncate": lambda a, b: a.truncate(0.5).projector,
    "similarity": lambda a, b: a.similarity(b),
    "inclusion": lambda a, b: a.inclusion(b),
    "half-vector": lambda a, b: a.half_vector(),
}


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_batch_is_a_loop(name, dtype):
    a = Subspace.from_vectors(vectors(1, 5, 4, 2, dtype=dtype), 0.1)
    b = Subspace.from_vectors(vectors(2, 5, 4, 3, dtype=dtype), 0.1)
    together = OPERATIONS[name](a, b)
    assert together.dtype == dtype
    one_by_one = torch.stack([OPERATIONS[name](x, y) for x, y in zip(a, b, strict=True)])
    assert torch.allclose(together, one_by_one, atol=1e-5)


def test_batches_broadcast_index_and_convert():
    many = Subspace.from_vectors(vectors(1, 3, 1, 4, 2), 0.1)
    few = Subspace.from_vectors(vectors(2, 5, 4, 2), 0.1)
    assert many.similarity(few).shape == many.inclusion(few).shape == (3, 5)
    assert (many & few).shape == (3, 5, 4, 4)
    assert (
        len(many) == 3 and many[1].shape == (1, 4, 4) and many[1, 0].shape == (4, 4) and many[..., 0].shape == (3, 4, 4)
    )
    assert few[torch.tensor([True, False, True, False, False])].shape == (2, 4, 4)
    assert few.to(torch.float32).projector.dtype == torch.float32
    assert few.dim == 4
    with pytest.raises(IndexError):
        many[0, 0, 0]
    with pytest.raises(TypeError):
        len(many[0, 0])


def test_mismatches_name_both_shapes():
    a, b = Subspace.from_projector(torch.eye(3)), Subspace.from_projector(torch.eye(4))
    for operation in (a.similarity, a.inclusion, a.meet, a.join, a.isclose):
        with pytest.raises(UserError, match=r"\(3, 3\) and \(4, 4\)"):
            operation(b)
    with pytest.raises(UserError, match=r"\(2, 3, 3\) and \(5, 3, 3\)"):
        Subspace.from_projector(torch.eye(3).expand(2, 3, 3)) & Subspace.from_projector(torch.eye(3).expand(5, 3, 3))
    with pytest.raises(UserError, match="float64"):
        a & a.to(F64)
    with pytest.raises(UserError, match="Tensor"):
        a & torch.eye(3)


@pytest.mark.parametrize(
    "bad",
    [
        torch.zeros(3),
        torch.zeros(2, 3),
        torch.full((2, 2), torch.nan),
        torch.tensor([[1.0, 0.5], [0.0, 1.0]]),
        torch.eye(2).half(),
        "P",
    ],
)
def test_bad_projectors_are_refused(bad):
    with pytest.raises(UserError):
        Subspace.from_projector(bad)


def test_a_composed_projector_is_accepted_as_such():
    P = torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    assert Subspace.from_projector(P, symmetric=False).symmetric().isclose(Subspace.from_projector((P + P.T) / 2))


def test_bad_vectors_and_choices_are_refused():
    a = Subspace.from_projector(torch.eye(3))
    for call in (
        lambda: Subspace.from_vectors(torch.full((3, 2), torch.inf), None),
        lambda: Subspace.from_vectors(torch.ones(3), None),
        lambda: Subspace.from_vectors(torch.ones(3, 2), 0.0),
        lambda: a.meet(a, "intersection"),
        lambda: a.join(a, "union"),
        lambda: a.join(a, "span", lam=-1.0),
        lambda: a.join(a, "span", lam=float("nan")),
    ):
        with pytest.raises(UserError):
            call()


def test_subspaces_do_not_change():
    a = Subspace.from_projector(torch.eye(3))
    with pytest.raises(AttributeError):
        a.projector = torch.zeros(3, 3)


def test_the_zero_subspace_lies_in_everything():
    zero, full = Subspace.from_projector(torch.zeros(3, 3, dtype=F64)), Subspace.from_projector(torch.eye(3, dtype=F64))
    line = Subspace.from_vectors(vectors(0, 3, 1), None)
    for other in (zero, line, full):
        assert zero.inclusion(other) == 1
        assert other.inclusion(full).item() == pytest.approx(1)
    assert line.inclusion(zero) == 0
    assert (~full).isclose(zero) and (~zero).isclose(full)
    assert line.meet(~line, "exact").isclose(zero) and line.join(~line, "span").isclose(full)
    assert Subspace.from_vectors(torch.zeros(3, 2, dtype=F64), None).isclose(zero)
    X = torch.zeros(3, 2, dtype=F64, requires_grad=True)
    Subspace.from_vectors(X, 0.1).inclusion(line).backward()
    assert torch.isfinite(X.grad).all()


def test_truncate_keeps_or_hardens_what_is_strong():
    soft = Subspace.from_projector(torch.diag(torch.tensor([0.9, 0.5, 0.2], dtype=F64)))
    assert torch.allclose(soft.truncate(0.5).projector.diagonal(), torch.tensor([0.9, 0.5, 0.0], dtype=F64))
    assert torch.allclose(soft.truncate(0.5, hard=True).projector.diagonal(), torch.tensor([1.0, 1.0, 0.0], dtype=F64))
    assert soft.truncate(1.0).rank == 0
    for wrong in (1.1, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"τ must lie in \[0, 1\]"):
            soft.truncate(wrong)


def test_arrays_lists_stack_basis_and_order():
    flat = Subspace.from_vectors([[1, 0], [0, 1], [0, 0]], lam=None)
    line = Subspace.from_vectors(np.eye(3)[:, :1], lam=None).to(torch.float32)
    assert flat.dtype == torch.float32 and flat.device.type == "cpu"
    assert bool(line <= flat) and bool(flat >= line) and not bool(flat <= line)
    both = Subspace.stack([line, flat])
    assert both.shape == (2, 3, 3) and both.rank.tolist() == pytest.approx([1, 2])
    assert np.allclose(both.numpy()[1], np.diag([1, 1, 0]))
    basis = flat.basis()
    assert basis.shape == (3, 2) and torch.allclose(basis @ basis.T, flat.projector, atol=1e-6)
    with pytest.raises(ValueError, match="index the batch first"):
        both.basis()
    with pytest.raises(TypeError, match=r"& \| ~"):
        bool(flat)
    with pytest.raises(ValueError, match="nested lists of numbers"):
        Subspace.from_vectors(["a", "b"])
    with pytest.warns(UserWarning, match="zero subspace"):
        soft = Subspace.from_vectors(torch.eye(3)[:, :2], lam=0.1)
        soft.meet(soft, "exact")


def test_meets_differ_as_documented():
    X = vectors(4, 2, 5, 3)
    a, b = Subspace.from_vectors(X[0], 0.1), Subspace.from_vectors(X[1], 0.1)
    P, Q = a.projector, b.projector
    assert torch.allclose((a & b).projector, P @ Q) and not torch.allclose((a & b).projector, (b & a).projector)
    assert torch.allclose(a.meet(b, "sandwich").projector, Q @ P @ Q)
    U, S, Vh = torch.linalg.svd(Q @ P @ Q)
    for threshold in (0.1, 0.5):
        hard = U @ torch.diag((threshold < S).double()) @ Vh
        assert torch.allclose(a.meet(b, "sandwich-hard", threshold=threshold).projector, hard, atol=1e-9)


def test_span_is_the_projector_of_the_stacked_scaled_bases():
    X = vectors(5, 2, 5, 2)
    a, b = Subspace.from_vectors(X[0], 0.1), Subspace.from_vectors(X[1], 0.1)
    scaled = []
    for s in (a, b):
        values, basis = torch.linalg.eigh(s.projector)
        scaled.append(basis * values.clamp(min=0).sqrt())
    stack = torch.cat(scaled, dim=-1)
    assert torch.allclose(a.join(b, "span", lam=0.1).projector, soft_projector(stack, 0.1), atol=1e-9)
    assert a.join(b, "span").isclose(Subspace.from_vectors(torch.cat([X[0], X[1]], dim=-1), None), 1e-9)
    assert a.join(b, "span", lam=0).isclose(a.join(b, "span"))


@pytest.mark.parametrize(
    "value",
    [
        lambda a, b: a.similarity(b),
        lambda a, b: a.inclusion(b),
        lambda a, b: (a & ~b | b).inclusion(a),
        lambda a, b: a.meet(b, "sandwich").rank,
        lambda a, b: a.join(b, "span", lam=0.3).similarity(a),
        lambda a, b: unhalf_vector(a.half_vector() * b.half_vector()).sum(),
    ],
)
def test_gradients(value):
    X, Y = (v.requires_grad_() for v in vectors(6, 2, 3, 2).unbind())
    assert torch.autograd.gradcheck(
        lambda x, y: value(Subspace.from_vectors(x, 0.5), Subspace.from_vectors(y, 0.5)), (X, Y)
    )


def test_hard_projector_ignores_dependent_vectors():
    X = vectors(7, 6, 2)
    assert Subspace.from_vectors(torch.cat([X, X @ vectors(8, 2, 5)], dim=1), None).isclose(
        Subspace.from_vectors(X, None), 1e-9
    )


def test_repr_is_short():
    assert repr(Subspace.from_projector(torch.eye(3))) == "Subspace(d=3, rank=3.00)"
    assert repr(Subspace.from_projector(torch.eye(3).expand(2, 3, 3))) == "Subspace(d=3, batch=(2,), rank=3.00)"
