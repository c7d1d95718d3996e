"""params.yaml as one typed object, and what each job is made with.

A scale (quick, laptop, paper) chooses budgets. Training settings are layered: the paper's (`reconstruction.training`), then what the scale
says for all rows, for one row, and for one row and part of speech; `Params.reconstruction_job` gives the result.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from subspaces.experiments.composition.settings import Composition
from subspaces.experiments.compositional_retrieval.settings import CompositionalRetrieval
from subspaces.experiments.efficiency.settings import Retrieval
from subspaces.experiments.hyperlex.settings import Hyperlex
from subspaces.experiments.link_prediction.settings import LinkPrediction
from subspaces.experiments.reconstruction.settings import (
    Reconstruction,
    Wordnet,
)
from subspaces.experiments.snli.settings import Snli
from subspaces.pipeline.params.cluster import Cluster
from subspaces.settings import Colour, Positive, Scale, Strict


class Checkpoint(Strict):
    seconds: float = Field(gt=0, description="a checkpoint when this many seconds have passed since the last")
    epochs: int = Field(ge=0, description="and after this number of epochs; 0: by time only")


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
    device: Literal["auto", "cpu", "cuda"] = Field(
        description="where subspaces are trained; auto: CUDA where there is one"
    )
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
    compositional_retrieval: CompositionalRetrieval
    figures: Figures

    @model_validator(mode="after")
    def _figure_models_exist(self) -> Params:
        model = self.figures.rank_vs_descendants.model
        if model not in self.reconstruction.models:
            raise ValueError(f"figures.rank_vs_descendants.model is not one of {', '.join(self.reconstruction.models)}")
        if self.reconstruction.not_run(model, "nouns", self.scale):
            raise ValueError(f"figures.rank_vs_descendants.model: {model} is not run for nouns at this scale")
        return self

    @model_validator(mode="after")
    def _baselines_exist(self) -> Params:
        for row in self.composition.baselines:
            if row not in self.snli.models:
                raise ValueError(
                    f"composition.baselines: {row} is not one of snli.models ({', '.join(self.snli.models)})"
                )
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

    @property
    def job_threads(self) -> int:
        return getattr(self.threads, self.scale)
