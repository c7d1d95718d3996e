"""Link prediction (paper §3.3, §4.2, App. C.2): learn some edges of the closure, and be judged on others.

The weights with the best average precision on validation are kept, in a file beside the checkpoints: a second copy in memory would be
too much for the large models. Their history is part of the checkpoint, so that a killed run ends as one that was never stopped.
"""

from __future__ import annotations

import csv
import math
import shutil
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.files import atomic_file, read_json, sha256_file, write_json
from subspaces.geometries.base import Geometry, build_geometry, geometry_settings
from subspaces.hierarchy.negatives import Known, make_negatives
from subspaces.hierarchy.splits import Split
from subspaces.hierarchy.thresholds import average_precision, best_threshold, judge
from subspaces.settings import Positive, Strict
from subspaces.training.checkpoint import write_tensors
from subspaces.training.loop import Outcome
from subspaces.training.record import read_settings, read_weights
from subspaces.training.run import Run

LinkModel = Annotated[Union[geometry_settings(ranking=False)], Field(discriminator="geometry")]  # noqa: UP007
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
    optimiser: Literal["sgd", "adam"] = Field(description="Riemannian for hyperbolic rows; the others use Adam")
    lr: Positive
    lr_final: float = Field(ge=0, le=1, description="the rate falls linearly to this share of lr")
    burn_in: int = Field(ge=0, description="epochs at the rate × burn_in_factor before the rest")
    burn_in_factor: Positive
    start: Positive = Field(description="spread of the random start")
    start_epochs: int = Field(ge=0, description="entailment cones: epochs of Poincaré training before their own")
    start_lr: Positive = Field(description="rate of these epochs")
    validate_every: int = Field(ge=1, description="epochs between two looks at validation; the best epoch is kept")


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
    return -sum(sides).mean()


class LinkPredictionTask:
    """The task that the loop trains: one pass over the training edges is one epoch."""

    def __init__(self, split: Split, geometry: Geometry, settings: LinkTraining, best: Path | None = None):
        self.geometry, self.settings, self.best, self.split = geometry, settings, best, split
        self.edges = torch.from_numpy(split.train)
        if not len(self.edges):
            raise UserError("the split has no training edges: there is nothing to learn.")
        if settings.start_epochs >= settings.epochs:
            raise UserError(
                f"start_epochs ({settings.start_epochs}) must be less than epochs ({settings.epochs}), which counts both phases: "
                "raise epochs in params.yaml."
            )
        self.batch = min(settings.batch, len(self.edges))
        self.steps_per_epoch = -(-len(self.edges) // self.batch)
        self.total = self.steps_per_epoch * settings.epochs
        if settings.loss == "shadow" and settings.corrupt != "both":
            raise UserError(
                "the shadow loss contrasts with other children and with other parents: use `corrupt: both`."
            )
        known = Known(len(split.names), split.train)
        self.sampler = make_negatives(
            known, split.train, settings.sampling, settings.negatives, settings.pool, settings.corrupt
        )
        self.curve = torch.full(
            (settings.epochs,), math.nan, dtype=torch.float64
        )  # average precision on validation after each epoch

    def state(self) -> dict[str, Tensor]:
        return {**self.geometry.state(), "validation": self.curve}

    def initialise(self, generator: Generator) -> None:
        self.geometry.initialise(generator)
        self.curve.fill_(math.nan)

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
        phase = self.phase(epoch)
        if step == 0 and epoch == self.settings.start_epochs:
            self.geometry.enter_main()
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        batch = self.sampler.draw(edges[:, 0], edges[:, 1], generator).to(self.geometry.device)
        opened = self.geometry.open(batch.rows)
        scores = self.geometry.pair_scores(opened, batch.children.flatten(), batch.parents.flatten())
        leaf = scores.view(batch.children.shape).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.loss(leaf, batch.counts, phase)
            (upstream,) = torch.autograd.grad(loss, leaf)
        self.geometry.update_pairs(opened, upstream.flatten(), self.learning_rate(epoch, step))
        return {"loss": float(loss.detach())}

    # --- validation -------------------------------------------------------------------------------------------------------

    def validate(self, epoch: int) -> None:
        """Average precision on validation after `epoch` (0-based), unless it is known already or not due; the best weights go to a file."""
        last = epoch + 1 == self.settings.epochs
        due = self.phase(epoch) == "main" and ((epoch + 1) % self.settings.validate_every == 0 or last)
        if self.best is None or not due or not math.isnan(float(self.curve[epoch])):
            return
        positive, negative = decision_scores(self.geometry, self.split.valid, self.split.valid_negatives)
        value = average_precision(positive, negative)
        known = self.curve[~self.curve.isnan()]
        self.curve[epoch] = value
        if not len(known) or value > float(known.max()):
            sha256 = write_tensors(self.best / "weights.safetensors", self.geometry.weights())
            write_json(self.best / "record.json", {"epoch": epoch + 1, "auprc": value, "weights_sha256": sha256})

    def take_best(self) -> int:
        """Load the best weights; returns the epoch (1-based) that they are from."""
        if self.best is None:
            return self.settings.epochs
        chosen = int(torch.argmax(self.curve.nan_to_num(-1.0))) + 1
        path = self.best / "weights.safetensors"
        try:
            record = read_json(self.best / "record.json")
            sound = record["epoch"] == chosen and sha256_file(path) == record["weights_sha256"]
        except (UserError, OSError, KeyError, TypeError):
            sound = False
        if not sound:
            raise UserError(
                f"the best weights in {self.best} are damaged or missing: delete {self.best.parent} and train again."
            )
        with safe_open(path, framework="pt") as content:
            for name, tensor in self.geometry.weights().items():
                tensor.copy_(content.get_tensor(name))
        return chosen


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
    task = LinkPredictionTask(split, geometry, job.training, best)
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
