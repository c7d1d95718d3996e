"""Baseline filtering (paper, appendix on the compositional set): a premise stays only if the baselines judge its atomic hypotheses right.

Then a failure on a composite is a failure to compose. h1 and h2 must be judged entailed and h3 not, by the decision of each 2-way model
itself: its more probable class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import Candidate

Judge = Callable[[Sequence[str], Sequence[str]], Sequence[Mapping[str, float]]]
"""Probabilities of the classes `entailment` and `other` for premises and hypotheses, as `TextModel.probabilities` gives them."""
_ENTAILED = {"h1": True, "h2": True, "h3": False}


def judge_of(folder: Path, sources: Path = Path("data/sources"), device: str = "cpu") -> Judge:
    """The judge in a model's folder; it is loaded when it is asked, and let go again, so that many of them need the memory of one."""

    def probabilities(premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        from subspaces.text.load import load_text_model

        return load_text_model(folder, sources, device).probabilities(premises, hypotheses)

    return probabilities


def baseline_filter(
    candidates: Sequence[Candidate], judges: Mapping[str, Judge]
) -> tuple[list[Candidate], dict[str, Any]]:
    """The candidates that every judge decides rightly, in their order, and a report: what each judge dropped, alone and together."""
    if not candidates:
        raise UserError(
            "there is nothing to filter: the review kept no candidate. Review some with `subspaces composition review`."
        )
    if not judges:
        raise UserError("the filter needs at least one baseline: name a trained 2-way model.")
    wrong = {row: _misjudged(row, candidates, judge) for row, judge in judges.items()}
    dropped = {one.id for some in wrong.values() for one in candidates if one.id in some}
    baselines = {}
    for row, some in wrong.items():
        others = {name for other, theirs in wrong.items() if other != row for name in theirs}
        baselines[row] = {
            "dropped": len(some),
            "dropped_by_no_other": len(some.keys() - others),
            "misjudged": {hypothesis: sum(hypothesis in every for every in some.values()) for hypothesis in _ENTAILED},
            "ids": [one.id for one in candidates if one.id in some],
        }
    kept = [one for one in candidates if one.id not in dropped]
    report = {
        "baselines": baselines,
        "candidates": len(candidates),
        "dropped": len(dropped),
        "dropped_ids": [one.id for one in candidates if one.id in dropped],
        "kept": len(kept),
    }
    return kept, report


def take(
    kept: Sequence[Candidate],
    wanted: int,
    report: Mapping[str, Any],
    *,
    least: int = 0,
    unfiltered: Sequence[Candidate] = (),
) -> tuple[list[Candidate], dict[str, Any]]:
    """The first `wanted` premises, or all if there are fewer; the report then says so, and names those that are used.

    Baselines that learnt next to nothing may drop every premise. If fewer than `least` are left, the filter is set aside: the first of
    the `unfiltered` ones are taken, and the report says that too.
    """
    applied = len(kept) >= least
    used = list(kept if applied else unfiltered)[:wanted]
    if not applied:
        text = f"the baselines left {len(kept)} of {report['candidates']} premises, fewer than {least}: not filtered"
    else:
        text = f"{report['dropped']} of {report['candidates']} premises dropped by {', '.join(report['baselines'])}"
    if len(used) < wanted:
        text += f"; {len(used)} premises instead of {wanted}"
    numbers = {"wanted": wanted, "used": len(used), "short": len(used) < wanted, "applied": applied}
    return used, {**report, **numbers, "used_ids": [one.id for one in used], "text": text}


def used_of(candidates: Sequence[Candidate], report: Mapping[str, Any]) -> list[Candidate]:
    """The candidates that a stored report chose, in its order."""
    known = {one.id: one for one in candidates}
    if absent := [name for name in report["used_ids"] if name not in known]:
        raise UserError(
            f"{len(absent)} premises of the filter's report are not in the review ({absent[0]}, …): filter again."
        )
    return [known[name] for name in report["used_ids"]]


def _misjudged(row: str, candidates: Sequence[Candidate], judge: Judge) -> dict[str, list[str]]:
    """Hypotheses that the judge gets wrong, for each candidate with any."""
    premises = [one.premise for _ in _ENTAILED for one in candidates]
    hypotheses = [getattr(one, name) for name in _ENTAILED for one in candidates]
    answers = list(judge(premises, hypotheses))
    if len(answers) != len(premises):
        raise UserError(f"{row} gave {len(answers)} answers to {len(premises)} pairs.")
    decided = [_entailed(row, one) for one in answers]
    wrong: dict[str, list[str]] = {}
    for place, (name, expected) in enumerate(_ENTAILED.items()):
        for one, found in zip(
            candidates, decided[place * len(candidates) : (place + 1) * len(candidates)], strict=True
        ):
            if found != expected:
                wrong.setdefault(one.id, []).append(name)
    return wrong


def _entailed(row: str, answer: Mapping[str, float]) -> bool:
    """The more probable class; entailment if they are equal, as argmax takes the first."""
    if set(answer) != {"entailment", "other"}:
        raise UserError(
            f"{row} decides between {', '.join(answer)}: the filter needs a 2-way model. Give the folder of the 2-way one."
        )
    if not all(map(math.isfinite, answer.values())):
        raise UserError(f"{row} gives probabilities that are no numbers: train it again with a lower learning rate.")
    return answer["entailment"] >= answer["other"]
