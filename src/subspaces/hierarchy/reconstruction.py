"""Reconstruction of a hierarchy (paper §3.3, §4.1, App. C.1): learn the whole closure with InfoNCE over raw scores, no temperature."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.files import atomic_file
from subspaces.geometries.base import Geometry, GeometrySettings, build_geometry, geometry_settings
from subspaces.hierarchy.descent import (
    EXCLUDE,
    START,
    Negatives,
    chunk_of,
    require_space,
    sorted_lists,
    train_chunk,
    uses_compiler,
)
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.sampling import Batch, Links, make_sampler
from subspaces.settings import Engine, OneOf, Positive, Strict, optional
from subspaces.training.record import read_settings, read_weights
from subspaces.training.run import Run

RankingModel = Annotated[GeometrySettings, OneOf(geometry_settings(ranking=True), "geometry")]
"""Settings of any geometry: the files of `subspaces.geometries`."""


class ReconstructionTraining(Strict):
    """How one model is trained; every geometry reads the same settings."""

    epochs: int = Field(ge=1, description="passes over all closure edges")
    batch: int = Field(ge=1)
    sampling: Literal["per-edge", "shared"] = Field(
        description="fresh negatives per edge (the paper), or one pool per batch"
    )
    negatives: int = Field(ge=1, description="per-edge sampling: negatives per edge")
    pool: int = Field(ge=1, description="shared sampling: uniform negatives per batch")
    in_batch: bool = Field(description="shared sampling: every node of the batch is a candidate too")
    weigh_as: int = Field(
        ge=0, description="shared sampling: total weight of an edge's negatives; 0: each has weight 1"
    )
    lr: Positive
    lr_final: float = Field(ge=0, le=1, description="the rate falls linearly to this share of lr")
    burn_in: int = Field(ge=0, description="epochs at lr × burn_in_factor before the rest")
    burn_in_factor: Positive
    start: Positive = Field(description="spread of the random start: standard deviation or half-range")
    trace_pull: float = Field(
        ge=0, description="subspaces: weight of the mean trace in the loss; 0 is the paper's loss"
    )
    trace_pull_from: float = Field(ge=0, le=1, description="share of the training after which the pull begins")
    engine: Engine = optional(
        "torch", "compiled: one edge or small batch after the other, for geometries of few numbers"
    )
    exclude: Literal["known", "linked"] = optional(
        "linked",
        "per-edge sampling: a negative of a node is none of its ancestors (known; Nickel & Kiela) and none of its descendants (linked)",
    )

    def edges_per_step(self, edges: int) -> int:
        """Closure edges of one step of the loop."""
        return min(chunk_of(self.batch) if uses_compiler(self.engine) else self.batch, edges)


class ReconstructionJob(Strict):
    """Everything that decides the weights of one model, apart from seed and data."""

    model: RankingModel
    training: ReconstructionTraining
    subtree: str | None = Field(None, description="train on this node, everything below it and above these")


def info_nce(scores: Tensor, batch: Batch, weigh_as: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """(mean loss, its gradient with respect to the scores, share of edges whose parent beats every negative).

    With lists of candidates the positive is column 0; with shared candidates linked ones are taken out, except the positive. With
    `weigh_as` = k > 0 the shared negatives of an edge, however many, weigh together as k: the loss then has the scale of the paper's, which
    has 19, and does not ask for a wider margin (and so for larger ranks) just because more negatives are looked at.
    """
    count = len(scores)
    lines = torch.arange(count, device=scores.device)
    if batch.candidates is not None:
        positive, logits = torch.zeros_like(lines), scores
    else:
        assert batch.positive is not None and batch.excluded is not None
        positive = batch.positive
        logits = scores.masked_fill(batch.excluded, float("-inf"))
        if weigh_as:
            negatives = scores.shape[1] - batch.excluded.sum(dim=1, keepdim=True)
            logits += torch.log(weigh_as / negatives.clamp_min(1).to(scores.dtype))
        logits[lines, positive] = scores[lines, positive]
    probability = torch.softmax(logits, dim=1)
    chosen = probability[lines, positive]
    loss = (torch.logsumexp(logits, dim=1) - logits[lines, positive]).mean()
    upstream = probability
    upstream[lines, positive] = chosen - 1.0
    rivals = logits.clone()
    rivals[lines, positive] = float("-inf")
    first = (logits[lines, positive] > rivals.amax(dim=1)).double().mean()
    return loss, upstream.div_(count), first


class ReconstructionTask:
    """The task that the loop trains: one pass over all closure edges is one epoch."""

    def __init__(self, graph: Taxonomy, geometry: Geometry, settings: ReconstructionTraining):
        self.geometry, self.settings = geometry, settings
        self.edges = torch.from_numpy(graph.closure)
        self.batch = settings.edges_per_step(len(self.edges))
        self.steps_per_epoch = -(-len(self.edges) // self.batch)
        self.total = self.steps_per_epoch * settings.epochs
        self.prepare(graph)

    def prepare(self, graph: Taxonomy) -> None:
        """What draws negatives."""
        settings = self.settings
        if settings.sampling != "per-edge" and settings.exclude != "linked":
            raise UserError("`exclude: known` is for negatives of single edges: use `sampling: per-edge`.")
        links = Links(graph, settings.exclude == "linked")
        self.sampler = make_sampler(links, settings.sampling, settings.negatives, settings.pool, settings.in_batch)

    def state(self) -> dict[str, Tensor]:
        return self.geometry.state()

    def initialise(self, generator: Generator) -> None:
        self.geometry.initialise(generator)

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        self.order = torch.randperm(len(self.edges), generator=generator)

    def learning_rate(self, epoch: int, step: int) -> float:
        """Burn-in at a fraction of the rate (hyperbolic baselines), then constant, or falling in a line to `lr_final` of the rate."""
        settings = self.settings
        if epoch < settings.burn_in:
            return settings.lr * settings.burn_in_factor
        return settings.lr * (1.0 + (settings.lr_final - 1.0) * self.progress(epoch, step))

    def trace_pull(self, epoch: int, step: int) -> float:
        """Off until its share of the training is done: while the subspaces are still nearly empty it would hold them there."""
        settings = self.settings
        return settings.trace_pull if self.progress(epoch, step) >= settings.trace_pull_from else 0.0

    def progress(self, epoch: int, step: int) -> float:
        return (epoch * self.steps_per_epoch + step) / self.total

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        batch = self.sampler.draw(edges[:, 0], edges[:, 1], generator).to(self.geometry.device)
        lr, pull = self.learning_rate(epoch, step), self.trace_pull(epoch, step)
        opened = self.geometry.open(batch.rows)
        scores = self.geometry.scores(opened, batch.anchors, batch.candidates)
        loss, upstream, first = info_nce(scores, batch, self.settings.weigh_as)
        self.geometry.update(opened, batch.anchors, batch.candidates, upstream, lr, pull)
        return {"loss": float(loss), "first": float(first)}


class CompiledReconstructionTask(ReconstructionTask):
    """The same task by compiled descent (`subspaces.hierarchy.descent`): a step is a chunk of edges, one batch after the other."""

    def prepare(self, graph: Taxonomy) -> None:
        settings = self.settings
        require_space(self.geometry)
        if settings.sampling != "per-edge":
            raise UserError(
                f"compiled training draws negatives for every edge, not {settings.sampling}: use `sampling: per-edge` or `engine: torch`."
            )
        self.known = sorted_lists(graph.nodes, graph.closure)
        self.draw = Negatives(graph.nodes, 0, settings.negatives, EXCLUDE[settings.exclude], False, 0.0)

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        rate = self.learning_rate(epoch, step)
        total, first = train_chunk(
            self.geometry, START, self.draw, self.known, edges, self.settings.batch, rate, generator
        )
        return {"loss": total / len(edges), "first": first / len(edges)}


def make_task(graph: Taxonomy, geometry: Geometry, settings: ReconstructionTraining) -> ReconstructionTask:
    return (CompiledReconstructionTask if uses_compiler(settings.engine) else ReconstructionTask)(
        graph, geometry, settings
    )


# --- a model and its folder -----------------------------------------------------------------------------------------------


def graph_of(subtree: str | None, path: Path, sample: bool) -> Taxonomy:
    """The hierarchy that a job trains on. The sample is small already and knows no subtree names, so it is taken whole."""
    graph = Taxonomy.load(path)
    return graph.subtree(subtree) if subtree and not sample else graph


def geometry_of(job: ReconstructionJob, nodes: int, device: str = "cpu") -> Geometry:
    return build_geometry(job.model, nodes, start=job.training.start, ranking=True, device=device)


def fit_reconstruction(job: ReconstructionJob, graph: Taxonomy, run: Run) -> dict[str, Any]:
    """Train one model to the end, resuming where a killed run was; returns what went into settings.json, which is written last."""
    if not len(graph.ancestors):
        raise UserError("no node of this hierarchy has an ancestor: there is nothing to learn.")
    run.begin()
    geometry = geometry_of(job, graph.nodes, run.device)
    task = make_task(graph, geometry, job.training)
    outcome = run.train(task, job.training.epochs)
    sha256 = run.write_weights(geometry.weights())
    with atomic_file(run.out / "history.csv", "w") as handle:
        columns = ["epoch", *sorted(outcome.history[0].keys() - {"epoch"}, reverse=True)]
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(outcome.history)
    return run.finish(job.model_dump(mode="json"), outcome, {"graph": graph.counts(), "weights_sha256": sha256})


def load_reconstruction(
    folder: Path, graph_path: Path, device: str = "cpu"
) -> tuple[dict[str, Any], Taxonomy, Geometry]:
    """(settings.json, hierarchy, geometry with its weights) of a trained model; damaged weights are refused."""
    settings = read_settings(folder)
    job = ReconstructionJob(**{name: settings[name] for name in ReconstructionJob.model_fields})
    graph = graph_of(job.subtree, graph_path, settings["data"]["sample"])
    geometry = geometry_of(job, graph.nodes, device)
    read_weights(folder, geometry.weights())
    return settings, graph, geometry
