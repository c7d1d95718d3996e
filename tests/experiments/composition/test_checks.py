"""Automatic flags: each rule raises its flag, and good candidates raise none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from subspaces.experiments.composition.candidates import Candidate
from subspaces.experiments.composition.checks import check, content_stems, count_flags, shares_context, smells

GOOD = Candidate(
    "c1",
    "Two children are sitting on a red picnic blanket, eating sandwiches.",
    "People are eating.",
    "People are sitting on a blanket.",
    "People are sitting directly on the grass.",
    "here",
)
OTHER = Candidate(
    "c2",
    "An hour-long train ride ends at a small station.",
    "A train has arrived.",
    "A ride is over.",
    "The train has broken down.",
    "here",
)


def flags(**changes: str) -> tuple[str, ...]:
    return check([OTHER, replace(GOOD, **changes)])["c1"]


def test_good_candidates_have_no_flags() -> None:
    assert check([GOOD, OTHER]) == {"c1": (), "c2": ()}


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"h1": "Two children are sitting on a red picnic blanket eating SANDWICHES!"}, "h1-equals-premise"),
        ({"h2": "People are eating!"}, "h2-equals-h1"),
        ({"h3": "People are eating."}, "h3-equals-h1"),
        ({"h3": "Nobody is eating."}, "h3-negated:nobody"),
        ({"h3": "The children are not eating."}, "h3-negated:not"),
        ({"h3": "The children aren't eating."}, "h3-negated:aren't"),
        ({"h3": "Stock prices fell sharply."}, "h3-no-shared-context"),
        ({"h1": "They eat."}, "h1-short:2"),
        ({"premise": "Children " + "sit and " * 16 + "eat."}, "premise-long:34"),
        ({"h1": "people are eating."}, "h1-no-capital"),
        ({"h1": "People are eating"}, "h1-no-full-stop"),
        ({"h3": "People are sitting sitting on the grass."}, "h3-doubled-word:sitting"),
        ({"h2": "People sit on a old blanket."}, "h2-article:a old"),
        ({"h2": "People sit on an blanket."}, "h2-article:an blanket"),
        ({"h2": "People sit  on a blanket."}, "h2-double-space"),
        ({"h2": ",People sit on a blanket."}, "h2-stray-mark"),
    ],
)
def test_each_rule_raises_its_flag(changes: dict[str, str], flag: str) -> None:
    raised = flags(**changes)
    assert flag in raised
    (name,) = changes
    assert all(one.startswith(name) for one in raised), "nothing about the other sentences"


def test_the_length_is_flagged_outside_3_to_30_words() -> None:
    assert flags(h1="People eat now.") == ()
    assert flags(premise="Children " + "sit and " * 14 + "eat.") == ()
    assert "premise-long:32" in flags(premise="Children " + "sit and " * 15 + "eat.")


@pytest.mark.parametrize(
    ("premise", "near"),
    [
        (GOOD.premise, True),
        ("TWO children are sitting on a red picnic blanket eating sandwiches", True),
        ("Two children are sitting on a blue picnic blanket, eating sandwiches.", True),
        ("Two dogs are sleeping on a red sofa.", False),
    ],
)
def test_repeated_premises_point_at_the_first_one(premise: str, near: bool) -> None:
    second = replace(OTHER, id="c3", premise=premise)
    raised = check([GOOD, second])
    assert raised["c1"] == () and ("premise-repeats:c1" in raised["c3"]) == near


def test_repeated_hypotheses_need_all_three() -> None:
    same = replace(OTHER, id="c3", h1=GOOD.h1, h2=GOOD.h2, h3=GOOD.h3)
    assert "hypotheses-repeat:c1" in check([GOOD, same])["c3"]
    assert check([GOOD, replace(same, h3="The train is sitting on the grass.")])["c3"] == ()


def test_context_by_stem_by_scene_and_by_other_words_of_the_premise() -> None:
    assert content_stems("The runners run, running past stopped horses") == {"runner", "run", "past", "stop", "hors"}
    assert shares_context("A dog is running.", "The dogs ran.") and shares_context(
        "A puppy sleeps.", "An animal barks."
    )
    assert not shares_context("A dog is on the road.", "The moon is on the rise.")
    thing = replace(
        GOOD,
        premise="A waiter is carrying a tray of muffins.",
        h1="Someone is working.",
        h2="Food is on a tray.",
        h3="The food is frozen.",
    )
    assert check([thing])["c1"] == ()


def test_articles_go_by_sound() -> None:
    good = "An hour, an honest man, a uniform, a university, a European, a one-way street, an umbrella, an uncle, an 8, an 18, a 10, an X."
    assert list(smells(good)) == []
    bad = "A hour, an uniform, a umbrella, an user, a 8."
    assert [one.split(":")[0] for one in smells(bad)] == ["article"] * 5


def test_counts_by_kind() -> None:
    assert count_flags([("h1-short:2", "h3-negated:not"), ("h1-short:1",)]) == {"h1-short": 2, "h3-negated": 1}


def test_few_flags_on_the_authors_set(tmp_path: Path) -> None:
    from subspaces.experiments.composition.authors import read_authors
    from subspaces.sources.origins import mirror_folder

    folder = mirror_folder(Path(__file__).resolve().parents[3])
    if folder is None or not (folder / "composition/composite_entailment.txt").is_file():
        pytest.skip("needs the mirror: set SUBSPACES_MIRROR, or put it in ../shared/data beside the project")
    raised = check(read_authors(folder / "composition/composite_entailment.txt"))
    counts = count_flags(raised.values())
    assert {"h3-no-full-stop", "h3-doubled-word:sitting"} <= set(raised["a001"])
    assert counts["h3-no-shared-context"] <= 8, "a rule that flags good candidates is no help"
