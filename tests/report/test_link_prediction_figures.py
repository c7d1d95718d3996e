"""The two figures of link prediction: F1 against coverage, and against training time."""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import pytest

from subspaces.errors import UserError
from subspaces.report.figures.link_prediction import LOOKS, draw_coverage, draw_time
from subspaces.report.layouts import LAYOUTS
from subspaces.report.style import save

LAYOUT = LAYOUTS["link_prediction"]
LABELS = LAYOUT.rows
COVERAGES = (0, 10, 25, 50)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def numbers(**changes):
    """Invented number files for the whole table; `changes` apply to those of subspace-64."""
    rows = []
    for place, row in enumerate(LABELS):
        for step, coverage in enumerate(COVERAGES):
            one = {
                "row": row, "column": f"f1-{coverage}", "value": 30.0 + 18 * step + place, "sd": None, "seeds": 1, "verdict": "short",
                "sample": False, "scale": "laptop", "paper": 33.0 + 17 * step + place,
            }  # fmt: skip
            rows.append(one | (changes if row == "subspace-64" else {}))
    return rows


def evaluations(rows=LABELS, factor=1.0, **more):
    return [
        {
            "row": row, "coverage": coverage, "metrics": {"f1": 40.0 + coverage + place},
            "timing": {"train_seconds": factor * (5 + 20 * place + coverage)}, "machine": {"train_threads": 1}, **more,
        }
        for place, row in enumerate(rows)
        for coverage in COVERAGES
    ]  # fmt: skip


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_every_geometry_has_a_look_of_its_own():
    assert LOOKS.keys() == LABELS.keys()
    colours, markers = zip(*LOOKS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(LABELS)


def test_coverage_shows_ours_filled_and_the_papers_open_in_one_colour():
    figure = draw_coverage(numbers(), LAYOUT)
    drawn = lines(figure)
    assert set(drawn) == {*LABELS, *(f"{row} paper" for row in LABELS)}
    for row in LABELS:
        ours, paper = drawn[row], drawn[f"{row} paper"]
        assert ours.get_color() == paper.get_markeredgecolor() and ours.get_marker() == paper.get_marker()
        assert paper.get_markerfacecolor() == "none" and ours.get_markerfacecolor() != "none"
        assert list(ours.get_xdata()) == list(paper.get_xdata())
    assert list(drawn["euclidean-10"].get_ydata()) == [30.0, 48.0, 66.0, 84.0]
    assert list(drawn["euclidean-10 paper"].get_ydata()) == [33.0, 50.0, 67.0, 84.0]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0 %", "10 %", "25 %", "50 %"]
    assert not figure.axes[0].texts


def test_the_order_of_the_numbers_does_not_matter():
    one, other = lines(draw_coverage(numbers(), LAYOUT)), lines(draw_coverage(numbers()[::-1], LAYOUT))
    assert all(list(one[name].get_ydata()) == list(other[name].get_ydata()) for name in one)


def test_a_row_that_was_not_run_has_the_papers_points_only():
    figure = draw_coverage(numbers(value=None, seeds=0, verdict="not run"), LAYOUT)
    assert "subspace-64" not in lines(figure) and "subspace-64 paper" in lines(figure)
    handle = dict(zip(legend(figure), figure.axes[0].get_legend().legend_handles, strict=True))
    assert handle[LABELS["subspace-64"]].get_markerfacecolor() == "none"
    assert handle[LABELS["subspace-128"]].get_markerfacecolor() != "none"
    everything = [one | {"value": None, "seeds": 0, "verdict": "not run"} for one in numbers()]
    assert all(name.endswith(" paper") for name in lines(draw_coverage(everything, LAYOUT)))


def test_deviations_are_drawn_where_there_are_several_seeds_and_stay_within_100():
    assert not draw_coverage(numbers(sd=2.0, seeds=1), LAYOUT).axes[0].collections
    (bars,) = draw_coverage(numbers(value=99.0, sd=2.0, seeds=5), LAYOUT).axes[0].collections
    for bottom, top in bars.get_segments():
        assert bottom[1] == pytest.approx(97.0) and top[1] == pytest.approx(100.0)


def test_another_scale_is_said_so():
    (note,) = draw_coverage(numbers(verdict="other scale", scale="quick"), LAYOUT).axes[0].texts
    assert note.get_text() == "quick scale: a subtree, not comparable"
    (note,) = draw_coverage(numbers(sample=True, scale="quick"), LAYOUT).axes[0].texts
    assert note.get_text() == "quick scale: a small sample, not comparable"
    (note,) = draw_time(evaluations(settings={"subtree": "mammal.n.01"}), LABELS).axes[0].texts
    assert note.get_text() == "a subtree, not comparable"
    assert not draw_time(evaluations(settings={"subtree": None}), LABELS).axes[0].texts


def test_time_has_a_point_for_every_row_and_coverage_and_takes_the_mean_of_seeds():
    figure = draw_time([*evaluations(factor=1.0), *evaluations(factor=3.0)], LABELS)
    drawn = lines(figure)
    assert set(drawn) == set(LABELS)
    assert list(drawn["euclidean-10"].get_xdata()) == [10.0, 30.0, 60.0, 110.0]
    assert list(drawn["euclidean-10"].get_ydata()) == [40.0, 50.0, 65.0, 90.0]
    markers = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", None, "")]
    assert len(markers) == len(LABELS) * len(COVERAGES)
    assert len({line.get_markersize() for line in markers}) == len(COVERAGES)
    assert figure.axes[0].get_xscale() == "log"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["10 s", "1 min", "10 min"]


def test_threads_stand_with_the_axis_or_with_the_rows():
    assert draw_time(evaluations(), LABELS).axes[0].get_xlabel() == "training time, 1 thread"
    mixed = [one | {"machine": {"train_threads": 2 if one["row"] == "subspace-64" else 1}} for one in evaluations()]
    figure = draw_time(mixed, LABELS)
    assert figure.axes[0].get_xlabel() == "training time"
    assert f"{LABELS['subspace-64']}, 2 threads" in legend(figure) and f"{LABELS['order-10']}, 1 thread" in legend(
        figure
    )


def test_no_words_lie_on_each_other_or_outside():
    figures = [draw_coverage(numbers(verdict="other scale", sd=1.0, seeds=2), LAYOUT)]
    figures += [draw_time(evaluations(factor=factor), LABELS) for factor in (0.01, 500.0)]
    for figure in figures:
        figure.canvas.draw()
        (axes,) = figure.axes
        ticks = [
            tick
            for tick in (*axes.get_xticklabels(), *axes.get_yticklabels())
            if axes.bbox.padded(20).contains(*_middle(tick))
        ]
        words = [*ticks, *axes.texts, *(text for text in axes.get_legend().get_texts() if text.get_text().strip())]
        boxes = [text.get_window_extent() for text in (*words, axes.xaxis.label, axes.yaxis.label)]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0 for box in boxes)
        assert not axes.get_legend().get_window_extent().overlaps(axes.get_window_extent())


def _middle(text):
    box = text.get_window_extent()
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def test_one_row_and_one_coverage_are_enough():
    save_me = draw_coverage([one for one in numbers(value=100.0) if one["row"] == "subspace-64"][:1], LAYOUT)
    save_me.canvas.draw()
    draw_time(evaluations(["subspace-64"])[:1], LABELS).canvas.draw()


def test_saving_twice_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(draw_coverage(numbers(sd=1.0, seeds=3), LAYOUT), tmp_path / name, "e" * 64)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert b"e" * 64 in (tmp_path / "a.png").read_bytes()


def test_wrong_input_is_refused_in_words():
    with pytest.raises(UserError, match="nothing to draw"):
        draw_coverage([], LAYOUT)
    with pytest.raises(UserError, match="nothing to draw"):
        draw_time([], LABELS)
    with pytest.raises(UserError, match="no label for box-10"):
        draw_coverage([*numbers(), numbers()[0] | {"row": "box-10"}], LAYOUT)
    with pytest.raises(UserError, match="nouns-map is not a column"):
        draw_coverage([numbers()[0] | {"column": "nouns-map"}], LAYOUT)
    with pytest.raises(UserError, match="no time at all"):
        draw_time(evaluations(factor=0.0), LABELS)
