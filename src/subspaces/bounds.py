"""Table 1 and appendix A of the paper, checked by numbers: how far each soft operation is from the exact one, over its bound.

Every claim is measured on the same cases: all λ, dimensions and pairs of ranks of a grid, random draws, four kinds of spectrum
(flat, random, one weak direction, one strong direction) and five arrangements of the two subspaces (random, aligned, aligned with
one order reversed, as far apart as d allows, tilted). Flat and aligned cases are the ones in which the bounds are attained.

Two remarks on the similarity bound, which the appendix gives twice. Its proof ends in √(rᵢrⱼ)(εᵢ + εⱼ), weaker than the
proposition, √(rᵢrⱼ)(εᵢ + εⱼ(1 − εᵢ)); the step that would lead from one to the other, ‖P̃ᵢ‖_F ≤ √rᵢ(1 − εᵢ), is false. The
proposition is true all the same, and more: in the order of symmetric matrices (1 − ε)P ≤ P̃ ≤ P, hence

    (1 − εᵢ)(1 − εⱼ) Tr(PᵢPⱼ) ≤ (1 − εᵢ) Tr(PᵢP̃ⱼ) ≤ Tr(P̃ᵢP̃ⱼ) ≤ Tr(PᵢPⱼ),   so that the error is at most
    (1 − (1 − εᵢ)(1 − εⱼ)) Tr(PᵢPⱼ) ≤ min(rᵢ, rⱼ)(εᵢ + εⱼ(1 − εᵢ)).

And one on the linear sum: Pᵢ + Pⱼ − PᵢPⱼ = I − (I − Pᵢ)(I − Pⱼ), so its error is that of an intersection of two negations and
εᵢ + εⱼ suffices: the factor 2 of Table 1 is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.projector import soft_projector

# A ratio above 1 + TOLERANCE breaks a bound. Errors are differences of float64 matrices whose traces are off by up to
# eps·d²·(1 + σ₁²/λ); a case whose bound is not well above that (tiny λ) says nothing: it is skipped, and counted as skipped.
TOLERANCE = 1e-6
STRONGEST = 3.0

_Describe = Callable[[tuple[int, ...], bool], dict[str, Any]]
_Measure = Callable[["_Pair"], tuple[Tensor, Tensor]]
_OURS = "not in the paper"

SPECTRA = ("flat", "random", "one weak", "one strong")
ARRANGEMENTS = ("random", "aligned", "reversed", "apart", "tilted")


@dataclass(frozen=True)
class BoundRow:
    """What the check found for one claim. LaTeX in `exact`, `soft`, `bound`, `statement`."""

    name: str
    statement: str
    worst_ratio: float
    where: dict[str, Any]
    cases: int
    holds: bool
    expected_to_hold: bool
    note: str
    source: str = ""
    exact: str = ""
    soft: str = ""
    bound: str = ""
    equality: bool = False
    least_ratio: float = math.nan
    skipped: int = 0


@dataclass(frozen=True)
class _Pair:
    """Two subspaces, exact (P, Q) and soft (Ps, Qs), all broadcastable to (arrangement, spectrum i, spectrum j, draw, n, d, d)."""

    P: Tensor
    Q: Tensor
    Ps: Tensor
    Qs: Tensor
    eps_i: Tensor
    eps_j: Tensor
    r_i: int
    r_j: int


@dataclass(frozen=True)
class _Claim:
    name: str
    source: str
    exact: str
    soft: str
    error: str
    bound: str
    measure: _Measure
    equality: bool = False
    expected: bool = True
    note: str = ""

    @property
    def statement(self) -> str:
        relation = "=" if self.equality else r"\leq"
        return f"{self.error} {relation} {self.bound}"


def check_bounds(
    lambdas: Sequence[float] = (0.01, 0.05, 0.2, 1.0, 10.0),
    dims: Sequence[int] = (2, 6, 16),
    ranks: Sequence[int] = (1, 2, 5, 16),
    draws: int = 2,
    seed: int = 0,
) -> list[BoundRow]:
    """Measure every claim on the whole grid; ranks above a dimension are left out there."""
    _check_grid(lambdas, dims, ranks, draws)
    generator = torch.Generator().manual_seed(seed)
    found = {claim.name: _Worst() for claim in CLAIMS}
    for lam in lambdas:
        for d in dims:
            possible = [r for r in ranks if r <= d]
            for r_i, r_j in [(a, b) for a in possible for b in possible]:
                pair, describe = _draw(float(lam), d, r_i, r_j, draws, generator)
                if not (torch.isfinite(pair.Ps).all() and torch.isfinite(pair.Qs).all()):
                    raise UserError(
                        f"soft_projector returned NaN or infinity for λ = {lam}, d = {d}, ranks {r_i} and {r_j}."
                    )
                rounding = torch.finfo(torch.float64).eps * d**2 * (1 + STRONGEST**2 / lam)
                for claim in CLAIMS:
                    found[claim.name].add(*claim.measure(pair), rounding, describe)
    return [_row(claim, found[claim.name]) for claim in CLAIMS]


def require_bounds(rows: Sequence[BoundRow]) -> None:
    """Raise if a bound that should hold is broken."""
    empty = [row.name for row in rows if not row.cases]
    if empty:
        raise UserError(
            f"nothing was measured for {', '.join(empty)}: every λ of the grid is too small for float64; add larger ones."
        )
    broken = [row for row in rows if row.expected_to_hold and not (row.holds and row.worst_ratio <= 1 + TOLERANCE)]
    if broken:
        lines = [f"{row.name}: error/bound = {row.worst_ratio:.6g} at {row.where}" for row in broken]
        raise UserError(
            "the soft projector breaks a bound that it must keep; look at subspaces/projector.py.\n" + "\n".join(lines)
        )


_CAPTION = (
    "**Table 1. Soft projectors against their bounds**, checked numerically over λ, dimension, rank, spectrum and relative position; "
    "1.000 means that the bound is attained. ε(σ,λ) = λ/(σ²+λ)."
)


def soft_projectors_table(rows: Sequence[BoundRow], how: Literal["tex", "md"]) -> str:
    """Table 1 with what was measured: operation, exact, soft, bound, worst error over bound, cases, verdict."""
    if how not in ("tex", "md"):
        raise UserError(f"unknown table format '{how}'; choose tex or md.")
    head = ["Operation", "Exact", "Soft", "Bound", "Worst error ÷ bound", "Cases", "Verdict"]
    body = [
        [
            row.name,
            _math(row.exact),
            _math(row.soft),
            _math(row.bound),
            _number(row.worst_ratio),
            str(row.cases),
            _verdict(row),
        ]
        for row in rows
    ]
    if how == "md":
        lines = [head, ["---"] * 4 + ["---:"] * 2 + ["---"], *body]
        table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
        notes = "".join(f"- {row.name}: {row.note}\n" for row in rows if row.note)
        return f"{_CAPTION}\n\n{table}\n{notes}"
    head[4] = r"Worst error\,/\,bound"
    groups = [row.source == _OURS for row in rows]
    tex = [r"\begin{tabular}{llllrrl}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    for position, line in enumerate(body):
        if position and groups[position] and not groups[position - 1]:
            tex.append(r"\midrule")
        tex.append(" & ".join(line) + r" \\")
    return "\n".join([*tex, r"\bottomrule", r"\end{tabular}", ""])


def _math(text: str) -> str:
    return f"${text}$" if text else ""


def _number(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:.1f}"


def _verdict(row: BoundRow) -> str:
    if not row.holds:
        return "broken" if row.expected_to_hold else "broken, as expected"
    return "equality" if row.equality else "holds"


class _Worst:
    """The largest and the smallest error/bound so far, and where the largest was seen."""

    def __init__(self) -> None:
        self.worst, self.least, self.cases, self.skipped = -math.inf, math.inf, 0, 0
        self.where: dict[str, Any] = {}

    def add(self, error: Tensor, bound: Tensor, rounding: float, describe: _Describe) -> None:
        error, bound = torch.broadcast_tensors(error, bound)
        clear = rounding <= TOLERANCE * bound
        self.cases += int(clear.sum())
        self.skipped += int((~clear).sum())
        if not clear.any():
            return
        ratio = error / bound
        self.least = min(self.least, ratio[clear].min().item())
        flat = int(ratio.where(clear, -math.inf).argmax())
        worst = ratio.flatten()[flat].item()
        if worst > self.worst:
            index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), ratio.shape))
            self.worst = worst
            self.where = describe(index, ratio.shape[0] == 1) | {
                "error": error[index].item(),
                "bound": bound[index].item(),
            }


def _row(claim: _Claim, found: _Worst) -> BoundRow:
    holds = found.cases > 0 and found.worst <= 1 + TOLERANCE and (not claim.equality or found.least >= 1 - TOLERANCE)
    return BoundRow(
        name=claim.name,
        statement=claim.statement,
        worst_ratio=found.worst if found.cases else math.nan,
        where=found.where,
        cases=found.cases,
        holds=holds,
        expected_to_hold=claim.expected,
        note=claim.note,
        source=claim.source,
        exact=claim.exact,
        soft=claim.soft,
        bound=claim.bound,
        equality=claim.equality,
        least_ratio=found.least if found.cases else math.nan,
        skipped=found.skipped,
    )


def _check_grid(lambdas: Sequence[float], dims: Sequence[int], ranks: Sequence[int], draws: int) -> None:
    if not (lambdas and dims and ranks and draws >= 1 and min(dims) >= 1 and min(ranks) >= 1):
        raise UserError("the grid needs at least one λ, dimension ≥ 1, rank ≥ 1 and draw.")
    if not all(math.isfinite(lam) and lam > 0 for lam in lambdas):
        raise UserError(f"every λ must be a positive number; got {list(lambdas)}.")
    if min(ranks) > max(dims):
        raise UserError(f"no rank of {list(ranks)} fits a dimension of {list(dims)}.")


def _orthogonal(generator: torch.Generator, *shape: int) -> Tensor:
    """Random orthonormal columns (…, a, b), a ≥ b."""
    return torch.linalg.qr(torch.randn(*shape, generator=generator, dtype=torch.float64)).Q


def _spectra(r: int, draws: int, generator: torch.Generator) -> Tensor:
    """Singular values in descending order, (spectrum, draw, r), between 0.1 and `STRONGEST`."""
    flat = torch.ones(draws, r, dtype=torch.float64)
    exponents = torch.rand(draws, r, generator=generator, dtype=torch.float64)
    random = (0.1 * (STRONGEST / 0.1) ** exponents).sort(descending=True).values
    weak, strong = STRONGEST * flat, 0.1 * flat
    weak[:, -1], strong[:, 0] = 0.1, STRONGEST
    return torch.stack([flat, random, weak, strong])


def _arranged(first: Tensor, generator: torch.Generator, r_i: int, r_j: int) -> Tensor:
    """Bases of the second subspace, (arrangement, draw, d, r_j), next to a first one spanned by first[:, :, :r_i]."""
    second = _orthogonal(generator, *first.shape)
    tilted = torch.linalg.qr(first + 0.3 * second).Q
    backwards = first[..., : max(r_i, r_j)].flip(-1)
    return torch.stack([b[..., :r_j] for b in (second, first, backwards, first.flip(-1), tilted)])


def _draw(lam: float, d: int, r_i: int, r_j: int, draws: int, generator: torch.Generator) -> tuple[_Pair, _Describe]:
    """All cases for one λ, d and pair of ranks, and a function that says what the case at an index is (of one subspace alone?).

    X = U diag(σ) Vᵀ with n columns: as few as the ranks allow, and 2d. Axes: (arrangement, spectrum i, spectrum j, draw, n).
    """
    first = _orthogonal(generator, draws, d, d)
    U, W = first[..., :r_i], _arranged(first, generator, r_i, r_j)
    sigma, eta = _spectra(r_i, draws, generator), _spectra(r_j, draws, generator)
    columns = (max(r_i, r_j), 2 * d)

    def soft(basis: Tensor, values: Tensor) -> Tensor:
        scaled = basis * values.unsqueeze(-2)
        right = [_orthogonal(generator, draws, n, values.shape[-1]) for n in columns]
        return torch.stack([soft_projector(scaled @ V.mT, lam) for V in right], dim=-3)

    pair = _Pair(
        P=(U @ U.mT)[None, None, None, :, None],
        Q=(W @ W.mT)[:, None, None, :, None],
        Ps=soft(U, sigma)[None, :, None],
        Qs=soft(W[:, None], eta)[:, None],
        eps_i=(lam / (sigma[..., -1] ** 2 + lam))[None, :, None, :, None],
        eps_j=(lam / (eta[..., -1] ** 2 + lam))[None, None, :, :, None],
        r_i=r_i,
        r_j=r_j,
    )

    def describe(index: tuple[int, ...], alone: bool) -> dict[str, Any]:
        a, s, t, k, n = index
        told = {
            "lam": lam,
            "d": d,
            "r": r_i,
            "n": columns[n],
            "spectrum": SPECTRA[s],
            "sigma": sigma[s, k].tolist(),
            "draw": k,
        }
        if alone:
            return told
        return told | {"r_j": r_j, "arrangement": ARRANGEMENTS[a], "spectrum_j": SPECTRA[t], "eta": eta[t, k].tolist()}

    return pair, describe


def _norm(M: Tensor) -> Tensor:
    """Operator norm of (…, d, d), from the Gram matrix: accurate for the largest singular value and fast for small d."""
    return torch.linalg.eigvalsh(M.mT @ M)[..., -1].clamp(min=0).sqrt()


def _frobenius(M: Tensor) -> Tensor:
    return M.square().sum((-2, -1)).sqrt()


def _trace(M: Tensor) -> Tensor:
    return M.diagonal(dim1=-2, dim2=-1).sum(-1)


def _not(P: Tensor) -> Tensor:
    return torch.eye(P.shape[-1], dtype=P.dtype) - P


def _product_error(c: _Pair) -> Tensor:
    return _norm(c.P @ c.Q - c.Ps @ c.Qs)


def _sum_error(c: _Pair) -> Tensor:
    return _norm((c.P + c.Q - c.P @ c.Q) - (c.Ps + c.Qs - c.Ps @ c.Qs))


def _similarity_error(c: _Pair) -> Tensor:
    return ((c.P * c.Q).sum((-2, -1)) - (c.Ps * c.Qs).sum((-2, -1))).abs()


def _both(c: _Pair) -> Tensor:
    """1 − (1 − εᵢ)(1 − εⱼ) = εᵢ + εⱼ(1 − εᵢ)."""
    return c.eps_i + c.eps_j * (1 - c.eps_i)


def _mean_rank(c: _Pair) -> float:
    return math.sqrt(c.r_i * c.r_j)


def _claim_of(
    name: str, source: str, exact: str, soft: str, bound: str, measure: _Measure, norm: str = "", **more: Any
) -> _Claim:
    """A claim on the distance of two operators (in a norm) or of two numbers."""
    error = rf"\lVert ({exact})-({soft})\rVert_{norm}" if norm else rf"\lvert {exact}-{soft}\rvert"
    return _Claim(name, source, exact, soft, error, bound, measure, **more)


_EI, _EJ = r"\epsilon(\sigma_r,\lambda)", r"\epsilon(\eta_r,\lambda)"
_SOFT = r"\tilde P"
_RANK = (r"\mathrm{Tr}(P)", r"\mathrm{Tr}(\tilde P)")
_PRODUCT = ("P_iP_j", r"\tilde P_i\tilde P_j")
_SUM = ("P_i+P_j-P_iP_j", r"\tilde P_i+\tilde P_j-\tilde P_i\tilde P_j")
_SIMILARITY = (r"\mathrm{Tr}(P_iP_j)", r"\mathrm{Tr}(\tilde P_i\tilde P_j)")
_STATED = rf"\left({_EI}+{_EJ}\tfrac{{\sigma_r^2}}{{\sigma_r^2+\lambda}}\right)"
_PROVED = rf"\left({_EI}+{_EJ}\right)"

CLAIMS = (
    _claim_of("Projector", "Table 1", "P", _SOFT, _EI, lambda c: (_norm(c.P - c.Ps), c.eps_i), "2", equality=True),
    _claim_of(
        "Projector, Frobenius norm",
        "Appendix A",
        "P",
        _SOFT,
        rf"\sqrt r\,{_EI}",
        lambda c: (_frobenius(c.P - c.Ps), math.sqrt(c.r_i) * c.eps_i),
        "F",
        note="Attained when all singular values are equal.",
    ),
    _claim_of(
        "Negation",
        "Table 1",
        "I-P",
        rf"I-{_SOFT}",
        _EI,
        lambda c: (_norm(_not(c.P) - _not(c.Ps)), c.eps_i),
        "2",
        equality=True,
    ),
    _Claim(
        "Rank (relative)",
        "Table 1",
        *_RANK,
        r"\lvert\mathrm{Tr}(P)-\mathrm{Tr}(\tilde P)\rvert/r",
        _EI,
        lambda c: ((_trace(c.Ps) - c.r_i).abs() / c.r_i, c.eps_i),
        note="Attained when all singular values are equal.",
    ),
    _claim_of(
        "Trace", "Appendix A", *_RANK, rf"r\,{_EI}", lambda c: ((_trace(c.P) - _trace(c.Ps)).abs(), c.r_i * c.eps_i)
    ),
    _claim_of(
        "Intersection",
        "Table 1",
        *_PRODUCT,
        rf"{_EI}+{_EJ}",
        lambda c: (_product_error(c), c.eps_i + c.eps_j),
        "2",
        note="The proof writes (Pⱼ − P̃ⱼ)P̃ᵢ where it needs P̃ᵢ(Pⱼ − P̃ⱼ); the bound on the norms is the same.",
    ),
    _claim_of(
        "Linear sum",
        "Table 1",
        *_SUM,
        rf"2\left({_EI}+{_EJ}\right)",
        lambda c: (_sum_error(c), 2 * (c.eps_i + c.eps_j)),
        "2",
        note="At most half of it is ever used: see the sharper bound.",
    ),
    _claim_of(
        "Similarity, as stated",
        "Appendix A",
        *_SIMILARITY,
        rf"\sqrt{{r_ir_j}}{_STATED}",
        lambda c: (_similarity_error(c), _mean_rank(c) * _both(c)),
        note="Holds and is attained (aligned, flat), though the printed proof ends in the weaker bound; a proof is in bounds.py.",
    ),
    _claim_of(
        "Similarity, as proved",
        "Appendix A",
        *_SIMILARITY,
        rf"\sqrt{{r_ir_j}}{_PROVED}",
        lambda c: (_similarity_error(c), _mean_rank(c) * (c.eps_i + c.eps_j)),
        note="Follows from the stated bound.",
    ),
    _claim_of(
        "Similarity, sharper",
        _OURS,
        *_SIMILARITY,
        rf"\min(r_i,r_j){_STATED}",
        lambda c: (_similarity_error(c), min(c.r_i, c.r_j) * _both(c)),
        note="Proof in bounds.py; attained by nested subspaces with flat spectra.",
    ),
    _claim_of(
        "Linear sum, sharper",
        _OURS,
        *_SUM,
        rf"{_EI}+{_EJ}",
        lambda c: (_sum_error(c), c.eps_i + c.eps_j),
        "2",
        note="The linear sum is the negation of the intersection of two negations.",
    ),
    _Claim(
        "Missing step of the similarity proof",
        _OURS,
        r"\lVert P_i\rVert_F",
        r"\lVert\tilde P_i\rVert_F",
        r"\lVert\tilde P_i\rVert_F",
        r"\sqrt{r_i}\,\tfrac{\sigma_r^2}{\sigma_r^2+\lambda}",
        lambda c: (_frobenius(c.Ps), math.sqrt(c.r_i) * (1 - c.eps_i)),
        expected=False,
        note="Would turn the printed proof into the stated bound, but is false: one weak direction next to strong ones.",
    ),
)
