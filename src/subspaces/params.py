"""Typed parameters: params.yaml is the only place where a parameter lives, and this is what it may say.

A scale (quick, laptop, paper) chooses budgets. Training settings are layered: the paper's (`reconstruction.training`), then what the scale
says for all rows, for one row, and for one row and part of speech; `Params.reconstruction_job` gives the result.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from subspaces.errors import UserError

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
Positive = Annotated[float, Field(gt=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True, allow_inf_nan=False)


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


class SomeTraining(Strict):
    """Any of the training settings; what is absent stays as it was in the layer below."""

    epochs: int | None = Field(None, ge=1)
    batch: int | None = Field(None, ge=1)
    sampling: Literal["per-edge", "shared"] | None = None
    negatives: int | None = Field(None, ge=1)
    pool: int | None = Field(None, ge=1)
    in_batch: bool | None = None
    weigh_as: int | None = Field(None, ge=0)
    lr: Positive | None = None
    lr_final: float | None = Field(None, ge=0, le=1)
    burn_in: int | None = Field(None, ge=0)
    burn_in_factor: Positive | None = None
    start: Positive | None = None
    trace_pull: float | None = Field(None, ge=0)
    trace_pull_from: float | None = Field(None, ge=0, le=1)


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
    rows: dict[str, RowTraining] = {}
    not_run: dict[str, NotRun] = {}


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


class LinkTraining(Strict):
    """How one model of the link prediction table is trained; every geometry reads the same settings."""

    epochs: int = Field(ge=1, description="passes over the training edges")
    batch: int = Field(ge=1)
    sampling: Literal["per-edge", "weighted", "shared"] = Field(
        description="fresh uniform negatives per edge (paper), by (times a parent)^0.75 (released code), or one uniform pool per batch"
    )
    negatives: int = Field(ge=2, description="per-edge and weighted: half with another child, half with another parent")
    pool: int = Field(ge=1, description="shared: nodes of the pool; each edge meets each on both sides")
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


class SomeLinkTraining(Strict):
    """Any of the settings; what is absent stays as it was in the layer below."""

    epochs: int | None = Field(None, ge=1)
    batch: int | None = Field(None, ge=1)
    sampling: Literal["per-edge", "weighted", "shared"] | None = None
    negatives: int | None = Field(None, ge=2)
    pool: int | None = Field(None, ge=1)
    weigh_as: Positive | None = None
    loss: Literal["margin", "softmax", "shadow"] | None = None
    gamma_positive: float | None = None
    gamma_negative: float | None = None
    margin: float | None = Field(None, ge=0)
    optimiser: Literal["sgd", "adam"] | None = None
    lr: Positive | None = None
    lr_final: float | None = Field(None, ge=0, le=1)
    burn_in: int | None = Field(None, ge=0)
    burn_in_factor: Positive | None = None
    start: Positive | None = None
    start_epochs: int | None = Field(None, ge=0)
    start_lr: Positive | None = None
    validate_every: int | None = Field(None, ge=1)


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
    rows: dict[str, LinkRow] = {}
    not_run: dict[str, LinkNotRun] = {}


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


class HyperlexScale(Strict):
    seeds: Seeds = Field(min_length=1)
    training: SomeLinkTraining = SomeLinkTraining()
    not_run: str | None = Field(None, min_length=10, description="why the Gaussians are not trained at this scale; null: they are")


class HyperlexScales(Strict):
    quick: HyperlexScale
    laptop: HyperlexScale
    paper: HyperlexScale


class Hyperlex(Strict):
    """Points and subspaces come from the reconstruction models of nouns; the Gaussians are trained for this table only."""

    rows: list[str] = Field(min_length=1, description="rows of reconstruction.models, and gaussian-50")
    alpha: float = Field(ge=0, description="weight of the norms in the score of points (Nickel & Kiela: 1000)")
    gaussian: GaussianModel
    training: LinkTraining
    scales: HyperlexScales


class Wordnet(Strict):
    instance_hypernyms: bool = Field(description="count instance hypernyms as edges (Nickel & Kiela's graph; not the paper's)")


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


class Params(Strict):
    scale: Scale
    threads: Threads
    device: Literal["auto", "cpu", "cuda"] = Field(description="where subspaces are trained; auto: CUDA where there is one")
    checkpoint: Checkpoint
    wordnet: Wordnet
    bounds: Bounds
    reconstruction: Reconstruction
    hyperlex: Hyperlex
    link_prediction: LinkPrediction
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


def parse_params(content: Any, name: str = "params.yaml") -> Params:
    """Check a mapping against the types; the first problem becomes one line that names the key and what is allowed."""
    if not isinstance(content, dict):
        raise UserError(f"{name}: it must be a mapping of keys to values.")
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise UserError("\n".join(f"{name}: {_explain(problem)}" for problem in problems[:5])) from None


def _explain(problem: dict[str, Any]) -> str:
    kinds = ("subspace", "euclidean", "poincare", "lorentz", "order", "cones", "disk", "umbral", "gaussian")
    path = [str(part) for part in problem["loc"]]
    tag = next((part for place, part in enumerate(path) if part in kinds and place >= 2 and path[place - 2] == "models"), None)
    path = [part for place, part in enumerate(path) if not (part == tag and path[place - 2] == "models")]
    where = ".".join(path) or "the file"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not a known key; allowed here: {', '.join(_known_keys(path[:-1], tag))}."
    if problem["type"] == "missing":
        return f"{where} is missing."
    shown = "" if isinstance(problem["input"], dict) else f" (it is {problem['input']!r})"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message[0].lower()}{message[1:]}{shown}."


def _known_keys(path: list[str], tag: str | None) -> list[str]:
    """The keys that the schema allows at `path`, for the geometry `tag` where the path leads to a model."""
    schema = Params.model_json_schema()
    nodes = [schema]
    for part in path:
        found = []
        for node in (_resolve(one, schema) for one in nodes):
            for option in node.get("oneOf", node.get("anyOf", [node])):
                option = _resolve(option, schema)
                child = option.get("properties", {}).get(part, option.get("additionalProperties"))
                if isinstance(child, dict):
                    found.append(child)
        nodes = found
    keys: list[str] = []
    for node in nodes:
        node = _resolve(node, schema)
        for option in node.get("oneOf", node.get("anyOf", [node])):
            known = _resolve(option, schema).get("properties", {})
            if tag is None or known.get("geometry", {}).get("const", tag) == tag:
                keys += [key for key in known if key not in keys]
    return keys


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return node


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key written twice and reads 1e-3 as the number it is."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=deep)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is written twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))


def load_params(path: str | Path = "params.yaml", scale: str | None = None) -> Params:
    """Read params.yaml; `scale` replaces the scale it names."""
    path = Path(path)
    try:
        content = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path.name} was not found: run from the project's folder, or give --params.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from error
    if scale is not None and isinstance(content, dict):
        content = {**content, "scale": scale}
    return parse_params(content, path.name)


def params_schema() -> dict[str, Any]:
    """JSON schema of params.yaml, for editors and for `workflow/schemas`."""
    schema = Params.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "params.yaml"}
