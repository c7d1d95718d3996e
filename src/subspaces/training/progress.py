"""Progress for people: a live bar with rate, time left and the metric on a terminal; plain lines, a few a minute, in a log."""

from __future__ import annotations

import sys
import time
from typing import TextIO


def duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class ConsoleProgress:
    """Shows a count towards a total, smoothed metrics, the rate in items of `unit`, and the time left."""

    def __init__(
        self, title: str, unit: str = "steps", scale: int = 1, stream: TextIO | None = None, every: float = 20.0
    ):
        self.title, self.unit, self.scale, self.every = title, unit, scale, every
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.metrics: dict[str, float] = {}
        self._bar_shown = False

    def start(self, total: int, done: int) -> None:
        self.total, self.first = total, done
        self.began = self.shown = time.monotonic()

    def update(self, done: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self.metrics[name] = value if name not in self.metrics else 0.95 * self.metrics[name] + 0.05 * value
        now = time.monotonic()
        if now - self.shown < (0.2 if self.live else self.every) and done < self.total:
            return
        self.shown = now
        rate = (done - self.first) / max(now - self.began, 1e-9)
        left = (self.total - done) / rate if rate else 0.0
        values = "  ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        percent = 100 * done / max(self.total, 1)
        text = (
            f"{self.title}  {percent:5.1f} %  {rate * self.scale:,.0f} {self.unit}/s  {duration(left)} left  {values}"
        )
        if self.live:
            filled = round(20 * done / max(self.total, 1))
            self.stream.write(f"\r\x1b[2K{'━' * filled}{'╌' * (20 - filled)} {text}")
            self.stream.flush()
            self._bar_shown = True
        else:
            print(text, file=self.stream, flush=True)

    def tick(self, done: int, total: int) -> None:
        """One more part of a count whose total is known only when it begins."""
        if not hasattr(self, "total"):
            self.start(total, 0)
        self.update(done, {})

    def say(self, text: str) -> None:
        self._clear()
        print(f"{self.title}  {text}", file=self.stream, flush=True)

    def close(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._bar_shown:
            self.stream.write("\r\x1b[2K")
            self._bar_shown = False


class Silent:
    """No progress at all: for tests and library use."""

    def start(self, total: int, done: int) -> None: ...

    def update(self, done: int, metrics: dict[str, float]) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...
