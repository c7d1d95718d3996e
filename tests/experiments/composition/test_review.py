"""The review: by lines, by key presses in a real terminal, killed, resumed, and with texts that changed meanwhile."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.candidates import (
    Candidate,
    Reviewed,
    load_reviewed,
    write_candidates,
    write_reviewed,
)
from subspaces.experiments.composition.keyboard import Lines
from subspaces.experiments.composition.review import Review, run_review

LABEL, CONTEXT, LANGUAGE = "wrong-label", "no-contradiction-or-context", "ungrammatical-or-ambiguous"
SCENES = ["rows a boat", "paints a fence", "feeds two horses", "repairs an old clock", "climbs a ladder"]


def candidates(count: int = 5) -> list[Candidate]:
    return [
        Candidate(
            f"c{n}",
            f"A man {scene}, whistling.",
            f"A man {scene}.",
            "Someone is whistling.",
            f"A man sleeps in bed {n}.",
            "here",
        )
        for n, scene in enumerate(SCENES[:count], start=1)
    ]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    write_candidates(tmp_path / "c.csv", candidates())
    return tmp_path / "c.csv", tmp_path / "r.csv"


def run(files: tuple[Path, Path], *lines: str, everything: bool = False) -> str:
    said: list[str] = []
    stream = io.StringIO("".join(f"{line}\n" for line in lines))
    run_review(Review.open(*files), Lines(stream), said.append, everything=everything)
    return "\n".join(said)


def decisions(path: Path) -> list[tuple[str, str, str]]:
    return [(one.decision, one.reason, one.note) for one in load_reviewed(path)]


OPEN = ("", "", "")


def test_keep_discard_skip_and_quit(files: tuple[Path, Path]) -> None:
    said = run(files, "k", "1", "2 h3 could be true", "3", "s")
    assert decisions(files[1]) == [
        ("keep", "", ""),
        ("discard", LABEL, ""),
        ("discard", CONTEXT, "h3 could be true"),
        ("discard", LANGUAGE, ""),
        OPEN,
    ]
    assert "c1  (1 of 5)  0 kept, 0 discarded, 5 open" in said and "c5  (5 of 5)  1 kept, 3 discarded, 1 open" in said
    assert "A man feeds two horses, whistling." in said and "skipped" in said
    assert said.count("h3 contradicts") == 5


def test_it_goes_on_where_it_was(files: tuple[Path, Path]) -> None:
    run(files, "k", "q", "k")
    assert [one[0] for one in decisions(files[1])] == ["keep", "", "", "", ""]
    said = run(files, "1")
    assert "c1  (" not in said and "c2  (2 of 5)  1 kept" in said
    run(files, "k", "k", "k")
    assert "nothing to review: 4 kept, 1 discarded, 0 open" in run(files)


def test_the_end_of_the_input_is_a_quit(files: tuple[Path, Path]) -> None:
    assert "1 kept, 0 discarded, 4 open; all of it is in" in run(files, "k")


def test_undo_takes_steps_back_one_by_one(files: tuple[Path, Path]) -> None:
    said = run(files, "u", "k", "1 wrong", "s", "b", "U", "k", "q")
    assert "nothing to undo" in said and "back to c3" in said and "back to c2" in said
    assert decisions(files[1])[:3] == [("keep", "", ""), ("keep", "", ""), OPEN]
    run(files, "2", "u", "q")
    assert decisions(files[1])[2] == OPEN, "also the last one"


def test_undo_gives_back_an_earlier_decision(files: tuple[Path, Path]) -> None:
    run(files, "1 first", "q")
    run(files, "k", "u", "q", everything=True)
    assert decisions(files[1])[0] == ("discard", LABEL, "first")


def test_all_shows_decided_candidates_too(files: tuple[Path, Path]) -> None:
    run(files, "1", "k", "k", "k", "k")
    assert "[discarded: wrong-label]" in run(files, "k", "q", everything=True)
    assert decisions(files[1])[0] == ("keep", "", "")


def test_notes(files: tuple[Path, Path]) -> None:
    run(files, "n look, again \x1b[31m", "k", "n", "on a line of its own", "q")
    assert decisions(files[1])[:2] == [("keep", "", "look, again [31m"), ("", "", "on a line of its own")]
    assert "note            on a line of its own" in run(files, "n", "", "q")
    assert decisions(files[1])[1] == OPEN


def test_other_words_change_nothing(files: tuple[Path, Path]) -> None:
    said = run(files, "", "keep", "4", "?", "q")
    assert decisions(files[1]) == [OPEN] * 5
    assert "'keep' is no command" in said and "the entailment label of a hypothesis is wrong" in said
    assert said.count("c1  (1 of 5)") == 1


def test_flags_are_shown_and_stored(tmp_path: Path) -> None:
    some = candidates(2)
    some[1] = Candidate(
        "c2", "A man paints a fence.", "a man paints", "Someone paints a fence.", "Nobody paints a fence.", "here"
    )
    write_candidates(tmp_path / "c.csv", some)
    said = run((tmp_path / "c.csv", tmp_path / "r.csv"), "k", "k")
    assert "flags           h3-negated:nobody, h1-no-capital, h1-no-full-stop" in said
    rows = load_reviewed(tmp_path / "r.csv")
    assert rows[0].flags == () and rows[1].flags == ("h3-negated:nobody", "h1-no-capital", "h1-no-full-stop")


def test_the_file_is_whole_after_every_key(files: tuple[Path, Path]) -> None:
    """What a killed review leaves: the state after the last key, read from disk at the moment the next key is asked for."""
    states = []

    class Watching(Lines):
        def key(self) -> tuple[str, str]:
            states.append([one[0] for one in decisions(files[1])])
            return super().key()

    run_review(Review.open(*files), Watching(io.StringIO("k\n1\nu\ns\nk\n")), lambda _: None)
    kept = ["keep", "", "", "", ""]
    assert states == [[""] * 5, kept, ["keep", "discard", "", "", ""], kept, kept, ["keep", "", "keep", "", ""]]
    assert sorted(path.name for path in files[1].parent.iterdir()) == ["c.csv", "r.csv"]


def test_a_changed_text_loses_its_decision_and_says_so(files: tuple[Path, Path]) -> None:
    run(files, "k", "1 with a note", "k", "q")
    some = candidates()
    some[1] = Candidate("c2", some[1].premise, some[1].h1, some[1].h2, "A man is asleep.", "here")
    write_candidates(files[0], [some[2], some[0], some[1], some[3], some[4]])
    said = run(files, "q")
    assert (
        "open again, because their text changed since the decision: c2" in said
        and "c2  (3 of 5)  2 kept, 0 discarded, 3 open" in said
    )
    rows = load_reviewed(files[1])
    assert [one.candidate.id for one in rows] == ["c3", "c1", "c2", "c4", "c5"], "the order of the candidates"
    assert rows[2] == Reviewed(some[1], "", "", "with a note") and rows[0].decision == rows[1].decision == "keep"
    assert "open again" not in run(files, "q"), "said once"


def test_new_candidates_are_open_and_lost_ones_are_not_forgotten(files: tuple[Path, Path]) -> None:
    write_candidates(files[0], candidates(3))
    run(files, "k", "k", "k")
    write_candidates(files[0], candidates(5))
    run(files, "q")
    assert [one[0] for one in decisions(files[1])] == ["keep"] * 3 + ["", ""]
    before = files[1].read_bytes()
    write_candidates(files[0], candidates(2))
    with pytest.raises(UserError, match=r"3 candidates that are not in .*c3, c4, c5"):
        run(files, "q")
    assert files[1].read_bytes() == before


def test_decisions_that_came_with_the_candidates_are_a_start(files: tuple[Path, Path]) -> None:
    some = candidates()
    write_reviewed(
        files[0], [Reviewed(some[0], "keep"), Reviewed(some[1], "discard", CONTEXT, "no"), *map(Reviewed, some[2:])]
    )
    said = run(files, "k", "q")
    assert "c3  (3 of 5)  1 kept, 1 discarded, 3 open" in said
    assert [one[0] for one in decisions(files[1])] == ["keep", "discard", "keep", "", ""]
    assert load_reviewed(files[0])[2].decision == "", "the candidates themselves stay as they are"


def test_refused_files(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is the file of candidates itself"):
        Review.open(files[0], files[0])
    files[1].touch()
    with pytest.raises(UserError, match=r"r\.csv is empty"):
        Review.open(*files)
    assert files[1].read_bytes() == b""
    with pytest.raises(UserError, match="does not exist"):
        Review.open(tmp_path / "none.csv", tmp_path / "x.csv")


def test_somebody_elses_changes_are_not_overwritten(files: tuple[Path, Path]) -> None:
    review = Review.open(*files)
    run(files, "1", "q")
    before = files[1].read_bytes()
    with pytest.raises(UserError, match="changed by another program"):
        run_review(review, Lines(io.StringIO("k\n")), lambda _: None)
    assert files[1].read_bytes() == before


# --- a real terminal ------------------------------------------------------------------------------------------------------

PROGRAM = "from subspaces.experiments.composition.commands import app; app()"


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]):
        self.descriptor, self.process, self.seen = descriptor, process, ""

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until `text` appears after what was waited for before."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come; there is {self.seen!r}"
            if select.select([self.descriptor], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.descriptor, 4096).decode()
                except OSError:
                    assert text in self.seen, f"it ended with {self.seen!r}"
        self.seen = self.seen.partition(text)[2]

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())


@contextmanager
def terminal(files: tuple[Path, Path]) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-c", PROGRAM, "review", str(files[0]), "--out", str(files[1])]
    # a run in the background has inherited that interrupts are ignored
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield Terminal(ours, process)
        process.wait(20)
        if process.returncode >= 0:
            assert termios.tcgetattr(theirs) == before, "the terminal is left as it was"
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_single_presses_in_a_terminal(files: tuple[Path, Path]) -> None:
    with terminal(files) as screen:
        screen.wait_for("A man sleeps in bed 1.")
        screen.press("k")
        screen.wait_for("A man sleeps in bed 2.")
        assert decisions(files[1])[0] == ("keep", "", ""), "on disk before the next one is shown"
        screen.press("\x1b[A")  # an arrow
        screen.press("2")
        screen.wait_for("A man sleeps in bed 3.")
        screen.press("u")
        screen.wait_for("A man sleeps in bed 2.")
        screen.press("n")
        screen.wait_for("note:")
        screen.press("not sure, ask\n")
        screen.wait_for("note set")
        screen.press("1")
        screen.wait_for("A man sleeps in bed 3.")
        screen.press("sk")
        screen.wait_for("A man sleeps in bed 5.")
        screen.press("q")
        screen.wait_for("2 kept, 1 discarded, 2 open")
    assert screen.process.returncode == 0
    assert decisions(files[1]) == [("keep", "", ""), ("discard", LABEL, "not sure, ask"), OPEN, ("keep", "", ""), OPEN]


def test_a_killed_and_an_interrupted_review_lose_nothing(files: tuple[Path, Path]) -> None:
    with terminal(files) as screen:
        screen.wait_for("A man sleeps in bed 1.")
        screen.press("k")
        screen.wait_for("A man sleeps in bed 2.")
        screen.process.send_signal(signal.SIGKILL)
    assert decisions(files[1]) == [("keep", "", "")] + [OPEN] * 4
    with terminal(files) as screen:
        screen.wait_for("A man sleeps in bed 2.")
        screen.press("3")
        screen.wait_for("A man sleeps in bed 3.")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("stopped; every decision is in")
    assert screen.process.returncode == 0
    assert decisions(files[1])[:3] == [("keep", "", ""), ("discard", LANGUAGE, ""), OPEN]
