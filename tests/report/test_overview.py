"""Figure 1 shows what the algebra computes, and its files are reproducible."""

from __future__ import annotations

import io
import time

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.text import Text
from PIL import Image

from subspaces.algebra import Subspace
from subspaces.report.figures.overview import basis_of, concepts, draw_overview
from subspaces.report.style import PAGE, save, use_style

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def figure():
    return draw_overview()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("man on a boat", [0, 1]),
        ("is fishing", [0, 2]),
        ("man fishing on a boat", [0]),
        ("man fishing not on a boat", [2]),
        ("man fishing", [0, 2]),
    ],
)
def test_computed_subspaces_span_what_the_paper_says(name, columns):
    basis = basis_of(concepts()[name])
    assert basis.shape == (3, len(columns))
    assert np.allclose(basis @ basis.T, np.diag([float(k in columns) for k in range(3)]))


def test_every_panel_is_drawn_from_the_algebra(monkeypatch):
    calls = []
    for operation in ("__and__", "__or__", "__invert__"):
        original = getattr(Subspace, operation)
        monkeypatch.setattr(
            Subspace, operation, lambda *args, f=original, name=operation: calls.append(name) or f(*args)
        )
    draw_overview()
    assert {"__and__", "__or__", "__invert__"} <= set(calls)


def test_labels_are_readable_inside_the_figure_and_apart(figure):
    assert figure.get_size_inches()[0] == PAGE and len(figure.axes) == 4
    figure.draw_without_rendering()
    texts = [t for ax in figure.axes for t in ax.findobj(Text) if t.get_text() and t.get_visible()]
    boxes = [t.get_window_extent() for t in texts]
    assert min(t.get_fontsize() for t in texts) >= 7
    assert all(
        figure.bbox.x0 <= b.x0 and b.x1 <= figure.bbox.x1 and figure.bbox.y0 <= b.y0 and b.y1 <= figure.bbox.y1
        for b in boxes
    )
    overlapping = [
        (s.get_text(), t.get_text())
        for i, (s, a) in enumerate(zip(texts, boxes, strict=True))
        for t, b in zip(texts[:i], boxes[:i], strict=True)
        if a.overlaps(b)
    ]
    assert not overlapping


def test_files_are_the_same_twice_and_hold_the_key(tmp_path):
    for folder in ("first", "second"):
        save(draw_overview(), tmp_path / folder / "overview", key="0a1b2c")
        time.sleep(1.1)  # a date would differ
    for kind in ("pdf", "png"):
        first, second = ((tmp_path / folder / f"overview.{kind}").read_bytes() for folder in ("first", "second"))
        assert first == second
        assert b"key:0a1b2c" in first and b"CreationDate" not in first and b"Software" not in first
    assert Image.open(io.BytesIO(second)).text["Keywords"] == "key:0a1b2c"
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == ["overview.pdf", "overview.png"]


def test_a_stem_with_a_dot_keeps_its_name(tmp_path, figure):
    save(figure, tmp_path / "overview.v2", key="k")
    assert (tmp_path / "overview.v2.pdf").exists() and (tmp_path / "overview.v2.png").exists()


def test_style():
    use_style()
    assert matplotlib.rcParams["pdf.fonttype"] == 42 and matplotlib.get_backend().lower() == "agg"
    assert min(matplotlib.rcParams[f"{name}.labelsize"] for name in ("axes", "xtick", "ytick")) >= 7
