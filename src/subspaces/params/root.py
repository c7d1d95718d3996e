"""params.yaml as one typed object, and what each job is made with.

A scale (quick, laptop, paper) chooses budgets. Training settings are layered: the paper's (`reconstruction.training`), then what the scale
says for all rows, for one row, and for one row and part of speech; `Params.reconstruction_job` gives the result.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from subspaces.errors import UserError
from subspaces.params.base import COVERAGES, POS, Colour, Positive, Scale, Strict
from subspaces.params.cluster import Cluster
from subspaces.params.composition import Composition
from subspaces.params.hyperlex import Hyperlex, HyperlexScale
from subspaces.params.link_prediction import LinkNotRun, LinkPrediction, LinkRow, LinkScale, LinkTraining
from subspaces.params.reconstruction import NotRun, Reconstruction, ReconstructionScale, RowTraining, Training, Wordnet
from subspaces.params.retrieval import Retrieval
from subspaces.params.snli import Snli


class Checkpoint(Strict):
    seconds: float = Field(gt=0, description="a checkpoint when this many seconds have passed since the last")
    epochs: int = Field(ge=0, description="and every so many epochs; 0: by time only")


class Threads(Strict):
    """Threads of one training or evaluation job, by scale; the same number gives the same bits."""

    quick: int = Field(ge=1)
    laptop: int = Field(ge=1)
    paper: int = Field(ge=1)


class Bounds(Strict):
    lambdas: list[Positive] = Field(min_length=1)
    dims: list[Annotated[int, Field(ge=2, le=256)]] = Field(min_length=1)
    ranks: list[Annotated[int, Field(ge=1, le=256)]] = Field(min_length=1)
    draws: int = Field(ge=1)
    seed: int = Field(ge=0)


class RankFigure(Strict):
    model: str = Field(description="a row of the reconstruction table")
    points: Colour
    chain: Colour


class Figures(Strict):
    rank_vs_descendants: RankFigure
    snli_model: str = Field(description="a subspace row of the SNLI table: histograms and chains")


class Params(Strict):
    scale: Scale
    threads: Threads
    device: Literal["auto", "cpu", "cuda"] = Field(description="where subspaces are trained; auto: CUDA where there is one")
    checkpoint: Checkpoint
    cluster: Cluster
    wordnet: Wordnet
    bounds: Bounds
    reconstruction: Reconstruction
    hyperlex: Hyperlex
    link_prediction: LinkPrediction
    snli: Snli
    composition: Composition
    retrieval: Retrieval
    figures: Figures

    @model_validator(mode="after")
    def _figure_models_exist(self) -> Params:
        model = self.figures.rank_vs_descendants.model
        if model not in self.reconstruction.models:
            raise ValueError(f"figures.rank_vs_descendants.model is not one of {', '.join(self.reconstruction.models)}")
        if self.not_run(model, "nouns"):
            raise ValueError(f"figures.rank_vs_descendants.model: {model} is not run for nouns at this scale")
        return self

    @model_validator(mode="after")
    def _baselines_exist(self) -> Params:
        for row in self.composition.baselines:
            if row not in self.snli.models:
                raise ValueError(f"composition.baselines: {row} is not one of snli.models ({', '.join(self.snli.models)})")
        return self

    @model_validator(mode="after")
    def _retrieval_model_exists(self) -> Params:
        model = self.snli.models.get(self.retrieval.model)
        if model is None or model.encoder != "subspace":
            raise ValueError("retrieval.model is not a subspace row of snli.models")
        return self

    @model_validator(mode="after")
    def _snli_figure_model_exists(self) -> Params:
        model = self.snli.models.get(self.figures.snli_model)
        if model is None or model.encoder != "subspace":
            raise ValueError("figures.snli_model is not a subspace row of snli.models")
        return self

    @model_validator(mode="after")
    def _hyperlex_rows_exist(self) -> Params:
        for row in self.hyperlex.rows:
            if row != "gaussian-50" and row not in self.reconstruction.models:
                raise ValueError(f"hyperlex.rows: {row} is neither gaussian-50 nor one of reconstruction.models")
        return self

    def not_run(self, row: str, pos: str) -> str | None:
        """Why this row of the reconstruction table is not run at this scale, or None."""
        return getattr(self.reconstruction_budget.not_run.get(row, NotRun()), pos)

    @property
    def job_threads(self) -> int:
        return getattr(self.threads, self.scale)

    @property
    def reconstruction_budget(self) -> ReconstructionScale:
        return getattr(self.reconstruction.scales, self.scale)

    def reconstruction_job(self, row: str, pos: str) -> dict[str, Any]:
        """Everything that decides the weights of one model, apart from seed, data and code."""
        if row not in self.reconstruction.models:
            raise UserError(f"unknown row {row!r} of the reconstruction table: choose one of {', '.join(self.reconstruction.models)}.")
        if pos not in POS:
            raise UserError(f"unknown part of speech {pos!r}: choose nouns or verbs.")
        budget = self.reconstruction_budget
        merged = self.reconstruction.training.model_dump()
        layers = budget.rows.get(row, RowTraining())
        for layer in (budget.all, layers.both, getattr(layers, pos)):
            merged |= layer.model_dump(exclude_none=True)
        model = self.reconstruction.models[row].model_dump()
        training = Training(**merged).model_dump()
        if model["geometry"] == "subspace":
            model["lam"] = self.reconstruction.lam
        elif training["trace_pull"]:
            raise UserError(f"trace_pull is for subspaces; set it under rows.subspace-… in params.yaml, not for {row}.")
        return {"model": model, "training": training, "subtree": getattr(budget.subtree, pos)}

    @property
    def link_budget(self) -> LinkScale:
        return getattr(self.link_prediction.scales, self.scale)

    def link_not_run(self, row: str, coverage: int) -> str | None:
        """Why this row of the link prediction table is not run at this coverage and scale, or None."""
        return getattr(self.link_budget.not_run.get(row, LinkNotRun()), f"at_{coverage}")

    def link_job(self, row: str, coverage: int) -> dict[str, Any]:
        """Everything that decides the weights and the threshold of one link prediction model, apart from seed, data and code."""
        family, budget = self.link_prediction, self.link_budget
        if row not in family.models:
            raise UserError(f"unknown row {row!r} of the link prediction table: choose one of {', '.join(family.models)}.")
        if coverage not in COVERAGES:
            raise UserError(f"unknown coverage {coverage}: choose one of {', '.join(map(str, COVERAGES))}.")
        merged = family.training.model_dump()
        published, ours = family.rows.get(row, LinkRow()), budget.rows.get(row, LinkRow())
        for layer in (published.all, getattr(published, f"at_{coverage}"), budget.all, ours.all, getattr(ours, f"at_{coverage}")):
            merged |= layer.model_dump(exclude_none=True)
        model = family.models[row].model_dump()
        if model["geometry"] == "subspace":
            model["lam"] = family.lam
        return {"model": model, "training": LinkTraining(**merged).model_dump(), "subtree": budget.subtree, "threshold": family.threshold}

    @property
    def hyperlex_budget(self) -> HyperlexScale:
        return getattr(self.hyperlex.scales, self.scale)

    def gaussian_job(self) -> dict[str, Any]:
        """The same for the Gaussians of the HyperLex table, which learn the whole noun closure."""
        merged = self.hyperlex.training.model_dump() | self.hyperlex_budget.training.model_dump(exclude_none=True)
        training = LinkTraining(**merged).model_dump()
        subtree = self.reconstruction_budget.subtree.nouns
        return {"model": self.hyperlex.gaussian.model_dump(), "training": training, "subtree": subtree, "threshold": "exact"}
