"""Manual validation (paper, appendix on the compositional set): people look at each candidate, and keep or discard it.

A discard has one of the paper's three reasons. Every decision is on disk before the next candidate is shown, so a review can be killed at
any moment and resumes. Flags are recomputed at every start. A candidate whose text changed since its decision is open again.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import (
    DISCARD,
    KEEP,
    OPEN,
    REASONS,
    Reviewed,
    has_decisions,
    load_candidates,
    load_reviewed,
    write_reviewed,
)
from subspaces.experiments.composition.checks import check
from subspaces.experiments.composition.keyboard import QUIT, Keys

_REASON_KEYS = dict(zip("123", REASONS, strict=True))
_MARKS = {KEEP: "kept", DISCARD: "discarded", OPEN: "open"}
HELP = "k keep   1 2 3 discard:  " + "  ".join(f"{key} {reason}" for key, reason in _REASON_KEYS.items())
MORE_HELP = "s skip   u (or b) back: undo the last step   n note   q quit   ? what the reasons mean"


@dataclass
class Review:
    """The state of a review, and the file that always holds it."""

    path: Path
    rows: list[Reviewed]
    reopened: list[str] = field(default_factory=list)
    _stored: bytes | None = None

    @classmethod
    def open(cls, candidates: Path, path: Path) -> Review:
        """Join the candidates with the decisions made so far: those in `path`, or, if it does not exist, those that came along."""
        candidates, path = Path(candidates), Path(path)
        if path.exists() and path.resolve() == candidates.resolve():
            raise UserError(
                f"{path} is the file of candidates itself: choose another one with --out, or changed texts would go unnoticed."
            )
        texts = load_candidates(candidates)
        if path.exists():
            earlier = load_reviewed(path)
        else:
            earlier = load_reviewed(candidates) if has_decisions(candidates) else []
        known, flags = {one.candidate.id: one for one in earlier}, check(texts)
        if gone := sorted(known.keys() - {one.id for one in texts}):
            raise UserError(
                f"{path} holds {len(gone)} candidates that are not in {candidates} ({', '.join(gone[:5])}{', …' * (len(gone) > 5)}). "
                "If they are to go, delete their rows; if this is another set, choose another file with --out."
            )
        rows, reopened = [], []
        for one in texts:
            before = known.get(one.id, Reviewed(one))
            if before.candidate != one and before.decision != OPEN:
                reopened.append(one.id)
                before = replace(before, decision=OPEN, reason="")
            rows.append(replace(before, candidate=one, flags=flags[one.id]))
        review = cls(path, rows, reopened, path.read_bytes() if path.exists() else None)
        review.save()
        return review

    def save(self) -> None:
        """Rewrite the file in one step, unless another program has written it meanwhile."""
        now = self.path.read_bytes() if self.path.exists() else None
        if now != self._stored:
            raise UserError(
                f"{self.path} was changed by another program during this review. Nothing was overwritten; start again."
            )
        write_reviewed(self.path, self.rows)
        self._stored = self.path.read_bytes()

    def change(self, place: int, row: Reviewed) -> None:
        """The decision is on disk when this returns."""
        before, self.rows[place] = self.rows[place], row
        if row != before:
            self.save()

    @property
    def counts(self) -> Counter[str]:
        return Counter(one.decision for one in self.rows)


def run_review(review: Review, keys: Keys, say: Callable[[str], None], *, everything: bool = False) -> None:
    """Show the open candidates (or all of them) one after the other until they are done or the person quits."""
    if review.reopened:
        say(f"open again, because their text changed since the decision: {', '.join(review.reopened)}")
    places = [place for place, one in enumerate(review.rows) if everything or one.decision == OPEN]
    if not places:
        say(f"nothing to review: {_progress(review)}")
        return
    say(HELP)
    say(MORE_HELP)
    steps: list[tuple[int, Reviewed]] = []  # where each step was, and what stood there before it
    shown = None
    while len(steps) < len(places):
        place = places[len(steps)]
        if shown != place:
            say(_page(review, place))
            shown = place
        key, words = keys.key()
        key = key.lower()
        row = review.rows[place]
        if key == QUIT:
            break
        if key == "k":
            after = replace(row, decision=KEEP, reason="")
        elif key in _REASON_KEYS:
            after = replace(row, decision=DISCARD, reason=_REASON_KEYS[key])
        elif key == "s":
            after = row
        elif key in ("u", "b"):
            shown = _undo(review, steps, say, shown)
            continue
        elif key == "n":
            _note(review, place, keys, words, say)
            continue
        else:
            say(_explain() if key == "?" else f"{key!r} is no command.\n{HELP}\n{MORE_HELP}")
            continue
        after = replace(after, note=_plain(words) or after.note)
        steps.append((place, row))
        review.change(place, after)
        say(f"  → {_MARKS[after.decision] if key != 's' else 'skipped'}{f' ({after.reason})' if after.reason else ''}")
    say(f"{_progress(review)}; all of it is in {review.path}")


def _undo(
    review: Review, steps: list[tuple[int, Reviewed]], say: Callable[[str], None], shown: int | None
) -> int | None:
    if not steps:
        say("nothing to undo: this is the first candidate of this session.")
        return shown
    place, before = steps.pop()
    review.change(place, before)
    say(f"  → back to {before.candidate.id}, as it was before")
    return None


def _note(review: Review, place: int, keys: Keys, words: str, say: Callable[[str], None]) -> None:
    if not words:
        say("note:")
        words = keys.line()
    note = _plain(words)
    review.change(place, replace(review.rows[place], note=note))
    say(f"  → note {'set' if note else 'removed'}")


def _plain(words: str) -> str:
    """One line, without what a terminal would obey."""
    return " ".join("".join(letter for letter in words if letter.isprintable()).split())


def _page(review: Review, place: int) -> str:
    one = review.rows[place]
    state = f"  [{_MARKS[one.decision]}{f': {one.reason}' if one.reason else ''}]" if one.decision else ""
    lines = ["", f"{one.candidate.id}  ({place + 1} of {len(review.rows)})  {_progress(review)}{state}"]
    roles = {"premise": "p ", "h1": "h1 follows", "h2": "h2 follows", "h3": "h3 contradicts"}
    for name, sentence in one.candidate.sentences.items():
        lines += textwrap.wrap(sentence, 100, initial_indent=f"  {roles[name]:<16}", subsequent_indent=" " * 18) or [
            f"  {roles[name]}"
        ]
    if one.flags:
        lines.append(f"  flags           {', '.join(one.flags)}")
    if one.note:
        lines.append(f"  note            {one.note}")
    return "\n".join(lines)


def _progress(review: Review) -> str:
    counts = review.counts
    return f"{counts[KEEP]} kept, {counts[DISCARD]} discarded, {counts[OPEN]} open"


def _explain() -> str:
    return "\n".join(f"{key}  {reason}: {REASONS[reason]}" for key, reason in _REASON_KEYS.items())
