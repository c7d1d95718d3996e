"""Composites of the paper and the extras: their parts, labels and texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition import candidates as candidates_module
from subspaces.experiments.composition.candidates import Candidate, kept, load_reviewed
from subspaces.experiments.composition.checks import content_stems
from subspaces.experiments.composition.compose import (
    CONJUNCTION,
    CONTRADICTED,
    DISJUNCTION,
    DOUBLE_NEGATION,
    ENTAILED,
    NEGATION,
    NOT_ENTAILED,
    check_set,
    compose,
    disjunctions,
    double_negations,
    halves,
    joined,
    strangers,
)
from tests.experiments.composition.models import CANDIDATES

REVIEWED = Path(candidates_module.__file__).with_name("candidates.csv")


def test_the_four_composites_of_a_premise() -> None:
    one = CANDIDATES[0]
    found = compose([one])
    assert [(c.kind, c.left, c.right, c.negated, c.label) for c in found] == [
        (CONJUNCTION, one.h1, one.h2, False, ENTAILED),
        (NEGATION, one.h1, one.h3, True, ENTAILED),
        (CONJUNCTION, one.h1, one.h3, False, CONTRADICTED),
        (NEGATION, one.h1, one.h2, True, CONTRADICTED),
    ]
    assert all(c.premise == one.premise and c.candidate == "t1" for c in found)
    assert [c.id for c in found] == ["t1/h1-and-h2", "t1/h1-and-not-h3", "t1/h1-and-h3", "t1/h1-and-not-h2"]


def test_a_set_has_four_pairs_for_each_premise_half_of_each_kind() -> None:
    premises = kept(load_reviewed(REVIEWED))[:150]
    composites = compose(premises)
    assert len(composites) == 4 * len(premises) == len({c.id for c in composites})
    assert Counter((c.kind, c.entailed) for c in composites) == {
        (kind, entailed): len(premises) for kind in (CONJUNCTION, NEGATION) for entailed in (True, False)
    }
    for kind in (CONJUNCTION, NEGATION):
        entailed, others = halves(composites, kind)
        assert [c.candidate for c in entailed] == [c.candidate for c in others] == [one.id for one in premises]


def test_composites_as_sentences() -> None:
    texts = {c.id: c.text for c in (*compose(CANDIDATES), *disjunctions(CANDIDATES), *double_negations(CANDIDATES))}
    assert texts["t1/h1-and-h2"] == "A baker is working, and there is bread."
    assert texts["t1/h1-and-not-h3"] == "A baker is working, but it is not true that the baker is frying fish."
    assert texts["t1/h1-or-h3"] == "A baker is working, or the baker is frying fish."
    assert texts["t2/not-not-h3"] == "It is not true that it is not true that the dogs are sleeping on a sofa."
    assert texts["t4/h1-and-h2"] == "A man is reading, and Paris is around him.", "a name keeps its capital"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("People eat", "The sun shines", "People eat, and the sun shines"),  # the authors' sentences have no stop
        ("People eat.", "The sun shines", "People eat, and the sun shines."),
        ("People eat .", "I am late.", "People eat, and I am late."),
        ("People eat", "I’m late", "People eat, and I’m late"),
        ("People eat", "TVs are on", "People eat, and TVs are on"),
        ("People eat", ",A cyclist", "People eat, and a cyclist"),
        ("people eat", "dogs run", "people eat, and dogs run"),
    ],
)
def test_capitals_and_stops(left: str, right: str, expected: str) -> None:
    assert joined(left, ", and ", right) == expected


def test_disjunctions_have_one_true_side_or_none() -> None:
    found = disjunctions(CANDIDATES)
    entailed, others = halves(found, DISJUNCTION)
    by_id = {one.id: one for one in CANDIDATES}
    assert len(entailed) == len(CANDIDATES)
    for good, bad in zip(entailed, others, strict=True):
        one = by_id[good.candidate]
        assert (good.left, good.right, good.label) == (one.h1, one.h3, ENTAILED)
        assert (bad.left, bad.label) == (one.h3, NOT_ENTAILED)
        assert bad.right in {other.h3 for other in CANDIDATES if other is not one}


def test_a_stranger_is_the_next_of_another_scene() -> None:
    fish, dogs = CANDIDATES[0], CANDIDATES[1]
    general = Candidate(
        "g", "A man sits at home.", "A man is sitting.", "He is at home.", "The person is outdoors.", "test"
    )
    alike = replace(CANDIDATES[4], id="a", h3="The baker melts chocolate.")  # shares `baker` with the first
    assert strangers([fish, general, alike, dogs])[0] is dogs, "neither too general nor about a baker"
    assert strangers([fish, general]) == [None, fish]
    assert [c.candidate for c in disjunctions([fish, general])] == ["g", "g"], (
        "a premise without a stranger is left out"
    )


def test_strangers_of_the_recorded_set_share_no_word_with_the_premise() -> None:
    premises = kept(load_reviewed(REVIEWED))
    found = strangers(premises)
    assert found == strangers(premises) and None not in found
    for one, other in zip(premises, found, strict=True):
        assert other.id != one.id and not content_stems(other.h3) & content_stems(one.premise)


def test_double_negations() -> None:
    entailed, others = halves(double_negations(CANDIDATES), DOUBLE_NEGATION)
    assert [c.left for c in entailed] == [one.h1 for one in CANDIDATES]
    assert [c.left for c in others] == [one.h3 for one in CANDIDATES]
    assert all(c.negated and not c.right for c in (*entailed, *others))


def test_sets_that_cannot_be_ranked() -> None:
    with pytest.raises(UserError, match="holds no premises"):
        check_set([], "elicited")
    with pytest.raises(UserError, match="one premise"):
        check_set(CANDIDATES[:1], "elicited")
    with pytest.raises(UserError, match="h2 of t2 is missing"):
        check_set([CANDIDATES[0], replace(CANDIDATES[1], h2=" ")], "elicited")
    with pytest.raises(UserError, match="'t1' stands twice"):
        check_set([CANDIDATES[0], CANDIDATES[0]], "elicited")
    with pytest.raises(UserError, match="not in pairs"):
        halves(compose(CANDIDATES)[:-1], NEGATION)
