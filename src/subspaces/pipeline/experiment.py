"""What an experiment is: its jobs, the artefacts that they make, and the tables of the paper that are read from them.

Rules, DVC stages, numbers, tables and the page read these objects. Nothing else knows the paths or the meaning of a column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.report.layouts import Column, Layout

if TYPE_CHECKING:
    from subspaces.pipeline.params import Params
    from subspaces.pipeline.project import Project

SOURCES = Path("data/sources")


@dataclass(frozen=True)
class Job:
    """One model: a row under one condition with one seed."""

    row: str
    condition: str
    seed: int


class Experiment(ABC):
    """Base of all experiments. A subclass says which jobs there are and which artefacts belong to a job."""

    name: ClassVar[str]
    tables: ClassVar[tuple[Layout, ...]] = ()

    def __init__(self, project: Project):
        self.project = project

    @property
    def params(self) -> Params:
        return self.project.params

    # --- what it makes ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def artefacts(self) -> Iterable[Artefact]:
        """All artefacts of this experiment, inputs before what is made from them."""

    def jobs(self) -> list[Job]:
        """The models that are trained at this scale."""
        return []

    # --- the numbers of its tables ----------------------------------------------------------------------------------------

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        """The evaluations that a number is computed from, one per seed; empty where the row is not run at this scale."""
        return ()

    def extra_rows(self, table: Layout) -> Mapping[str, Mapping[str, Artefact]]:
        """Rows of our own below those of the paper: row -> column id -> the evaluation with its value."""
        return {}

    def value(self, evaluation: Mapping[str, Any], row: str, column: Column) -> float | None:
        """A number in one evaluation; None where it was not measured."""
        return evaluation["metrics"][column.metric]

    def not_run(self, row: str, condition: str) -> str | None:
        """Why a row is not run under a condition at this scale; None: it is run."""
        return None

    def extent(self, evaluation: Mapping[str, Any]) -> tuple[bool, str]:
        """(does it compare with the paper's number, what was covered) of one evaluation."""
        extent = evaluation["extent"]
        return extent["comparable"], extent["text"]

    # --- shared by the jobs -----------------------------------------------------------------------------------------------

    def device(self, machine: Machine, large: bool) -> str:
        """Small vectors gain nothing from a GPU; only large models look for one by themselves."""
        from subspaces.training.device import choose_device

        return choose_device(machine.device or (self.params.device if large else "cpu"))
