"""The bounds of Table 1 and appendix A hold for the soft projector of this project."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from subspaces.bounds import CLAIMS, TOLERANCE, BoundRow, check_bounds, require_bounds, soft_projectors_table
from subspaces.errors import UserError
from subspaces.projector import soft_projector

torch.set_num_threads(1)
FALSE_STEP = "Missing step of the similarity proof"


@pytest.fixture(scope="module")
def rows() -> list[BoundRow]:
    return check_bounds(lambdas=(0.01, 0.2, 10.0), dims=(2, 6), ranks=(1, 2, 5), draws=2, seed=1)


def by_name(rows: list[BoundRow]) -> dict[str, BoundRow]:
    return {row.name: row for row in rows}


def test_all_expected_bounds_hold(rows):
    require_bounds(rows)
    assert len(rows) == len(CLAIMS)
    for row in rows:
        assert row.cases > 0 and row.skipped == 0
        assert row.holds == row.expected_to_hold, row


def test_projector_and_negation_are_equalities(rows):
    for name in ("Projector", "Negation"):
        row = by_name(rows)[name]
        assert (
            row.equality
            and row.least_ratio == pytest.approx(1, abs=TOLERANCE)
            and row.worst_ratio == pytest.approx(1, abs=TOLERANCE)
        )


def test_both_similarity_bounds_hold_and_the_stated_one_is_attained(rows):
    assert by_name(rows)["Similarity, as stated"].worst_ratio == pytest.approx(1, abs=TOLERANCE)
    assert by_name(rows)["Similarity, as proved"].worst_ratio < 1
    assert by_name(rows)["Similarity, sharper"].worst_ratio == pytest.approx(1, abs=TOLERANCE)


def test_the_factor_two_of_the_linear_sum_is_not_needed(rows):
    assert by_name(rows)["Linear sum"].worst_ratio <= 0.5
    assert 0.9 < by_name(rows)["Linear sum, sharper"].worst_ratio <= 1


def test_the_false_step_is_reported_with_a_counterexample_that_can_be_rebuilt(rows):
    row = by_name(rows)[FALSE_STEP]
    assert not row.holds and not row.expected_to_hold and row.worst_ratio > 100
    sigma = torch.tensor(row.where["sigma"], dtype=torch.float64)
    lam, r = row.where["lam"], row.where["r"]
    norm = soft_projector(torch.diag(sigma), lam).norm().item()
    bound = r**0.5 * (sigma[-1] ** 2 / (sigma[-1] ** 2 + lam)).item()
    assert norm / bound == pytest.approx(row.worst_ratio, rel=1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(0.01, 20),
    st.floats(0.01, 20),
    st.integers(0, 2**31 - 1),
)
def test_stated_similarity_bound_on_free_examples(d, r_i, r_j, lam, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    soft, hard, eps = [], [], []
    for r in (min(r_i, d), min(r_j, d)):
        X = torch.randn(d, r, generator=generator, dtype=torch.float64) * torch.linspace(
            scale, 0.1, r, dtype=torch.float64
        )
        U, S, _ = torch.linalg.svd(X, full_matrices=False)
        soft.append(soft_projector(X, lam))
        hard.append(U @ U.T)
        eps.append(lam / (S[-1] ** 2 + lam))
    error = (hard[0] * hard[1]).sum() - (soft[0] * soft[1]).sum()
    bound = min(r_i, r_j, d) * (eps[0] + eps[1] * (1 - eps[0]))
    assert -1e-9 <= error <= bound + 1e-9


def test_same_seed_same_rows():
    grid = {"lambdas": (0.1,), "dims": (3,), "ranks": (1, 2), "draws": 1}
    assert check_bounds(**grid, seed=3) == check_bounds(**grid, seed=3)
    assert check_bounds(**grid, seed=3) != check_bounds(**grid, seed=4)


def test_a_broken_bound_is_an_error(rows):
    good = by_name(rows)["Rank (relative)"]
    for broken in (
        dataclasses.replace(good, worst_ratio=1.01),
        dataclasses.replace(good, holds=False),
        dataclasses.replace(good, worst_ratio=float("nan")),
    ):
        with pytest.raises(UserError, match="Rank"):
            require_bounds([*rows, broken])
    require_bounds([dataclasses.replace(good, worst_ratio=2.0, holds=False, expected_to_hold=False)])


def test_a_wrong_projector_is_caught(monkeypatch):
    monkeypatch.setattr("subspaces.bounds.soft_projector", lambda X, lam: soft_projector(X, 1.1 * lam))
    with pytest.raises(UserError, match="Projector"):
        require_bounds(check_bounds(lambdas=(0.1,), dims=(3,), ranks=(1, 2), draws=1))


def test_a_nan_is_caught(monkeypatch):
    monkeypatch.setattr(
        "subspaces.bounds.soft_projector", lambda X, lam: soft_projector(X, lam) * (torch.nan if lam == 0.1 else 1.0)
    )
    with pytest.raises(UserError, match="NaN"):
        check_bounds(lambdas=(0.1, 1.0), dims=(3,), ranks=(1, 2), draws=1)


def test_cases_below_rounding_are_skipped_and_an_empty_check_is_an_error():
    rows = check_bounds(lambdas=(1e-9,), dims=(6,), ranks=(2,), draws=1)
    assert by_name(rows)["Projector"].skipped > 0
    with pytest.raises(UserError, match="too small"):
        require_bounds(rows)


@pytest.mark.parametrize(
    "grid", [{"lambdas": ()}, {"lambdas": (0.0,)}, {"dims": (2,), "ranks": (3,)}, {"draws": 0}, {"ranks": (0,)}]
)
def test_impossible_grids(grid):
    with pytest.raises(UserError):
        check_bounds(**grid)


def test_rows_are_json(rows):
    text = json.dumps([dataclasses.asdict(row) for row in rows], allow_nan=False)
    assert [BoundRow(**row) for row in json.loads(text)] == rows


def test_tables(rows):
    text = soft_projectors_table(rows, "md")
    assert all(row.note in text for row in rows)
    markdown = [line for line in text.splitlines() if line.startswith("|")]
    assert len(markdown) == len(rows) + 2
    assert {line.count("|") for line in markdown} == {8}
    assert "broken, as expected" in markdown[-1]
    latex = soft_projectors_table(rows, "tex")
    assert latex.startswith(r"\begin{tabular}") and latex.endswith("\\end{tabular}\n")
    assert latex.count(r"\\") == len(rows) + 1 and latex.isascii()
    for row in rows:
        assert row.name in latex and row.bound in latex
    with pytest.raises(UserError):
        soft_projectors_table(rows, "html")
