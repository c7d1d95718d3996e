"""Claims about sentences, search and ablations: §4.3 to §4.6 and appendix D of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from subspaces.report import registry
from subspaces.report.claims.comparing import (
    FAILS,
    HOLDS,
    PART,
    UNKNOWN,
    Judged,
    Results,
    budget,
    claim,
    fold,
    matches,
    needed,
    show,
    tally,
)

_ENCODERS = ("minilm", "mpnet")
ENOUGH, ALL = 100_000, 500_000  # training pairs: a model that can be judged, and (nearly) all 549,367 of the paper


def _trained(results: Results, identifier: str, pairs: int = ENOUGH) -> bool:
    """Was the sentence model behind a number trained on at least `pairs` pairs?"""
    content = results.evaluation(identifier)
    trained_on = ((content or {}).get("settings") or {}).get("trained_on") or {}
    return (trained_on.get("pairs") or 0) >= pairs


@claim("snli", "Subspaces match the strongest bi-encoders on SNLI", "4.3")
def _snli(results: Results) -> Judged:
    numbers, outcomes, shown = [], [], []
    for backbone in _ENCODERS:
        for column in ("accuracy-2way", "accuracy-3way"):
            ours, other = f"snli/{backbone}-subspace-128/{column}", f"snli/{backbone}-mlp-diff/{column}"
            numbers += [ours, other]
            learnt = all(_trained(results, identifier) for identifier in (ours, other))
            outcomes.append(matches(results, ours, other) if learnt else None)
            shown.append(f"{show(results, ours)} / {show(results, other)}")
    evidence = f"SPH-128 / MLP(p, h, p − h), 2-way and 3-way: MiniLM {' and '.join(shown[:2])}, MPNet "
    evidence += f"{' and '.join(shown[2:])}; {tally(outcomes)}."
    return (
        fold(outcomes),
        evidence + needed(outcomes, f"at least {ENOUGH:,} training pairs for every row, the same for both"),
        numbers,
    )


def _auc(results: Results, identifier: str, operation: str) -> tuple[float, str] | None:
    """AUC on the authors' own set where the evaluation has it, else on the set of the number; with the name of the set."""
    content = results.evaluation(identifier) or {}
    operator = (content.get("settings") or {}).get("operator")
    try:
        return float(content["sets"]["authors"]["operators"][operator][operation]["auc"]), "the authors’ set"
    except (KeyError, TypeError):
        value = results.value(identifier)
        return None if value is None else (value, "our set")


def _composition(
    results: Results, rows: Sequence[str], operation: str, test: Callable[[float], bool], fails_with: int = ENOUGH
) -> Judged:
    """`test` on the AUC of every row. A failure counts only from `fails_with` training pairs on."""
    ids = [f"composition/{row}/auc-{operation}" for row in rows]
    ids = [identifier for identifier in ids if identifier in results.ids]
    outcomes: list[bool | None] = []
    shown, sets = [], []
    for identifier in ids:
        found = _auc(results, identifier, operation)
        usable = found is not None and _trained(results, identifier)
        passes = test(found[0]) if usable and found else None
        outcomes.append(None if passes is False and not _trained(results, identifier, fails_with) else passes)
        if usable and found:
            shown.append(f"{identifier.split('/')[1]} {found[0]:.1f}")
            sets.append(found[1])
    where = f" on {sets[0]}" if sets else ""
    evidence = f"AUC of {operation}{where}: {', '.join(shown) or 'none'}."
    return fold(outcomes), evidence + needed(outcomes, f"{fails_with:,} training pairs or more for every row"), ids


_VECTORS = ("minilm-mlp", "minilm-mlp-diff", "mpnet-mlp", "mpnet-mlp-diff")
_SUBSPACES = ("minilm-subspace-64", "minilm-subspace-128", "mpnet-subspace-64", "mpnet-subspace-128")
_BOXES = ("mpnet-box-64", "mpnet-box-128")


@claim("negation-vectors", "Vector encoders fall towards chance on negation", "4.4")
def _negation_vectors(results: Results) -> Judged:
    """No vector encoder is above the best one of the paper."""
    border = max(results.paper(f"composition/{row}/auc-negation") for row in _VECTORS)
    verdict, evidence, numbers = _composition(results, _VECTORS, "negation", lambda auc: auc <= border)
    return verdict, f"At most {border:.1f} in the paper. {evidence}", numbers


@claim("negation-subspaces", "Subspaces stay above 90 % on negation", "4.4")
def _negation_subspaces(results: Results) -> Judged:
    return _composition(results, _SUBSPACES, "negation", lambda auc: auc > 90.0, fails_with=ALL)


@claim("boxes", "Boxes lag behind subspaces on conjunction", "4.4")
def _boxes(results: Results) -> Judged:
    outcomes: list[bool | None] = []
    shown, ids = [], []
    for box in _BOXES:
        pair = [f"composition/{row}/auc-conjunction" for row in (box, box.replace("box", "subspace"))]
        ids += pair
        lag, lead = (_auc(results, identifier, "conjunction") for identifier in pair)
        equal = _work(results, pair[0]) == _work(results, pair[1])
        told = lag and lead and equal and all(_trained(results, identifier) for identifier in pair)
        outcomes.append(lag[0] < lead[0] if told and lag and lead else None)
        shown.append(f"{lag[0]:.1f} / {lead[0]:.1f}" if lag and lead else "not run")
    evidence = f"Box / subspace at d = 64 and 128: {' and '.join(shown)}."
    return (
        fold(outcomes),
        evidence + needed(outcomes, f"{ENOUGH:,} training pairs or more for boxes and subspaces"),
        ids,
    )


def _work(results: Results, identifier: str) -> float | None:
    found = budget(results, identifier)
    return found.work if found else None


@claim("operators", "The operators need no supervision: models trained on plain entailment compose", "4.4")
def _operators(results: Results) -> Judged:
    """Every operator is applied to models trained on SNLI only; composing must be well above chance (AUC 80)."""
    verdicts, lines = [], []
    ids: list[str] = []
    for operation in ("conjunction", "negation"):
        verdict, evidence, numbers = _composition(
            results, _SUBSPACES, operation, lambda auc: auc > 80.0, fails_with=ALL
        )
        verdicts.append(verdict)
        lines.append(evidence)
        ids += numbers
    verdict = verdicts[0] if len(set(verdicts)) == 1 else PART
    return verdict, f"Trained on SNLI pairs only. {lines[0].split(' Needed')[0]} {lines[1]}", ids


@claim("head-cost", "The projection head costs little at encoding time", "4.5")
def _head_cost(results: Results) -> Judged:
    """The paper: 21 % at batch 128 on a GPU; at most that share counts here. A ratio on one machine needs no GPU."""
    bare, head = "encoding_time/mpnet/batch-128", "encoding_time/mpnet-subspace-128/batch-128"
    a, b = results.value(bare), results.value(head)
    backbone = ((results.evaluation(head) or {}).get("settings") or {}).get("backbone") or {}
    if a is None or b is None or backbone.get("layers", 0) is not None:
        return UNKNOWN, "Needed: the encoding times of both rows with all layers of the backbone.", (bare, head)
    share, paper = b / a - 1, results.paper(head) / results.paper(bare) - 1
    verdict = HOLDS if share <= paper else FAILS
    return verdict, f"At batch 128 the head adds {100 * share:.0f} % (paper {100 * paper:.0f} %).", (bare, head)


@claim("search-speed", "FAISS search over subspaces is nearly 8 times faster than hyperbolic brute force", "4.5")
def _search_speed(results: Results) -> Judged:
    brute, fast = "retrieval_latency/poincare-10-exact/latency", "retrieval_latency/subspace-128-faiss/latency"
    a, b = results.value(brute), results.value(fast)
    captions = int(registry.claims()["flickr30k-captions"])
    if a is None or b is None or (results.evaluation(fast) or {}).get("documents", 0) < captions:
        return (
            UNKNOWN,
            f"Needed: the latency of both rows on one machine over all {captions:,} captions.",
            (brute, fast),
        )
    times, paper = a / b, results.paper(brute) / results.paper(fast)
    verdict = HOLDS if times >= paper else PART if times > 1 else FAILS
    evidence = f"{a:.2f} ms for brute force, {b:.2f} ms for FAISS: {times:.1f} times (paper {paper:.1f} times). "
    return verdict, evidence + "Our brute force is one matrix product; both rows ran on one machine.", (brute, fast)


@claim("chains", "Rank rises along chains of entailment", "4.6")
def _chains(results: Results) -> Judged:
    identifier = "snli/minilm-subspace-128/accuracy-2way"
    content = results.evaluation(identifier)
    chains = (content or {}).get("chains") or []
    steps = [rises for chain in chains for rises in chain["rises"]]
    if not steps or not _trained(results, identifier):
        return UNKNOWN, f"Needed: the chains of a subspace model trained on {ENOUGH:,} pairs or more.", (identifier,)
    risen = sum(steps)
    verdict = HOLDS if risen == len(steps) else PART if risen > len(steps) / 2 else FAILS
    return verdict, f"Rank rises in {risen} of {len(steps)} steps of {len(chains)} chains.", (identifier,)


@claim("separation", "Normalised inclusion separates the classes of SNLI", "4.6")
def _separation(results: Results) -> Judged:
    """Entailment above neutral above contradiction, by mean inclusion, in the 2-way and the 3-way model."""
    numbers = [f"snli/minilm-subspace-128/accuracy-{ways}way" for ways in (2, 3)]
    outcomes: list[bool | None] = []
    shown = []
    for identifier in numbers:
        classes = ((results.evaluation(identifier) or {}).get("inclusion") or {}).get("classes") or {}
        means = [classes.get(name, {}).get("mean") for name in ("entailment", "neutral", "contradiction")]
        if None in means or not _trained(results, identifier):
            outcomes.append(None)
            continue
        outcomes.append(means[0] > means[1] > means[2])
        shown.append(" > ".join(f"{mean:.2f}" for mean in means) if outcomes[-1] else str([round(m, 2) for m in means]))
    evidence = f"Mean inclusion of entailment, neutral, contradiction: {'; '.join(shown) or 'not measured'}."
    return fold(outcomes), evidence + needed(outcomes, f"both models trained on at least {ENOUGH:,} pairs"), numbers


@claim("compression", "Embeddings can be compressed four times at almost no loss", "4.6")
def _compression(results: Results) -> Judged:
    """Loss at a quarter of the full rank, between the two nearest thresholds; at most one point counts as almost none."""
    outcomes: list[bool | None] = []
    shown, numbers = [], []
    for part, metric, name in (("wordnet", "map", "mAP"), ("snli", "accuracy", "accuracy")):
        measured = results.read(f"results/evaluations/compression/{part}.json") or {}
        number = _QUALITY[part].format(row=measured.get("model"))
        if number not in results.ids or not _learnt(results, number):
            outcomes.append(None)
            continue
        loss = _loss_at_a_quarter(measured[part], metric)
        numbers.append(number)
        outcomes.append(None if loss is None else loss <= 1.0)
        shown.append(f"{loss:.1f} points of {name} ({part})" if loss is not None else f"not measured ({part})")
    evidence = f"At a quarter of the rank the loss is {', '.join(shown) or 'not measured'}."
    lacking = f"subspaces trained on all nouns, and on at least {ENOUGH:,} pairs"
    return fold(outcomes), evidence + needed(outcomes, lacking), numbers


_QUALITY = {"wordnet": "reconstruction/{row}/nouns-map", "snli": "snli/{row}/accuracy-2way"}


def _learnt(results: Results, identifier: str) -> bool:
    if identifier.startswith("snli/"):
        return _trained(results, identifier)
    return results.value(identifier) is not None and results.verdict(identifier) != "other scale"


def _loss_at_a_quarter(measured: Mapping[str, Any], metric: str) -> float | None:
    """None where the thresholds do not reach a quarter of the rank."""
    goal = measured["full_rank"] / 4
    above = [place for place, rank in enumerate(measured["rank"]) if rank > goal]
    if not above or above[-1] + 1 == len(measured["rank"]):
        return None
    at = above[-1]
    (high, low), (a, b) = measured["rank"][at : at + 2], measured[metric][at : at + 2]
    return float(measured[metric][0] - (b + (a - b) * (goal - low) / (high - low)))


@claim("lambda", "The choice of λ hardly matters", "D")
def _lambda(results: Results) -> Judged:
    """The paper's spread over four values of λ, at most doubled."""
    numbers, shown = [], []
    outcomes: list[bool | None] = []
    for column in ("accuracy-2way", "accuracy-3way"):
        ids = results.rows("lambda_sensitivity", column)
        numbers += ids
        values = [results.value(identifier) for identifier in ids]
        works = {_work(results, identifier) for identifier in ids}
        printed = [results.paper(identifier) for identifier in ids]
        enough = all(_trained(results, identifier) for identifier in ids)
        if None in values or len(works) > 1 or not enough:
            outcomes.append(None)
            continue
        known = [value for value in values if value is not None]
        spread, paper = max(known) - min(known), max(printed) - min(printed)
        outcomes.append(spread <= 2 * paper)
        shown.append(f"{spread:.2f} points (paper {paper:.2f})")
    evidence = f"Spread over four values of λ, 2-way and 3-way: {' and '.join(shown) or 'not measured'}."
    return (
        fold(outcomes),
        evidence + needed(outcomes, f"all four values on one budget of at least {ENOUGH:,} training pairs"),
        numbers,
    )
