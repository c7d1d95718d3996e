"""The set of Table 6, from a review and the baselines that filter it: results/composition/elicited.csv and .json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subspaces.experiments.composition.candidates import Candidate, kept, load_reviewed
from subspaces.experiments.composition.evaluate import write_set
from subspaces.experiments.composition.filter import baseline_filter, judge_of, take
from subspaces.files import read_json


def build_set(
    reviewed: Path, baselines: dict[str, Path], premises: int, least: int, out: Path, key: str, sources: Path
) -> dict[str, Any]:
    """Filter and compose; returns the filter's report."""
    candidates = kept(load_reviewed(reviewed))
    left, report = baseline_filter(candidates, {row: judge_of(folder, sources) for row, folder in baselines.items()})
    used, report = take(left, premises, report, least=least, unfiltered=candidates)
    write_set(out, used, report, key)
    return report


def chosen_candidates(reviewed: Path, built: Path) -> tuple[list[Candidate], dict[str, Any]]:
    """The candidates of a built set, in its order, and the filter's report."""
    from subspaces.experiments.composition.filter import used_of

    report = read_json(built)["filter"]
    return used_of(kept(load_reviewed(reviewed)), report), report
