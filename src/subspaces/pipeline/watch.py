"""`subspaces watch -- snakemake …`: one line per stage with a bar and the time left; Snakemake's own log goes to a file.

Stages are read from that log: the table "Job stats" says how many jobs each rule has, and every job says when it starts, ends or fails.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from subspaces.training.progress import duration

_STAGES = (  # a stage, and how the names of its rules begin; the first that fits counts
    ("search and speed", ("encode_", "build_index", "measure_", "answer_")),
    ("data", ("fetch_", "build_", "elicit_", "parse_")),
    ("training", ("train_", "ship_")),
    ("evaluation", ("evaluate_", "list_")),
    ("figures", ("draw_",)),
    ("tables and page", ("write_", "check_", "record_")),
)
_OTHER = "other steps"
_ORDER = ("data", "training", "evaluation", "search and speed", "figures", "tables and page", _OTHER)
_UNCOUNTED = {"all", "total"}
_COUNT = re.compile(r"^(\w+) +(\d+)$")
_START = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):$")
_JOB = re.compile(r"^ +jobid: (\d+)$")
_END = re.compile(r"^Finished jobid: (\d+) \(Rule: (\w+)\)")
_ERROR = re.compile(r"^Error in (?:rule|group job) (\w+)")
_LOG = re.compile(r"^ +log: (.+?)(?: \(check log file.*)?$")
_SHOWN = 15  # last lines of a log


def stage_of(rule: str) -> str:
    return next((name for name, starts in _STAGES if rule.startswith(starts)), _OTHER)


@dataclass
class Stage:
    """Jobs of one stage, and how long those that ended took."""

    total: int = 0
    done: int = 0
    seconds: list[float] = field(default_factory=list)

    def left(self, parallel: int) -> float | None:
        """Seconds until its last job ends, from the mean of those that ended; None before the first."""
        if not self.seconds or self.done >= self.total:
            return None
        return (self.total - self.done) * sum(self.seconds) / len(self.seconds) / parallel


class JobLog:
    """What Snakemake's log has said so far."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}
        self.failed: list[tuple[str, str | None]] = []  # rule, its log file
        self.most = 1  # jobs that ran at the same time
        self._running: dict[int, tuple[str, float]] = {}
        self.counting = self._in_error = False
        self._rule = ""

    def read(self, line: str, now: float) -> None:
        """One more line."""
        line = line.rstrip()
        if line == "Job stats:":  # a workflow that plans again says it again
            self.counting = not self.stages
        elif self.counting and not line:
            self.counting = False
        elif self.counting:
            self._count(line)
        elif found := _START.match(line):
            self._rule, self._in_error = found[1], False
        elif found := _ERROR.match(line):
            self._in_error = True
            self.failed.append((found[1], None))
        elif self._in_error and not self.failed[-1][1] and (found := _LOG.match(line)):
            self.failed[-1] = (self.failed[-1][0], found[1])
        elif not self._in_error and (found := _JOB.match(line)):
            self._running[int(found[1])] = (self._rule, now)
            self.most = max(self.most, len(self._running))
        elif found := _END.match(line):
            self._end(int(found[1]), found[2], now)

    def _count(self, line: str) -> None:
        found = _COUNT.match(line)
        if found and found[1] not in _UNCOUNTED:
            self.stages.setdefault(stage_of(found[1]), Stage()).total += int(found[2])

    def _end(self, job: int, rule: str, now: float) -> None:
        _, began = self._running.pop(job, (rule, now))
        stage = self.stages.get(stage_of(rule))
        if stage is not None and rule not in _UNCOUNTED:
            stage.done += 1
            stage.seconds.append(now - began)

    def in_order(self) -> list[tuple[str, Stage]]:
        """The stages in the order of the graph."""
        return [(name, self.stages[name]) for name in _ORDER if name in self.stages]


class StageLines:
    """The stages on a terminal, as bars that fill; elsewhere one line for each stage that ends."""

    def __init__(self, console: Console):
        self.console, self.tasks, self.ended = console, dict[str, TaskID](), set[str]()
        columns = (TextColumn("{task.description:<16}"), BarColumn(30), TextColumn("{task.fields[text]}"))
        self.bars = Progress(*columns, console=console, disable=not console.is_terminal)

    def show(self, log: JobLog) -> None:
        for name, stage in log.in_order():
            left = stage.left(log.most)
            text = f"{stage.done} of {stage.total}" + (f", about {duration(left)} left" if left is not None else "")
            if name not in self.tasks:
                self.tasks[name] = self.bars.add_task(name, total=stage.total, text=text)
            self.bars.update(self.tasks[name], completed=stage.done, text=text)
            if stage.done == stage.total and name not in self.ended:
                self.ended.add(name)
                if not self.console.is_terminal:
                    self.console.print(f"{name:<16} {stage.done} of {stage.total} done", highlight=False)


def watch(command: Sequence[str], folder: Path, log_file: Path, verbose: bool = False) -> int:
    """Run a Snakemake command that works in `folder`; returns its exit code."""
    console = Console(stderr=False, highlight=False)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    console.print(Text(f"Snakemake's log: {log_file}"), soft_wrap=True)
    log, last = JobLog(), deque[str](maxlen=_SHOWN)
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    )
    old = {
        number: signal.signal(number, lambda sent, _: run.send_signal(sent))
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    old[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
    lines = StageLines(console)
    try:
        assert run.stdout is not None
        with run.stdout, open(log_file, "w", encoding="utf-8", buffering=1) as kept, lines.bars:
            for line in run.stdout:
                kept.write(line)
                last.append(line.rstrip())
                log.read(line, time.monotonic())
                if verbose:
                    sys.stdout.write(line)
                elif not log.counting:
                    lines.show(log)
        code = run.wait()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if code:
        console.print(Text("\n".join(explain(log, last, folder, log_file))), soft_wrap=True)
    return code if code >= 0 else 128 - code


def explain(log: JobLog, last: Iterable[str], folder: Path, log_file: Path) -> list[str]:
    """What failed, the last lines of its log, and what to do."""
    lines = []
    for rule, name in dict.fromkeys(log.failed):
        path = folder / name if name else None
        lines.append(f"\n{rule} failed." + (f" The end of {path}:" if path else ""))
        if path and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").splitlines()
            lines += [f"  {line}" for line in text[-_SHOWN:]]
    if not lines:
        lines = ["\nThe run failed. The end of Snakemake's log:", *(f"  {line}" for line in last)]
    return [
        *lines,
        "",
        "What to do: correct the cause and give the same command again; finished jobs are kept, training resumes.",
        f"docs/troubleshooting.md explains messages. The whole log: {log_file} (`make run VERBOSE=1` shows it).",
    ]
