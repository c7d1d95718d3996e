"""Words that all parameter files share: strict models, scales, seeds, layers of settings, and one of several models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema

Scale = Literal["quick", "laptop", "paper"]
PartOfSpeech = Literal["nouns", "verbs"]
SCALES: tuple[str, ...] = ("quick", "laptop", "paper")
POS: tuple[str, ...] = ("nouns", "verbs")
COVERAGES: tuple[int, ...] = (0, 10, 25, 50)


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) != len(seeds):
        raise ValueError("a seed is listed twice")
    return seeds


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], AfterValidator(_distinct)]
Colour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$", description="a colour such as #0072b2")]
Engine = Literal["torch", "compiled"]
Exclude = Literal["none", "known", "linked"]
Positive = Annotated[float, Field(gt=0)]
Reason = Annotated[str, Field(min_length=10)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True, allow_inf_nan=False)


def optional(default: Any, description: str) -> Any:
    """A field that came after the first results: left out of what is dumped where it has its default, so that their keys stay."""
    return Field(default, description=description, exclude_if=lambda value: value == default)


Settings = TypeVar("Settings", bound=Strict)


class Some(Strict, Generic[Settings]):
    """`Some[Settings]`: the same settings, each of them optional. A layer: what is absent stays as it was in the layer below."""

    def __class_getitem__(cls, model: Any) -> type[Strict]:
        return _some(model)


@cache
def _some(model: type[Strict]) -> type[Strict]:
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        kind = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        fields[name] = (Optional[kind], None)  # noqa: UP045 — a union of a built type is not a type expression
    return create_model(f"Some{model.__name__}", __base__=Strict, __doc__=f"Any of {model.__name__}.", **fields)


@dataclass(frozen=True)
class OneOf:
    """`Annotated[Base, OneOf(models, tag)]`: one of several subclasses of Base, told apart by the value of their field `tag`."""

    models: tuple[type[Strict], ...]
    tag: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Annotated[Union[self.models], Field(discriminator=self.tag)])  # noqa: UP007
