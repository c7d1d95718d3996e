"""The commands that make one number again. Snakemake takes the number's file as the target, so nothing else runs."""

from __future__ import annotations

from shlex import quote


def from_sources(identifier: str, scale: str, place: str) -> str:
    """Everything behind the number: its data checked, its models trained and evaluated, the number written."""
    return f"{_start(scale, place)} --forceall -- {_target(identifier)}"


def from_evaluations(identifier: str, scale: str, place: str) -> str:
    """The number alone, from the evaluation files that are there."""
    return f"{_start(scale, place)} --forcerun write_number -- {_target(identifier)}"


def _start(scale: str, place: str) -> str:
    """`place` is the working folder below the project's; the project's own folder needs neither option."""
    return "snakemake --cores 2" + (f" --directory {quote(place)} --config scale={quote(scale)}" if place else "")


def _target(identifier: str) -> str:
    return quote(f"results/numbers/{identifier}.json")
