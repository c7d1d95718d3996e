"""A fitted hierarchy that answers: ancestors and descendants by inclusion, and what lies in any composed subspace (paper §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import safe_open

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.files import sha256_file
from subspaces.hierarchy.features import Features
from subspaces.hierarchy.record import read_finished
from subspaces.wordnet.graph import Hierarchy


@dataclass(frozen=True)
class Relative:
    """One line of an answer. `known` is `given` (an edge of the input), `closure` (follows from edges) or empty (the model's own idea)."""

    name: str
    inclusion: float
    rank: float
    known: str = ""


class SubspaceHierarchy:
    """A folder made by `subspaces hierarchy fit`. Equal scores are listed in the order of the names."""

    def __init__(self, folder: Path, record: dict[str, Any], graph: Hierarchy, features: Features):
        self.folder, self.record, self.graph, self.features = folder, record, graph, features
        self.threshold: float = record["threshold"]["threshold"]
        self.lam: float = record["asked"]["job"]["model"]["lam"]

    @classmethod
    def load(cls, folder: str | Path) -> SubspaceHierarchy:
        """What a query reads is checked against its digest; the weights are, when `subspace` first needs them."""
        folder = Path(folder)
        record = read_finished(folder)
        for name in ("hierarchy.npz", "features.safetensors"):
            _check(folder / name, record["sha256"][name])
        return cls(folder, record, Hierarchy.load(folder / "hierarchy.npz"), Features(folder / "features.safetensors"))

    @property
    def names(self) -> list[str]:
        return self.graph.names

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __len__(self) -> int:
        return self.graph.nodes

    def place(self, name: str) -> int:
        """The number of a node; for an unknown name an error that lists the closest ones."""
        try:
            return self._places[name]
        except KeyError:
            folded = [other for other in self.names if other.casefold() == name.casefold()]
            near = folded or get_close_matches(name, self.names, n=5, cutoff=0.6)
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"no name of the {len(self):,} is close to it."
            raise UserError(f"{self.folder} has no node {name!r}: {hint}") from None

    def rank(self, name: str) -> float:
        """Effective rank Tr(P): how general the node is."""
        return float(self.features.trace[self.place(name)])

    def inclusion(self, child: str, parent: str) -> float:
        """NIS(P_parent | P_child): the share of the child that lies in the parent."""
        return float(self.features.inclusion(torch.tensor([self.place(child)]), torch.tensor([self.place(parent)])))

    def entails(self, child: str, parent: str) -> bool:
        """Does the inclusion reach the threshold that was fitted on the training edges?"""
        return self.inclusion(child, parent) >= self.threshold

    def subspace(self, name: str) -> Subspace:
        """The node's soft projector, exactly, from its weights: compose it with `&`, `|`, `~`."""
        place = self.place(name)
        with safe_open(self._weights, framework="pt") as content:
            return Subspace.from_vectors(content.get_slice("X")[place : place + 1][0], self.lam)

    def ancestors(self, name: str, top: int | None = 10) -> list[Relative]:
        """The nodes of larger rank, by NIS(P_a | P_name), the most including first: `top` of them, or all."""
        place, similarity = self._similarities(name)
        trace = self.features.trace
        known = {int(one): "closure" for one in self.graph.ancestors[self.graph.offsets[place] : self.graph.offsets[place + 1]]}
        known |= {int(one): "given" for one in self.graph.edges[self.graph.edges[:, 0] == place, 1]}
        return self._best(similarity / trace[place].clamp_min(1e-30), trace > trace[place], top, known)

    def descendants(self, name: str, top: int | None = 10) -> list[Relative]:
        """The nodes of smaller rank, by NIS(P_name | P_x), the most included first: `top` of them, or all."""
        place, similarity = self._similarities(name)
        trace = self.features.trace
        below = np.searchsorted(self.graph.offsets, np.flatnonzero(self.graph.ancestors == place), side="right") - 1
        known = {int(one): "closure" for one in below}
        known |= {int(one): "given" for one in self.graph.edges[self.graph.edges[:, 1] == place, 0]}
        return self._best(similarity / trace.clamp_min(1e-30), trace < trace[place], top, known)

    def nearest(self, subspace: Subspace, top: int | None = 10, side: Literal["inside", "around"] = "inside") -> list[Relative]:
        """For any subspace of this space, composed or not: the nodes that lie in it most (`inside`, NIS(S | P_x)), or that it lies in
        most (`around`, NIS(P_x | S)). A product of projectors counts by its symmetric part, which is all that a trace sees."""
        if not isinstance(subspace, Subspace) or tuple(subspace.shape) != (self.dim, self.dim):
            raise UserError(f"nearest needs one Subspace of dimension {self.dim}, such as h.subspace(a) | h.subspace(b).")
        if side not in ("inside", "around"):
            raise UserError(f"unknown side {side!r}: choose inside or around.")
        similarity = self.features.similarity_to_all(subspace.half_vector().float())
        size = self.features.trace if side == "inside" else subspace.rank.float()
        return self._best(similarity / size.clamp_min(1e-30), torch.ones(len(self), dtype=torch.bool), top, {})

    @property
    def dim(self) -> int:
        return self.record["asked"]["job"]["model"]["dim"]

    @cached_property
    def _weights(self) -> Path:
        path = self.folder / "weights.safetensors"
        _check(path, self.record["sha256"]["weights.safetensors"])
        return path

    def _similarities(self, name: str) -> tuple[int, torch.Tensor]:
        place = self.place(name)
        return place, self.features.similarity_to_all(self.features.half[place].float())

    def _best(self, score: torch.Tensor, allowed: torch.Tensor, top: int | None, known: dict[int, str]) -> list[Relative]:
        if top is not None and top < 1:
            raise UserError(f"top must be at least 1, not {top}.")
        chosen = torch.nonzero(allowed)[:, 0].numpy()
        value = score.numpy()[chosen]
        order = np.argsort(-value, kind="stable")[:top]
        trace = self.features.trace.numpy()
        return [
            Relative(self.names[node], float(one), float(trace[node]), known.get(int(node), ""))
            for node, one in zip(chosen[order], value[order], strict=True)
        ]


def _check(path: Path, sha256: str) -> None:
    if not path.exists() or sha256_file(path) != sha256:
        raise UserError(f"{path} is damaged or missing: copy the folder again, or delete it and fit again.")
