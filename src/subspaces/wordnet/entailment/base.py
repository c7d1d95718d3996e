"""What a geometry needs for link prediction: a directed score of (child, parent) pairs, a gradient step, and a measure of generality.

A larger score always means "more surely below". Where a paper has an energy, the score is its negative. The reconstruction task has its
own protocol (`wordnet.geometries`): there a score is symmetric and one node meets many, here pairs are directed and come as lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError

ENTAILMENTS: dict[str, type[Entailment]] = {}


class Entailment(ABC):
    """One row of the link prediction table is a geometry's name plus settings."""

    name: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    # settings of the decision score that validation chooses after training, with the values that are tried; the first is the default
    tuned: ClassVar[dict[str, tuple[float, ...]]] = {}

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            ENTAILMENTS[cls.name] = cls

    def __init__(self, nodes: int, dim: int, device: torch.device | str = "cpu"):
        self.nodes, self.dim, self.device = nodes, dim, torch.device(device)

    @abstractmethod
    def initialise(self, generator: Generator) -> None:
        """Set the weights to their random start, in place, and the optimiser's state to zero."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """What is saved of a trained model."""

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's memory."""
        return {**self.weights(), **self.optimiser.state()}

    def begin_phase(self, phase: str) -> None:  # noqa: B027 - most geometries know one phase only
        """Some geometries are trained in two phases, "start" and then "main"; called when an epoch begins, also after a resume.

        A new geometry is in "main", the phase that is judged.
        """

    def enter_main(self) -> None:  # noqa: B027 - as above
        """What happens to the weights between the two phases; called once, before the first step of "main"."""

    @abstractmethod
    def open(self, rows: Tensor) -> Any:
        """Gather and prepare the distinct nodes `rows` (M,) of a step."""

    @abstractmethod
    def scores(self, opened: Any, children: Tensor, parents: Tensor) -> Tensor:
        """Training scores of pairs (K,), (K,) that index the opened rows: (K,), detached."""

    @abstractmethod
    def update(self, opened: Any, upstream: Tensor, lr: float) -> None:
        """One optimiser step for the gradient `upstream` (K,) of the loss with respect to the scores just given."""

    @abstractmethod
    def score_pairs(self, children: Tensor, parents: Tensor, **tuned: float) -> Tensor:
        """Decision scores (K,) of pairs of nodes, without gradient; `tuned` replaces defaults of the settings in `tuned`."""

    @abstractmethod
    def generality(self) -> Tensor:
        """(N,) larger for more general nodes."""


class VectorEntailment(Entailment):
    """A table of vectors whose score autograd differentiates: the base of all baselines."""

    dtype: ClassVar[torch.dtype] = torch.float64

    def __init__(self, nodes: int, dim: int, width: int | None = None, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device)
        self.table = torch.zeros(nodes, width or dim, dtype=self.dtype, device=self.device)

    def blank(self) -> Tensor:
        """A table in the host's memory, for the random start: a generator gives the same numbers whatever the device."""
        return torch.empty(self.table.shape, dtype=self.dtype)

    def weights(self) -> dict[str, Tensor]:
        return {"table": self.table}

    @abstractmethod
    def directed(self, child: Tensor, parent: Tensor) -> Tensor:
        """Training score of child (…, w) below parent (…, w): (…)."""

    def decide(self, child: Tensor, parent: Tensor) -> Tensor:
        """Decision score; the training score where nothing is said. Takes the settings named in `tuned` as keywords."""
        return self.directed(child, parent)

    def open(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows, self.table.index_select(0, rows).requires_grad_()

    def scores(self, opened, children, parents):
        _, leaf = opened
        with torch.enable_grad():
            self._graph = self.directed(leaf.index_select(0, children), leaf.index_select(0, parents))
        return self._graph.detach()

    def update(self, opened, upstream, lr):
        rows, leaf = opened
        (gradient,) = torch.autograd.grad(self._graph, leaf, upstream.to(self.dtype))
        self._graph = None
        self.optimiser.step(rows, gradient, lr)

    @torch.no_grad()
    def score_pairs(self, children, parents, **tuned):
        parts = zip(children.split(1 << 18), parents.split(1 << 18), strict=True)
        return torch.cat([self.decide(self.table.index_select(0, c), self.table.index_select(0, p), **tuned) for c, p in parts])


def entailment_names() -> list[str]:
    """The geometries there are: one module of this package each."""
    package = import_module("subspaces.wordnet.entailment")
    return sorted(module.name for module in iter_modules(package.__path__) if module.name != "base")


def entailment_options(name: str) -> frozenset[str]:
    """The settings that a geometry knows."""
    if name not in entailment_names():
        raise UserError(f"unknown geometry {name!r}: choose one of {', '.join(entailment_names())}.")
    import_module(f"subspaces.wordnet.entailment.{name}")
    return ENTAILMENTS[name].options


def make_entailment(name: str, nodes: int, dim: int, device: torch.device | str = "cpu", **options: Any) -> Entailment:
    """A geometry by its name, which is its module's; `options` that it does not know are an error, not ignored."""
    known = entailment_options(name)
    unknown = set(options) - known
    if unknown:
        known_text = ", ".join(sorted(known)) or "none"
        raise UserError(f"geometry {name} has no setting {', '.join(sorted(unknown))}: it knows {known_text}.")
    return ENTAILMENTS[name](nodes, dim, device=device, **options)
