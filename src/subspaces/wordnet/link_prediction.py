"""WordNet link prediction (paper §4.2, App. C.2): learn some edges of the closure, and be judged on others.

The weights with the best average precision on validation are kept, in a file beside the checkpoints: a second copy in memory would be
too much for the large models. Their history is part of the checkpoint, so that a killed run ends as one that was never stopped.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json
from subspaces.training.checkpoint import write_tensors
from subspaces.wordnet.entailment.base import Entailment
from subspaces.wordnet.negatives import Known, make_negatives
from subspaces.wordnet.splits import Split
from subspaces.wordnet.thresholds import average_precision

LOSSES = ("margin", "softmax", "shadow")


def margin_loss(scores: Tensor, counts: Tensor, positive: float, negative: float, weigh_as: float) -> Tensor:
    """Mean over edges of [γ₊ − s⁺]₊ + w · mean over their negatives of [s⁻ − γ₋]₊ (paper §3.4, after Vendrov et al.).

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
    sides = (torch.log_softmax(torch.cat([edge, side], dim=1), dim=1)[:, 0] for side in (corrupted[:, :half], corrupted[:, half:]))
    return -sum(sides).mean()


class LinkPrediction:
    """The task that the loop trains: one pass over the training edges is one epoch."""

    def __init__(self, split: Split, geometry: Entailment, settings: dict[str, Any], best: Path | None = None):
        self.geometry, self.settings, self.best, self.split = geometry, settings, best, split
        self.edges = torch.from_numpy(split.train)
        if not len(self.edges):
            raise UserError("the split has no training edges: there is nothing to learn.")
        if settings["start_epochs"] >= settings["epochs"]:
            raise UserError(
                f"start_epochs ({settings['start_epochs']}) must be less than epochs ({settings['epochs']}), which counts both phases: "
                "raise epochs in params.yaml."
            )
        self.batch = min(settings["batch"], len(self.edges))
        self.steps_per_epoch = -(-len(self.edges) // self.batch)
        self.total = self.steps_per_epoch * settings["epochs"]
        if settings["loss"] == "shadow" and settings["corrupt"] != "both":
            raise UserError("the shadow loss contrasts with other children and with other parents: use `corrupt: both`.")
        known, names = Known(len(split.names), split.train), ("sampling", "negatives", "pool", "corrupt")
        self.sampler = make_negatives(known, split.train, **{name: settings[name] for name in names})
        self.curve = torch.full((settings["epochs"],), math.nan, dtype=torch.float64)  # average precision on validation after each epoch

    def state(self) -> dict[str, Tensor]:
        return {**self.geometry.state(), "validation": self.curve}

    def initialise(self, generator: Generator) -> None:
        self.geometry.initialise(generator)
        self.curve.fill_(math.nan)

    def phase(self, epoch: int) -> str:
        return "start" if epoch < self.settings["start_epochs"] else "main"

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        if epoch:
            self.validate(epoch - 1)
        self.order = torch.randperm(len(self.edges), generator=generator)
        self.geometry.begin_phase(self.phase(epoch))

    def learning_rate(self, epoch: int, step: int) -> float:
        """Burn-in at a fraction of the rate, then constant, or falling in a line to `lr_final` of the rate; the start phase has its own."""
        settings = self.settings
        lr = settings["start_lr"] if self.phase(epoch) == "start" else settings["lr"]
        if epoch < settings["burn_in"]:
            return lr * settings["burn_in_factor"]
        return lr * (1.0 + (settings["lr_final"] - 1.0) * (epoch * self.steps_per_epoch + step) / self.total)

    def loss(self, scores: Tensor, counts: Tensor, phase: str) -> Tensor:
        settings = self.settings
        if phase == "start" or settings["loss"] == "softmax":
            return softmax_loss(scores, counts, 0.0 if phase == "start" else settings["margin"])
        if settings["loss"] == "shadow":
            return shadow_loss(scores, counts, settings["margin"])
        return margin_loss(scores, counts, settings["gamma_positive"], settings["gamma_negative"], settings["weigh_as"])

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        phase = self.phase(epoch)
        if step == 0 and epoch == self.settings["start_epochs"]:
            self.geometry.enter_main()
        edges = self.edges[self.order[step * self.batch : (step + 1) * self.batch]]
        batch = self.sampler.draw(edges[:, 0], edges[:, 1], generator).to(self.geometry.device)
        opened = self.geometry.open(batch.rows)
        scores = self.geometry.scores(opened, batch.children.flatten(), batch.parents.flatten())
        leaf = scores.view(batch.children.shape).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.loss(leaf, batch.counts, phase)
            (upstream,) = torch.autograd.grad(loss, leaf)
        self.geometry.update(opened, upstream.flatten(), self.learning_rate(epoch, step))
        return {"loss": float(loss.detach())}

    # --- validation -------------------------------------------------------------------------------------------------------

    def validate(self, epoch: int) -> None:
        """Average precision on validation after `epoch` (0-based), unless it is known already or not due; the best weights go to a file."""
        last = epoch + 1 == self.settings["epochs"]
        due = self.phase(epoch) == "main" and ((epoch + 1) % self.settings["validate_every"] == 0 or last)
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
            return self.settings["epochs"]
        chosen = int(torch.argmax(self.curve.nan_to_num(-1.0))) + 1
        path = self.best / "weights.safetensors"
        try:
            record = read_json(self.best / "record.json")
            sound = record["epoch"] == chosen and sha256_file(path) == record["weights_sha256"]
        except (UserError, OSError, KeyError, TypeError):
            sound = False
        if not sound:
            raise UserError(f"the best weights in {self.best} are damaged or missing: delete {self.best.parent} and train again.")
        with safe_open(path, framework="pt") as content:
            for name, tensor in self.geometry.weights().items():
                tensor.copy_(content.get_tensor(name))
        return chosen


def decision_scores(geometry: Entailment, edges: np.ndarray, negatives: np.ndarray, **tuned: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of edges (E, 2) and of their negatives (E, n, 2), as float64."""
    pairs = torch.from_numpy(np.concatenate([edges, negatives.reshape(-1, 2)])).to(geometry.device)
    scores = geometry.score_pairs(pairs[:, 0].contiguous(), pairs[:, 1].contiguous(), **tuned).double().cpu().numpy()
    return scores[: len(edges)], scores[len(edges) :]
