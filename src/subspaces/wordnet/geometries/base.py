"""What a geometry is: parameters for every node, a score for a pair, a gradient step on touched rows, and a measure of generality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from subspaces.errors import UserError

GEOMETRIES: dict[str, type[Geometry]] = {}


class Geometry(ABC):
    """One row of a table is a geometry's name plus settings. A larger score means more closely related."""

    name: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            GEOMETRIES[cls.name] = cls

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

    @abstractmethod
    def open(self, rows: Tensor) -> Any:
        """Gather and prepare the distinct nodes `rows` (M,) of a step."""

    @abstractmethod
    def scores(self, opened: Any, anchors: Tensor, candidates: Tensor | None) -> Tensor:
        """(B, C) scores of anchors (B,) against candidates (B, C), or against all opened rows (B, M) when None."""

    @abstractmethod
    def update(self, opened: Any, anchors: Tensor, candidates: Tensor | None, upstream: Tensor, lr: float, pull: float) -> None:
        """One optimiser step for the gradient `upstream` (B, C) of the loss with respect to the scores.

        `pull` is the weight of the anchors' mean effective rank in the loss; it means something for subspaces only.
        """

    @abstractmethod
    def features(self, rows: slice) -> Any:
        """What `score_block` needs of some nodes, prepared once for the evaluation."""

    @abstractmethod
    def score_block(self, sources: Any, everyone: Any) -> Tensor:
        """(b, N) scores of some nodes against others, from `features`."""

    @abstractmethod
    def generality(self) -> Tensor:
        """(N,) larger for more general nodes: the trace for subspaces, the negative distance from the origin for hyperbolic points."""

    # features are tensors whose first axis is the node, in every geometry here
    def all_features(self, block: int = 4096) -> Tensor:
        parts = [self.features(slice(start, min(start + block, self.nodes))) for start in range(0, self.nodes, block)]
        return torch.cat(parts)


class VectorGeometry(Geometry):
    """A table of vectors with a pairwise score that autograd differentiates: the base of all baselines."""

    dtype: ClassVar[torch.dtype] = torch.float32

    def __init__(self, nodes: int, dim: int, width: int | None = None, device: torch.device | str = "cpu"):
        super().__init__(nodes, dim, device)
        self.table = torch.zeros(nodes, width or dim, dtype=self.dtype, device=self.device)

    def blank(self) -> Tensor:
        """A table in the host's memory, for the random start: a generator gives the same numbers whatever the device."""
        return torch.empty(self.table.shape, dtype=self.dtype)

    def weights(self) -> dict[str, Tensor]:
        return {"table": self.table}

    @abstractmethod
    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        """Scores of every row of `one` (…, B, k) with every row of `other` (…, C, k): (…, B, C)."""

    def open(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows, self.table[rows].requires_grad_()

    def scores(self, opened, anchors, candidates):
        _, leaf = opened
        with torch.enable_grad():
            if candidates is None:
                result = self.score_matrix(leaf[anchors], leaf)
            else:
                result = self.score_matrix(leaf[anchors][:, None], leaf[candidates])[:, 0]
        self._graph = result
        return result.detach()

    def update(self, opened, anchors, candidates, upstream, lr, pull):
        rows, leaf = opened
        (gradient,) = torch.autograd.grad(self._graph, leaf, upstream)
        self._graph = None
        self.optimiser.step(rows, gradient, lr)

    def features(self, rows: slice) -> Tensor:
        return self.table[rows]

    @torch.no_grad()
    def score_block(self, sources, everyone):
        return self.score_matrix(sources, everyone)


def geometry_names() -> list[str]:
    """The geometries there are: one module of this package each."""
    package = import_module("subspaces.wordnet.geometries")
    return sorted(module.name for module in iter_modules(package.__path__) if module.name != "base")


def make_geometry(name: str, nodes: int, dim: int, device: torch.device | str = "cpu", **options: Any) -> Geometry:
    """A geometry by its name, which is its module's; `options` that it does not know are an error, not ignored."""
    if name not in geometry_names():
        raise UserError(f"unknown geometry {name!r}: choose one of {', '.join(geometry_names())}.")
    import_module(f"subspaces.wordnet.geometries.{name}")
    kind = GEOMETRIES[name]
    unknown = set(options) - kind.options
    if unknown:
        known = ", ".join(sorted(kind.options))
        raise UserError(f"geometry {name} has no setting {', '.join(sorted(unknown))}: it knows {known}.")
    return kind(nodes, dim, device=device, **options)
