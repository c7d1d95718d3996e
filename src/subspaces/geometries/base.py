"""What a geometry is: parameters for every node, scores of pairs, a gradient step on touched rows, and a measure of generality.

Two tasks train every geometry. Reconstruction ranks: one node, the anchor, is scored against many, and mutual closeness is enough
(`scores`, `update`, `score_block`). Link prediction decides: pairs (child, parent) come as lists and direction matters (`pair_scores`,
`update_pairs`, `score_pairs`). A larger score always means "more surely related" or "more surely below"; where a paper has an energy, the
score is its negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, ValidationError
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.settings import Strict

Optimiser = Literal["sgd", "adam"]
GEOMETRIES: dict[str, type[Geometry]] = {}
_SHARED = ("base", "compiled")  # files of this package that are not geometries
_NUMBERS = 1 << 26  # numbers in memory at a time where a score has no product form


class GeometrySettings(Strict):
    """What a row of a table says about its model; a geometry adds its own settings, and narrows `geometry` to its name."""

    geometry: str
    dim: int = Field(ge=1)


class Geometry(ABC):
    """One row of a table is a geometry's name plus settings."""

    name: ClassVar[str]
    Settings: ClassVar[type[GeometrySettings]]
    RankingSettings: ClassVar[type[GeometrySettings] | None] = None  # where reconstruction knows more settings
    default_start: ClassVar[float] = 1e-4  # spread of the random start
    losses: ClassVar[tuple[str, ...]] = ("margin", "softmax")  # of link prediction
    # settings of the decision score that validation chooses after training, with the values that are tried; the first is the default
    tuned: Mapping[str, tuple[float, ...]] = {}
    optimiser: Any  # with `step` for touched rows and `state`, as in `subspaces.training`

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            GEOMETRIES[cls.name] = cls

    def __init__(
        self,
        settings: GeometrySettings,
        nodes: int,
        *,
        start: float | None = None,
        optimiser: Optimiser | None = None,
        ranking: bool = False,
        device: torch.device | str = "cpu",
    ):
        """`start` and `optimiser` are settings of the training (None: what suits the geometry). `ranking`: trained by reconstruction, which has its own precision and
        step sizes in some geometries."""
        if optimiser not in (None, "sgd", "adam"):
            raise UserError(f"unknown optimiser {optimiser!r}: use adam or sgd.")
        self.settings, self.nodes, self.dim, self.device = settings, nodes, settings.dim, torch.device(device)
        self.start = self.default_start if start is None else start
        self.ranking = ranking

    @abstractmethod
    def initialise(self, generator: Generator) -> None:
        """Set the weights to their random start, in place, and the optimiser's state to zero."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """What is saved of a trained model."""

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's memory."""
        return {**self.weights(), **self.optimiser.state()}

    def space(self) -> Any:
        """What compiled training works with, in the phase of the moment (`subspaces.geometries.compiled`); None: it is torch's."""
        return None

    def begin_phase(self, phase: str) -> None:  # noqa: B027 - most geometries know one phase only
        """Some geometries are trained in two phases, "start" and then "main"; called when an epoch begins, also after a resume.

        A new geometry is in "main", the phase that is judged.
        """

    def enter_main(self) -> None:  # noqa: B027 - as above
        """What happens to the weights between the two phases; called once, before the first step of "main"."""

    @abstractmethod
    def open(self, rows: Tensor) -> Any:
        """Gather and prepare the distinct nodes `rows` (M,) of a step."""

    # --- one node against many -------------------------------------------------------------------------------------------

    @abstractmethod
    def scores(self, opened: Any, anchors: Tensor, candidates: Tensor | None) -> Tensor:
        """(B, C) scores of anchors (B,) against candidates (B, C), or against all opened rows (B, M) when None."""

    @abstractmethod
    def update(
        self, opened: Any, anchors: Tensor, candidates: Tensor | None, upstream: Tensor, lr: float, pull: float
    ) -> None:
        """One optimiser step for the gradient `upstream` (B, C) of the loss with respect to the scores.

        `pull` is the weight of the anchors' mean effective rank in the loss; it means something for subspaces only.
        """

    @abstractmethod
    def features(self, rows: slice) -> Tensor:
        """What `score_block` needs of some nodes, prepared once for the evaluation; the first axis is the node."""

    @abstractmethod
    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        """(b, N) scores of some nodes against others, from `features`."""

    def all_features(self, block: int = 4096) -> Tensor:
        parts = [self.features(slice(start, min(start + block, self.nodes))) for start in range(0, self.nodes, block)]
        return torch.cat(parts)

    # --- directed pairs ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def pair_scores(self, opened: Any, children: Tensor, parents: Tensor) -> Tensor:
        """Training scores of pairs (K,), (K,) that index the opened rows: (K,), detached."""

    @abstractmethod
    def update_pairs(self, opened: Any, upstream: Tensor, lr: float) -> None:
        """One optimiser step for the gradient `upstream` (K,) of the loss with respect to the scores just given."""

    @abstractmethod
    def score_pairs(self, children: Tensor, parents: Tensor, **tuned: float) -> Tensor:
        """Decision scores (K,) of pairs of nodes, without gradient; `tuned` replaces defaults of the settings in `tuned`."""

    @abstractmethod
    def generality(self) -> Tensor:
        """(N,) larger for more general nodes."""


class VectorGeometry(Geometry):
    """A table of vectors whose score autograd differentiates: the base of all small geometries."""

    dtype: torch.dtype = torch.float64

    def __init__(self, settings: GeometrySettings, nodes: int, *, width: int | None = None, **training: Any):
        super().__init__(settings, nodes, **training)
        self.table = torch.zeros(nodes, width or self.dim, dtype=self.dtype, device=self.device)

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

    def score_matrix(self, one: Tensor, other: Tensor) -> Tensor:
        """Scores of every row of `one` (…, B, w) below every row of `other` (…, C, w): (…, B, C).

        Geometries whose score is a function of inner products replace this by a product, which is much faster.
        """
        if torch.is_grad_enabled():
            return self.directed(one[..., :, None, :], other[..., None, :, :])
        lines = max(1, _NUMBERS // max(1, other.numel()))
        parts = one.split(lines, dim=-2)
        return torch.cat([self.directed(part[..., :, None, :], other[..., None, :, :]) for part in parts], dim=-2)

    def open(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return rows, self.table.index_select(0, rows).requires_grad_()

    def scores(self, opened, anchors, candidates):
        _, leaf = opened
        with torch.enable_grad():
            if candidates is None:
                self._graph = self.score_matrix(leaf[anchors], leaf)
            else:
                self._graph = self.score_matrix(leaf[anchors][:, None], leaf[candidates])[:, 0]
        return self._graph.detach()

    def pair_scores(self, opened, children, parents):
        _, leaf = opened
        with torch.enable_grad():
            self._graph = self.directed(leaf.index_select(0, children), leaf.index_select(0, parents))
        return self._graph.detach()

    def update(self, opened, anchors, candidates, upstream, lr, pull):
        self.update_pairs(opened, upstream, lr)

    def update_pairs(self, opened, upstream, lr):
        rows, leaf = opened
        (gradient,) = torch.autograd.grad(self._graph, leaf, upstream.to(self.dtype))
        self._graph = None
        self.optimiser.step(rows, gradient, lr)

    def features(self, rows: slice) -> Tensor:
        return self.table[rows]

    @torch.no_grad()
    def score_block(self, sources, everyone):
        return self.score_matrix(sources, everyone)

    @torch.no_grad()
    def score_pairs(self, children, parents, **tuned):
        parts = zip(children.split(1 << 18), parents.split(1 << 18), strict=True)
        return torch.cat(
            [self.decide(self.table.index_select(0, c), self.table.index_select(0, p), **tuned) for c, p in parts]
        )


# --- by name --------------------------------------------------------------------------------------------------------------


@cache
def geometry_names() -> list[str]:
    """The geometries there are: one file of this package each."""
    package = import_module("subspaces.geometries")
    return sorted(module.name for module in iter_modules(package.__path__) if module.name not in _SHARED)


def geometry_class(name: str) -> type[Geometry]:
    if name not in geometry_names():
        raise UserError(f"unknown geometry {name!r}: choose one of {', '.join(geometry_names())}.")
    import_module(f"subspaces.geometries.{name}")
    return GEOMETRIES[name]


def settings_class(name: str, ranking: bool) -> type[GeometrySettings]:
    kind = geometry_class(name)
    return kind.RankingSettings or kind.Settings if ranking else kind.Settings


@cache
def geometry_settings(ranking: bool) -> tuple[type[GeometrySettings], ...]:
    """The settings of all geometries, for the parameter schema of a task that ranks, or of one that decides directed pairs."""
    return tuple(settings_class(name, ranking) for name in geometry_names())


def build_geometry(settings: GeometrySettings, nodes: int, **training: Any) -> Geometry:
    """An untrained model; `training` are the other arguments of `Geometry`."""
    return geometry_class(settings.geometry)(settings, nodes, **training)


def make_geometry(
    name: str,
    nodes: int,
    dim: int,
    device: torch.device | str = "cpu",
    *,
    start: float | None = None,
    optimiser: Optimiser | None = None,
    ranking: bool = False,
    **options: Any,
) -> Geometry:
    """A geometry by its name, which is its file's; `options` that it does not know are an error, not ignored."""
    kind = settings_class(name, ranking)
    known = set(kind.model_fields) - {"geometry"}
    unknown = set(options) - known
    if unknown:
        raise UserError(
            f"geometry {name} has no setting {', '.join(sorted(unknown))}: it knows {', '.join(sorted(known))}."
        )
    try:
        settings = kind(geometry=name, dim=dim, **options)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        message = problem["msg"][0].lower() + problem["msg"][1:]
        raise UserError(f"{problem['loc'][0]} of geometry {name}: {message}, not {problem['input']!r}.") from None
    return build_geometry(settings, nodes, start=start, optimiser=optimiser, ranking=ranking, device=device)
