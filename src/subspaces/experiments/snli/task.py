"""Training on SNLI in the one loop (paper §4.3).

A step is one optimiser step on `batch` pairs. They are taken by whole premises, so that a sentence that stands in several pairs is encoded
once; they are cut into micro-batches, and the sentences of one into pieces of similar length, each padded to its own longest: on a CPU, of
the very same length, so that nothing is padded. Gradients add up to those of the whole batch, unless a loss compares the pairs of a
micro-batch with one another (`unrelated` and `contrastive` of the subspace encoder).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.experiments.pairs import Pairs
from subspaces.experiments.snli.settings import NliTraining
from subspaces.text.pair_model import PairModel, Texts, accuracy
from subspaces.training.best import BestWeights

_TOGETHER = 64  # sentences that are padded to one length where small products are slow, that is, on a GPU


@torch.no_grad()
def judge(model: PairModel, texts: Texts, pairs: Pairs, block: int = 512) -> tuple[Tensor, Tensor | None]:
    """Logits (pairs, ways) and, where the model has one, the inclusion score of each pair, on the CPU.

    Pairs go by premise, so that a block needs few distinct sentences and little memory.
    """
    model.eval()
    order = np.argsort(pairs.premise, kind="stable")
    logits, scores = torch.empty(len(pairs), model.ways), torch.full((len(pairs),), math.nan)
    for start in range(0, len(order), block):
        rows = order[start : start + block]
        used, inverse = np.unique(np.concatenate([pairs.premise[rows], pairs.hypothesis[rows]]), return_inverse=True)
        encoded, places = texts.encode_all(model, used), torch.from_numpy(inverse).to(texts.device)
        premise, hypothesis = encoded[places[: len(rows)]], encoded[places[len(rows) :]]
        logits[torch.from_numpy(rows)] = model.logits(premise, hypothesis).float().cpu()
        found = model.inclusion(premise, hypothesis)
        if found is not None:
            scores[torch.from_numpy(rows)] = found.float().cpu()
    return logits, None if bool(scores.isnan().all()) else scores


class EntailmentTask:
    """The task that the loop trains; `best` is a folder for the weights with the best validation accuracy."""

    def __init__(
        self,
        model: PairModel,
        train: Pairs,
        dev: Pairs,
        tables: tuple[Texts, Texts],
        settings: NliTraining,
        best: Path | None = None,
    ):
        self.model, self.train, self.dev, self.settings = model, train, dev, settings
        self.texts, self.dev_texts = tables
        self.labels, self.dev_labels = torch.from_numpy(train.labels(model.label_ways)), dev.labels(model.ways)
        self.batch = min(settings.batch, len(train))
        self.steps_per_epoch = -(-len(train) // self.batch)
        self.total = self.steps_per_epoch * settings.epochs
        self.every = settings.validate_steps or self.steps_per_epoch
        self.best = BestWeights(best, -(-self.total // self.every), self.weights)
        self.curve = self.best.curve  # accuracy at each validation
        self.losses = torch.zeros(self.total, dtype=torch.float64)
        self.optimisers = model.optimisers(settings.lr)
        self._rates = [[group["lr"] for group in one.param_groups] for one in self.optimisers]
        self._moments = self._open_moments()

    def _open_moments(self) -> dict[str, Tensor]:
        """Adam's state, made before the first step, so that a checkpoint can be read into it."""
        names = {id(one): name for name, one in self.model.named_parameters()}
        moments: dict[str, Tensor] = {}
        for optimiser in self.optimisers:
            if not isinstance(optimiser, torch.optim.Adam):
                continue
            for group in optimiser.param_groups:
                for one in group["params"]:
                    state = {
                        "step": torch.zeros(()),
                        "exp_avg": torch.zeros_like(one),
                        "exp_avg_sq": torch.zeros_like(one),
                    }
                    optimiser.state[one] = state
                    moments |= {f"adam.{part}.{names[id(one)]}": value for part, value in state.items()}
        return moments

    def weights(self) -> dict[str, Tensor]:
        """What is saved of the model: all that training may change. Frozen parts are in the backbone's own file."""
        frozen = {name for name, one in self.model.named_parameters() if not one.requires_grad}
        return {name: value.detach() for name, value in self.model.state_dict().items() if name not in frozen}

    def state(self) -> dict[str, Tensor]:
        return {**self.weights(), **self._moments, "validation": self.curve, "losses": self.losses}

    def initialise(self, generator: Generator) -> None:
        """The weights are there already: they come from the backbone, and from the seed that the model was made with."""
        self.best.reset()

    def begin_epoch(self, epoch: int, generator: Generator) -> None:
        """A new order of the premises; pairs of one premise stay together."""
        rank = torch.randperm(len(self.train.texts), generator=generator).numpy()
        self.order = np.argsort(rank[self.train.premise], kind="stable")

    def rate(self, epoch: int, step: int) -> float:
        """Share of the learning rate: × decay per epoch, and, where asked, a warm-up and a line down to `lr_final`."""
        done = epoch * self.steps_per_epoch + step
        warm = min(1.0, (done + 1) / max(1.0, self.settings.warmup * self.total))
        return warm * self.settings.lr_decay**epoch * (1.0 - (1.0 - self.settings.lr_final) * done / self.total)

    def step(self, epoch: int, step: int, generator: Generator) -> dict[str, float]:
        done = epoch * self.steps_per_epoch + step
        if done and done % self.every == 0:
            self.validate(done // self.every - 1)
        torch.manual_seed(generator.initial_seed())  # for dropout
        self.model.train()
        share = self.rate(epoch, step)
        for optimiser, rates in zip(self.optimisers, self._rates, strict=True):
            optimiser.zero_grad(set_to_none=True)
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * share
        rows = self.order[step * self.batch : (step + 1) * self.batch]
        total = 0.0
        with torch.enable_grad():
            for micro in self.micro_batches(rows):
                loss = self.loss(micro) * (len(micro) / len(rows))
                loss.backward()
                total += float(loss.detach())
        if math.isfinite(total):
            for optimiser in self.optimisers:
                optimiser.step()
            with torch.no_grad():
                self.model.settle()
        self.losses[done] = total
        return {"loss": total}

    def micro_batches(self, rows: np.ndarray) -> list[np.ndarray]:
        """`rows` cut into at most `micro` pairs each, of like length; pairs of one premise stay together where they can."""
        lengths = self.texts.table.lengths
        order = (
            np.lexsort((self.train.premise[rows], lengths[self.train.premise[rows]]))
            if self.settings.by_length
            else np.arange(len(rows))
        )
        micro = self.settings.micro
        return [rows[order[start : start + micro]] for start in range(0, len(rows), micro)]

    def loss(self, rows: np.ndarray) -> Tensor:
        """Mean loss of some pairs."""
        try:
            premise, hypothesis = self._encode(self.train.premise[rows], self.train.hypothesis[rows])
            labels = self.labels[torch.from_numpy(rows)].to(self.texts.device)
            premise_ids = torch.from_numpy(self.train.premise[rows]).to(self.texts.device)
            return self.model.loss(premise, hypothesis, labels, self.settings.smoothing, premise_ids)
        except (torch.cuda.OutOfMemoryError, MemoryError) as error:
            raise UserError(_too_large(self.settings.micro)) from error
        except RuntimeError as error:
            if "memory" not in str(error):
                raise
            raise UserError(_too_large(self.settings.micro)) from error

    def _encode(self, premise: np.ndarray, hypothesis: np.ndarray) -> tuple[Tensor, Tensor]:
        """Both sides of some pairs. Each distinct sentence goes through the encoder once, in company of its own length."""
        if not self.settings.share_premises:
            return self.texts.encode(self.model, premise), self.texts.encode(self.model, hypothesis)
        used, places = np.unique(np.concatenate([premise, hypothesis]), return_inverse=True)
        order = np.argsort(self.texts.table.lengths[used], kind="stable")
        encoded = self.texts.encode(self.model, *self._pieces(used[order]))
        rank = np.empty(len(used), np.int64)
        rank[order] = np.arange(len(used))
        rows = torch.from_numpy(rank[places]).to(self.texts.device)
        return encoded[rows[: len(premise)]], encoded[rows[len(premise) :]]

    def _pieces(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows in order of length, cut into what is padded together."""
        if not self.settings.by_length:
            return [rows]
        if self.texts.device == "cpu":
            return np.split(rows, np.flatnonzero(np.diff(self.texts.table.lengths[rows])) + 1)
        return np.array_split(rows, -(-len(rows) // _TOGETHER))

    # --- validation -------------------------------------------------------------------------------------------------------

    def validate(self, place: int) -> float:
        """Accuracy on validation, unless it is known already; the best weights so far go to a file."""
        if self.best.knows(place):
            return float(self.curve[place])
        logits, _ = judge(self.model, self.dev_texts, self.dev)
        if self.model.calibrate(logits, torch.from_numpy(self.dev_labels)):
            logits, _ = judge(self.model, self.dev_texts, self.dev)
        value = accuracy(logits, self.dev_labels)
        self.best.offer(place, value)
        return value

    def take_best(self) -> int:
        """Load the weights of the best validation; returns the number of steps after which they were kept."""
        return min((self.best.take() + 1) * self.every, self.total)


def _too_large(micro: int) -> str:
    smaller = max(1, micro // 2)
    return f"out of memory with micro-batches of {micro} pairs: set micro: {smaller} for this row in params.yaml (the result is the same)."
