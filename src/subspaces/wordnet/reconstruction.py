"""WordNet reconstruction (paper §4.1, App. C.1): learn the whole closure with InfoNCE over raw scores, no temperature."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from subspaces.wordnet.geometries.base import Geometry
from subspaces.wordnet.graph import Hierarchy
from subspaces.wordnet.sampling import Batch, Links, make_sampler


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


class Reconstruction:
    """The task that the loop trains: one pass over all closure edges is one epoch."""

    def __init__(self, graph: Hierarchy, geometry: Geometry, settings: dict):
        self.geometry, self.settings = geometry, settings
        self.edges = torch.from_numpy(graph.closure)
        self.batch = min(settings["batch"], len(self.edges))
        self.steps_per_epoch = -(-len(self.edges) // self.batch)
        self.total = self.steps_per_epoch * settings["epochs"]
        links = Links(graph)
        self.sampler = make_sampler(links, settings["sampling"], settings["negatives"], settings["pool"], settings["in_batch"])

    def state(self) -> dict[str, Tensor]:
        return self.geometry.state()

    def initialise(self, generator: Generator) -> None:
        self.geometry.initialise(generator)

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        self.order = torch.randperm(len(self.edges), generator=generator)

    def learning_rate(self, epoch: int, step: int) -> float:
        """Burn-in at a fraction of the rate (hyperbolic baselines), then constant, or falling in a line to `lr_final` of the rate."""
        settings = self.settings
        if epoch < settings["burn_in"]:
            return settings["lr"] * settings["burn_in_factor"]
        return settings["lr"] * (1.0 + (settings["lr_final"] - 1.0) * self.progress(epoch, step))

    def trace_pull(self, epoch: int, step: int) -> float:
        """Off until its share of the training is done: while the subspaces are still nearly empty it would hold them there."""
        settings = self.settings
        return settings["trace_pull"] if self.progress(epoch, step) >= settings["trace_pull_from"] else 0.0

    def progress(self, epoch: int, step: int) -> float:
        return (epoch * self.steps_per_epoch + step) / self.total

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        batch = self.sampler.draw(edges[:, 0], edges[:, 1], generator).to(self.geometry.device)
        lr, pull = self.learning_rate(epoch, step), self.trace_pull(epoch, step)
        opened = self.geometry.open(batch.rows)
        scores = self.geometry.scores(opened, batch.anchors, batch.candidates)
        loss, upstream, first = info_nce(scores, batch, self.settings["weigh_as"])
        self.geometry.update(opened, batch.anchors, batch.candidates, upstream, lr, pull)
        return {"loss": float(loss), "first": float(first)}
