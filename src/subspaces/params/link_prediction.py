"""Parameters of link prediction (Table 4)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from subspaces.params.base import SCALES, Positive, Seeds, Strict, some
from subspaces.params.reconstruction import PoincareModel, SubspaceModel


class LinkTraining(Strict):
    """How one model of the link prediction table is trained; every geometry reads the same settings."""

    epochs: int = Field(ge=1, description="passes over the training edges")
    batch: int = Field(ge=1)
    sampling: Literal["per-edge", "weighted", "shared", "shared-weighted", "related"] = Field(
        description="fresh negatives per edge, uniform (paper) or by (times a parent)^0.75 (released code), or one such pool per batch; "
        "related: per-edge, and the edge reversed and siblings (DOE-A)"
    )
    corrupt: Literal["both", "child", "parent"] = Field(description="what another node takes the place of; both: half and half")
    negatives: int = Field(ge=2, description="per-edge, weighted and related: random negatives of an edge")
    pool: int = Field(ge=1, description="shared pools: nodes of the pool; each edge meets each, on both sides or one")
    weigh_as: Positive = Field(description="margin loss: an edge's negatives weigh as so many; as many as there are: the paper's sum")
    loss: Literal["margin", "softmax", "shadow"]
    gamma_positive: float = Field(description="margin loss: edges should score at least this")
    gamma_negative: float = Field(description="margin loss: corrupted edges should score at most this")
    margin: float = Field(ge=0, description="softmax: taken from the edge's score; shadow: how far outside a corrupted edge should be")
    optimiser: Literal["sgd", "adam"] = Field(description="Riemannian, for hyperbolic rows; the others have Adam")
    lr: Positive
    lr_final: float = Field(ge=0, le=1, description="the rate falls in a line to this share of lr")
    burn_in: int = Field(ge=0, description="epochs at the rate × burn_in_factor before the rest")
    burn_in_factor: Positive
    start: Positive = Field(description="spread of the random start")
    start_epochs: int = Field(ge=0, description="entailment cones: epochs of Poincaré training before their own")
    start_lr: Positive = Field(description="rate of these epochs")
    validate_every: int = Field(ge=1, description="epochs between two looks at validation; the best epoch is kept")


SomeLinkTraining = some(LinkTraining)


class LinkRow(Strict):
    """What a layer says for one row: for all coverages, and for each."""

    all: SomeLinkTraining = SomeLinkTraining()
    at_0: SomeLinkTraining = SomeLinkTraining()
    at_10: SomeLinkTraining = SomeLinkTraining()
    at_25: SomeLinkTraining = SomeLinkTraining()
    at_50: SomeLinkTraining = SomeLinkTraining()


class OrderModel(Strict):
    geometry: Literal["order"]
    dim: int = Field(ge=1)


class ConesModel(Strict):
    geometry: Literal["cones"]
    dim: int = Field(ge=2)
    opening: Positive = Field(0.1, description="K, which sets the width of the cones")


class DiskModel(Strict):
    geometry: Literal["disk"]
    dim: int = Field(ge=2, description="counts the radius")


class UmbralModel(Strict):
    geometry: Literal["umbral"]
    dim: int = Field(ge=2)
    radius: Positive = Field(0.05, description="hyperbolic radius of an object that throws a shadow")


class GaussianModel(Strict):
    geometry: Literal["gaussian"]
    dim: int = Field(ge=1)
    tau: float = Field(500.0, description="divergence up to which a child counts as encapsulated")


class PointsModel(Strict):
    geometry: Literal["euclidean"]
    dim: int = Field(ge=1)


LinkModel = Annotated[
    SubspaceModel | PointsModel | OrderModel | PoincareModel | ConesModel | DiskModel | UmbralModel | GaussianModel,
    Field(discriminator="geometry"),
]


class LinkNotRun(Strict):
    """Why a row is not run at a coverage at some scale; null: it is run."""

    at_0: str | None = Field(None, min_length=10)
    at_10: str | None = Field(None, min_length=10)
    at_25: str | None = Field(None, min_length=10)
    at_50: str | None = Field(None, min_length=10)


class LinkScale(Strict):
    seeds: Seeds = Field(min_length=1)
    subtree: str | None = Field(None, description="draw a split below this noun instead of using the split files; null: the files")
    all: SomeLinkTraining = SomeLinkTraining()
    rows: dict[str, LinkRow] = Field({})
    not_run: dict[str, LinkNotRun] = Field({})


class LinkScales(Strict):
    quick: LinkScale
    laptop: LinkScale
    paper: LinkScale


class LinkPrediction(Strict):
    lam: float = Field(gt=0, alias="lambda", description="λ of the soft projector")
    threshold: Literal["exact", "grid"] = Field(description="how validation gives the threshold: all scores, or 100 points on [0, 1]")
    draw_seed: int = Field(ge=0, description="of the 50 % training edges where the original file cannot be had, and of drawn splits")
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
