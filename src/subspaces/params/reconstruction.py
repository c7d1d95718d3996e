"""Parameters of WordNet and of reconstruction (Table 2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from subspaces.params.base import SCALES, Positive, Seeds, Strict, some


class Training(Strict):
    """How one model is trained; every geometry reads the same settings."""

    epochs: int = Field(ge=1, description="passes over all closure edges")
    batch: int = Field(ge=1)
    sampling: Literal["per-edge", "shared"] = Field(description="fresh negatives per edge (the paper), or one pool per batch")
    negatives: int = Field(ge=1, description="per-edge sampling: negatives per edge")
    pool: int = Field(ge=1, description="shared sampling: uniform negatives per batch")
    in_batch: bool = Field(description="shared sampling: every node of the batch is a candidate too")
    weigh_as: int = Field(ge=0, description="shared sampling: all negatives of an edge weigh as this many; 0: each as one")
    lr: Positive
    lr_final: float = Field(ge=0, le=1, description="the rate falls in a line to this share of lr")
    burn_in: int = Field(ge=0, description="epochs at lr × burn_in_factor before the rest")
    burn_in_factor: Positive
    start: Positive = Field(description="spread of the random start: standard deviation or half-range")
    trace_pull: float = Field(ge=0, description="subspaces: weight of the mean trace in the loss; 0 is the paper's loss")
    trace_pull_from: float = Field(ge=0, le=1, description="share of the training after which the pull begins")


SomeTraining = some(Training)


class NotRun(Strict):
    """Why a row is not run for a part of speech at some scale; null: it is run."""

    nouns: str | None = Field(None, min_length=10)
    verbs: str | None = Field(None, min_length=10)


class RowTraining(Strict):
    """What a scale says for one row: for both parts of speech, and for each."""

    both: SomeTraining = SomeTraining()
    nouns: SomeTraining = SomeTraining()
    verbs: SomeTraining = SomeTraining()


class SubspaceModel(Strict):
    geometry: Literal["subspace"]
    dim: int = Field(ge=1)
    vectors: int = Field(0, ge=0, description="columns of X; 0: as many as dim")


class EuclideanModel(Strict):
    geometry: Literal["euclidean"]
    dim: int = Field(ge=1)
    score: Literal["distance", "inner"] = "distance"


class PoincareModel(Strict):
    geometry: Literal["poincare"]
    dim: int = Field(ge=1)


class LorentzModel(Strict):
    geometry: Literal["lorentz"]
    dim: int = Field(ge=1)
    max_step: Positive = 1.0


Model = Annotated[SubspaceModel | EuclideanModel | PoincareModel | LorentzModel, Field(discriminator="geometry")]


class Subtrees(Strict):
    """Train on a node, everything below it and above these, instead of on the whole hierarchy; null: the whole."""

    nouns: str | None = None
    verbs: str | None = None


class ReconstructionScale(Strict):
    seeds: Seeds = Field(min_length=1)
    subtree: Subtrees = Subtrees()
    all: SomeTraining = SomeTraining()
    rows: dict[str, RowTraining] = Field({})
    not_run: dict[str, NotRun] = Field({})


class ReconstructionScales(Strict):
    quick: ReconstructionScale
    laptop: ReconstructionScale
    paper: ReconstructionScale


class Reconstruction(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    models: dict[str, Model] = Field(min_length=1)
    training: Training
    scales: ReconstructionScales

    @model_validator(mode="after")
    def _rows_exist(self) -> Reconstruction:
        for scale in SCALES:
            budget = getattr(self.scales, scale)
            for part in ("rows", "not_run"):
                for row in getattr(budget, part):
                    if row not in self.models:
                        raise ValueError(f"scales.{scale}.{part}.{row} is not one of the models ({', '.join(self.models)})")
        return self


class Wordnet(Strict):
    instance_hypernyms: bool = Field(description="count instance hypernyms as edges (Nickel & Kiela's graph; not the paper's)")
