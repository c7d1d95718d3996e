"""What users bring, as a closed relation: a file, pairs, a pandas DataFrame or a networkx DiGraph; its shape, and what looks wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.errors import UserError
from subspaces.hierarchy.edges import normalise, read_pairs
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy

Pairs = Iterator[tuple[str, str, str]]  # where, child, parent


def read_relation(source: Any, parent_first: bool = False) -> tuple[Taxonomy, list[str]]:
    """(the closed relation, what looks wrong). `source` is a path (`-`: standard input), pairs, a DataFrame or a DiGraph.

    Pairs are (child, parent); `parent_first` turns them round. Nodes are numbered in the order of their names, so the order of the
    pairs does not matter.
    """
    if isinstance(source, Taxonomy):
        return source, []
    title, rows = _rows(source, parent_first)
    pairs = []
    for where, child, parent in rows:
        if child == parent:
            raise UserError(f"{where}: {child!r} is its own parent. Delete the line.")
        pairs.append((child, parent))
    if not pairs:
        raise UserError(f"{title} has no edges: it needs lines of the form child TAB parent.")
    names = sorted({name for pair in pairs for name in pair})
    place = {name: index for index, name in enumerate(names)}
    edges = np.fromiter((place[name] for pair in pairs for name in pair), dtype=np.int64, count=2 * len(pairs))
    try:
        graph = build_hierarchy(names, edges.reshape(-1, 2))
    except UserError as error:
        raise UserError(f"{title}: {error}") from error
    return graph, _warnings(graph, edges[:2].tolist())


def read_taxonomy(source: Any, parent_first: bool = False) -> Taxonomy:
    """The closed relation of a file or of pairs; see `read_relation`."""
    return read_relation(source, parent_first)[0]


def shape(graph: Taxonomy) -> str:
    """Nodes, roots, leaves, depth and the largest nodes, in one line."""
    roots, leaves = int((np.diff(graph.offsets) == 0).sum()), int((graph.descendants == 0).sum())
    largest = np.argsort(-graph.descendants, kind="stable")[:3]
    shown = ", ".join(f"{graph.names[node]} ({graph.descendants[node]:,} below)" for node in largest)
    return (
        f"{graph.nodes:,} nodes, {len(graph.edges):,} edges, {len(graph.ancestors):,} in the closure; {_count(roots, 'root')}, "
        f"{_count(leaves, 'leaf', 'leaves')}, depth {graph.depths[1].max()}; largest: {shown}"
    )


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _warnings(graph: Taxonomy, first: list[int]) -> list[str]:
    found = []
    roots, leaves = int((np.diff(graph.offsets) == 0).sum()), int((graph.descendants == 0).sum())
    if roots > leaves:
        found.append(
            f"{roots:,} nodes have no parent and only {leaves:,} have no child: the columns look reversed. If the parent comes first, "
            "say --parent-first (parent_first=True)."
        )
    child, parent = first
    touching = np.isin(graph.edges, first).any(1).sum()
    if touching == 1 and len(graph.edges) > 1:
        found.append(
            f"the first line ({graph.names[child]!r}, {graph.names[parent]!r}) is connected to nothing else: if it is a header, "
            "delete it, or call its columns child and parent."
        )
    return found


def _rows(source: Any, parent_first: bool) -> tuple[str, Pairs]:
    """(what to call it, its pairs)."""
    if isinstance(source, str | Path):
        title = "standard input" if str(source) == "-" else str(source)
        rows = read_pairs(source, parent_first)
        return title, ((f"{title}, line {number}", child, parent) for number, child, parent in rows)
    if hasattr(source, "columns") and hasattr(source, "itertuples"):
        return "the DataFrame", _of_pairs("the DataFrame, row", _frame_pairs(source, parent_first), False, roots=True)
    if hasattr(source, "edges") and hasattr(source, "is_directed"):
        if not source.is_directed():
            raise UserError(
                "the graph is not directed: a hierarchy needs a networkx DiGraph with edges child → parent."
            )
        return "the graph", _of_pairs("the graph, edge", source.edges(), parent_first)
    if isinstance(source, Iterable):
        return "the list", _of_pairs("the list, pair", source, parent_first)
    raise UserError(
        f"a {type(source).__name__} is no hierarchy: give a path, pairs (child, parent), a DataFrame or a networkx DiGraph."
    )


def _frame_pairs(frame: Any, parent_first: bool) -> Iterator[tuple[Any, Any]]:
    """The columns child and parent, else the first two. A missing parent marks a root."""
    named = {str(column).lower(): place for place, column in enumerate(frame.columns)}
    if "child" in named and "parent" in named:
        child, parent = named["child"], named["parent"]
        if parent_first:
            raise UserError("the DataFrame names its columns: leave parent_first out.")
    elif len(frame.columns) >= 2:
        child, parent = (1, 0) if parent_first else (0, 1)
    else:
        raise UserError("the DataFrame has one column: a hierarchy needs the columns child and parent.")
    missing = frame.isna().to_numpy()
    for place, row in enumerate(frame.itertuples(index=False, name=None)):
        yield tuple("" if missing[place, column] else row[column] for column in (child, parent))  # type: ignore[misc]


def _of_pairs(title: str, pairs: Iterable[Any], parent_first: bool, roots: bool = False) -> Pairs:
    for number, pair in enumerate(pairs, start=1):
        where = f"{title} {number}"
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise UserError(f"{where}: expected (child, parent), not {pair!r}.")
        child, parent = (normalise(str(name)) for name in (reversed(pair) if parent_first else pair))
        if roots and child and not parent:
            continue
        if not child or not parent:
            raise UserError(
                f"{where}: the {'parent' if child else 'child'}'s name is empty. Fill it in or leave it out."
            )
        yield where, child, parent
