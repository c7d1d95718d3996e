"""The first screen: what this is, how many numbers hold, at which scale and with how many seeds, and a few of them beside the paper's."""

from __future__ import annotations

from collections import Counter

from subspaces.paper.page.facts import Number, short_title
from subspaces.paper.page.markup import Html, join, tag
from subspaces.paper.page.mathml import label
from subspaces.paper.page.provenance import duration
from subspaces.paper.page.verdict import MEANINGS, badge, sign, style_of
from subspaces.paper.verdicts import VERDICTS

PAPER = "Native Hierarchical and Compositional Representations with Subspace Embeddings"
# one or two of every experiment, always those of the paper's largest subspaces: chosen by the question, not by the outcome
HEADLINE = (
    "reconstruction/subspace-128/nouns-map",
    "reconstruction/subspace-128/nouns-rho",
    "hyperlex/subspace-128/spearman",
    "link_prediction/subspace-128/f1-50",
    "snli/mpnet-subspace-128/accuracy-2way",
    "composition/mpnet-subspace-128/auc-conjunction",
    "composition/mpnet-subspace-128/auc-negation",
    "retrieval_latency/subspace-128-faiss/latency",
)
_SCALES = {
    "quick": "Quick scale shows that the pipeline runs: parts of the data, minutes of training. Its numbers say nothing about the paper.",
    "laptop": "Laptop scale is not the paper’s recipe: budgets are small, and samplers and rates differ, as the list of deviations says. "
    "A number that is short here says more about its budget than about its method, and one that is better does not prove a better method.",
    "paper": "Paper scale uses the paper’s settings; what still differs is in the list of deviations.",
}


def headline(numbers: list[Number]) -> Html:
    counts = Counter(one.verdict for one in numbers)
    return join(
        [
            tag("p", _what_this_is(numbers, counts), class_="lead first"),
            *(tag("p", _SCALES[scale], class_="lead") for scale in _SCALES if any(one.scale == scale for one in numbers)),
            _bar(counts, len(numbers)),
            _legend(counts),
            _chosen(numbers),
            _budget(numbers),
        ],
        "\n",
    )


def _what_this_is(numbers: list[Number], counts: Counter[str]) -> str:
    scales = sorted({one.scale for one in numbers})
    run = len(numbers) - counts["not run"]
    judged = [f"{counts[name]} {name}" for name in VERDICTS if counts[name] and name != "not run"]
    at = f"at {' and '.join(scales)} scale"
    first = f"{run} of the {len(numbers)} numbers that the paper prints have been computed here, {at}: {_listed(judged)}."
    if not run:
        first = f"None of the {len(numbers)} numbers that the paper prints has been computed here yet, {at}."
    left = counts["not run"]
    waiting = f" {left} {'has' if left == 1 else 'have'} not been run, and each says why." if left and run else ""
    return first + waiting


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _bar(counts: Counter[str], total: int) -> Html:
    """Widths are attributes of SVG: the page's policy allows no style attributes."""
    pieces, start = [], 0.0
    for name in VERDICTS:
        width = 100 * counts[name] / total
        if counts[name]:
            pieces.append(tag("rect", x=f"{start:.3f}%", y=0, width=f"{width:.3f}%", height="100%", class_=style_of(name)))
        start += width
    said = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    return tag("svg", *pieces, class_="bar", role="img", aria_label=f"Of {total} numbers: {said}")


def _legend(counts: Counter[str]) -> Html:
    entries = [tag("div", tag("dt", sign(name), f"{counts[name]} {name}"), tag("dd", MEANINGS[name])) for name in VERDICTS]
    return tag("dl", *entries, class_="legend")


def _chosen(numbers: list[Number]) -> Html:
    known = {one.id: one for one in numbers}
    cards = [_card(known[identifier]) for identifier in HEADLINE]
    why = "One or two of every experiment, always of the paper’s largest subspaces; chosen by the question, not by the outcome."
    return tag("div", tag("h3", "A few of them"), tag("p", why, class_="note"), tag("ul", *cards, class_="chosen"))


def _card(number: Number) -> Html:
    what = tag("p", f"Table {number.layout.number} · ", short_title(number.layout), class_="what")
    which = tag("p", label(number.row_label), ", ", number.column_label.replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓"), class_="which")
    ours = tag("p", number.ours() if number.value is not None else "—", class_="big")
    change = number.change()
    beside = tag("p", f"paper {number.papers()}" + (f", {change}" if change else ""), class_="beside")
    return tag("li", what, which, ours, beside, badge(number.verdict), class_=style_of(number.verdict))


def _budget(numbers: list[Number]) -> Html:
    """Seeds per number, and the training behind all of them, each model counted once."""
    run = [one for one in numbers if one.value is not None]
    seeds = sorted({one.content["n"] for one in run})
    facts = {"Scale": ", ".join(sorted({one.scale for one in numbers}))}
    if seeds:
        spread = " to ".join(str(count) for count in dict.fromkeys((seeds[0], seeds[-1])))
        facts["Seeds per number"] = f"{spread}, so there is no spread to show" if seeds == [1] else spread
    times: dict[str, float] = {}
    for evaluation in (one for number in run for one in number.evaluations if one.content):
        seconds = (evaluation.content.get("timing") or {}).get("train_seconds")
        if isinstance(seconds, int | float):
            times[str(evaluation.content.get("weights_sha256", evaluation.path))] = seconds
    if times:
        facts["Models trained"] = str(len(times))
        facts["Training time"] = (
            f"{duration(sum(times.values()))} in all, from {duration(min(times.values()))} to {duration(max(times.values()))}"
        )
    if any(one.content.get("sample") for one in numbers):
        facts["Data"] = "a small sample stood in for real data where a number says so"
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()), class_="budget")
