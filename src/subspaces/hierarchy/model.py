"""A fitted hierarchy that answers: ancestors and descendants by inclusion, and what lies in any composed subspace (paper §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.files import sha256_file
from subspaces.hierarchy.edges import normalise
from subspaces.hierarchy.features import Features
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.record import read_finished

if TYPE_CHECKING:
    import pandas as pd

    from subspaces.hierarchy.placing import Placement

_TOGETHER = 64  # nodes that are compared with all others at once
_SHOWN = 5  # names in a message


@dataclass(frozen=True)
class Relative:
    """One line of an answer. `known`: `given` (an edge of the input), `closure` (follows from edges) or empty (predicted)."""

    name: str
    inclusion: float
    rank: float
    known: str = ""


class Hierarchy:
    """A folder made by `subspaces hierarchy fit`, or by `Hierarchy.fit`.

    Every question takes one name or several; for several the answer is a list or an array with one entry each. Names are found
    without regard to case, and by a part that only one name has. Equal scores are listed in the order of the nodes.
    """

    def __init__(self, folder: Path, record: dict[str, Any], graph: Taxonomy, features: Features):
        self.folder, self.record, self.graph, self.features = folder, record, graph, features
        self.threshold: float = record["quality"]["threshold"]
        self.lam: float = record["asked"]["settings"]["lam"]
        self._new: list[Tensor] = []  # X of nodes that were added and are in no file yet
        self._temporary: TemporaryDirectory | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Hierarchy:
        """What a query reads is checked against its digest; the weights are, when `subspace` first needs them."""
        folder = Path(folder)
        record = read_finished(folder)
        for name in ("hierarchy.npz", "features.safetensors"):
            _check(folder / name, record["sha256"][name])
        return cls(folder, record, Taxonomy.load(folder / "hierarchy.npz"), Features(folder / "features.safetensors"))

    @classmethod
    def fit(cls, edges: Any, out: str | Path | None = None, **options: Any) -> Hierarchy:
        """Fit a path, pairs (child, parent), a DataFrame or a networkx DiGraph; options as in `fit_hierarchy`. Without `out` the files
        live as long as this object: `save` keeps them."""
        from subspaces.hierarchy.fit import fit_hierarchy

        temporary = TemporaryDirectory(prefix="subspaces-") if out is None else None
        folder = Path(temporary.name) / "hierarchy" if temporary else Path(out)  # type: ignore[arg-type]
        fit_hierarchy(edges, folder, **options)
        hierarchy = cls.load(folder)
        hierarchy._temporary = temporary
        return hierarchy

    def save(self, folder: str | Path) -> Path:
        """Write the hierarchy, added nodes included, to a new folder that `load` reads; it is judged again where nodes were added."""
        from subspaces.hierarchy.storing import save

        return save(self, Path(folder))

    def export(self, folder: str | Path) -> Path:
        """Write names, edges and threshold as JSON and X as safetensors, for other programs; `from_export` reads them."""
        from subspaces.hierarchy.storing import export

        return export(self, Path(folder))

    @classmethod
    def from_export(cls, folder: str | Path, out: str | Path) -> Hierarchy:
        """A hierarchy from `export.json` and `subspaces.safetensors`, made here or elsewhere, in a new folder `out`."""
        from subspaces.hierarchy.storing import import_folder

        return cls.load(import_folder(Path(folder), Path(out)))

    @property
    def names(self) -> list[str]:
        return self.graph.names

    @property
    def dim(self) -> int:
        return self.record["asked"]["settings"]["dim"]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and normalise(name) in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return self.graph.nodes

    def __repr__(self) -> str:
        quality = self.record["quality"]
        added = f", {len(self._new)} added" if self._new else ""
        return (
            f"Hierarchy({str(self.folder)!r}: {len(self):,} nodes, {len(self.graph.edges):,} edges{added}, d={self.dim}, "
            f"F1 {quality['f1']:.2f} %, threshold {self.threshold:.3f})"
        )

    # --- names ------------------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _folded(self) -> list[str]:
        return [name.casefold() for name in self.names]

    def find(self, text: str, top: int | None = 10) -> list[str]:
        """The names that contain `text`, without regard to case; the shortest first."""
        part = normalise(text).casefold()
        found = [self.names[place] for place, name in enumerate(self._folded) if part in name]
        return sorted(found, key=lambda name: (len(name), name))[:top]

    def place(self, name: str) -> int:
        """The number of a node: by its name; else, without regard to case, by its name, by the end of its path or the lemma of its synset
        (`Puzzles` of `Toys & Games > Puzzles`, `dog` of `dog.n.01`), or by a part that only one name has. Otherwise an error that lists
        the closest names."""
        if not isinstance(name, str):
            raise UserError(f"a node is asked for by its name, not by {name!r}.")
        name = normalise(name)
        if name in self._places:
            return self._places[name]
        part = name.casefold()
        found = [place for place, folded in enumerate(self._folded) if part and part in folded]
        for narrower in (lambda folded: folded == part, lambda folded: part in _parts(folded)):
            fitting = [place for place in found if narrower(self._folded[place])]
            if len(fitting) == 1:
                return fitting[0]
            found = fitting or found
        if len(found) == 1:
            return found[0]
        if found:
            shown = sorted((self.names[place] for place in found), key=lambda fitting: (len(fitting), fitting))
            more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            raise UserError(
                f"{len(found):,} nodes fit {name!r}: {_listed(shown[:_SHOWN])}{more}. Give one of these names."
            )
        parts = {part: place for place, folded in enumerate(self._folded) for part in (*_parts(folded), folded)}
        close = get_close_matches(name.casefold(), parts, n=_SHOWN, cutoff=0.6)
        near = list(dict.fromkeys(self.names[parts[part]] for part in close))
        hint = f"did you mean {_listed(near)}?" if near else f"no name of the {len(self):,} is close to it."
        raise UserError(f"{self.folder} has no node {name!r}: {hint}")

    def _several(self, names: str | Iterable[str]) -> Tensor:
        several = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
        return torch.tensor([self.place(name) for name in several], dtype=torch.long)

    # --- answers ----------------------------------------------------------------------------------------------------------

    @overload
    def rank(self, name: str) -> float: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def rank(self, name: Sequence[str]) -> np.ndarray: ...
    def rank(self, name: str | Sequence[str]) -> float | np.ndarray:
        """Effective rank Tr(P): how general the node is."""
        found = self.features.trace[self._several(name)].numpy()
        return float(found[0]) if isinstance(name, str) else found

    @overload
    def inclusion(self, child: str, parent: str) -> float: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def inclusion(self, child: str | Sequence[str], parent: str | Sequence[str]) -> np.ndarray: ...
    def inclusion(self, child: str | Sequence[str], parent: str | Sequence[str]) -> float | np.ndarray:
        """NIS(P_parent | P_child): the share of the child that lies in the parent. Several: pairwise, or one against each."""
        children, parents = self._several(child), self._several(parent)
        if len(children) != len(parents) and 1 not in (len(children), len(parents)):
            raise UserError(
                f"{len(children)} children and {len(parents)} parents: give equally many, or one of either."
            )
        children, parents = torch.broadcast_tensors(children, parents)
        found = self.features.inclusion(children, parents).numpy() if len(children) else np.zeros(0)
        return float(found[0]) if isinstance(child, str) and isinstance(parent, str) else found

    @overload
    def entails(self, child: str, parent: str) -> bool: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def entails(self, child: str | Sequence[str], parent: str | Sequence[str]) -> np.ndarray: ...
    def entails(self, child: str | Sequence[str], parent: str | Sequence[str]) -> bool | np.ndarray:
        """Does the inclusion reach the threshold?"""
        return self.inclusion(child, parent) >= self.threshold

    def __getitem__(self, name: str | Sequence[str]) -> Subspace:
        """`h["dog"] & ~h["puppy"]`; a list of names gives a batch."""
        return self.subspace(name)

    def subspace(self, name: str | Sequence[str]) -> Subspace:
        """The soft projector, exactly, from the weights: compose it with `&`, `|`, `~`. A list of names, such as `h.names`, gives a batch."""
        found = Subspace.from_vectors(self.vectors(self._several(name)), self.lam)
        return found[0] if isinstance(name, str) else found

    def vectors(self, places: Tensor) -> Tensor:
        """X (m, d, d) of some nodes, by number."""
        stored = len(self) - len(self._new)
        with safe_open(self._weights, framework="pt") as content:
            rows = content.get_slice("X")
            parts = [
                rows[place : place + 1][0] if place < stored else self._new[place - stored] for place in places.tolist()
            ]
        return torch.stack(parts) if parts else torch.zeros(0, self.dim, self.dim)

    @overload
    def ancestors(self, name: str, top: int | None = 10) -> list[Relative]: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def ancestors(self, name: Sequence[str], top: int | None = 10) -> list[list[Relative]]: ...
    def ancestors(self, name: str | Sequence[str], top: int | None = 10) -> list[Relative] | list[list[Relative]]:
        """The nodes of larger rank, by NIS(P_a | P_name), the most including first: `top` of them, or all."""
        trace, answers = self.features.trace, []
        for place, similarity in self._similarities(self._several(name)):
            score = similarity / trace[place].clamp_min(1e-30)
            answers.append(self._best(score, trace > trace[place], top, self.known_above(place)))
        return answers[0] if isinstance(name, str) else answers

    @overload
    def descendants(self, name: str, top: int | None = 10) -> list[Relative]: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def descendants(self, name: Sequence[str], top: int | None = 10) -> list[list[Relative]]: ...
    def descendants(self, name: str | Sequence[str], top: int | None = 10) -> list[Relative] | list[list[Relative]]:
        """The nodes of smaller rank, by NIS(P_name | P_x), the most included first: `top` of them, or all."""
        trace, answers = self.features.trace, []
        for place, similarity in self._similarities(self._several(name)):
            score = similarity / trace.clamp_min(1e-30)
            answers.append(self._best(score, trace < trace[place], top, self.known_below(place)))
        return answers[0] if isinstance(name, str) else answers

    def common_ancestor(self, names: Sequence[str]) -> Relative | None:
        """The most specific node that contains all of them by the threshold (one of them, if it contains the others); None if there is
        none. Its inclusion is the smallest of theirs."""
        if isinstance(names, str) or not names:
            raise UserError("common_ancestor needs a list of names.")
        places, trace = self._several(names), self.features.trace
        lowest = torch.ones(len(self))
        known: dict[int, str] | None = None
        for place, similarity in self._similarities(places):
            score = similarity / trace[place].clamp_min(1e-30)
            score[place] = 1.0
            lowest = torch.minimum(lowest, score)
            above = dict.fromkeys(self.known_above(place), "closure") | {place: "given"}
            known = above if known is None else {node: "closure" for node in known if node in above}
        inside = torch.nonzero(lowest >= self.threshold)[:, 0]
        if not len(inside):
            return None
        node = int(inside[trace[inside].argmin()])
        return Relative(self.names[node], float(lowest[node]), float(trace[node]), (known or {}).get(node, ""))

    @overload
    def nearest(  # type: ignore[overload-overlap]
        self, subspace: str | Subspace, top: int | None = 10, side: Literal["inside", "around"] = "inside"
    ) -> list[Relative]: ...
    @overload
    def nearest(
        self, subspace: Sequence[str], top: int | None = 10, side: Literal["inside", "around"] = "inside"
    ) -> list[list[Relative]]: ...
    def nearest(
        self,
        subspace: Subspace | str | Sequence[str],
        top: int | None = 10,
        side: Literal["inside", "around"] = "inside",
    ) -> list[Relative] | list[list[Relative]]:
        """For any subspace of this space, composed or not: the nodes that lie in it most (`inside`, NIS(S | P_x)), or that it lies in
        most (`around`, NIS(P_x | S)). A batch, or several names, has one list each. A product of projectors counts by its symmetric
        part, which is all that a trace sees."""
        if not isinstance(subspace, Subspace):
            subspace = self.subspace(subspace)
        if tuple(subspace.shape[-2:]) != (self.dim, self.dim) or len(subspace.shape) > 3:
            raise UserError(
                f"nearest needs one Subspace of dimension {self.dim}, such as h.subspace(a) | h.subspace(b), or a batch (m, d, d)."
            )
        if side not in ("inside", "around"):
            raise UserError(f"unknown side {side!r}: choose inside or around.")
        single = len(subspace.shape) == 2
        halves = subspace.half_vector().float().reshape(-1, self.features.half.shape[1])
        ranks = subspace.rank.float().reshape(-1, 1)
        answers, everyone = [], torch.ones(len(self), dtype=torch.bool)
        for half, rank in zip(halves.split(_TOGETHER), ranks.split(_TOGETHER), strict=True):
            size = self.features.trace if side == "inside" else rank
            scores = self.features.score_block(half, self.features.half) / size.clamp_min(1e-30)
            answers += [self._best(score, everyone, top, {}) for score in scores]
        return answers[0] if single else answers

    def to_dataframe(self) -> pd.DataFrame:
        """One row per node: name, rank, depth (shortest way from a root), parents, and the numbers of children and of descendants."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise UserError("to_dataframe needs pandas, which is not installed: pip install pandas.") from error
        parents: list[list[str]] = [[] for _ in self.names]
        for child, parent in self.graph.edges.tolist():
            parents[child].append(self.names[parent])
        columns = {
            "name": self.names,
            "rank": self.features.trace.numpy(),
            "depth": self.graph.depths[0],
            "parents": parents,
            "children": np.bincount(self.graph.edges[:, 1], minlength=len(self)),
            "descendants": self.graph.descendants,
        }
        return pd.DataFrame(columns)

    # --- growing ----------------------------------------------------------------------------------------------------------

    def add(
        self, name: str, parents: str | Sequence[str], children: str | Sequence[str] = (), seed: int = 0
    ) -> Placement:
        """Find a place for a new node below `parents` and above `children`; no other node moves, and nothing is fitted again.

        The node is in this object only: `save` writes it. Returns how well its place fits; see `Placement`.
        """
        from subspaces.hierarchy.placing import add_node

        return add_node(self, name, self._several(parents), self._several(children), seed)

    def _grow(self, graph: Taxonomy, X: Tensor, half: Tensor, trace: Tensor) -> None:
        """One more node, the last one of `graph`."""
        self.graph = graph
        self.features.append(half, trace)
        self._new.append(X)
        for name in ("_places", "_folded"):
            self.__dict__.pop(name, None)

    # --- parts ------------------------------------------------------------------------------------------------------------

    @cached_property
    def _weights(self) -> Path:
        path = self.folder / "weights.safetensors"
        _check(path, self.record["sha256"]["weights.safetensors"])
        return path

    def _similarities(self, places: Tensor) -> Iterator[tuple[int, Tensor]]:
        """(node, Tr(P_node P_x) of all x) for some nodes."""
        for some in places.split(_TOGETHER):
            yield from zip(
                some.tolist(), self.features.score_block(self.features.half[some], self.features.half), strict=True
            )

    def known_above(self, place: int) -> dict[int, str]:
        """The ancestors of a node by the edges: node -> `given` or `closure`."""
        graph = self.graph
        known = {int(node): "closure" for node in graph.ancestors[graph.offsets[place] : graph.offsets[place + 1]]}
        return known | {int(node): "given" for node in graph.edges[graph.edges[:, 0] == place, 1]}

    def known_below(self, place: int) -> dict[int, str]:
        """The descendants of a node by the edges: node -> `given` or `closure`."""
        graph = self.graph
        below = np.searchsorted(graph.offsets, np.flatnonzero(graph.ancestors == place), side="right") - 1
        return {int(node): "closure" for node in below} | {
            int(node): "given" for node in graph.edges[graph.edges[:, 1] == place, 0]
        }

    def _best(self, score: Tensor, allowed: Tensor, top: int | None, known: dict[int, str]) -> list[Relative]:
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


def _parts(name: str) -> tuple[str, str]:
    """The end of a path, and the lemma of a synset."""
    return name.rpartition(" > ")[2], name.partition(".")[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _check(path: Path, sha256: str) -> None:
    if not path.exists() or sha256_file(path) != sha256:
        raise UserError(f"{path} is damaged or missing: copy the folder again, or delete it and fit again.")
