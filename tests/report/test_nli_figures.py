"""The figures of SNLI: what they draw is what the evaluations hold, and what was not run is said."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from subspaces.errors import UserError
from subspaces.report.figures.nli import draw_accuracy_by_pairs, draw_chains, draw_histograms, draw_training_curves
from subspaces.report.style import save
from tests.report.made_figures import CHAINS, RANKS, evaluation, learning
from tests.report.seeing import said, unreadable

pytestmark = pytest.mark.filterwarnings("error")
ROWS = ("minilm-mlp-diff", "minilm-subspace-64", "mpnet-subspace-128")


def outline(axes, name):
    (found,) = [patch for patch in axes.patches if isinstance(patch, StepPatch) and patch.get_label() == name]
    return found.get_data().values


def counts(one, name):
    return np.array(one["inclusion"]["classes"][name]["counts"])


def test_histograms_are_the_counts_stacked_only_for_two_ways():
    two, three = evaluation(), evaluation(ways=3)
    above, below = draw_histograms([two], [three]).axes
    assert np.array_equal(outline(above, "entailment"), counts(two, "entailment"))
    assert np.array_equal(outline(above, "contradiction"), counts(two, "contradiction"))
    assert np.array_equal(outline(above, "neutral"), counts(two, "neutral") + counts(two, "contradiction"))
    assert np.array_equal(outline(below, "neutral"), counts(three, "neutral"))


def test_histograms_are_means_over_seeds():
    seeds = [evaluation(seed=seed, accuracy=80.0 + 4 * seed) for seed in range(2)]
    figure = draw_histograms(seeds, [])
    expected = (counts(seeds[0], "entailment") + counts(seeds[1], "entailment")) / 2
    assert np.allclose(outline(figure.axes[0], "entailment"), expected)
    assert "2-way, accuracy 82.0 %, 2 seeds" in said(figure)
    assert "3-way: not run" in said(figure)


def test_a_class_without_pairs_and_a_model_without_scores():
    one = evaluation()
    one["inclusion"]["classes"]["neutral"] = {"counts": [0] * 50, "mean": None}
    figure = draw_histograms([one], [evaluation("mpnet-mlp", 3) | {"inclusion": None}])
    assert "neutral: none" in said(figure) and "3-way: not run" in said(figure)
    empty = draw_histograms([], [])
    assert {"2-way: not run", "3-way: not run"} == set(said(empty))


def test_histograms_refuse_to_mix_models():
    with pytest.raises(UserError, match="one model"):
        draw_histograms([evaluation(), evaluation("mpnet-subspace-64")], [])
    other = evaluation(seed=1)
    other["inclusion"]["bins"] = 20
    with pytest.raises(UserError, match="different bins"):
        draw_histograms([evaluation(), other], [])


def test_the_note_tells_scale_budget_and_stand_in():
    (note,) = [text for text in said(draw_histograms([evaluation(pairs=16_000)], [])) if "scale" in text]
    note = note.replace("\n", " ")
    assert (
        "laptop scale" in note
        and "16,000 training pairs" in note
        and "all-MiniLM-L6-v2 in place of all-mpnet-base-v2" in note
    )
    sample = evaluation() | {"data": {"sample": True}, "scale": "quick"}
    assert "quick scale" in " ".join(said(draw_histograms([sample], []))) and "sample" in " ".join(
        said(draw_histograms([sample], []))
    )


def crosses(figure):
    return [line for axes in figure.axes for line in axes.lines if line.get_marker() == "X"]


def test_chains_show_every_rank_and_mark_the_one_that_falls():
    figure = draw_chains(evaluation())
    assert len(figure.axes) == len(CHAINS)
    text = [one.replace("\n", " ") for one in said(figure)]
    assert all(sentence in text for chain in CHAINS for sentence in chain)
    (cross,) = crosses(figure)
    assert cross.get_xdata()[0] == RANKS[1][2]
    assert [one for one in text if "falls" in one] == ["24.1  falls"]
    assert "chain 1: the rank rises on 4 of 4 steps" in text and "chain 2: the rank rises on 2 of 3 steps" in text
    assert not unreadable(figure)


@pytest.mark.parametrize("ranks", [[30.0, 20.0, 10.0], [10.0, 20.0, 30.0], [0.0, 1e-3, 5e-4]])
def test_falls_wherever_they_stand(ranks):
    figure = draw_chains(
        {"row": "minilm-subspace-64", "chains": [{"sentences": ["one", "two", "three"], "ranks": ranks}]}
    )
    falls = sum(b < a for a, b in pairwise(ranks))
    assert len(crosses(figure)) == falls == sum("falls" in text for text in said(figure))
    assert not unreadable(figure)


def test_equal_ranks_are_level_not_fallen():
    figure = draw_chains({"chains": [{"sentences": ["one", "two"], "ranks": [5.0, 5.0]}]})
    assert "5.0  level" in said(figure) and len(crosses(figure)) == 1


@pytest.mark.parametrize(
    "chains", [None, [], [{"sentences": [], "ranks": []}], [{"sentences": ["one"], "ranks": [None]}]]
)
def test_without_chains_it_says_so(chains):
    assert said(draw_chains({"chains": chains})) == ["chains: not run"]


def test_one_sentence_is_a_chain():
    figure = draw_chains({"chains": [{"sentences": ["From $5 to $6_0^"], "ranks": [3.0]}]})
    assert "From $5 to $6_0^" in said(figure) and "3.0" in said(figure)


def test_training_curves_hold_the_history():
    evaluations = [evaluation(row, ways, seed) for row in ROWS for ways in (2, 3) for seed in (0, 1)]
    figure = draw_training_curves(evaluations)
    loss, _, validation, _ = figure.axes
    assert len(loss.lines) == len(validation.lines) == 2 * len(ROWS)
    history = evaluations[0]["history"]
    assert list(loss.lines[0].get_ydata()) == [one["loss"] for one in history]
    known = [(one["pairs"], one["validation_accuracy"]) for one in history if one["validation_accuracy"] is not None]
    assert [tuple(point) for point in validation.lines[0].get_xydata()] == known
    assert len(figure.legends[0].get_texts()) == len(ROWS)
    assert not unreadable(figure)


def test_training_curves_of_one_way_say_that_the_other_was_not_run():
    figure = draw_training_curves([evaluation("minilm-subspace-64")])
    assert said(figure).count("not run") == 2
    assert not unreadable(figure)
    assert said(draw_training_curves([])).count("not run") == 4
    assert said(draw_training_curves([evaluation() | {"history": None}])).count("not run") == 4


def test_a_history_without_validation_keeps_its_loss():
    one = evaluation("minilm-mlp")
    one["history"] = [{"step": 1, "pairs": 64, "loss": 0.7, "validation_accuracy": None}]
    figure = draw_training_curves([one])
    assert len(figure.axes[0].lines) == 1 and not figure.axes[2].lines
    assert said(figure).count("not run") == 3
    assert any(text.get_text() for text in figure.axes[2].get_xticklabels())


def line_of(axes, row):
    (found,) = [line for line in axes.lines if line.get_label() == row]
    return found


def test_accuracy_by_pairs_joins_the_budgets_of_a_row():
    evaluations = learning()
    figure = draw_accuracy_by_pairs(evaluations[::-1])
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    expected = {
        one["settings"]["trained_on"]["pairs"]: one["metrics"]["accuracy"]
        for one in evaluations
        if "subspace" in one["row"]
    }
    assert [tuple(point) for point in line_of(axes, "minilm-subspace-64").get_xydata()] == sorted(expected.items())
    assert not unreadable(figure)


def test_accuracy_by_pairs_is_the_mean_over_seeds_with_bars():
    figure = draw_accuracy_by_pairs(learning(seeds=3))
    first = [
        one["metrics"]["accuracy"]
        for one in learning(seeds=3)
        if one["row"] == "minilm-subspace-64" and one["settings"]["trained_on"]["pairs"] == 1000
    ]
    assert line_of(figure.axes[0], "minilm-subspace-64").get_ydata()[0] == pytest.approx(np.mean(first))
    assert any("3 seeds: mean ± 1 sd" in text.replace("\n", " ") for text in said(figure))


def test_the_most_frequent_class_comes_from_the_gold_counts():
    one = evaluation("minilm-subspace-64") | {"confusion": [[60, 10], [5, 25]]}
    (axes,) = draw_accuracy_by_pairs([one]).axes
    assert any(np.allclose(line.get_ydata(), 70.0) for line in axes.lines)
    assert "most frequent class, 70.0 %" in [text.get_text() for text in axes.texts]
    (axes,) = draw_accuracy_by_pairs([one | {"confusion": None}]).axes
    assert not axes.texts


def test_missing_accuracies_are_not_run():
    figure = draw_accuracy_by_pairs(
        [*learning(), evaluation("mpnet-mlp", accuracy=None), evaluation("minilm-mlp", accuracy=float("nan"))]
    )
    text = said(figure)
    assert sum("not run" in one for one in text) == 2
    assert not unreadable(figure)
    assert said(draw_accuracy_by_pairs([])) == ["accuracy by training pairs: not run"]
    assert said(draw_accuracy_by_pairs([evaluation(accuracy=None)])) == ["accuracy by training pairs: not run"]


def test_one_budget_is_enough_and_ways_are_not_mixed():
    assert not unreadable(draw_accuracy_by_pairs([evaluation("minilm-subspace-64", pairs=37)]))
    with pytest.raises(UserError, match="do not belong on one axis"):
        draw_accuracy_by_pairs([evaluation(), evaluation(ways=3)])


@pytest.mark.parametrize("two, three", [(2, 1), (1, 0), (0, 1)])
def test_histograms_can_be_read(two, three):
    figure = draw_histograms(
        [evaluation(seed=s) for s in range(two)], [evaluation(ways=3, seed=s) for s in range(three)]
    )
    assert not unreadable(figure)


def test_saving_twice_gives_the_same_bytes(tmp_path):
    draws = {
        "histograms": lambda: draw_histograms([evaluation()], [evaluation(ways=3)]),
        "chains": lambda: draw_chains(evaluation()),
        "curves": lambda: draw_training_curves([evaluation(row, ways) for row in ROWS for ways in (2, 3)]),
        "pairs": lambda: draw_accuracy_by_pairs(learning(seeds=2)),
    }
    for name, draw in draws.items():
        for folder in ("a", "b"):
            save(draw(), tmp_path / folder / name, "e" * 64)
        assert (tmp_path / f"a/{name}.png").read_bytes() == (tmp_path / f"b/{name}.png").read_bytes()
        assert b"e" * 64 in (tmp_path / f"a/{name}.png").read_bytes()
