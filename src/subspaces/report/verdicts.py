"""Does a number hold? A printed value is compared with ours, and the difference with what seeds explain."""

from __future__ import annotations

from math import hypot

VERDICTS = ("reproduced", "better", "short", "other scale", "not run")


def tolerance(paper: float, sd: float | None, paper_sd: float | None) -> float:
    """max(2·√(sd² + sd_paper²), 0.5 % of the paper's value)."""
    return max(2 * hypot(sd or 0.0, paper_sd or 0.0), 0.005 * abs(paper))


def verdict(value: float, sd: float | None, paper: float, paper_sd: float | None, better: str) -> str:
    gain = (value - paper) * (1 if better == "up" else -1)
    allowed = tolerance(paper, sd, paper_sd)
    if abs(gain) <= allowed:
        return "reproduced"
    return "better" if gain > 0 else "short"
