"""Truncation: what is kept, what it takes, and what a metric sees."""

from __future__ import annotations

import pytest
import torch

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.experiments.efficiency.compression import (
    Spectra,
    compression_curve,
    factor_bytes,
    factor_points,
    full_bytes,
    half_vector_bytes,
    pq_bytes,
)
from subspaces.experiments.efficiency.timing import FORMS, query_forms
from tests.search.stand_in import sentences, stand_in

P = stand_in(12).encode(sentences(40)).projector


def test_truncation_is_that_of_the_algebra() -> None:
    spectra = Spectra(P)
    for tau in (0.0, 0.3, 0.9):
        assert torch.allclose(spectra.truncated(tau), Subspace(P).truncate(tau).projector, atol=1e-5)
        values = torch.linalg.eigvalsh(P)
        assert (
            torch.equal(spectra.ranks(tau), (spectra.values >= tau).sum(1))
            and (spectra.values - values).abs().max() < 1e-5
        )


def test_a_curve_measures_each_threshold() -> None:
    seen = []

    def metric(cut: torch.Tensor) -> float:
        seen.append(cut.clone())
        return float(cut.diagonal(dim1=1, dim2=2).sum(1).mean())

    curve = compression_curve(P, [0.1, 0.9, 0.96], metric, "trace", measure_full=True)
    assert len(seen) == 4 and torch.equal(seen[0], P)
    assert curve["taus"] == [0.1, 0.9, 0.96] and curve["full_rank"] == 12
    assert curve["trace_full"] >= curve["trace"][0] > curve["trace"][1] > curve["trace"][2]
    assert curve["rank"] == sorted(curve["rank"], reverse=True) and 0 < curve["rank"][1] < 12
    assert curve["bytes"] == [24 * rank for rank in curve["rank"]]
    for cut, tau in zip(seen[1:], (0.1, 0.9, 0.96), strict=True):
        assert torch.allclose(cut, Spectra(P).truncated(tau))


def test_bytes_of_the_forms() -> None:
    assert (
        full_bytes(128) == 65536
        and half_vector_bytes(128) == 2 * 8256
        and factor_bytes(128, 20) == 5120
        and pq_bytes() == 64
    )


def test_recall_of_factors_falls_with_the_rank() -> None:
    documents = stand_in(12).encode(sentences(400)).projector
    forms = query_forms(stand_in(12).encode(sentences(440)[400:]).projector)
    points = factor_points(documents, forms, [0.0, 0.7, 0.95])
    assert [point["form"] for point in points] == [f"rank-k factors, τ = {tau}" for tau in ("0", "0.7", "0.95")]
    sizes = [point["bytes"] for point in points]
    assert sizes == sorted(sizes, reverse=True)
    for form in FORMS:
        first, *_, last = (point["recall"][form] for point in points)
        assert first > 0.97 and last < first


def test_bad_requests() -> None:
    with pytest.raises(UserError, match=r"between 0 and 1"):
        compression_curve(P, [1.5], lambda cut: 0.0, "nothing")
    with pytest.raises(UserError, match=r"at least"):
        compression_curve(P, [], lambda cut: 0.0, "nothing")
    with pytest.raises(UserError, match=r"shape \(N, d, d\)"):
        Spectra(P[0])
