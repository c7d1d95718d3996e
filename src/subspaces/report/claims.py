"""Does the paper hold? Each claim of the paper as a function of the numbers, with a verdict and one line of evidence.

A comparison "A is better than B" counts only when the budgets allow it: both are measured at one scale on the same data, and the loser
was trained at least as long as the winner (epochs times examples, as recorded in the evaluations) or reaches the paper's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from subspaces.files import read_json, write_text
from subspaces.report.verdicts import tolerance

HOLDS, PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be told here"
MEANINGS = {
    HOLDS: "every comparison that the claim makes comes out as the paper says",
    PART: "some comparisons come out as the paper says; others do not, or cannot be made",
    FAILS: "no comparison comes out as the paper says",
    UNKNOWN: "no comparable budgets or data; the evidence says what is needed",
}


@dataclass(frozen=True)
class Claim:
    name: str
    title: str
    section: str  # of the paper
    verdict: str
    evidence: str
    numbers: tuple[str, ...]


Judged = tuple[str, str, Sequence[str]]  # verdict, evidence, ids of the numbers


class Results:
    """The frame of numbers and the evaluations in a folder."""

    def __init__(self, frame: pd.DataFrame, folder: Path):
        self.frame = frame.set_index("id", drop=False)
        self.folder = folder

    def value(self, identifier: str) -> float | None:
        value: Any = self.frame.at[identifier, "value"]
        return None if pd.isna(value) else float(value)

    def paper(self, identifier: str) -> float:
        value: Any = self.frame.at[identifier, "paper"]
        return float(value)

    def verdict(self, identifier: str) -> str:
        return str(self.frame.at[identifier, "verdict"])

    def reaches(self, identifier: str) -> bool:
        return self.verdict(identifier) in ("reproduced", "better")

    def read(self, path: str) -> dict[str, Any] | None:
        """An evaluation by its path, or None where it is missing."""
        file = self.folder / path
        content = read_json(file) if file.is_file() else None
        return content if isinstance(content, dict) else None

    def evaluation(self, identifier: str) -> dict[str, Any] | None:
        """The first evaluation behind a number."""
        evidence: Any = self.frame.at[identifier, "evidence"]
        return next((content for path in evidence if (content := self.read(path))), None)

    @cached_property
    def ids(self) -> list[str]:
        return list(self.frame.index)

    def rows(self, table: str, column: str, word: str = "") -> list[str]:
        """Ids of a column, of the rows whose name contains `word`."""
        chosen = self.frame[(self.frame["table"] == table) & (self.frame["column"] == column)]
        return [identifier for identifier, row in zip(chosen["id"], chosen["row"], strict=True) if word in row]


@dataclass(frozen=True)
class Budget:
    """What a model was trained on: epochs times examples, and what the data were."""

    work: float
    data: tuple[Any, ...]
    text: str


def budget(results: Results, identifier: str) -> Budget | None:
    """None where the evaluation records no training."""
    content = results.evaluation(identifier) or {}
    settings = content.get("settings") or {}
    training = settings.get("training")
    if not isinstance(training, dict) or "epochs" not in training:
        return None
    trained_on = settings.get("trained_on") or {}
    graph, split = settings.get("graph") or {}, settings.get("split") or {}
    examples = trained_on.get("pairs") or split.get("train") or graph.get("closure") or graph.get("nodes")
    if not examples:
        return None
    data = (
        content.get("scale"),
        settings.get("subtree"),
        (content.get("data") or {}).get("sample"),
        split.get("nodes") or graph.get("nodes"),
        (settings.get("backbone") or {}).get("name"),
    )
    return Budget(float(training["epochs"]) * float(examples), data, f"{examples:,} × {training['epochs']}")


def compare(results: Results, ours: str, other: str) -> bool | None:
    """Is `ours` better than `other`? None where it cannot be told.

    Geometries need different numbers of epochs, so equal epochs alone do not make two of them comparable: the loser must have
    converged (its number reaches the paper's), or the winner must be better than the loser's value in the paper as well.
    """
    a, b = results.value(ours), results.value(other)
    if a is None or b is None:
        return None
    sign = 1 if results.frame.at[ours, "better"] == "up" else -1
    mine, its = budget(results, ours), budget(results, other)
    if mine is None or its is None or mine.data != its.data:
        return None
    wins = sign * (a - b) > 0
    winner, loser, more = (a, other, its.work >= mine.work) if wins else (b, ours, mine.work >= its.work)
    beats_paper = results.verdict(loser) != "other scale" and sign * (winner - results.paper(loser)) > 0
    return wins if results.reaches(loser) or (more and beats_paper) else None


def matches(results: Results, ours: str, other: str) -> bool | None:
    """Is `ours` not worse than `other` by more than the tolerance, on one backbone, the same pairs and the same epochs?"""
    a, b = results.value(ours), results.value(other)
    mine, its = budget(results, ours), budget(results, other)
    if a is None or b is None or mine is None or its is None or (mine.data, mine.work) != (its.data, its.work):
        return None
    return a >= b - tolerance(b, None, None)


def fold(outcomes: Sequence[bool | None]) -> str:
    """One verdict from several comparisons."""
    if all(outcome is None for outcome in outcomes):
        return UNKNOWN
    if all(outcomes):
        return HOLDS
    return PART if any(outcomes) else FAILS


def _tally(outcomes: Sequence[bool | None]) -> str:
    wins, losses = sum(outcome is True for outcome in outcomes), sum(outcome is False for outcome in outcomes)
    untold = len(outcomes) - wins - losses
    text = f"{wins} of {len(outcomes)} comparisons hold"
    text += f", {losses} {'does' if losses == 1 else 'do'} not" if losses else ""
    return text + (f", {untold} cannot be made: unequal budgets or data, or not run" if untold else "")


def _show(results: Results, identifier: str, digits: int = 1) -> str:
    value = results.value(identifier)
    return "not run" if value is None else f"{value:.{digits}f}"


CLAIMS: dict[str, tuple[str, str, Callable[[Results], Judged]]] = {}


def claim(name: str, title: str, section: str) -> Callable[[Callable[[Results], Judged]], Callable[[Results], Judged]]:
    """Register the decorated function as the judge of a claim."""

    def register(function: Callable[[Results], Judged]) -> Callable[[Results], Judged]:
        CLAIMS[name] = (title, section, function)
        return function

    return register


def judge(frame: pd.DataFrame, folder: Path) -> list[Claim]:
    """Every claim in the order of the paper."""
    results = Results(frame, folder)
    judged = []
    for name, (title, section, function) in CLAIMS.items():
        verdict, evidence, numbers = function(results)
        judged.append(Claim(name, title, section, verdict, evidence, tuple(numbers)))
    return judged


# --- the claims -------------------------------------------------------------------------------------------------------


@claim("bounds", "The error bounds of soft projectors (Table 1) hold", "3.2")
def _bounds(results: Results) -> Judged:
    content = results.read("results/evaluations/soft_projectors.json")
    if not content:
        return UNKNOWN, "Needs results/evaluations/soft_projectors.json.", ()
    rows = [row for row in content["rows"] if row["source"] == "Table 1"]
    held = [row for row in rows if row["holds"]]
    verdict = HOLDS if len(held) == len(rows) else PART if held else FAILS
    cases = sum(row["cases"] for row in rows)
    return verdict, f"{len(held)} of {len(rows)} bounds hold in all of {cases:,} random cases.", ()


@claim("reconstruction", "Subspaces reconstruct WordNet better than Euclidean and hyperbolic embeddings", "4.1")
def _reconstruction(results: Results) -> Judged:
    numbers: list[str] = []
    outcomes: list[bool | None] = []
    for column in ("nouns-map", "nouns-mr", "verbs-map", "verbs-mr"):
        ids = results.rows("reconstruction", column)
        ours = [identifier for identifier in ids if "subspace" in identifier]
        numbers += ids
        for other in (identifier for identifier in ids if "subspace" not in identifier):
            outcomes.append(_any([compare(results, mine, other) for mine in ours]))
    best = _best(results, "reconstruction", "nouns-map", "subspace")
    rival = _best(results, "reconstruction", "nouns-map", "euclidean")
    evidence = f"Nouns mAP {best} against {rival} of Euclidean; {_tally(outcomes)} (mAP and MR, nouns and verbs)."
    return fold(outcomes), evidence, numbers


def _any(outcomes: Sequence[bool | None]) -> bool | None:
    """True when one subspace row wins, False when every one loses."""
    if any(outcome is True for outcome in outcomes):
        return True
    return None if any(outcome is None for outcome in outcomes) else False


def _best(results: Results, table: str, column: str, word: str, digits: int = 1) -> str:
    ids = results.rows(table, column, word)
    known = [value for identifier in ids if (value := results.value(identifier)) is not None]
    if not known:
        return "not run"
    return f"{(max if results.frame.at[ids[0], 'better'] == 'up' else min)(known):.{digits}f}"


@claim("rank", "The effective rank of a concept follows its rank in the taxonomy", "4.1")
def _rank(results: Results) -> Judged:
    """The paper: a strong correlation, the largest of all rows."""
    numbers, outcomes, shown = [], [], []
    for column in ("nouns-rho", "verbs-rho"):
        for identifier in results.rows("reconstruction", column, "subspace"):
            numbers.append(identifier)
            value = results.value(identifier)
            usable = value is not None and results.verdict(identifier) != "other scale"
            outcomes.append(value >= 50.0 if usable and value is not None else None)
            shown.append(_show(results, identifier))
    return fold(outcomes), f"Spearman’s ρ × 100 of the subspace rows: {', '.join(shown)} (50 or more counts).", numbers


@claim("hyperlex", "On HyperLex, subspaces agree with people better than earlier embeddings", "4.1")
def _hyperlex(results: Results) -> Judged:
    ids = results.rows("hyperlex", "spearman")
    (ours,) = [identifier for identifier in ids if "subspace" in identifier]
    others = [identifier for identifier in ids if identifier != ours]
    outcomes = [compare(results, ours, other) for other in others]
    # a subspace that is above the paper's value of an earlier row is above earlier work, whatever was trained here
    value = results.value(ours)
    if value is not None and results.verdict(ours) != "other scale":
        printed = [value > results.paper(other) for other in others]
        outcomes = [a if a is not None else b or None for a, b in zip(outcomes, printed, strict=True)]
    rivals = ", ".join(f"{_show(results, other, 3)} [{results.paper(other):.3f}]" for other in others)
    return fold(outcomes), f"Subspaces {_show(results, ours, 3)}; the others {rivals}; {_tally(outcomes)}.", ids


@claim("link-prediction", "Subspaces lead link prediction at 0, 10 and 25 % coverage, UHS at 50 %", "4.2")
def _link_prediction(results: Results) -> Judged:
    numbers: list[str] = []
    outcomes: list[bool | None] = []
    shown = []
    for column in ("f1-0", "f1-10", "f1-25", "f1-50"):
        ids = results.rows("link_prediction", column)
        numbers += ids
        subspaces = [identifier for identifier in ids if "subspace" in identifier]
        others = [identifier for identifier in ids if "subspace" not in identifier]
        if column == "f1-50":
            (umbral,) = [identifier for identifier in others if "umbral" in identifier]
            outcomes.append(_all([compare(results, umbral, other) for other in ids if other != umbral]))
        else:
            outcomes.append(_all([_any([compare(results, ours, other) for ours in subspaces]) for other in others]))
        best = {word: _best(results, "link_prediction", column, word) for word in ("subspace", "umbral")}
        shown.append(f"{best['subspace']} / {best['umbral']}")
    evidence = f"F1 of subspaces / UHS at 0, 10, 25, 50 %: {', '.join(shown)}; leads: {_tally(outcomes)}."
    return fold(outcomes), evidence + _needed(outcomes, "the published number of epochs for every row"), numbers


def _all(outcomes: Sequence[bool | None]) -> bool | None:
    if any(outcome is False for outcome in outcomes):
        return False
    return None if any(outcome is None for outcome in outcomes) else True


def _needed(outcomes: Sequence[bool | None], what: str) -> str:
    return f" Needed: {what}." if any(outcome is None for outcome in outcomes) else ""


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
            shown.append(f"{_show(results, ours)} / {_show(results, other)}")
    evidence = f"SPH-128 / MLP(p, h, p − h), 2-way and 3-way: MiniLM {' and '.join(shown[:2])}, MPNet "
    evidence += f"{' and '.join(shown[2:])}; {_tally(outcomes)}."
    return (
        fold(outcomes),
        evidence + _needed(outcomes, f"at least {ENOUGH:,} training pairs for every row, the same for both"),
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
    return fold(outcomes), evidence + _needed(outcomes, f"{fails_with:,} training pairs or more for every row"), ids


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
        evidence + _needed(outcomes, f"{ENOUGH:,} training pairs or more for boxes and subspaces"),
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
    if a is None or b is None:
        return UNKNOWN, "Needs the encoding times of both rows.", (bare, head)
    share, paper = b / a - 1, results.paper(head) / results.paper(bare) - 1
    verdict = HOLDS if share <= paper else FAILS
    return verdict, f"At batch 128 the head adds {100 * share:.0f} % (paper {100 * paper:.0f} %).", (bare, head)


@claim("search-speed", "FAISS search over subspaces is nearly 8 times faster than hyperbolic brute force", "4.5")
def _search_speed(results: Results) -> Judged:
    brute, fast = "retrieval_latency/poincare-10-exact/latency", "retrieval_latency/subspace-128-faiss/latency"
    a, b = results.value(brute), results.value(fast)
    if a is None or b is None:
        return UNKNOWN, "Needs the latency of both rows on the same machine.", (brute, fast)
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
        return UNKNOWN, f"Needs the chains of a subspace model trained on {ENOUGH:,} pairs or more.", (identifier,)
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
    return fold(outcomes), evidence, numbers


@claim("compression", "Embeddings can be compressed four times at almost no loss", "4.6")
def _compression(results: Results) -> Judged:
    """Loss at a quarter of the full rank, between the two nearest thresholds; at most one point counts as almost none."""
    outcomes: list[bool | None] = []
    shown = []
    for part, metric, name in (("wordnet", "map", "mAP"), ("snli", "accuracy", "accuracy")):
        content = (results.read(f"results/evaluations/compression/{part}.json") or {}).get(part)
        if not content:
            outcomes.append(None)
            continue
        goal = content["full_rank"] / 4
        above = [place for place, rank in enumerate(content["rank"]) if rank > goal]
        if not above or above[-1] + 1 == len(content["rank"]):
            outcomes.append(None)
            continue
        at = above[-1]
        (high, low), (a, b) = content["rank"][at : at + 2], content[metric][at : at + 2]
        loss = content[metric][0] - (b + (a - b) * (goal - low) / (high - low))
        outcomes.append(loss <= 1.0)
        shown.append(f"{loss:.1f} points of {name} ({part})")
    return fold(outcomes), f"At a quarter of the rank the loss is {', '.join(shown) or 'not measured'}.", ()


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
        evidence + _needed(outcomes, f"all four values on one budget of at least {ENOUGH:,} training pairs"),
        numbers,
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def write_claims(claims: Sequence[Claim], tex: Path, key: str) -> None:
    """results/tables/claims.tex and .md."""
    write_text(tex.with_suffix(".md"), f"<!-- key:{key} -->\n{claims_markdown(claims)}")
    write_text(tex, f"% key:{key}\n{claims_latex(claims)}")


def claims_markdown(claims: Sequence[Claim]) -> str:
    lines = [
        "**The claims of the paper.** Each is computed from the numbers and judged only from comparable budgets.",
        "",
    ]
    lines += ["| Claim | Section | Verdict | Evidence |", "|---|---|---|---|"]
    lines += [f"| {c.title} | {c.section} | **{c.verdict}** | {c.evidence.replace('|', '/')} |" for c in claims]
    return "\n".join([*lines, ""])


_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "λ": r"$\lambda$", "ρ": r"$\rho$", "×": r"$\times$"}
_LATEX |= {"−": "$-$", "’": "'", ">": "$>$", "<": "$<$"}


def claims_latex(claims: Sequence[Claim]) -> str:
    def safe(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in text)

    lines = ["% needs booktabs and tabularx", r"\begin{table*}[t]", r"  \centering", r"  \small"]
    lines += [r"  \caption{The claims of the paper, judged only from comparable budgets.}", r"  \label{tab:claims}"]
    lines += [r"  \begin{tabularx}{\textwidth}{p{5.2cm}lX}", r"    \toprule"]
    lines += [r"    Claim & Verdict & Evidence \\", r"    \midrule"]
    lines += [f"    {safe(c.title)} & {c.verdict} & {safe(c.evidence)} \\\\" for c in claims]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabularx}", r"\end{table*}", ""])
