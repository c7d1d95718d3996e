"""Parameters of SNLI (Tables 5 and 9), and the models that composition and retrieval are made with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from subspaces.errors import UserError
from subspaces.settings import SCALES, OneOf, Positive, Reason, Seeds, Some, Strict
from subspaces.sources.registry import SOURCES
from subspaces.text.pair_model import BackboneSettings, EncoderSettings, encoder_settings

WAYS: tuple[int, ...] = (2, 3)
DataChoice = Literal["full", "parts", "first"]


class NliTraining(Strict):
    """How one model is trained; every encoder reads the same settings."""

    epochs: int = Field(ge=1)
    batch: int = Field(ge=1, description="pairs of one optimiser step")
    micro: int = Field(ge=1, description="pairs at a time in memory; gradients add up, so the result is the same")
    lr: Positive
    lr_decay: float = Field(gt=0, le=1, description="the rate is multiplied by this after each epoch")
    lr_final: float = Field(ge=0, le=1, description="and falls linearly to this share; 1: it does not")
    warmup: float = Field(ge=0, lt=1, description="share of the steps in which the rate rises from 0")
    smoothing: float = Field(ge=0, lt=1, description="label smoothing")
    dropout: float = Field(ge=0, lt=1, description="in the backbone")
    validate_steps: int = Field(ge=0, description="steps between two looks at validation; 0: once an epoch")
    by_length: bool = Field(description="micro-batches of sentences of similar length")
    pad_to_longest: bool = Field(
        description="pad a batch to its longest sentence; false: always to the limit, as the released code does"
    )
    share_premises: bool = Field(description="encode a sentence that stands in several pairs of a batch once")
    autocast: bool = Field(description="bfloat16 for the backbone, on CUDA only; projectors are always float32")


NliModel = Annotated[EncoderSettings, OneOf(tuple(encoder_settings().values()), "encoder")]
"""Settings of any encoder: the files of `subspaces.text.encoders`."""


class BackboneUse(Strict):
    """What a scale uses of the pretrained backbones."""

    layers: int | None = Field(None, ge=1, description="only the first layers; null: all")
    frozen: int = Field(0, ge=0, description="the embeddings and this number of layers are not trained")
    replace: dict[str, str] = Field({}, description="a smaller backbone that stands in for another; provenance says so")


class NliWays(Strict):
    """What the 2-way or the 3-way model of a row has to itself. Its points on the learning curve, and the λ table, do not share it."""

    training: Some[NliTraining] = Some[NliTraining]()
    pairs: Annotated[int, Field(ge=1)] | Literal["all"] | None = None


class NliRow(Strict):
    """What a layer says for one row: settings, and how many pairs it is trained, chosen and judged on."""

    training: Some[NliTraining] = Some[NliTraining]()
    pairs: int | None = Field(None, ge=1)
    dev_pairs: int | None = Field(None, ge=1)
    test_pairs: int | None = Field(None, ge=1)
    model: dict[str, Any] = Field({}, description="settings of the encoder that differ from those of `models`")
    two: NliWays = Field(NliWays(), description="2-way only")
    three: NliWays = Field(NliWays(), description="3-way only")


class NliScale(Strict):
    seeds: Seeds = Field(min_length=1)
    data: DataChoice = Field(
        description="all pairs (Hugging Face hub); the parts in mirrors and packages; or only the first 100,000 rows"
    )
    pairs: int | None = Field(None, ge=1, description="training pairs, by whole premises; null: all")
    dev_pairs: int | None = Field(None, ge=1, description="validation pairs that choose the weights; null: all")
    test_pairs: int | None = Field(None, ge=1, description="null: all")
    backbone: BackboneUse = BackboneUse()
    all: Some[NliTraining] = Some[NliTraining]()
    rows: dict[str, NliRow] = Field({})
    sweep: NliRow = Field(NliRow(), description="the rows of the λ table")
    curve: list[Annotated[int, Field(ge=1)]] = Field(description="numbers of training pairs of the learning curve")
    not_run: dict[str, dict[Literal["two", "three"], Reason]] = Field({})
    packaged: bool = Field(
        False, description="take the model that ships from the package; where its backbone is missing it is trained"
    )


class SnliJob(Strict):
    """Everything that decides one trained model, apart from seed, data and version."""

    model: NliModel
    backbone: BackboneSettings | None
    ways: Literal[2, 3]
    training: NliTraining
    limit: int
    pairs: int | None = Field(description="training pairs; null: all")
    dev_pairs: int | None
    test_pairs: int | None
    subset_seed: int

    @property
    def mem_mb(self) -> int:
        """Memory that training this model needs: the program with its data, and what its encoder says of one step."""
        weights = 0.0
        if self.backbone is not None:
            source = SOURCES.get(self.backbone.name)
            sizes = [file.size or 0 for file in source.files if file.name.endswith(".safetensors")] if source else []
            weights = sum(sizes) / 1e6 or 500.0
        return 1500 + 500 * math.ceil(self.model.memory_mb(weights, self.training.micro) / 500)


class NliScales(Strict):
    quick: NliScale
    laptop: NliScale
    paper: NliScale


class Sweep(Strict):
    model: str = Field(description="the row whose λ is varied")
    lambdas: list[Positive] = Field(min_length=1)


class Curve(Strict):
    models: list[str] = Field(min_length=1, description="rows drawn in the learning curve, 2-way")


@dataclass(frozen=True)
class Variant:
    """A row that differs from one of the models in one setting."""

    base: str
    lam: float | None = None
    pairs: int | None = None


class Snli(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    limit: int = Field(ge=4, le=512, description="tokens of a sentence; what is longer is cut, and counted")
    cut_dev: int = Field(
        5000, ge=1, description="pairs cut from training for validation where there is no validation file"
    )
    subset_seed: int = Field(ge=0, description="of the order in which premises are taken where a scale takes only some")
    models: dict[str, NliModel] = Field(min_length=1)
    shipped: str = Field(description="the row whose 2-way model ships with the package; beyond the paper's rows")
    sweep: Sweep
    curve: Curve
    training: NliTraining
    rows: dict[str, NliRow] = Field(description="the published settings of each row")
    scales: NliScales

    @model_validator(mode="after")
    def _rows_exist(self) -> Snli:
        named = [
            ("sweep.model", self.sweep.model),
            ("shipped", self.shipped),
            *(("curve.models", one) for one in self.curve.models),
        ]
        named += [("rows", one) for one in self.rows]
        for scale in SCALES:
            budget = getattr(self.scales, scale)
            named += [(f"scales.{scale}.{part}", one) for part in ("rows", "not_run") for one in getattr(budget, part)]
        for place, row in named:
            if row not in self.models and not (place.endswith("not_run") and row in self.sweep_rows):
                raise ValueError(f"{place}: {row} is not one of the models ({', '.join(self.models)})")
        if "lam" not in type(self.models[self.sweep.model]).model_fields:
            raise ValueError(f"sweep.model: {self.sweep.model} has no λ")
        return self

    @property
    def sweep_rows(self) -> dict[str, float]:
        """Rows of the λ table and the λ of each."""
        return {f"lambda-{value:g}": value for value in self.sweep.lambdas}

    def budget(self, scale: str) -> NliScale:
        return getattr(self.scales, scale)

    def has_row(self, row: str) -> bool:
        return row in self.models or row in self.sweep_rows

    def not_run(self, row: str, ways: int, scale: str) -> str | None:
        """Why a row is not run at a scale; None: it is run."""
        return self.budget(scale).not_run.get(self.base_row(row, scale), {}).get("two" if ways == 2 else "three")

    def curve_row(self, row: str, pairs: int) -> str:
        """Name of a row that is trained on fewer pairs."""
        return f"{row}-{pairs}-pairs"

    def variants(self, scale: str) -> dict[str, Variant]:
        """Rows that are one of the models with another λ (Table 9) or with fewer training pairs (the learning curve)."""
        points = [(row, pairs) for row in self.curve.models for pairs in self.budget(scale).curve]
        return {
            **{name: Variant(self.sweep.model, lam=lam) for name, lam in self.sweep_rows.items()},
            **{self.curve_row(row, pairs): Variant(row, pairs=pairs) for row, pairs in points},
        }

    def base_row(self, row: str, scale: str) -> str:
        """The row whose point of the learning curve `row` is; any other row is its own."""
        variant = self.variants(scale).get(row)
        return variant.base if variant and variant.pairs is not None else row

    def curve_rows(self, scale: str) -> list[str]:
        return [name for name, variant in self.variants(scale).items() if variant.pairs is not None]

    def job(self, row: str, ways: int, scale: str) -> SnliJob:
        """Everything that decides one model, apart from seed, data and version. A row is one of `models` or of
        their `variants`."""
        budget: NliScale = getattr(self.scales, scale)
        variant = self.variants(scale).get(row, Variant(row))
        base, lam, count = variant.base, variant.lam, variant.pairs
        if base not in self.models:
            known = ", ".join([*self.models, *self.variants(scale)])
            raise UserError(f"unknown row {row!r} of the SNLI tables: choose one of {known}.")
        if ways not in WAYS:
            raise UserError(f"SNLI is decided 2-way or 3-way, not {ways}-way.")
        published, ours = self.rows.get(base, NliRow()), budget.rows.get(base, NliRow())
        own = NliWays() if lam is not None or count else ours.two if ways == 2 else ours.three
        layers = [published.training, budget.all, ours.training, own.training] + (
            [budget.sweep.training] if lam is not None else []
        )
        merged = self.training.model_dump()
        for layer in layers:
            merged |= layer.model_dump(exclude_none=True)
        training = NliTraining.model_validate(merged)
        chosen = self.models[base]
        changes = dict(ours.model)
        if "lam" in type(chosen).model_fields:
            changes["lam"] = self.lam if lam is None else lam
        model = type(chosen).model_validate(chosen.model_dump() | changes).for_ways(ways)
        backbone = None
        if wanted := model.backbone_name:
            use = budget.backbone
            backbone = BackboneSettings(
                name=use.replace.get(wanted, wanted),
                wanted=wanted,
                layers=use.layers,
                frozen=use.frozen,
                dropout=training.dropout,
            )
        pairs = (budget.sweep.pairs if lam is not None else None) or own.pairs or ours.pairs or budget.pairs
        return SnliJob(
            model=model,
            backbone=backbone,
            ways=2 if ways == 2 else 3,
            training=training,
            limit=self.limit,
            pairs=count or (None if pairs == "all" else pairs),
            dev_pairs=ours.dev_pairs or budget.dev_pairs,
            test_pairs=ours.test_pairs or budget.test_pairs,
            subset_seed=self.subset_seed,
        )
