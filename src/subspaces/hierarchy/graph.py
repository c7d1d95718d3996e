"""A hierarchy as arrays: direct edges, transitive closure, depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from subspaces.errors import UserError
from subspaces.hierarchy.arrays import write_arrays


@dataclass(frozen=True)
class Taxonomy:
    """Nodes 0 … N−1; `ancestors[offsets[u] : offsets[u+1]]` are all proper ancestors of u, sorted: the transitive closure."""

    names: list[str]
    edges: np.ndarray  # (E, 2) int32, child and parent
    offsets: np.ndarray  # (N+1,) int64
    ancestors: np.ndarray  # (C,) int32

    @property
    def nodes(self) -> int:
        return len(self.names)

    @cached_property
    def closure(self) -> np.ndarray:
        """All pairs (node, ancestor), (C, 2) int64, in node order."""
        children = np.repeat(np.arange(self.nodes), np.diff(self.offsets))
        return np.stack([children, self.ancestors.astype(np.int64)], axis=1)

    @cached_property
    def descendants(self) -> np.ndarray:
        """Number of proper descendants of each node (N,)."""
        return np.bincount(self.ancestors, minlength=self.nodes)

    @cached_property
    def depths(self) -> tuple[np.ndarray, np.ndarray]:
        """(shortest path from a root, longest path down to a leaf) of each node, in edges."""
        order = _topological(self.nodes, self.edges, self.names)
        above = _adjacency(self.nodes, self.edges[:, 0], self.edges[:, 1])
        shortest = np.zeros(self.nodes, dtype=np.int64)
        longest = np.zeros(self.nodes, dtype=np.int64)
        for node in order:
            if above[node]:
                shortest[node] = 1 + min(shortest[parent] for parent in above[node])
        for node in reversed(order):
            for parent in above[node]:
                longest[parent] = max(longest[parent], longest[node] + 1)
        return shortest, longest

    @cached_property
    def connected(self) -> np.ndarray:
        """Nodes with at least one edge (N,) bool."""
        mask = np.zeros(self.nodes, dtype=bool)
        mask[self.edges.ravel()] = True
        return mask

    def counts(self) -> dict[str, int]:
        return {"nodes": self.nodes, "edges": len(self.edges), "closure": len(self.ancestors)}

    def subtree(self, root: str) -> Taxonomy:
        """`root`, everything below it, and everything above any of these: a smaller hierarchy of the same kind."""
        if root not in self.names:
            raise UserError(f"no node is called {root!r} in this hierarchy: choose one of its {self.nodes:,} names.")
        index = self.names.index(root)
        below = self.closure[self.closure[:, 1] == index, 0]
        inside = np.zeros(self.nodes, dtype=bool)
        inside[below] = inside[index] = True
        for node in np.flatnonzero(inside):
            inside[self.ancestors[self.offsets[node] : self.offsets[node + 1]]] = True
        kept = np.flatnonzero(inside)
        number = np.full(self.nodes, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        edges = self.edges[inside[self.edges[:, 0]] & inside[self.edges[:, 1]]]
        return build_hierarchy([self.names[node] for node in kept], number[edges])

    def save(self, path: Path) -> str:
        """Write one npz, the same bytes for the same content on every machine; returns its sha256."""
        names = np.frombuffer("\n".join(self.names).encode(), dtype=np.uint8)
        return write_arrays(
            path, {"names": names, "edges": self.edges, "offsets": self.offsets, "ancestors": self.ancestors}
        )

    @classmethod
    def load(cls, path: Path) -> Taxonomy:
        try:
            with np.load(path, allow_pickle=False) as content:
                names = content["names"].tobytes().decode().split("\n")
                return cls(names, content["edges"], content["offsets"], content["ancestors"])
        except FileNotFoundError as error:
            raise UserError(f"{path} does not exist: build it with `snakemake --cores 1 -- {path}`.") from error
        except (OSError, ValueError, KeyError, EOFError, NotImplementedError, BadZipFile) as error:
            raise UserError(f"{path} is not a hierarchy file ({error}): delete it and build it again.") from error


def build_hierarchy(names: Sequence[str], edges: Sequence[tuple[int, int]] | np.ndarray) -> Taxonomy:
    """Close the relation (child, parent) transitively. An empty graph, a foreign index or a cycle is refused; double edges count once."""
    names = list(names)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if not names or not len(pairs):
        raise UserError("the hierarchy is empty: it needs at least one node and one (child, parent) edge.")
    if any("\n" in name for name in names):
        raise UserError("a node's name holds a line break: names must be single lines.")
    if len(set(names)) != len(names):
        raise UserError("two nodes have the same name: names must be distinct.")
    if pairs.min() < 0 or pairs.max() >= len(names):
        wrong = int(pairs.min() if pairs.min() < 0 else pairs.max())
        raise UserError(f"an edge names node {wrong}, but there are nodes 0 to {len(names) - 1} only.")
    pairs = np.unique(pairs, axis=0)
    order = _topological(len(names), pairs, names)
    above = _adjacency(len(names), pairs[:, 0], pairs[:, 1])
    closure: list[set[int]] = [set() for _ in names]
    for node in order:
        for parent in above[node]:
            closure[node].add(parent)
            closure[node] |= closure[parent]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum([len(some) for some in closure])
    ancestors = np.fromiter((node for some in closure for node in sorted(some)), dtype=np.int32, count=int(offsets[-1]))
    return Taxonomy(names, pairs.astype(np.int32), offsets, ancestors)


def _adjacency(nodes: int, source: np.ndarray, target: np.ndarray) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(nodes)]
    for one, other in zip(source.tolist(), target.tolist(), strict=True):
        lists[one].append(other)
    return lists


def _topological(nodes: int, edges: np.ndarray, names: Sequence[str]) -> list[int]:
    """Parents before children; a cycle is an error that shows it."""
    below = _adjacency(nodes, edges[:, 1], edges[:, 0])
    waiting = np.bincount(edges[:, 0], minlength=nodes).tolist()
    order = [node for node in range(nodes) if not waiting[node]]
    for node in order:
        for child in below[node]:
            waiting[child] -= 1
            if not waiting[child]:
                order.append(child)
    if len(order) < nodes:
        raise UserError(f"the hierarchy has a cycle: {_show_cycle(edges, waiting, names)}. Remove one of these edges.")
    return order


def _show_cycle(edges: np.ndarray, waiting: list[int], names: Sequence[str]) -> str:
    stuck = {node for node, count in enumerate(waiting) if count}
    parent = {int(child): int(other) for child, other in edges if int(child) in stuck and int(other) in stuck}
    node, seen = next(iter(parent)), []
    while node not in seen:
        seen.append(node)
        node = parent[node]
    return " → ".join(names[one] for one in [*seen[seen.index(node) :], node])
