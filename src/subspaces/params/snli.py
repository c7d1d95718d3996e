"""Parameters of SNLI (Tables 5 and 9), and the models that composition and retrieval are made with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from subspaces.errors import UserError
from subspaces.params.base import SCALES, Positive, Reason, Seeds, Strict, some

WAYS: tuple[int, ...] = (2, 3)
BackboneName = Literal["all-MiniLM-L6-v2", "all-mpnet-base-v2"]


class NliTraining(Strict):
    """How one model is trained; every encoder reads the same settings."""

    epochs: int = Field(ge=1)
    batch: int = Field(ge=1, description="pairs of one optimiser step")
    micro: int = Field(ge=1, description="pairs at a time in memory; gradients add up, so the result is the same")
    lr: Positive
    lr_decay: float = Field(gt=0, le=1, description="the rate is multiplied by this after each epoch")
    lr_final: float = Field(ge=0, le=1, description="and falls in a line to this share; 1: it does not")
    warmup: float = Field(ge=0, lt=1, description="share of the steps in which the rate rises from 0")
    smoothing: float = Field(ge=0, lt=1, description="label smoothing")
    dropout: float = Field(ge=0, lt=1, description="in the backbone")
    validate_steps: int = Field(ge=0, description="steps between two looks at validation; 0: once an epoch")
    by_length: bool = Field(description="micro-batches of sentences of like length")
    pad_to_longest: bool = Field(description="pad a batch to its longest sentence; false: always to the limit, as the released code does")
    share_premises: bool = Field(description="encode a sentence that stands in several pairs of a batch once")
    autocast: bool = Field(description="bfloat16 for the backbone, on CUDA only; projectors are always float32")


SomeNliTraining = some(NliTraining)


class SubspaceEncoder(Strict):
    encoder: Literal["subspace"]
    backbone: BackboneName
    dim: int = Field(ge=2)
    vectors: int = Field(0, ge=0, description="queries, columns of X; 0: as many as dim")
    heads: int = Field(8, ge=1)
    last: int = Field(1, ge=1, description="hidden layers that the head reads: 1 in the paper, 3 in the released code")
    masked: bool = Field(True, description="false: padding counts, as in the released code")
    layer_norm: bool = Field(False, description="in the head's MLP, as in the released code")
    squared: bool = Field(False, description="square the inclusion score, as the released code does")
    neutral_width: int = Field(1024, ge=8, description="of the neutral net, 3-way only")


class VectorEncoder(Strict):
    encoder: Literal["vector"]
    backbone: BackboneName
    difference: bool = Field(description="the net sees p − h too")
    masked: bool = True


class BoxEncoder(Strict):
    encoder: Literal["box"]
    backbone: BackboneName
    dim: int = Field(ge=1)
    masked: bool = True


class OrderEncoder(Strict):
    encoder: Literal["gru_order"]
    hidden: int = Field(1024, ge=1)
    embedding: int = Field(300, ge=1)
    margin: Positive = 0.2
    unit_norm: bool = Field(False, description="representations of length 1")


class HyperbolicEncoder(Strict):
    encoder: Literal["gru_hyperbolic"]
    dim: int = Field(5, ge=1)
    lr_words: Positive = Field(0.1, description="Riemannian SGD, word embeddings")
    lr_ball: Positive = Field(0.01, description="Riemannian SGD, other points of the ball")


NliModel = Annotated[SubspaceEncoder | VectorEncoder | BoxEncoder | OrderEncoder | HyperbolicEncoder, Field(discriminator="encoder")]


class BackboneUse(Strict):
    """What is used of the pretrained backbones."""

    layers: int | None = Field(None, ge=1, description="only the first so many; null: all")
    frozen: int = Field(0, ge=0, description="embeddings and so many layers are not trained")
    mpnet_as: BackboneName = Field("all-mpnet-base-v2", description="a smaller backbone may stand in for MPNet, and provenance says so")


class NliWays(Strict):
    """What the 2-way or the 3-way model of a row has to itself. Its points on the learning curve, and the λ table, do not share it."""

    training: SomeNliTraining = SomeNliTraining()
    pairs: Annotated[int, Field(ge=1)] | Literal["all"] | None = None


class NliRow(Strict):
    """What a layer says for one row: settings, and how many pairs it is trained, chosen and judged on."""

    training: SomeNliTraining = SomeNliTraining()
    pairs: int | None = Field(None, ge=1)
    dev_pairs: int | None = Field(None, ge=1)
    test_pairs: int | None = Field(None, ge=1)
    neutral_width: int | None = Field(None, ge=8, description="subspaces, 3-way: a smaller neutral net")
    hidden: int | None = Field(None, ge=1, description="order embeddings: a smaller GRU")
    two: NliWays = Field(NliWays(), description="2-way only")
    three: NliWays = Field(NliWays(), description="3-way only")


class NliScale(Strict):
    seeds: Seeds = Field(min_length=1)
    data: Literal["auto", "full", "parts"] = Field(description="auto: all of SNLI where the hub can be reached, else the parts at hand")
    pairs: int | None = Field(None, ge=1, description="training pairs, by whole premises; null: all")
    dev_pairs: int | None = Field(None, ge=1, description="validation pairs that choose the weights; null: all")
    test_pairs: int | None = Field(None, ge=1, description="null: all")
    backbone: BackboneUse = BackboneUse()
    all: SomeNliTraining = SomeNliTraining()
    rows: dict[str, NliRow] = Field({})
    sweep: NliRow = Field(NliRow(), description="the rows of the λ table")
    curve: list[Annotated[int, Field(ge=1)]] = Field(description="numbers of training pairs of the learning curve")
    not_run: dict[str, dict[Literal["two", "three"], Reason]] = Field({})


class NliScales(Strict):
    quick: NliScale
    laptop: NliScale
    paper: NliScale


class Sweep(Strict):
    model: str = Field(description="the row whose λ is varied")
    lambdas: list[Positive] = Field(min_length=1)


class Curve(Strict):
    models: list[str] = Field(min_length=1, description="rows drawn in the learning curve, 2-way")


class Snli(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    limit: int = Field(ge=4, le=512, description="tokens of a sentence; what is longer is cut, and counted")
    subset_seed: int = Field(ge=0, description="of the order in which premises are taken where a scale takes only some")
    models: dict[str, NliModel] = Field(min_length=1)
    sweep: Sweep
    curve: Curve
    training: NliTraining
    rows: dict[str, NliRow] = Field(description="the published settings of each row")
    scales: NliScales

    @model_validator(mode="after")
    def _rows_exist(self) -> Snli:
        named = [("sweep.model", self.sweep.model), *(("curve.models", one) for one in self.curve.models)]
        named += [("rows", one) for one in self.rows]
        for scale in SCALES:
            budget = getattr(self.scales, scale)
            named += [(f"scales.{scale}.{part}", one) for part in ("rows", "not_run") for one in getattr(budget, part)]
        for place, row in named:
            if row not in self.models and not (place.endswith("not_run") and row in self.sweep_rows):
                raise ValueError(f"{place}: {row} is not one of the models ({', '.join(self.models)})")
        if self.models[self.sweep.model].encoder != "subspace":
            raise ValueError(f"sweep.model: {self.sweep.model} has no λ")
        return self

    @property
    def sweep_rows(self) -> dict[str, float]:
        """Rows of the λ table and the λ of each."""
        return {f"lambda-{value:g}": value for value in self.sweep.lambdas}

    def job(self, row: str, ways: int, scale: str) -> dict[str, Any]:
        """Everything that decides one model, apart from seed, data and code. A row is one of `models`, `lambda-…` of the sweep, or
        `row@pairs` of the learning curve."""
        budget: NliScale = getattr(self.scales, scale)
        name, _, count = row.partition("@")
        lam = self.sweep_rows.get(name)
        base = self.sweep.model if lam is not None else name
        if base not in self.models or (count and not count.isdigit()):
            known = ", ".join([*self.models, *self.sweep_rows])
            raise UserError(f"unknown row {row!r} of the SNLI tables: choose one of {known}, or one of them with @ and a number of pairs.")
        if ways not in WAYS:
            raise UserError(f"SNLI is decided 2-way or 3-way, not {ways}-way.")
        published, ours = self.rows.get(base, NliRow()), budget.rows.get(base, NliRow())
        own = NliWays() if lam is not None or count else ours.two if ways == 2 else ours.three
        layers = [published.training, budget.all, ours.training, own.training] + ([budget.sweep.training] if lam is not None else [])
        merged = self.training.model_dump()
        for layer in layers:
            merged |= layer.model_dump(exclude_none=True)
        merged = NliTraining(**merged).model_dump()
        model = self.models[base].model_dump()
        for option in ("neutral_width", "hidden"):
            if option in model and getattr(ours, option) is not None:
                model[option] = getattr(ours, option)
        if model["encoder"] == "subspace":
            model["lam"] = self.lam if lam is None else lam
            if ways == 2:
                model.pop("neutral_width")
        backbone = None
        if wanted := model.get("backbone"):
            used = budget.backbone.mpnet_as if wanted == "all-mpnet-base-v2" else wanted
            backbone = {"name": used, "wanted": wanted, "layers": budget.backbone.layers, "frozen": budget.backbone.frozen}
            backbone["dropout"] = merged["dropout"]
        pairs = (budget.sweep.pairs if lam is not None else None) or own.pairs or ours.pairs or budget.pairs
        if pairs == "all":
            pairs = None
        if count:
            pairs = int(count)
        return {
            "model": model,
            "backbone": backbone,
            "ways": ways,
            "training": merged,
            "limit": self.limit,
            "pairs": pairs,
            "dev_pairs": ours.dev_pairs or budget.dev_pairs,
            "test_pairs": ours.test_pairs or budget.test_pairs,
            "subset_seed": self.subset_seed,
        }
