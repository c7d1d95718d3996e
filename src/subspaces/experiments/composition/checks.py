"""Automatic flags. They point at what people should look at; they never decide (paper, appendix: validation is manual).

Every rule is simple and stated here:

    repeats            same words as an earlier premise, or nearly (Jaccard index of their word sets ≥ 0.8); all three hypotheses likewise
    equal              a hypothesis says the premise, or two hypotheses say the same, but for case and punctuation
    no-shared-context  h3 shares no content word (cut to a stem) and no scene (people, animals, traffic, food, …) with the premise or
                       with h1 and h2, which say what the premise says in other words; he, she and they count as people
    negated            h3 contradicts by a negation word (no, not, nobody, …) rather than by a fact
    short, long        fewer than 3 or more than 30 words
    no-capital, no-full-stop, doubled-word, article, double-space, stray-mark     signs of careless grammar
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from subspaces.experiments.composition.candidates import SENTENCES, Candidate

SHORTEST, LONGEST = 3, 30
NEAR = 0.8


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = _words_of("no not nobody nothing none never neither nor nowhere without cannot")
STOP_WORDS = _words_of(
    """a an the this that these those some any each every all both several many few other another such one its his her their my our your
    he she it they them him we you i who which what there here and or but as if than then so of in on at by for from with into onto over
    under near next beside behind between through across along around up down out off to is are was were be been being am has have had do
    does did will would can could may might must shall should very just only also too while during after before about against"""
)
SCENES: dict[str, frozenset[str]] = {
    "people": _words_of(
        """person people man men woman women child children boy boys girl girls kid kids baby toddler adult adults someone somebody
        everyone lady gentleman guy human crowd group family couple friend friends mother father player worker team
        he she they his her their him them"""
    ),
    "animals": _words_of(
        "animal animals dog dogs puppy cat cats kitten horse horses bird birds cow cows sheep fish pet bear"
    ),
    "traffic": _words_of(
        "car cars truck bus train vehicle vehicles bicycle bike motorcycle boat ship plane airplane road street"
    ),
    "food": _words_of("food meal dinner lunch breakfast drink drinks beverage eat eating drinking cooking kitchen"),
    "weather": _words_of(
        "weather sun sunny rain raining rainy snow snowing snowy fog foggy cloudy wind windy storm sky"
    ),
    "water": _words_of("water lake river sea ocean pool beach swimming wave waves"),
}
"""Words that place two sentences in the same scene though they differ: a general word of either counts."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ARTICLE = re.compile(r"\b(an?)\s+[\"“‘']?([^\W_]+)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)
_SOUNDS_CONSONANT = re.compile(
    r"(?:uni(?!n|m)|us(?:e|ual|ed|ing|er)|ut(?:ensil|ili|opi)|u(?:biq|kulele|ranium|rin)|eu|ewe|on(?:e|ce)$|one-)",
    re.IGNORECASE,
)
_STOP = re.compile(r"[.!?][\"”’')]*$")


def check(candidates: Sequence[Candidate]) -> dict[str, tuple[str, ...]]:
    """The flags of each candidate by its id, in the order of the rules."""
    repeated = _repeats(candidates)
    return {one.id: (*repeated[one.id], *_equal(one), *_context(one), *_sentences(one)) for one in candidates}


def words(sentence: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(sentence)]


def content_stems(sentence: str) -> set[str]:
    """The content words, cut to a crude stem: `running`, `runs` and `run` are one."""
    return {_stem(word) for word in words(sentence) if word not in STOP_WORDS}


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def _repeats(candidates: Sequence[Candidate]) -> dict[str, list[str]]:
    """Each candidate against all before it."""
    seen: list[tuple[str, set[str], list[set[str]]]] = []
    flags: dict[str, list[str]] = {}
    for one in candidates:
        premise, hypotheses = set(words(one.premise)), [set(words(sentence)) for sentence in (one.h1, one.h2, one.h3)]
        flags[one.id] = [f"premise-repeats:{name}" for name, other, _ in seen if _near(premise, other)]
        flags[one.id] += [
            f"hypotheses-repeat:{name}" for name, _, others in seen if all(map(_near, hypotheses, others))
        ]
        seen.append((one.id, premise, hypotheses))
    return flags


def _near(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= NEAR * len(one | other)


def _equal(one: Candidate) -> Iterator[str]:
    said = {name: words(sentence) for name, sentence in one.sentences.items()}
    for place, name in enumerate(SENTENCES):
        yield from (f"{other}-equals-{name}" for other in SENTENCES[place + 1 :] if said[other] == said[name])


def _context(one: Candidate) -> Iterator[str]:
    if not shares_context(f"{one.premise} {one.h1} {one.h2}", one.h3):
        yield "h3-no-shared-context"
    for word in words(one.h3):
        if word in NEGATIONS or word.endswith("n't"):
            yield f"h3-negated:{word}"


def shares_context(one: str, other: str) -> bool:
    """A content word, or a scene, in both."""
    if content_stems(one) & content_stems(other):
        return True
    said, also = set(words(one)), set(words(other))
    return any(said & scene and also & scene for scene in SCENES.values())


def _sentences(one: Candidate) -> Iterator[str]:
    for name, sentence in one.sentences.items():
        count = len(words(sentence))
        if count < SHORTEST:
            yield f"{name}-short:{count}"
        if count > LONGEST:
            yield f"{name}-long:{count}"
        yield from (f"{name}-{smell}" for smell in smells(sentence))


def smells(sentence: str) -> Iterator[str]:
    """Signs of careless grammar in one sentence."""
    text = sentence.strip()
    first = text.lstrip("\"“‘'(")[:1]
    if first.isalpha() and not first.isupper():
        yield "no-capital"
    if not _STOP.search(text):
        yield "no-full-stop"
    said = words(text)
    yield from (f"doubled-word:{word}" for word, after in pairwise(said) if word == after)
    for article, word in _ARTICLE.findall(text):
        spelt_out = word.isupper()  # nobody can tell from the letters how UFO, SUV and X begin
        if not spelt_out and (article.lower() == "an") != _wants_an(word):
            yield f"article:{article} {word}"
    if "  " in text:
        yield "double-space"
    if text != sentence or text[:1] in ",;.:!?":
        yield "stray-mark"


def _wants_an(word: str) -> bool:
    """By sound, as far as spelling tells."""
    if word.isdigit():
        return word.startswith("8") or word in ("11", "18")
    if _SILENT_H.match(word):
        return True
    return word[0].lower() in "aeiou" and not _SOUNDS_CONSONANT.match(word)


def count_flags(flags: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each kind of flag was raised, whatever follows its colon."""
    return Counter(flag.split(":")[0] for some in flags for flag in some)
