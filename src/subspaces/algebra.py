"""Concepts as subspaces: conjunction, disjunction, negation, similarity, inclusion and rank (paper §3, §3.1, Table 1).

A `Subspace` holds one projector, or a batch of them, of shape (…, d, d). Hard projectors (eigenvalues 0 and 1) and soft ones
(eigenvalues in [0, 1)) obey the same formulas:

    a & b   conjunction   PₐP_b              other choices in `Subspace.meet`: sandwich, sandwich-hard, exact
    a | b   disjunction   Pₐ + P_b − PₐP_b   other choice in `Subspace.join`: span
    ~a      negation      I − Pₐ

Both pairs (product, sum) and (exact, span) satisfy De Morgan's laws, for soft projectors too.

A product of two projectors is symmetric only if they commute. `Subspace.projector` of a composed element may therefore be
non-symmetric. Against a symmetric P the trace Tr(PQ) sees only (Q + Qᵀ)/2, which `Subspace.symmetric` returns; everything that
needs a spectrum (`exact`, `sandwich-hard`, `span`, `truncate`) or half the entries (`half_vector`) symmetrises first.

Choices that cut a spectrum carry no gradient: `exact`, `sandwich-hard`, `span` without λ, `truncate`, `from_vectors` without λ. All
the rest is differentiable.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.projector import DEFAULT_LAM, soft_projector

Meet = Literal["product", "sandwich", "sandwich-hard", "exact"]
Join = Literal["sum", "span"]
ArrayLike = Tensor | np.ndarray | Sequence[Any]
_TOLERANCE = 0.01  # of `<=`


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    """One subspace of R^d, or a batch: `projector` has shape (…, d, d). Immutable; compare with `isclose`."""

    projector: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "projector", _tensor(self.projector))
        _check_square(self.projector)

    @classmethod
    def from_vectors(cls, X: ArrayLike, lam: float | None = DEFAULT_LAM) -> Subspace:
        """The span of the columns of X (…, d, n), a tensor, array or list: soft with temperature λ (§3.2; 0.05 by default), or with
        `lam=None` the orthogonal projector X(XᵀX)†Xᵀ (§3, Eq. 1)."""
        X = _tensor(X)
        if lam is not None:
            return cls(soft_projector(X, lam))
        _check_float(X)
        if X.ndim < 2:
            raise UserError(
                f"vectors must have shape (…, d, n), the columns spanning the subspace; got {_show(X.shape)}."
            )
        _check_finite(X)
        with torch.no_grad():
            U, S, _ = torch.linalg.svd(X, full_matrices=False)
            smallest = S[..., :1] * max(X.shape[-2:]) * torch.finfo(X.dtype).eps
            U = U * (smallest < S).unsqueeze(-2)
            return cls(U @ U.mT)

    @classmethod
    def from_projector(cls, P: ArrayLike, symmetric: bool = True) -> Subspace:
        """Wrap P (…, d, d), checked to be square, finite and, unless `symmetric=False` (a composed element), symmetric."""
        P = _tensor(P)
        _check_square(P)
        _check_finite(P)
        if symmetric and P.numel():
            gap = (P - P.mT).abs().max().item()
            allowed = 1e3 * torch.finfo(P.dtype).eps * max(1.0, P.abs().max().item())
            if gap > allowed:
                raise UserError(
                    f"a projector is symmetric, but this one differs from its transpose by {gap:.3g} (allowed {allowed:.1g}). "
                    "Pass symmetric=False for a composed element, or use (P + Pᵀ)/2."
                )
        return cls(P)

    @classmethod
    def from_half_vector(cls, v: ArrayLike) -> Subspace:
        """Inverse of `half_vector`: v (…, d(d+1)/2)."""
        return cls.from_projector(unhalf_vector(_tensor(v)))

    @classmethod
    def stack(cls, subspaces: Iterable[Subspace]) -> Subspace:
        """One batch from several subspaces of equal shape."""
        subspaces = list(subspaces)
        if not subspaces:
            raise UserError("stack needs at least one Subspace.")
        for other in subspaces:
            _pair(subspaces[0], other)
        if len({tuple(item.shape) for item in subspaces}) > 1:
            raise UserError("stack needs subspaces of equal shape: index or reshape the batches first.")
        return cls(torch.stack([item.projector for item in subspaces]))

    @property
    def device(self) -> torch.device:
        return self.projector.device

    @property
    def dtype(self) -> torch.dtype:
        return self.projector.dtype

    def numpy(self) -> np.ndarray:
        """The projector as a NumPy array (…, d, d), without gradient."""
        return self.projector.detach().cpu().numpy()

    def basis(self, tau: float = 0.5) -> Tensor:
        """Orthonormal columns (d, k) of one subspace: the eigenvectors with eigenvalues ≥ τ, the largest first. No gradient."""
        if self.projector.ndim != 2:
            raise UserError("basis needs one subspace, because ranks in a batch differ: index the batch first.")
        _check_tau(tau)
        with torch.no_grad():
            values, vectors = torch.linalg.eigh(_symmetric(self.projector))
            return vectors[:, values >= tau].flip(-1)

    @property
    def shape(self) -> torch.Size:
        """(…, d, d)."""
        return self.projector.shape

    @property
    def dim(self) -> int:
        """Dimension d of the surrounding space."""
        return self.projector.shape[-1]

    @property
    def rank(self) -> Tensor:
        """Tr(P), shape (…): the dimension of a hard subspace, its smooth counterpart for a soft one."""
        return self.projector.diagonal(dim1=-2, dim2=-1).sum(-1)

    def similarity(self, other: Subspace) -> Tensor:
        """sim = Tr(P Q), shape (…): the sum of the squared cosines of the principal angles."""
        P, Q = _pair(self, other)
        return (P * Q.mT).sum((-2, -1))

    def inclusion(self, other: Subspace) -> Tensor:
        """NIS(other | self) = Tr(P_self P_other) / Tr(P_self), shape (…): how much of self lies in other.

        The zero subspace (trace below rounding) lies in everything: its inclusion is 1, with zero gradient.
        """
        shared, own = torch.broadcast_tensors(self.similarity(other), self.rank)
        empty = own <= self.dim * torch.finfo(own.dtype).eps
        return torch.where(empty, torch.ones_like(shared), shared / torch.where(empty, torch.ones_like(own), own))

    def meet(
        self, other: Subspace, how: Meet = "product", *, threshold: float = 0.1, tol: float | None = None
    ) -> Subspace:
        """Conjunction. P is self, Q is other.

        product        PQ (Table 1): the projector onto the intersection if P and Q commute; not symmetric otherwise.
        sandwich       QPQ: symmetric for symmetric operands, and its trace is Tr(PQ) for a hard Q.
        sandwich-hard  QPQ with eigenvalues above `threshold` set to 1 and the rest dropped.
        exact          lim (PQ)^k. For 0 ≤ P, Q ≤ I the limit projects onto the vectors that both leave unchanged: the eigenspace
                       of P + Q at eigenvalue 2, found by one eigendecomposition in which eigenvalues ≥ 2 − `tol` count (default:
                       rounding). It is always a hard projector. A strictly soft operand leaves no vector unchanged, so the
                       limit is the zero subspace, with a warning: use `truncate(…, hard=True)` first, or a larger `tol`.
        """
        P, Q = _pair(self, other)
        if how == "product":
            return Subspace(P @ Q)
        if how == "sandwich":
            return Subspace(Q @ P @ Q)
        if how == "sandwich-hard":
            P, Q = _symmetric(P), _symmetric(Q)
            return Subspace(_spectral(Q @ P @ Q, lambda value: value > threshold, hard=True))
        if how == "exact":
            margin = _rounding(P, tol)
            result = Subspace(_spectral(_symmetric(P) + _symmetric(Q), lambda value: value >= 2 - margin, hard=True))
            if tol is None and P.numel() and (_is_soft(P) or _is_soft(Q)) and float(result.rank.max()) < 0.5:
                warnings.warn(
                    "the exact meet of soft projectors is the zero subspace, because they leave no vector unchanged: harden them "
                    "first with truncate(τ, hard=True), or pass a larger tol.",
                    stacklevel=2,
                )
            return result
        raise UserError(f"unknown meet '{how}'; choose product, sandwich, sandwich-hard or exact.")

    def join(
        self, other: Subspace, how: Join = "sum", *, lam: float | None = None, tol: float | None = None
    ) -> Subspace:
        """Disjunction. P is self, Q is other.

        sum   P + Q − PQ (Table 1): the projector onto the linear sum if P and Q commute; not symmetric otherwise.
        span  Stack the two eigenbases, each direction scaled by the root of its eigenvalue, and project onto the span of the
              stack Y. As YYᵀ = P + Q =: M no basis is needed: with λ it is the soft projector M(M + λI)⁻¹; with `lam=None` or
              0 the orthogonal projector onto the range of M, eigenvalues above `tol` counting (default: rounding).
        """
        P, Q = _pair(self, other)
        if how == "sum":
            return Subspace(P + Q - P @ Q)
        if how != "span":
            raise UserError(f"unknown join '{how}'; choose sum or span.")
        M = _symmetric(P) + _symmetric(Q)
        if not lam:
            margin = _rounding(P, tol)
            return Subspace(_spectral(M, lambda value: value > margin, hard=True))
        if not (math.isfinite(lam) and lam > 0):
            raise UserError(f"λ must be a positive number (or None for the orthogonal projector); got {lam}.")
        eye = torch.eye(self.dim, dtype=M.dtype, device=M.device)
        return Subspace(_symmetric(torch.linalg.solve(M + lam * eye, M)))

    def complement(self) -> Subspace:
        """Negation: I − P."""
        return Subspace(torch.eye(self.dim, dtype=self.projector.dtype, device=self.projector.device) - self.projector)

    def __and__(self, other: Subspace) -> Subspace:
        return self.meet(other)

    def __or__(self, other: Subspace) -> Subspace:
        return self.join(other)

    def __invert__(self) -> Subspace:
        return self.complement()

    def __le__(self, other: Subspace) -> Tensor:
        """`dog <= animal`: does self lie in other, inclusion ≥ 0.99? Bool (…). For another tolerance compare `inclusion` yourself."""
        return self.inclusion(other) >= 1 - _TOLERANCE

    def __ge__(self, other: Subspace) -> Tensor:
        _pair(self, other)
        return other <= self

    def __bool__(self) -> bool:
        raise TypeError("a Subspace is neither true nor false: combine subspaces with & | ~ instead of and, or, not.")

    def symmetric(self) -> Subspace:
        """(P + Pᵀ)/2: all that Tr(P · symmetric) can see of a composed element."""
        return Subspace(_symmetric(self.projector))

    def truncate(self, tau: float, hard: bool = False) -> Subspace:
        """Keep the eigenvalues ≥ τ, drop the rest. Kept eigenvalues stay as they are; with `hard=True` they become 1."""
        _check_tau(tau)
        return Subspace(_spectral(_symmetric(self.projector), lambda value: value >= tau, hard=hard))

    def half_vector(self) -> Tensor:
        """(…, d(d+1)/2), so that inner products of half-vectors equal similarities; see `half_vector`."""
        return half_vector(self.projector)

    def isclose(self, other: Subspace, atol: float = 1e-6) -> bool:
        """Do all entries of the two projectors agree within `atol`?"""
        P, Q = _pair(self, other)
        return bool(((P - Q).abs() <= atol).all())

    def to(self, *args: Any, **kwargs: Any) -> Subspace:
        """As `torch.Tensor.to`: move to a device, change the precision."""
        return Subspace(self.projector.to(*args, **kwargs))

    def __getitem__(self, index: Any) -> Subspace:
        """Index the batch; the last two axes (d, d) cannot be reached."""
        index = index if isinstance(index, tuple) else (index,)
        ellipsis = () if any(i is Ellipsis for i in index) else (...,)
        return Subspace(self.projector[(*index, *ellipsis, slice(None), slice(None))])

    def __len__(self) -> int:
        if self.projector.ndim == 2:
            raise TypeError("a single subspace has no length; only batches do")
        return self.projector.shape[0]

    def __iter__(self) -> Iterator[Subspace]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        batch = f", batch={_show(self.shape[:-2])}" if self.projector.ndim > 2 else ""
        rank = f"{self.rank.detach().mean().item():.2f}" if self.projector.numel() else "–"
        return f"Subspace(d={self.dim}{batch}, rank={rank})"


def half_vector(P: Tensor) -> Tensor:
    """(…, d, d) → (…, d(d+1)/2): the upper triangle of (P + Pᵀ)/2 row by row, off-diagonal entries times √2.

    Then ⟨half(P), half(Q)⟩ = Tr(PQ) for symmetric P and Q, with about half the entries.
    """
    _check_square(P)
    i, j = torch.triu_indices(P.shape[-1], P.shape[-1], device=P.device)
    return (P[..., i, j] + P[..., j, i]) / 2 * _half_scale(i, j, P.dtype)


def unhalf_vector(v: Tensor) -> Tensor:
    """(…, d(d+1)/2) → symmetric (…, d, d): the inverse of `half_vector`."""
    _check_float(v)
    length = v.shape[-1] if v.ndim else 0
    d = (math.isqrt(8 * length + 1) - 1) // 2
    if v.ndim == 0 or d * (d + 1) // 2 != length:
        near = f"; d = {d} would need {d * (d + 1) // 2}, d = {d + 1} needs {(d + 1) * (d + 2) // 2}" if v.ndim else ""
        raise UserError(f"a half-vector has d(d+1)/2 entries in its last axis, got shape {_show(v.shape)}{near}.")
    i, j = torch.triu_indices(d, d, device=v.device)
    entries = v / _half_scale(i, j, v.dtype)
    place = torch.empty(d, d, dtype=torch.long, device=v.device)
    place[i, j] = place[j, i] = torch.arange(length, device=v.device)
    return entries[..., place]


def _half_scale(i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.ones_like(i, dtype=dtype).masked_fill(i != j, math.sqrt(2.0))


def _symmetric(P: Tensor) -> Tensor:
    return (P + P.mT) / 2


def _spectral(M: Tensor, keep: Callable[[Tensor], Tensor], hard: bool) -> Tensor:
    """Rebuild a symmetric M (…, d, d) from the eigenvalues that `keep` chooses, set to 1 if `hard`. No gradient."""
    with torch.no_grad():
        values, vectors = torch.linalg.eigh(M)
        kept = keep(values).to(M.dtype)
        weights = kept if hard else kept * values
        return (vectors * weights.unsqueeze(-2)) @ vectors.mT


def _rounding(P: Tensor, tol: float | None) -> float:
    """How far an eigenvalue of a sum of two projectors may be off and still count as exact."""
    return 64 * P.shape[-1] * torch.finfo(P.dtype).eps if tol is None else tol


def _pair(a: Subspace, b: Subspace) -> tuple[Tensor, Tensor]:
    """The two projectors, or a clear error if they cannot meet."""
    if not isinstance(b, Subspace):
        raise UserError(f"expected a Subspace, got {type(b).__name__}; wrap a projector with Subspace.from_projector.")
    P, Q = a.projector, b.projector
    shapes = f"{_show(P.shape)} and {_show(Q.shape)}"
    if P.shape[-1] != Q.shape[-1]:
        raise UserError(
            f"these subspaces live in different spaces: projectors {shapes}. Both need the same dimension d."
        )
    try:
        np.broadcast_shapes(
            P.shape[:-2], Q.shape[:-2]
        )  # torch's own loads a symbolic algebra package, which takes a second
    except ValueError as error:
        raise UserError(
            f"these batches do not broadcast: projectors {shapes}. Index or reshape one of them."
        ) from error
    if P.dtype != Q.dtype or P.device != Q.device:
        raise UserError(
            f"these subspaces differ in kind: {P.dtype} on {P.device}, {Q.dtype} on {Q.device}. Convert one with .to(…)."
        )
    return P, Q


def _tensor(X: ArrayLike) -> Tensor:
    """Tensors as they are; arrays and lists of numbers as float32, or float64 where the array is."""
    if isinstance(X, Tensor):
        return X
    try:
        array = np.asarray(X)
        if array.dtype.kind not in "iuf":
            raise ValueError
        return torch.as_tensor(
            array if array.dtype == np.float64 and isinstance(X, np.ndarray) else array.astype(np.float32)
        )
    except (TypeError, ValueError):
        raise UserError(f"expected a tensor, an array or nested lists of numbers, got {type(X).__name__}.") from None


def _is_soft(P: Tensor) -> bool:
    """Do some eigenvalues lie strictly between 0 and 1? For a symmetric P: PP differs from P."""
    S = _symmetric(P.detach())
    return bool((S @ S - S).abs().max() > 1e3 * torch.finfo(P.dtype).eps) if P.numel() else False


def _check_tau(tau: float) -> None:
    if not 0 <= tau <= 1:
        raise UserError(f"τ must lie in [0, 1], the range of a projector's eigenvalues; got {tau}.")


def _check_float(X: Tensor) -> None:
    if not isinstance(X, Tensor) or X.dtype not in (torch.float32, torch.float64):
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise UserError(f"expected a float32 or float64 tensor, got {kind}.")


def _check_square(P: Tensor) -> None:
    _check_float(P)
    if P.ndim < 2 or P.shape[-1] != P.shape[-2]:
        raise UserError(f"a projector must have shape (…, d, d), got {_show(P.shape)}.")


def _check_finite(X: Tensor) -> None:
    if not bool(torch.isfinite(X).all()):
        raise UserError("found NaN or infinite entries; a subspace needs finite numbers.")


def _show(shape: torch.Size) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
