"""Parameters of WordNet and of reconstruction (Table 2)."""

from __future__ import annotations

from pydantic import Field, model_validator

from subspaces.errors import UserError
from subspaces.experiments.shared import with_lambda
from subspaces.hierarchy.reconstruction import RankingModel, ReconstructionJob, ReconstructionTraining
from subspaces.settings import POS, SCALES, Seeds, Some, Strict


class NotRun(Strict):
    """Why a row is not run for a part of speech at some scale; null: it is run."""

    nouns: str | None = Field(None, min_length=10)
    verbs: str | None = Field(None, min_length=10)


class RowTraining(Strict):
    """What a scale says for one row: for both parts of speech, and for each."""

    both: Some[ReconstructionTraining] = Some[ReconstructionTraining]()
    nouns: Some[ReconstructionTraining] = Some[ReconstructionTraining]()
    verbs: Some[ReconstructionTraining] = Some[ReconstructionTraining]()


class Subtrees(Strict):
    """Train on a node, everything below it and above these, instead of on the whole hierarchy; null: the whole."""

    nouns: str | None = None
    verbs: str | None = None


class ReconstructionScale(Strict):
    seeds: Seeds = Field(min_length=1)
    subtree: Subtrees = Subtrees()
    all: Some[ReconstructionTraining] = Some[ReconstructionTraining]()
    rows: dict[str, RowTraining] = Field({})
    not_run: dict[str, NotRun] = Field({})


class ReconstructionScales(Strict):
    quick: ReconstructionScale
    laptop: ReconstructionScale
    paper: ReconstructionScale


class Reconstruction(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    models: dict[str, RankingModel] = Field(min_length=1)
    training: ReconstructionTraining
    scales: ReconstructionScales

    @model_validator(mode="after")
    def _rows_exist(self) -> Reconstruction:
        for scale in SCALES:
            budget = getattr(self.scales, scale)
            for part in ("rows", "not_run"):
                for row in getattr(budget, part):
                    if row not in self.models:
                        raise ValueError(
                            f"scales.{scale}.{part}.{row} is not one of the models ({', '.join(self.models)})"
                        )
        return self

    def budget(self, scale: str) -> ReconstructionScale:
        return getattr(self.scales, scale)

    def not_run(self, row: str, pos: str, scale: str) -> str | None:
        """Why a row is not run at a scale; None: it is run."""
        return getattr(self.budget(scale).not_run.get(row, NotRun()), pos)

    def job(self, row: str, pos: str, scale: str) -> ReconstructionJob:
        """Everything that decides the weights of one model, apart from seed and data."""
        if row not in self.models:
            raise UserError(f"unknown row {row!r} of the reconstruction table: choose one of {', '.join(self.models)}.")
        if pos not in POS:
            raise UserError(f"unknown part of speech {pos!r}: choose nouns or verbs.")
        budget = self.budget(scale)
        merged = self.training.model_dump()
        layers = budget.rows.get(row, RowTraining())
        for layer in (budget.all, layers.both, getattr(layers, pos)):
            merged |= layer.model_dump(exclude_none=True)
        training = ReconstructionTraining(**merged)
        model = with_lambda(self.models[row], self.lam)
        if training.trace_pull and model.geometry != "subspace":
            raise UserError(f"trace_pull is for subspaces; set it under rows.subspace-… in params.yaml, not for {row}.")
        return ReconstructionJob(model=model, training=training, subtree=getattr(budget.subtree, pos))


class Wordnet(Strict):
    instance_hypernyms: bool = Field(
        description="count instance hypernyms as edges (Nickel & Kiela's graph; not the paper's)"
    )
