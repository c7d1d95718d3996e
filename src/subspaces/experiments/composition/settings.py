"""Parameters of the compositional set and its scores (Table 6)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from subspaces.experiments.composition.elicitation import ElicitationSettings
from subspaces.settings import Strict


class FilterPairs(Strict):
    """Training pairs of the models that filter, where they are not the table's: a set stays as it is when a row is trained longer."""

    quick: int | None = Field(None, ge=1)
    laptop: int | None = Field(None, ge=1)
    paper: int | None = Field(None, ge=1)


class Composition(Strict):
    set: Literal["elicited", "authors"] = Field(
        description="the set that Table 6 is made from; the other is scored beside it"
    )
    operator: Literal["product", "sandwich-hard", "exact"] = Field(
        description="conjunction of subspaces; the others are scored beside it"
    )
    reviewed: str | None = Field(
        description="a reviewed CSV of candidates; null: the recorded set that ships with the project"
    )
    premises: int = Field(ge=2, description="number of premises that are used, if the filter leaves enough")
    baselines: list[str] = Field(
        min_length=1, description="rows of snli.models that must judge the atomic hypotheses right"
    )
    filter_pairs: FilterPairs = FilterPairs()
    least: int = Field(ge=2, description="if the filter leaves fewer, it is set aside, and the report says so")
    elicitation: ElicitationSettings
