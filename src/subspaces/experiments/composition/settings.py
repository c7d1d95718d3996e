"""Parameters of the compositional set, its elicitation and its scores (Table 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from subspaces.errors import UserError
from subspaces.settings import Strict


class ElicitationSettings(BaseModel):
    """The paper's prompt and model, and the limits of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    prompt: str = Field(min_length=1)
    model: str = Field(min_length=1, pattern=r"^[\w.\-/]+$")
    count: int = Field(ge=1, description="candidates wanted")
    temperature: float = Field(ge=0, le=2)
    seed: int = Field(
        ge=0, lt=2**31 - 2**20, description="request n is sent with seed + n; otherwise all answers would be equal"
    )
    client: Literal["google-genai", "google-generativeai"]
    max_requests: int = Field(ge=1, description="requests sent in all, failed ones too, over all runs of one record")
    max_tokens: int = Field(ge=1, description="tokens in all, prompts and thoughts too, over all runs of one record")
    per_request: int = Field(ge=1, description="examples asked for in one request; the paper's prompt asks for one")
    timeout: float = Field(300.0, gt=0, description="longest wait for an answer of the service, in seconds")
    attempts: int = Field(6, ge=1, description="attempts of one request")

    @property
    def sent_prompt(self) -> str:
        """The prompt as it is, unless more than one example is asked for."""
        if self.per_request == 1:
            return self.prompt
        return f"{self.prompt}\n\nGive {self.per_request} different examples, each on a line of its own."


def read_settings(settings: Mapping[str, Any]) -> ElicitationSettings:
    try:
        return ElicitationSettings.model_validate(dict(settings))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in error.errors(include_input=False)
        )
        raise UserError(f"the settings of the elicitation are not right: {problems}.") from error


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
