"""Parameters of link prediction (Table 4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from subspaces.errors import UserError
from subspaces.experiments.shared import with_lambda
from subspaces.hierarchy.link_prediction import LinkJob, LinkModel, LinkTraining
from subspaces.settings import COVERAGES, SCALES, Seeds, Some, Strict


class LinkRow(Strict):
    """What a layer says for one row: for all coverages, and for each."""

    all: Some[LinkTraining] = Some[LinkTraining]()
    at_0: Some[LinkTraining] = Some[LinkTraining]()
    at_10: Some[LinkTraining] = Some[LinkTraining]()
    at_25: Some[LinkTraining] = Some[LinkTraining]()
    at_50: Some[LinkTraining] = Some[LinkTraining]()


class LinkNotRun(Strict):
    """Why a row is not run at a coverage at some scale; null: it is run."""

    at_0: str | None = Field(None, min_length=10)
    at_10: str | None = Field(None, min_length=10)
    at_25: str | None = Field(None, min_length=10)
    at_50: str | None = Field(None, min_length=10)


class LinkScale(Strict):
    seeds: Seeds = Field(min_length=1)
    subtree: str | None = Field(
        None, description="draw a split below this noun instead of using the split files; null: the files"
    )
    fifty: Literal["drawn", "original"] = Field(
        "drawn", description="training edges at 50 %: a seeded draw, or the original file, which is a separate download"
    )
    row_seeds: dict[str, Seeds] = Field({}, description="seeds of single rows, where they are not `seeds`")
    all: Some[LinkTraining] = Some[LinkTraining]()
    rows: dict[str, LinkRow] = Field({})
    not_run: dict[str, LinkNotRun] = Field({})

    def seeds_of(self, row: str) -> list[int]:
        return self.row_seeds.get(row, self.seeds)


class LinkScales(Strict):
    quick: LinkScale
    laptop: LinkScale
    paper: LinkScale


class LinkPrediction(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    threshold: Literal["exact", "grid"] = Field(
        description="how validation gives the threshold: all scores, or 100 points on [0, 1]"
    )
    draw_seed: int = Field(
        ge=0, description="of the 50 % training edges where the original file is unavailable, and of drawn splits"
    )
    models: dict[str, LinkModel] = Field(min_length=1)
    training: LinkTraining
    rows: dict[str, LinkRow] = Field(description="the published settings of each row")
    scales: LinkScales

    @model_validator(mode="after")
    def _rows_exist(self) -> LinkPrediction:
        layers = [("rows", self.rows)]
        for scale in SCALES:
            budget = getattr(self.scales, scale)
            layers += [(f"scales.{scale}.rows", budget.rows), (f"scales.{scale}.not_run", budget.not_run)]
        for place, rows in layers:
            for row in rows:
                if row not in self.models:
                    raise ValueError(f"{place}.{row} is not one of the models ({', '.join(self.models)})")
        return self

    def budget(self, scale: str) -> LinkScale:
        return getattr(self.scales, scale)

    def not_run(self, row: str, coverage: int, scale: str) -> str | None:
        """Why a row is not run at a coverage and scale; None: it is run."""
        return getattr(self.budget(scale).not_run.get(row, LinkNotRun()), f"at_{coverage}")

    def job(self, row: str, coverage: int, scale: str) -> LinkJob:
        """The settings of one model: layers of training settings, the later ones win."""
        if row not in self.models:
            raise UserError(
                f"unknown row {row!r} of the link prediction table: choose one of {', '.join(self.models)}."
            )
        if coverage not in COVERAGES:
            raise UserError(f"unknown coverage {coverage}: choose one of {', '.join(map(str, COVERAGES))}.")
        budget = self.budget(scale)
        merged = self.training.model_dump()
        published, ours = self.rows.get(row, LinkRow()), budget.rows.get(row, LinkRow())
        at = f"at_{coverage}"
        for layer in (published.all, getattr(published, at), budget.all, ours.all, getattr(ours, at)):
            merged |= layer.model_dump(exclude_none=True)
        return LinkJob(
            model=with_lambda(self.models[row], self.lam),
            training=LinkTraining(**merged),
            subtree=budget.subtree,
            threshold=self.threshold,
        )
