"""Judge one trained model on composite hypotheses, zero-shot (paper §4.4, Table 6): AUCs with intervals, every operator, the extras."""

from __future__ import annotations

import csv
import io
import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.experiments.composition.auc import DRAWS, LEVEL, auc, interval
from subspaces.experiments.composition.candidates import SENTENCES, Candidate
from subspaces.experiments.composition.compose import (
    CONJUNCTION,
    DISJUNCTION,
    DOUBLE_NEGATION,
    LEAST,
    NEGATION,
    Composite,
    check_set,
    compose,
    disjunctions,
    double_negations,
    halves,
)
from subspaces.experiments.composition.scoring import Scores, operator_of, scores_of
from subspaces.experiments.shared import extent_of
from subspaces.files import digest, read_json, sha256_file, write_json, write_text
from subspaces.text.load import TextModel, load_text_model
from subspaces.text.texts import TokenTable
from subspaces.training.loop import set_threads

SEED = 0  # of the bootstrap: equal premises are drawn for every model, so intervals can be compared
PAIR_COLUMNS = ("id", "premise", "kind", "left", "right", "negated", "label", "origin")
_KINDS = (CONJUNCTION, NEGATION)
_KEPT = ("model", "backbone", "ways", "training", "pairs", "trained_on", "seed")


class _Rows:
    """Sentences by their row in what was encoded; each is encoded once."""

    def __init__(self, texts: Sequence[str]):
        self.texts = list(dict.fromkeys(texts))
        self._places = {text: place for place, text in enumerate(self.texts)}

    def __call__(self, texts: Sequence[str]) -> Tensor:
        return torch.tensor([self._places[text] for text in texts])


def measure(positive: Tensor | None, negative: Tensor | None) -> dict[str, Any] | None:
    """AUC and interval of two halves (n,) and (n,), and the share of composites that score exactly 0; None where there is no score."""
    if positive is None or negative is None or len(positive) < LEAST:
        return None
    above, below = (one.detach().cpu().double().numpy() for one in (positive, negative))
    value = auc(above, below)
    low, high = interval(above, below, np.random.default_rng(SEED))
    zero = float((np.concatenate([above, below]) == 0).mean())
    return {"auc": value, "low": low, "high": high, "n": 2 * len(above), "premises": len(above), "zero": zero}


def score_set(
    text_model: TextModel, candidates: Sequence[Candidate], name: str = "given", control: bool = True
) -> dict[str, Any]:
    """Everything that is measured on one set: each operator on conjunction and negation, then the extras. Most of the time goes into
    encoding the sentences of the `control`."""
    check_set(candidates, name)
    composites = [*compose(candidates), *disjunctions(candidates), *double_negations(candidates)]
    atoms = dict.fromkeys(sentence for one in candidates for sentence in one.sentences.values())
    texts = dict.fromkeys(one.text for one in composites) if control else {}
    rows = _Rows([*atoms, *texts])
    make, encoded = scores_of(text_model), text_model.represent(rows.texts)
    scores, reader = make(text_model, encoded[: len(atoms)]), make(text_model, encoded)

    def each(kind: str, score: Callable[[list[Composite]], Tensor | None]) -> dict[str, Any] | None:
        return measure(*(score(half) if half else None for half in halves(composites, kind)))

    def meet(operator: str, kind: str) -> dict[str, Any] | None:
        return each(kind, lambda half: scores.conjunction(*_operands(rows, half), kind == NEGATION, operator))

    def join(how: str) -> dict[str, Any] | None:
        return each(DISJUNCTION, lambda half: scores.disjunction(*_operands(rows, half), how))

    def read(kind: str) -> dict[str, Any] | None:
        return each(
            kind, lambda half: reader.plain(rows([one.premise for one in half]), rows([one.text for one in half]))
        )

    return {
        "premises": len(candidates),
        "pairs": sum(one.kind in _KINDS for one in composites),
        "operators": {operator: {kind: meet(operator, kind) for kind in _KINDS} for operator in scores.operators},
        "atomic": _atomic(scores, rows, candidates),
        "extras": {
            DISJUNCTION: {how: join(how) for how in scores.joins},
            DOUBLE_NEGATION: _double_negation(scores, rows, composites),
            "control": {kind: read(kind) for kind in (*_KINDS, DISJUNCTION, DOUBLE_NEGATION)}
            | _cut(text_model, list(texts))
            if control
            else None,
        },
    }


def _cut(text_model: TextModel, texts: list[str]) -> dict[str, int]:
    """How many sentences of the control are longer than the model reads."""
    return {"cut": TokenTable.of(texts, text_model.tokeniser, text_model.limit).truncated}


def _operands(rows: _Rows, some: Sequence[Composite]) -> tuple[Tensor, Tensor, Tensor]:
    premise, left, right = (rows([getattr(one, part) for one in some]) for part in ("premise", "left", "right"))
    return premise, left, right


def _atomic(scores: Scores, rows: _Rows, candidates: Sequence[Candidate]) -> dict[str, Any] | None:
    """h2 against h3: what decides the composites, by itself. The paper holds its composites against this."""
    premise, _, h2, h3 = (rows([getattr(one, name) for one in candidates]) for name in SENTENCES)
    return measure(scores.plain(premise, h2), scores.plain(premise, h3))


def _double_negation(scores: Scores, rows: _Rows, some: Sequence[Composite]) -> dict[str, Any] | None:
    """¬¬h1 against ¬¬h3, and how far a score is from that of the plain hypothesis: rounding only, if ¬¬ is what it says."""
    found = [
        (rows([one.premise for one in half]), rows([one.left for one in half]))
        for half in halves(some, DOUBLE_NEGATION)
    ]
    twice = [scores.double_negation(*half) for half in found]
    measured = measure(*twice)
    if measured is None:
        return None
    gaps = [
        (score - scores.plain(*half)).abs().max() for score, half in zip(twice, found, strict=True) if score is not None
    ]
    return {**measured, "largest_difference": float(torch.stack(gaps).max())}


def evaluate_composition(
    folder: Path,
    candidates_by_set: Mapping[str, Sequence[Candidate]],
    out: Path,
    key: str,
    operator: str,
    threads: int,
    extra: Mapping[str, Any],
    *,
    chosen: str = "elicited",
    control: Collection[str] | None = None,
    reports: Mapping[str, Mapping[str, Any]] | None = None,
    sources: Path = Path("data/sources"),
    device: str = "cpu",
) -> dict[str, Any]:
    """One JSON for one model: every set with every operator. `metrics` are those of the `chosen` set with `operator`, where the model has
    a choice. The sets in `control` are also read as sentences; by default the chosen one. `reports` are the filter's, by set; a set
    without one was not filtered here."""
    if chosen not in candidates_by_set:
        raise UserError(f"unknown set {chosen!r}: the sets are {', '.join(candidates_by_set) or 'none'}.")
    for name, candidates in candidates_by_set.items():
        check_set(candidates, name)
    set_threads(threads)
    text_model = load_text_model(folder, sources, device)
    settings, kind = text_model.settings, scores_of(text_model)
    operator = operator_of(kind, operator)
    began = time.monotonic()
    read = (chosen,) if control is None else control
    sets = {
        name: score_set(text_model, candidates, name, name in read) for name, candidates in candidates_by_set.items()
    }
    report = dict((reports or {}).get(chosen, {})) or None
    found = {f"auc-{name}": one for name, one in sets[chosen]["operators"][operator].items()}
    timing = read_json(folder / "timing.json") if (folder / "timing.json").exists() else {}
    result = {
        "key": key,
        **extra,
        "metrics": {name: None if one is None else one["auc"] for name, one in found.items()},
        "interval": {name: None if one is None else [one["low"], one["high"]] for name, one in found.items()}
        | {"level": LEVEL, "draws": DRAWS, "seed": SEED, "over": "premises"},
        "sets": sets,
        "extent": _extent(settings, chosen, candidates_by_set[chosen], report, operator),
        "settings": {name: settings[name] for name in _KEPT} | {"set": chosen, "operator": operator, "filter": report},
        "model_key": settings["key"],
        "weights_sha256": settings["weights_sha256"],
        "data": settings["data"]
        | {"composition": {name: _origin(candidates) for name, candidates in candidates_by_set.items()}},
        "timing": {"train_seconds": timing.get("seconds"), "evaluate_seconds": round(time.monotonic() - began, 1)},
        "machine": {"processor": platform.machine(), "threads": threads, "torch": torch.__version__, "device": device},
    }
    write_json(out, result)
    return result


def _origin(candidates: Sequence[Candidate]) -> dict[str, Any]:
    return {
        "premises": len(candidates),
        "origins": sorted({one.origin for one in candidates}),
        "sha256": digest([astuple(one) for one in candidates]),
    }


def _extent(
    settings: dict[str, Any],
    chosen: str,
    candidates: Sequence[Candidate],
    report: Mapping[str, Any] | None,
    operator: str,
) -> dict[str, Any]:
    """As text: which premises, filtered how, and what the model was trained on; and whether the number can be compared with the paper's."""
    trained = extent_of(settings, settings["data"]["counts"]["test"])  # the test pairs of SNLI play no part here
    origins = ", ".join(sorted({one.origin for one in candidates}))
    text = f"{len(candidates)} premises of the {chosen} set ({origins}), {operator}"
    text += f"; {report['text']}" if report else "; not filtered here"
    whole = report is None or (report["applied"] and not report["short"])
    return {"comparable": trained["comparable"] and whole, "text": f"{text}; {trained['text']}"}


def write_set(out: Path, candidates: Sequence[Candidate], report: Mapping[str, Any], key: str) -> None:
    """The composed set as CSV, and beside it, as JSON, the filter's report with the key and the counts."""
    check_set(candidates, out.stem)
    if out.suffix == ".json":
        raise UserError(f"{out}: the report goes to a file of this name; give the set a name that ends in .csv.")
    origins = {one.id: one.origin for one in candidates}
    composites = compose(candidates)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(PAIR_COLUMNS)
    for one in composites:
        row = {**asdict(one), "negated": "true" if one.negated else "false", "origin": origins[one.candidate]}
        writer.writerow([row[column] for column in PAIR_COLUMNS])
    write_text(out, buffer.getvalue())
    counts = {"premises": len(candidates), "pairs": len(composites)}
    counts |= {kind: sum(one.kind == kind for one in composites) for kind in _KINDS}
    write_json(
        out.with_suffix(".json"), {"key": key, "counts": counts, "filter": dict(report), "sha256": sha256_file(out)}
    )
