"""The baseline filter: what is dropped, by whom, and what is taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.filter import Judge, baseline_filter, judge_of, take, used_of
from subspaces.text.load import load_text_model
from tests.experiments.composition.models import CANDIDATES, tiny_model

ENTAILED = {one.h1 for one in CANDIDATES} | {one.h2 for one in CANDIDATES}


def judge(*wrong: str) -> Judge:
    """Knows the truth, but for some hypotheses."""

    def probabilities(premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        sure = [0.9 if (one in ENTAILED) != (one in wrong) else 0.1 for one in hypotheses]
        return [{"entailment": value, "other": 1 - value} for value in sure]

    return probabilities


def test_a_premise_stays_if_all_baselines_judge_its_hypotheses_right() -> None:
    a, b, c, d, e = CANDIDATES
    kept, report = baseline_filter(
        CANDIDATES, {"first": judge(a.h1, a.h3, b.h2), "second": judge(b.h2, d.h3), "third": judge()}
    )
    assert kept == [c, e]
    assert report["baselines"] == {
        "first": {
            "dropped": 2,
            "dropped_by_no_other": 1,
            "misjudged": {"h1": 1, "h2": 1, "h3": 1},
            "ids": ["t1", "t2"],
        },
        "second": {
            "dropped": 2,
            "dropped_by_no_other": 1,
            "misjudged": {"h1": 0, "h2": 1, "h3": 1},
            "ids": ["t2", "t4"],
        },
        "third": {"dropped": 0, "dropped_by_no_other": 0, "misjudged": {"h1": 0, "h2": 0, "h3": 0}, "ids": []},
    }
    assert (report["candidates"], report["dropped"], report["dropped_ids"], report["kept"]) == (
        5,
        3,
        ["t1", "t2", "t4"],
        2,
    )
    json.dumps(report)


def test_a_tie_is_entailment_as_argmax_decides() -> None:
    half: Judge = lambda premises, hypotheses: [{"entailment": 0.5, "other": 0.5}] * len(premises)  # noqa: E731
    kept, report = baseline_filter(CANDIDATES, {"half": half})
    assert kept == [] and report["baselines"]["half"]["misjudged"] == {"h1": 0, "h2": 0, "h3": 5}


def test_take_is_stable_and_says_when_there_are_too_few() -> None:
    kept, report = baseline_filter(CANDIDATES, {"first": judge(CANDIDATES[1].h1)})
    used, full = take(kept, 3, report)
    assert [one.id for one in used] == full["used_ids"] == ["t1", "t3", "t4"]
    assert not full["short"] and full["applied"] and "instead of" not in full["text"]
    used, short = take(kept, 150, report)
    assert used == kept and short["short"] and short["text"].endswith("4 premises instead of 150")
    assert used_of(CANDIDATES, short) == kept
    with pytest.raises(UserError, match="not in the review"):
        used_of(CANDIDATES[1:], short)


def test_a_filter_that_leaves_next_to_nothing_can_be_set_aside() -> None:
    kept, report = baseline_filter(CANDIDATES, {"blind": judge(*(one.h1 for one in CANDIDATES[1:]))})
    assert len(kept) == 1
    used, said = take(kept, 4, report, least=2, unfiltered=CANDIDATES)
    assert used == CANDIDATES[:4] and not said["applied"] and not said["short"] and "not filtered" in said["text"]
    used, said = take(kept, 4, report)
    assert used == kept and said["applied"] and said["short"]


@pytest.mark.parametrize("encoder", ["subspace", "vector", "box"])
def test_real_models_decide_by_their_own_argmax(encoder: str, tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, encoder)
    kept, report = baseline_filter(CANDIDATES, {"tiny": judge_of(folder)})
    text_model = load_text_model(folder)
    for one in CANDIDATES:
        premise, *hypotheses = (text_model.represent([text]) for text in one.sentences.values())
        entailed = [text_model.model.logits(premise, hypothesis).argmax(1).item() == 0 for hypothesis in hypotheses]
        assert (one in kept) == (entailed == [True, True, False])
    assert report["kept"] == len(kept)


def test_what_cannot_be_filtered(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="kept no candidate"):
        baseline_filter([], {"first": judge()})
    with pytest.raises(UserError, match="at least one baseline"):
        baseline_filter(CANDIDATES, {})
    with pytest.raises(UserError, match=r"three-way.*2-way model"):
        baseline_filter(CANDIDATES, {"three-way": judge_of(tiny_model(tmp_path, "vector", ways=3))})
    broken: Judge = lambda premises, hypotheses: [{"entailment": float("nan"), "other": float("nan")}] * len(premises)  # noqa: E731
    with pytest.raises(UserError, match="no numbers"):
        baseline_filter(CANDIDATES, {"broken": broken})
    silent: Judge = lambda premises, hypotheses: []  # noqa: E731
    with pytest.raises(UserError, match="0 answers to 15 pairs"):
        baseline_filter(CANDIDATES, {"silent": silent})
