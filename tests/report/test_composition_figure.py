"""The figure of compositional entailment: ours with intervals, the paper's open, and what was not run."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.errors import UserError
from subspaces.report.figures.composition import draw_composition
from subspaces.report.layouts import LAYOUTS
from subspaces.report.style import save
from tests.report.made_figures import auc, composition
from tests.report.seeing import said, unreadable

pytestmark = pytest.mark.filterwarnings("error")
ORDER = LAYOUTS["composition"].rows


def markers(figure, label):
    return sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_label() == label)


def bars(figure):
    """The ends of all error bars."""
    collections = [bar for container in figure.axes[0].containers for bar in container.lines[2]]
    return sorted(tuple(segment[:, 0].tolist()) for one in collections for segment in one.get_segments())


def test_the_papers_values_are_open_and_ours_filled():
    numbers = composition()
    figure = draw_composition(numbers, ORDER)
    for name, column in (("conjunction", "auc-conjunction"), ("negation", "auc-negation")):
        mine = [one for one in numbers if one["column"] == column]
        assert markers(figure, f"{name} paper") == sorted(one["paper"] for one in mine)
        ours = sorted(
            container.lines[0].get_xdata()[0]
            for container in figure.axes[0].containers
            if container.get_label() == name
        )
        assert ours == sorted(one["value"] for one in mine if one["value"] is not None)
    open_ones = [line for line in figure.axes[0].lines if str(line.get_label()).endswith("paper")]
    assert all(line.get_markerfacecolor() == "white" for line in open_ones)


def test_bars_are_the_bootstrap_or_the_deviation():
    row = "mpnet-subspace-128"
    figure = draw_composition([auc(row, "auc-conjunction", 99.0, 97.0, interval=[96.0, 99.5])], ORDER)
    assert bars(figure) == [(96.0, 99.5)]
    figure = draw_composition([auc(row, "auc-conjunction", 99.0, 97.0, sd=2.0, seeds=5)], ORDER)
    assert np.allclose(bars(figure), [(97.0, 100.0)])
    assert not bars(draw_composition([auc(row, "auc-conjunction", 99.0, 97.0)], ORDER))
    assert "1 sd over seeds" in " ".join(
        said(draw_composition([auc(row, "auc-negation", 90.0, 97.0, sd=2.0, seeds=5)], ORDER))
    )


def test_chance_is_drawn_and_what_was_not_run_is_said():
    figure = draw_composition(composition(), ORDER)
    assert any(np.allclose(line.get_xdata(), 50.0) for line in figure.axes[0].lines if len(line.get_xdata()) == 2)
    text = said(figure)
    run = {one["row"] for one in composition() if one["value"] is not None}
    assert text.count("not run") == len(ORDER) - len(run)
    assert text.count("negation not run") == 1
    assert [label for label in text if label in ORDER.values()] == list(ORDER.values())


@pytest.mark.parametrize("value", [12.0, 55.0, 75.0, 99.0])
def test_words_stay_readable_wherever_the_value_is(value):
    numbers = [
        auc("mpnet-subspace-64", "auc-conjunction", value, 95.0),
        auc("mpnet-subspace-64", "auc-negation", None, 94.0),
    ]
    figure = draw_composition(numbers, ORDER)
    assert not unreadable(figure)
    (words,) = [text for text in figure.axes[0].texts if text.get_text() == "negation not run"]
    dot = figure.axes[0].transData.transform((value, 0))[0]
    box = words.get_window_extent()
    assert not box.x0 - 3 < dot < box.x1 + 3


def test_rows_without_numbers_and_no_numbers_at_all():
    assert said(draw_composition([], ORDER)).count("not run") == len(ORDER)
    assert said(draw_composition([], {})) == ["composition: not run"]
    assert not unreadable(draw_composition(composition(), ORDER))


def test_a_sample_is_not_comparable():
    numbers = [auc("minilm-mlp", "auc-conjunction", 60.0, 86.0, sample=True, scale="quick")]
    text = " ".join(said(draw_composition(numbers, ORDER)))
    assert "quick scale" in text and "not comparable" in text


def test_strange_rows_and_columns_are_refused():
    with pytest.raises(UserError, match="disk-10 has no place"):
        draw_composition([auc("disk-10", "auc-conjunction", 1.0, 1.0)], ORDER)
    with pytest.raises(UserError, match="f1-10 has no place"):
        draw_composition([auc("minilm-mlp", "f1-10", 1.0, 1.0)], ORDER)


def test_saving_twice_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(draw_composition(composition(), ORDER), tmp_path / name, "e" * 64)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
