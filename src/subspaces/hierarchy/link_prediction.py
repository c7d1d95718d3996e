"""Link prediction (paper §3.3, §4.2, App. C.2): learn some edges of the closure, and be judged on others.

The weights with the best average precision on validation are kept (`BestWeights`).
"""

from __future__ import annotations

import csv
import math
import shutil
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.files import atomic_file
from subspaces.geometries.base import Geometry, GeometrySettings, build_geometry, geometry_settings
from subspaces.hierarchy.descent import (
    EXCLUDE,
    LOSSES,
    START,
    Loss,
    Negatives,
    chunk_of,
    require_space,
    sorted_lists,
    train_chunk,
    uses_compiler,
)
from subspaces.hierarchy.negatives import Known, make_negatives
from subspaces.hierarchy.splits import Split
from subspaces.hierarchy.thresholds import average_precision, best_threshold, judge
from subspaces.settings import Engine, Exclude, OneOf, Positive, Strict, optional
from subspaces.training.best import BestWeights
from subspaces.training.loop import Outcome
from subspaces.training.record import read_settings, read_weights
from subspaces.training.run import Run

LinkModel = Annotated[GeometrySettings, OneOf(geometry_settings(ranking=False), "geometry")]
"""Settings of any geometry: the files of `subspaces.geometries`."""


class LinkTraining(Strict):
    """How one model is trained; every geometry reads the same settings."""

    epochs: int = Field(ge=1, description="passes over the training edges")
    batch: int = Field(ge=1)
    sampling: Literal["per-edge", "weighted", "shared", "shared-weighted", "related"] = Field(
        description="fresh negatives per edge, uniform (paper) or by (times a parent)^0.75 (released code), or one such pool per batch; "
        "related: per-edge, and the edge reversed and siblings (DOE-A)"
    )
    corrupt: Literal["both", "child", "parent"] = Field(
        description="which side of an edge is replaced by another node; both: half and half"
    )
    negatives: int = Field(ge=2, description="per-edge, weighted and related: random negatives of an edge")
    pool: int = Field(ge=1, description="shared pools: nodes of the pool; each edge meets each, on both sides or one")
    weigh_as: Positive = Field(
        description="margin loss: total weight of an edge's negatives; equal to their number: the paper's sum"
    )
    loss: Literal["margin", "softmax", "shadow"]
    gamma_positive: float = Field(description="margin loss: edges should score at least this")
    gamma_negative: float = Field(description="margin loss: corrupted edges should score at most this")
    margin: float = Field(
        ge=0,
        description="softmax: subtracted from the edge's score; shadow: how far outside a corrupted edge should be",
    )
    optimiser: Literal["sgd", "adam"] = Field(description="Riemannian for hyperbolic rows; gaussian always has Adam")
    lr: Positive
    lr_final: float = Field(ge=0, le=1, description="the rate falls linearly to this share of lr")
    burn_in: int = Field(ge=0, description="epochs at the rate × burn_in_factor before the rest")
    burn_in_factor: Positive
    start: Positive = Field(description="spread of the random start")
    start_epochs: int = Field(ge=0, description="entailment cones: epochs of Poincaré training before their own")
    start_lr: Positive = Field(description="rate of these epochs")
    validate_every: int = Field(ge=1, description="epochs between two looks at validation; the best epoch is kept")
    engine: Engine = optional(
        "torch", "compiled: one edge or small batch after the other, for geometries of few numbers"
    )
    exclude: Exclude | None = optional(
        None,
        "per-edge sampling, which corrupted edges are not used: known (training edges), linked (also these reversed) or none; "
        "null: known, and none where sampling is weighted",
    )

    def edges_per_step(self, edges: int) -> int:
        """Training edges of one step of the loop."""
        return min(chunk_of(self.batch) if uses_compiler(self.engine) else self.batch, edges)


class LinkJob(Strict):
    """Everything that decides the weights and the threshold of one model, apart from seed and data."""

    model: LinkModel
    training: LinkTraining
    subtree: str | None = Field(None, description="the split is drawn below this node")
    threshold: Literal["exact", "grid"] = Field(description="how validation gives the threshold")


# --- losses ---------------------------------------------------------------------------------------------------------------


def margin_loss(scores: Tensor, counts: Tensor, positive: float, negative: float, weigh_as: float) -> Tensor:
    """Mean over edges of [γ₊ − s⁺]₊ + w · mean over their negatives of [s⁻ − γ₋]₊ (paper §3.3, after Vendrov et al.).

    w = 10 with ten negatives is the paper's sum, w = 1 the released code's mean. Energies are scores with a minus: E⁺ + [γ − E⁻]₊ is
    γ₊ = 0, γ₋ = −γ.
    """
    wrong = (scores[:, 1:] - negative).clamp_min(0) * counts
    return ((positive - scores[:, 0]).clamp_min(0) + weigh_as * wrong.sum(1) / counts.sum(1).clamp_min(1)).mean()


def softmax_loss(scores: Tensor, counts: Tensor, margin: float) -> Tensor:
    """Mean over edges of −log softmax of the edge among itself and its negatives; the edge's score is lowered by a margin."""
    logits = scores[:, 1:].masked_fill(~counts, float("-inf"))
    return -torch.log_softmax(torch.cat([scores[:, :1] - margin, logits], dim=1), dim=1)[:, 0].mean()


def shadow_loss(scores: Tensor, counts: Tensor, margin: float) -> Tensor:
    """The contrast of the shadow cones: an edge inside its cone and a corrupted one outside by the margin count as settled.

    Over scores cut off at 0 and −margin, once against corrupted children and once against corrupted parents, which are the two halves.
    """
    edge = scores[:, :1].clamp_max(0)
    corrupted = (scores[:, 1:] + margin).clamp_min(0).masked_fill(~counts, float("-inf"))
    half = corrupted.shape[1] // 2  # of an odd number the larger half has other parents
    sides = (
        torch.log_softmax(torch.cat([edge, side], dim=1), dim=1)[:, 0]
        for side in (corrupted[:, :half], corrupted[:, half:])
    )
    return -sum(sides, start=edge.new_zeros(())).mean()


class LinkPredictionTask:
    """The task that the loop trains: one pass over the training edges is one epoch."""

    def __init__(self, split: Split, geometry: Geometry, settings: LinkTraining, best: Path | None = None):
        self.geometry, self.settings, self.split = geometry, settings, split
        self.edges = torch.from_numpy(split.train)
        if not len(self.edges):
            raise UserError("the split has no training edges: there is nothing to learn.")
        if settings.start_epochs >= settings.epochs:
            raise UserError(
                f"start_epochs ({settings.start_epochs}) must be less than epochs ({settings.epochs}), which counts both phases: "
                "raise epochs in params.yaml."
            )
        self.batch = settings.edges_per_step(len(self.edges))
        self.steps_per_epoch = -(-len(self.edges) // self.batch)
        self.total = self.steps_per_epoch * settings.epochs
        if settings.loss == "shadow" and settings.corrupt != "both":
            raise UserError(
                "the shadow loss contrasts with other children and with other parents: use `corrupt: both`."
            )
        if settings.loss not in geometry.losses:
            raise UserError(
                f"geometry {geometry.name} has no {settings.loss} loss: choose {' or '.join(geometry.losses)} in params.yaml."
            )
        self.prepare()
        self.best = BestWeights(best, settings.epochs, geometry.weights)
        self.curve = self.best.curve  # average precision on validation after each epoch

    def prepare(self) -> None:
        """What draws negatives."""
        known, settings = Known(len(self.split.names), self.split.train), self.settings
        self.sampler = make_negatives(
            known,
            self.split.train,
            settings.sampling,
            settings.negatives,
            settings.pool,
            settings.corrupt,
            settings.exclude,
        )

    def state(self) -> dict[str, Tensor]:
        return {**self.geometry.state(), "validation": self.curve}

    def initialise(self, generator: Generator) -> None:
        self.geometry.initialise(generator)
        self.best.reset()

    def phase(self, epoch: int) -> str:
        return "start" if epoch < self.settings.start_epochs else "main"

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        if epoch:
            self.validate(epoch - 1)
        self.order = torch.randperm(len(self.edges), generator=generator)
        self.geometry.begin_phase(self.phase(epoch))

    def learning_rate(self, epoch: int, step: int) -> float:
        """Burn-in at a fraction of the rate, then constant, or falling in a line to `lr_final` of the rate; the start phase has its own."""
        settings = self.settings
        lr = settings.start_lr if self.phase(epoch) == "start" else settings.lr
        if epoch < settings.burn_in:
            return lr * settings.burn_in_factor
        return lr * (1.0 + (settings.lr_final - 1.0) * (epoch * self.steps_per_epoch + step) / self.total)

    def loss(self, scores: Tensor, counts: Tensor, phase: str) -> Tensor:
        settings = self.settings
        if phase == "start" or settings.loss == "softmax":
            return softmax_loss(scores, counts, 0.0 if phase == "start" else settings.margin)
        if settings.loss == "shadow":
            return shadow_loss(scores, counts, settings.margin)
        return margin_loss(scores, counts, settings.gamma_positive, settings.gamma_negative, settings.weigh_as)

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        if step == 0 and epoch == self.settings.start_epochs:
            self.geometry.enter_main()
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        return {"loss": self.descend(edges, self.phase(epoch), self.learning_rate(epoch, step), generator)}

    def descend(self, edges: Tensor, phase: str, rate: float, generator: Generator) -> float:
        """Learn from some edges; returns their mean loss before the weights moved."""
        batch = self.sampler.draw(edges[:, 0], edges[:, 1], generator).to(self.geometry.device)
        opened = self.geometry.open(batch.rows)
        scores = self.geometry.pair_scores(opened, batch.children.flatten(), batch.parents.flatten())
        leaf = scores.view(batch.children.shape).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.loss(leaf, batch.counts, phase)
            (upstream,) = torch.autograd.grad(loss, leaf)
        self.geometry.update_pairs(opened, upstream.flatten(), rate)
        return float(loss.detach())

    # --- validation -------------------------------------------------------------------------------------------------------

    def validate(self, epoch: int) -> None:
        """Average precision on validation after `epoch` (0-based), unless it is known already or not due; the best weights go to a file."""
        last = epoch + 1 == self.settings.epochs
        due = self.phase(epoch) == "main" and ((epoch + 1) % self.settings.validate_every == 0 or last)
        if self.best.folder is None or not due or self.best.knows(epoch):
            return
        positive, negative = decision_scores(self.geometry, self.split.valid, self.split.valid_negatives)
        self.best.offer(epoch, average_precision(positive, negative))

    def take_best(self) -> int:
        """Load the best weights; returns the epoch (1-based) that they are from."""
        return self.settings.epochs if self.best.folder is None else self.best.take() + 1


class CompiledLinkTask(LinkPredictionTask):
    """The same task by compiled descent (`subspaces.hierarchy.descent`): a step is a chunk of edges, one batch after the other."""

    def prepare(self) -> None:
        settings = self.settings
        require_space(self.geometry)
        if settings.sampling not in ("per-edge", "related"):
            raise UserError(
                f"compiled training draws negatives for every edge, not {settings.sampling}: use `sampling: per-edge` or `engine: torch`."
            )
        if settings.corrupt == "both" and settings.negatives < 2:
            raise UserError("negatives must be at least 2: one with another child, one with another parent.")
        nodes, train, related = len(self.split.names), self.split.train, settings.sampling == "related"
        self.known = sorted_lists(nodes, train, siblings=related)
        below = {"both": settings.negatives // 2, "child": settings.negatives, "parent": 0}[settings.corrupt]
        exclude = EXCLUDE[settings.exclude or "known"]
        self.draw = Negatives(nodes, below, settings.negatives - below, exclude, related, nodes / len(train))
        self.main = Loss(
            LOSSES.index(settings.loss),
            settings.gamma_positive,
            settings.gamma_negative,
            settings.weigh_as,
            settings.margin,
        )

    def descend(self, edges: Tensor, phase: str, rate: float, generator: Generator) -> float:
        loss = self.main if phase == "main" else START
        total, _ = train_chunk(self.geometry, loss, self.draw, self.known, edges, self.settings.batch, rate, generator)
        return total / len(edges)


def make_task(split: Split, geometry: Geometry, settings: LinkTraining, best: Path | None = None) -> LinkPredictionTask:
    kind = CompiledLinkTask if uses_compiler(settings.engine) else LinkPredictionTask
    return kind(split, geometry, settings, best)


def decision_scores(
    geometry: Geometry, edges: np.ndarray, negatives: np.ndarray, **tuned: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of edges (E, 2) and of their negatives (E, n, 2), as float64."""
    pairs = torch.from_numpy(np.concatenate([edges, negatives.reshape(-1, 2)])).to(geometry.device)
    scores = geometry.score_pairs(pairs[:, 0].contiguous(), pairs[:, 1].contiguous(), **tuned).double().cpu().numpy()
    return scores[: len(edges)], scores[len(edges) :]


# --- a model and its folder -----------------------------------------------------------------------------------------------


def geometry_of(job: LinkJob, nodes: int, device: str = "cpu") -> Geometry:
    training = job.training
    return build_geometry(job.model, nodes, start=training.start, optimiser=training.optimiser, device=device)


def decide(geometry: Geometry, split: Split, scan: str) -> dict[str, Any]:
    """What validation decides after training: settings of the score by average precision, then the threshold by F1."""
    names = list(geometry.tuned)
    tried = []
    for values in product(*geometry.tuned.values()):
        tuned = dict(zip(names, values, strict=True))
        positive, negative = decision_scores(geometry, split.valid, split.valid_negatives, **tuned)
        tried.append((average_precision(positive, negative), tuned, positive, negative))
    auprc, tuned, positive, negative = max(tried, key=lambda one: one[0])
    threshold = best_threshold(positive, negative, scan)
    valid = {"auprc": auprc, **judge(positive, negative, threshold)}
    return {"threshold": threshold, "scan": scan, "tuned": tuned, "validation": valid}


def fit_link_prediction(job: LinkJob, split: Split, run: Run) -> dict[str, Any]:
    """Train one model to the end, resuming where a killed run was; returns what went into settings.json, which is written last.

    A split without validation edges keeps the last epoch and freezes no decision.
    """
    run.begin()
    geometry = geometry_of(job, len(split.names), run.device)
    best = run.best if len(split.valid) else None
    task = make_task(split, geometry, job.training, best)
    outcome = run.train(task, job.training.epochs)
    task.validate(job.training.epochs - 1)
    chosen = task.take_best()
    geometry.begin_phase("main")
    sha256 = run.write_weights(geometry.weights())
    _write_history(run.out / "history.csv", outcome, task)
    more = {
        "split": split.counts() | {"coverage": split.coverage, "train_origin": split.train_origin},
        "best_epoch": chosen,
        "decision": decide(geometry, split, job.threshold) if best is not None else None,
        "weights_sha256": sha256,
    }
    settings = run.finish(job.model_dump(mode="json"), outcome, more)
    if best is not None:
        shutil.rmtree(best, ignore_errors=True)
    return settings


def _write_history(path: Path, outcome: Outcome, task: LinkPredictionTask) -> None:
    with atomic_file(path, "w") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["epoch", "loss", "validation_auprc"])
        for entry, value in zip(outcome.history, task.curve.tolist(), strict=True):
            writer.writerow([entry["epoch"], entry["loss"], "" if math.isnan(value) else value])


def load_link_prediction(folder: Path, nodes: int, device: str = "cpu") -> tuple[dict[str, Any], Geometry]:
    """(settings.json, geometry with its weights) of a trained model; damaged weights are refused."""
    settings = read_settings(folder)
    job = LinkJob(**{name: settings[name] for name in LinkJob.model_fields})
    geometry = geometry_of(job, nodes, device)
    read_weights(folder, geometry.weights())
    geometry.begin_phase("main")
    return settings, geometry
