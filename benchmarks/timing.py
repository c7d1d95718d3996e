"""Measure two things in turns, so that whatever else the machine does hits both; describe the machine; judge a ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch


class Skipped(Exception):
    """A benchmark whose opponent is not there: says how to get it, and fails nothing."""


@dataclass
class Row:
    """One line of the table. Times in milliseconds; for memory, megabytes."""

    name: str
    ours: float
    baseline: float
    ratio: float
    at_least: float
    aim: float
    unit: str = "ms"
    smaller_is_better: bool = False
    verdict: str = ""
    agreement: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    threads: int = field(default_factory=torch.get_num_threads)
    machine: dict[str, str] = field(default_factory=lambda: machine())

    def judge(self) -> None:
        def reaches(goal: float) -> bool:
            return self.ratio <= goal if self.smaller_is_better else self.ratio >= goal

        self.verdict = "met aim" if reaches(self.aim) else "met" if reaches(self.at_least) else "short"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def machine() -> dict[str, str]:
    cpu, info = "unknown", Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = f"{len(names)} × {names[0]}" if names else cpu
    return {"cpu": cpu, "torch": torch.__version__}


def in_turns(one: Callable[[int], Any], other: Callable[[int], Any], rounds: int) -> tuple[float, float]:
    """Median milliseconds of `one(i)` and `other(i)`, called alternately; the first round warms up and does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(rounds + 1):
        for action, kept in zip((one, other), times, strict=True):
            began = time.perf_counter()
            action(i)
            kept.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def require_agreement(name: str, found: dict[str, float], allowed: dict[str, float]) -> None:
    """Two sides that compute different things cannot be compared: stop."""
    for key, limit in allowed.items():
        if not found[key] <= limit:
            raise SystemExit(f"{name} is void: the two sides differ, {key} = {found[key]:.2e} (allowed: {limit:.0e}).")
