"""Claims about soft projectors and hierarchies: §3.2, §4.1 and §4.2 of the paper."""

from __future__ import annotations

from subspaces.report.claims.comparing import (
    FAILS,
    HOLDS,
    PART,
    UNKNOWN,
    Judged,
    Results,
    all_of,
    any_of,
    best,
    claim,
    compare,
    fold,
    needed,
    show,
    tally,
)

_WHOLE = "every row trained on the whole hierarchy, to its published quality or at least as long as the subspaces"


@claim("bounds", "The error bounds of soft projectors (Table 1) hold", "3.2")
def _bounds(results: Results) -> Judged:
    content = results.read("results/evaluations/soft_projectors.json")
    if not content:
        return UNKNOWN, "Needed: results/evaluations/soft_projectors.json.", ()
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
            outcomes.append(any_of([compare(results, mine, other) for mine in ours]))
    ours_best = best(results, "reconstruction", "nouns-map", "subspace")
    rival = best(results, "reconstruction", "nouns-map", "euclidean")
    evidence = f"Nouns mAP {ours_best} against {rival} of Euclidean; {tally(outcomes)} (mAP and MR, nouns and verbs)."
    return fold(outcomes), evidence + needed(outcomes, _WHOLE), numbers


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
            shown.append(show(results, identifier))
    evidence = f"Spearman’s ρ × 100 of the subspace rows: {', '.join(shown)} (50 or more counts)."
    return fold(outcomes), evidence + needed(outcomes, "subspaces trained on the whole hierarchies"), numbers


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
    rivals = ", ".join(f"{show(results, other, 3)} [{results.paper(other):.3f}]" for other in others)
    evidence = f"Subspaces {show(results, ours, 3)}; the others {rivals}; {tally(outcomes)}."
    return fold(outcomes), evidence + needed(outcomes, _WHOLE), ids


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
            outcomes.append(all_of([compare(results, umbral, other) for other in ids if other != umbral]))
        else:
            outcomes.append(all_of([any_of([compare(results, ours, other) for ours in subspaces]) for other in others]))
        values = {word: best(results, "link_prediction", column, word) for word in ("subspace", "umbral")}
        shown.append(f"{values['subspace']} / {values['umbral']}")
    evidence = f"F1 of subspaces / UHS at 0, 10, 25, 50 %: {', '.join(shown)}; leads: {tally(outcomes)}."
    return fold(outcomes), evidence + needed(outcomes, "the published number of epochs for every row"), numbers
