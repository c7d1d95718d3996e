"""The soft projector P = X(XᵀX+λI)⁻¹Xᵀ and its gradient in closed form (paper §3.2, Eq. 5, App. B).

Two identities make it cheap. With A = XXᵀ+λI and K = I−P:

    P = I − λA⁻¹,  K = λA⁻¹                       one symmetric inverse, no solve against X
    ∂L/∂X = 2·K·sym(G)·A⁻¹X = (2/λ)·K·sym(G)·K·X  for G = ∂L/∂P: no inverse in the backward pass

`soft_projector` is the public, careful function; `inverse_spd`, `complement` and `gradient` are its parts, which the training step
uses directly on thousands of small matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from subspaces.errors import UserError

# Above this value of eps·‖X‖²/λ the directions outside the span would be wrong by about 1e-6 in this precision.
_SAFE_ROUNDING = 1e-6
_SMALL = 32


def inverse_spd(matrix: Tensor, out: Tensor | None = None) -> Tensor:
    """Inverse of symmetric positive definite matrices (…, d, d), in a new tensor or in `out`.

    Up to d = 32 by Cholesky, A⁻¹ = L⁻ᵀL⁻¹. Larger ones are halved by the Schur complement: nearly all the work then is batched
    products, which run several times faster than factorisations of many small matrices.
    """
    d = matrix.shape[-1]
    if d <= _SMALL:
        factor = torch.linalg.cholesky(matrix)
        identity = torch.eye(d, dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
        inverse_factor = torch.linalg.solve_triangular(factor, identity, upper=False)
        return torch.matmul(inverse_factor.mT, inverse_factor, out=out)
    h = d // 2
    upper, corner, lower = matrix[..., :h, :h], matrix[..., :h, h:], matrix[..., h:, h:]
    upper_inverse = inverse_spd(upper)
    mixed = upper_inverse @ corner
    schur_inverse = inverse_spd(lower - corner.mT @ mixed)
    off_diagonal = (mixed @ schur_inverse).neg_()
    inverse = torch.empty_like(matrix) if out is None else out
    torch.sub(upper_inverse, off_diagonal @ mixed.mT, out=inverse[..., :h, :h])
    inverse[..., :h, h:] = off_diagonal
    inverse[..., h:, :h] = off_diagonal.mT
    inverse[..., h:, h:] = schur_inverse
    return inverse


def complement(X: Tensor, lam: float, out: Tensor | None = None) -> Tensor:
    """K = I − P = λ(XXᵀ+λI)⁻¹ = (I + XXᵀ/λ)⁻¹ of X (…, d, n): the projector of the negation; in a new tensor or in `out`."""
    d, n = X.shape[-2:]
    flat = X.reshape(-1, d, n)
    identity = torch.eye(d, dtype=X.dtype, device=X.device).expand(len(flat), d, d)
    gram = torch.baddbmm(identity, flat, flat.mT, alpha=1.0 / lam)
    return inverse_spd(gram.view(*X.shape[:-2], d, d), out)


def projector_of(K: Tensor) -> Tensor:
    """P = I − K, in a new tensor."""
    P = K.neg()
    P.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return P


def gradient(K: Tensor, KX: Tensor, G: Tensor) -> Tensor:
    """∂L/∂X (…, d, n) from K, K·X and G = (2/λ)·∂L/∂P, symmetric: the caller scales where there are fewer numbers to scale."""
    return K @ (G @ KX)


class _SoftProjector(torch.autograd.Function):
    """Forward keeps K and Y = A⁻¹X = X(XᵀX+λI)⁻¹; backward is three products: 2·K·sym(G)·Y."""

    @staticmethod
    def forward(ctx, X: Tensor, lam: float) -> Tensor:
        d, n = X.shape[-2:]
        if n < d:
            gram = X.mT @ X
            gram.diagonal(dim1=-2, dim2=-1).add_(lam)
            Y = X @ inverse_spd(gram)
            P = Y @ X.mT
            P = (P + P.mT).mul_(0.5)
            K = projector_of(P)
        else:
            K = complement(X, lam)
            Y = (K @ X).div_(lam)
            P = projector_of(K)
        ctx.save_for_backward(K, Y)
        return P

    @staticmethod
    def backward(ctx, G: Tensor):
        if torch.is_grad_enabled():
            raise UserError(
                "soft_projector has a closed-form first derivative only: for second derivatives (create_graph=True) use "
                "soft_projector(X, lam, closed_form=False), which autograd differentiates as often as needed."
            )
        K, Y = ctx.saved_tensors
        symmetric = (G + G.mT).mul_(0.5)
        return (K @ (symmetric @ Y)).mul_(2.0), None


DEFAULT_LAM = 0.05  # the paper's value for sentences; its WordNet models use 0.2


def soft_projector(X: Tensor, lam: float = DEFAULT_LAM, closed_form: bool = True) -> Tensor:
    """P = X(XᵀX+λI)⁻¹Xᵀ for X (…, d, n), n ≥ 1; returns (…, d, d) with eigenvalues σ²/(σ²+λ) in [0, 1). λ is 0.05 by default.

    Differentiable once, in float32 or float64, on any device. `closed_form=False` is slower, and autograd and `torch.func` (vmap,
    grad, hessian) see ordinary operations: second derivatives work. Under `torch.func.vmap` it is chosen by itself. When n < d the n × n system is used. Float32 input whose norm is so
    large that rounding would leak into the complement is computed in float64 and returned in float32.
    """
    if not isinstance(X, Tensor) or not X.is_floating_point():
        raise UserError("soft_projector needs a floating point tensor X (…, d, n), for example torch.randn(64, 8).")
    if X.dtype not in (torch.float32, torch.float64):
        raise UserError(f"soft_projector works in float32 and float64, not {X.dtype}: call X.float() first.")
    if X.ndim < 2 or X.shape[-1] < 1 or X.shape[-2] < 1:
        raise UserError(f"soft_projector needs X of shape (…, d, n) with d ≥ 1 and n ≥ 1, got {tuple(X.shape)}.")
    try:
        lam = float(lam)
    except (TypeError, ValueError):
        raise UserError(f"λ must be a positive number, got {lam!r}.") from None
    if not lam > 0 or lam == float("inf"):
        raise UserError(f"λ must be a positive number, got {lam}: small values (0.01 to 0.2) are usual.")
    if X.numel() == 0:
        return X.new_zeros(*X.shape[:-1], X.shape[-2])
    if not closed_form or torch._C._functorch.is_functorch_wrapped_tensor(X):
        identity = torch.eye(X.shape[-2], dtype=X.dtype, device=X.device)
        return identity - torch.linalg.inv(identity + X @ X.mT / lam)
    largest = X.detach().square().sum(dim=(-2, -1)).amax()
    if not torch.isfinite(largest):
        if bool(torch.isfinite(X.detach()).all()):
            raise UserError("X is too large for its precision (its squares overflow): scale it down or use float64.")
        raise UserError("X contains NaN or infinity: look for a diverged training step or a bad input.")
    if float(largest) * torch.finfo(torch.float64).eps > 1e-3 * lam:
        raise UserError(
            f"λ = {lam} is lost in rounding beside ‖X‖² = {float(largest):.3g}: use a larger λ, or scale X down."
        )
    if X.dtype == torch.float32 and float(largest) * torch.finfo(torch.float32).eps > _SAFE_ROUNDING * lam:
        return _SoftProjector.apply(X.double(), lam).to(torch.float32)
    return _SoftProjector.apply(X, lam)
