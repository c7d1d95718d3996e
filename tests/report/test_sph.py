"""Figure 2 shows a real pass through a small head."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.report.figures.sph import DIM, HIDDEN, LAMBDA, TOKENS, draw_sph, stages
from subspaces.report.style import COLUMN, save
from tests.report.seeing import said, unreadable

pytestmark = pytest.mark.filterwarnings("error")


def test_the_shapes_and_ranks_are_those_that_the_paper_speaks_of():
    made = stages()
    assert made.H.shape == (HIDDEN, len(TOKENS)) and made.Q.shape == made.pooled.shape == (HIDDEN, DIM)
    assert np.linalg.matrix_rank(made.pooled) == len(TOKENS) < DIM  # one head: attention alone cannot do more
    assert made.X.shape == (DIM, DIM) and np.linalg.matrix_rank(made.X) == DIM


def test_the_projector_is_the_closed_form():
    made = stages()
    expected = made.X @ np.linalg.inv(made.X.T @ made.X + LAMBDA * np.eye(DIM)) @ made.X.T
    assert np.allclose(made.P, expected, atol=1e-10)
    values = np.linalg.eigvalsh(made.P)
    assert values.min() > 0 and values.max() < 1


def test_it_names_every_step_and_can_be_read_in_one_column():
    figure = draw_sph()
    assert figure.get_figwidth() == COLUMN
    text = "\n".join(said(figure))
    for name in ("Transformer", "MHA pooling", "Rank expansion", "Projection", "$H$", "$Q$", "$X'$", "$X$", "lambda"):
        assert name in text
    assert not unreadable(figure)


def test_the_same_bytes_twice(tmp_path):
    for name in ("a", "b"):
        save(draw_sph(), tmp_path / name, "f" * 64)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
