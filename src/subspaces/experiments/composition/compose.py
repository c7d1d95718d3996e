"""Composite hypotheses from atomic ones (paper §4.4 and its appendix).

Each premise p has h1 and h2, which it entails, and h3, which it contradicts. The paper's four composites, and what is added here:

    conjunction      h1 ∧ h2 entailed,  h1 ∧ h3 contradicted
    negation         h1 ∧ ¬h3 entailed, h1 ∧ ¬h2 contradicted
    disjunction      h1 ∨ h3 entailed,  h3 ∨ h3′ not entailed (extra); h3′ belongs to another premise, see `strangers`
    double-negation  ¬¬h1 entailed,     ¬¬h3 contradicted (extra)

Every kind has one entailed and one other composite for each premise. `text` says the composite as one English sentence: the control that
asks a model to read what the others compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import SENTENCES, Candidate
from subspaces.experiments.composition.checks import SCENES, content_stems

CONJUNCTION, NEGATION, DISJUNCTION, DOUBLE_NEGATION = "conjunction", "negation", "disjunction", "double-negation"
ENTAILED, CONTRADICTED, NOT_ENTAILED = "entailed", "contradicted", "not entailed"
LEAST = 2
"""Premises that a set needs: with one there is nothing to rank."""
_SPECIFIC = 2
_GENERAL = frozenset[str]().union(*map(content_stems, (" ".join(scene) for scene in SCENES.values())))


@dataclass(frozen=True)
class Composite:
    """A premise and a composite hypothesis. `right` is negated if `negated`; without `right` it is `left`, negated twice."""

    id: str
    premise: str
    kind: str
    left: str
    right: str
    negated: bool
    label: str
    text: str

    @property
    def candidate(self) -> str:
        """The id of the candidate that it is made from."""
        return self.id.rpartition("/")[0]

    @property
    def entailed(self) -> bool:
        return self.label == ENTAILED


def check_set(candidates: Sequence[Candidate], name: str) -> None:
    """A set can be composed and ranked: two premises at least, every sentence there, no id twice."""
    if len(candidates) < LEAST:
        what = "holds no premises" if not candidates else "holds one premise"
        raise UserError(
            f"the set {name} {what}, but an AUC needs at least {LEAST}: keep more in the review, or filter less."
        )
    seen: set[str] = set()
    for one in candidates:
        for sentence in SENTENCES:
            if not getattr(one, sentence).strip():
                raise UserError(
                    f"the set {name}: {sentence} of {one.id} is missing. Fill it in, or leave the premise out."
                )
        if one.id in seen:
            raise UserError(f"the set {name}: the id {one.id!r} stands twice. Give each premise its own id.")
        seen.add(one.id)


def compose(candidates: Sequence[Candidate]) -> list[Composite]:
    """The paper's four composites of each premise, in order: h1∧h2, h1∧¬h3, h1∧h3, h1∧¬h2."""
    found = []
    for one in candidates:
        found += [
            _pair(one, CONJUNCTION, "h2", ENTAILED),
            _pair(one, NEGATION, "h3", ENTAILED),
            _pair(one, CONJUNCTION, "h3", CONTRADICTED),
            _pair(one, NEGATION, "h2", CONTRADICTED),
        ]
    return found


def disjunctions(candidates: Sequence[Candidate]) -> list[Composite]:
    """h1 ∨ h3 and h3 ∨ h3′ of each premise that has a stranger h3′; the others are left out."""
    found = []
    for one, other in zip(candidates, strangers(candidates), strict=True):
        if other is not None:
            names = _names(one) | _names(other)
            for name, left, right, label in (
                ("h1-or-h3", one.h1, one.h3, ENTAILED),
                ("h3-or-stranger", one.h3, other.h3, NOT_ENTAILED),
            ):
                text = joined(left, ", or ", right, names)
                found.append(Composite(f"{one.id}/{name}", one.premise, DISJUNCTION, left, right, False, label, text))
    return found


def double_negations(candidates: Sequence[Candidate]) -> list[Composite]:
    """¬¬h1 and ¬¬h3 of each premise."""
    found = []
    for one in candidates:
        for hypothesis, label in (("h1", ENTAILED), ("h3", CONTRADICTED)):
            said = getattr(one, hypothesis)
            text = joined("", "It is not true that it is not true that ", said, _names(one))
            found.append(
                Composite(f"{one.id}/not-not-{hypothesis}", one.premise, DOUBLE_NEGATION, said, "", True, label, text)
            )
    return found


def strangers(candidates: Sequence[Candidate]) -> list[Candidate | None]:
    """For each premise the one that lends it h3′: a sentence of another scene, which it cannot entail.

    The rule looks at words only, so it is the same for every model. Go through the premises that follow, round to the first again, and
    take the first whose h3 shares no content word with p, h1, h2 and h3 and has at least two of its own beside general words such as
    `person`, `animal` or `water`: `The person is indoors` could be true anywhere, `The baker is frying fish in a pan` could not.
    """
    own = [frozenset().union(*map(content_stems, one.sentences.values())) for one in candidates]
    lent = [frozenset(content_stems(one.h3)) for one in candidates]
    count = len(candidates)
    found: list[Candidate | None] = []
    for place in range(count):
        following = ((place + step) % count for step in range(1, count))
        fits = (
            other for other in following if not lent[other] & own[place] and len(lent[other] - _GENERAL) >= _SPECIFIC
        )
        other = next(fits, None)
        found.append(None if other is None else candidates[other])
    return found


def halves(composites: Iterable[Composite], kind: str) -> tuple[list[Composite], list[Composite]]:
    """The entailed composites of a kind and the others, both in the order of their premises."""
    chosen = [one for one in composites if one.kind == kind]
    entailed, others = [one for one in chosen if one.entailed], [one for one in chosen if not one.entailed]
    if [one.candidate for one in entailed] != [one.candidate for one in others]:
        raise UserError(
            f"the {kind} composites are not in pairs: every premise needs one that it entails and one that it does not."
        )
    return entailed, others


def _pair(one: Candidate, kind: str, right: str, label: str) -> Composite:
    negated = kind == NEGATION
    between, name = (", but it is not true that ", f"h1-and-not-{right}") if negated else (", and ", f"h1-and-{right}")
    said = getattr(one, right)
    text = joined(one.h1, between, said, _names(one))
    return Composite(f"{one.id}/{name}", one.premise, kind, one.h1, said, negated, label, text)


def joined(left: str, between: str, right: str, names: frozenset[str] = frozenset()) -> str:
    """One sentence of two: no stop in the middle, a stop at the end if there was one, a capital inside only for `names` and the like."""
    left, right = left.strip(), right.strip().lstrip(",;: ")  # a released sentence begins with a comma
    stop = "." if (left or right).endswith(".") else ""
    body = right.rstrip(".").rstrip()
    first = body.split(maxsplit=1)[0]
    bare = _bare(first)
    if not (bare in names or bare == "I" or first[1:] != first[1:].lower()):
        body = body[:1].lower() + body[1:]
    return left.rstrip(".").rstrip() + between + body + stop


def _names(one: Candidate) -> frozenset[str]:
    """Words with a capital inside a sentence of the candidate: they keep it."""
    return frozenset(_bare(word) for text in one.sentences.values() for word in text.split()[1:] if word[:1].isupper())


def _bare(word: str) -> str:
    return word.strip('.,;:!?"“”()').replace("’", "'").partition("'")[0]
