"""What people see while a model trains: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import io
import re

import pytest

from subspaces.training import progress as progress_module
from subspaces.training.progress import ConsoleProgress, Silent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


def advance(progress: ConsoleProgress, clock: Clock, steps: range, seconds: float) -> None:
    for done in steps:
        clock.now += seconds
        progress.update(done, {"loss": 2.0, "first": 0.5})


def test_a_log_gets_plain_lines_a_few_a_minute(clock: Clock) -> None:
    stream = io.StringIO()
    progress = ConsoleProgress("subspace-64 nouns", unit="edges", scale=128, stream=stream, every=20.0)
    progress.start(8000, 0)
    advance(progress, clock, range(1, 601), 0.1)
    progress.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3 or len(lines) == 2
    assert lines[0] == "subspace-64 nouns    2.5 %  1,280 edges/s  13:00 left  loss 2.0000  first 0.5000"
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()


def test_the_end_is_always_shown(clock: Clock) -> None:
    stream = io.StringIO()
    progress = ConsoleProgress("toy", stream=stream, every=1e9)
    progress.start(10, 0)
    advance(progress, clock, range(1, 11), 1.0)
    assert stream.getvalue() == "toy  100.0 %  1 steps/s  0:00 left  loss 2.0000  first 0.5000\n"


def test_a_terminal_gets_a_live_bar(clock: Clock) -> None:
    stream = Terminal()
    progress = ConsoleProgress("toy", stream=stream)
    progress.start(100, 0)
    advance(progress, clock, range(1, 51), 0.5)
    text = stream.getvalue()
    assert "\n" not in text
    last = text.split("\r\x1b[2K")[-1]
    assert last == "━" * 10 + "╌" * 10 + " toy   50.0 %  2 steps/s  0:25 left  loss 2.0000  first 0.5000"
    progress.say("epoch 1/2")
    assert stream.getvalue().endswith("\r\x1b[2Ktoy  epoch 1/2\n")
    advance(progress, clock, range(51, 52), 0.5)
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[2K")
    progress.close()
    assert not stream.getvalue().endswith("\r\x1b[2K\r\x1b[2K")


def test_a_terminal_is_not_flooded(clock: Clock) -> None:
    stream = Terminal()
    progress = ConsoleProgress("toy", stream=stream)
    progress.start(100_000, 0)
    advance(progress, clock, range(1, 10_001), 0.001)
    assert 40 <= stream.getvalue().count("\r") <= 51


def test_the_rate_of_a_resumed_run_counts_its_own_steps(clock: Clock) -> None:
    stream = io.StringIO()
    progress = ConsoleProgress("toy", stream=stream, every=5.0)
    progress.start(1000, 900)
    advance(progress, clock, range(901, 911), 1.0)
    first = stream.getvalue().splitlines()[0]
    assert "90.5 %" in first and "1 steps/s" in first and "1:35 left" in first


def test_hours_are_shown_and_metrics_are_smooth(clock: Clock) -> None:
    stream = io.StringIO()
    progress = ConsoleProgress("toy", stream=stream, every=0.0)
    progress.start(20_000, 0)
    clock.now += 1
    progress.update(1, {"loss": 1.0})
    clock.now += 1
    progress.update(2, {"loss": 2.0})
    first, second = stream.getvalue().splitlines()
    assert "5:33:19 left" in first and "loss 1.0000" in first
    assert float(re.search(r"loss (\S+)", second).group(1)) == pytest.approx(1.05)


def test_silence(capsys: pytest.CaptureFixture) -> None:
    silent = Silent()
    silent.start(3, 0)
    silent.update(1, {"loss": 1.0})
    silent.say("something")
    silent.close()
    assert capsys.readouterr() == ("", "")
