"""The data of link prediction (paper §4.2, Table 4): train edges, held-out edges, and ten negatives for each held-out edge.

Basic edges are the transitive reduction of the hierarchy, the others of its closure are non-basic. A train set holds the basic edges and
0, 10, 25 or 50 % of the non-basic ones, its coverage; valid and test hold 5 % of the non-basic ones each.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from subspaces.errors import UserError
from subspaces.files import write_json
from subspaces.hierarchy.arrays import write_arrays
from subspaces.hierarchy.graph import Taxonomy, build_hierarchy

COVERAGES = (0, 10, 25, 50)
HELD_OUT = 5  # per cent of the non-basic edges, for valid and for test
SIDE = 5  # negatives with the child replaced, and as many with the parent replaced
NEGATIVES = 2 * SIDE
STEM = "noun_closure.tsv"
FIFTY_BLOB = "d91962e57d2440da2de21ffd7dc2260f81534949"  # git's name of the original train_50percent
FETCH = "Fetch the files again: `subspaces fetch wordnet_link_prediction`."
PARTS = ("train", "valid", "valid_negatives", "test", "test_negatives")


@dataclass(frozen=True)
class Split:
    """Nodes 0 … N−1 and pairs (child, parent). Block i of the negatives belongs to edge i and shares its parent or its child."""

    names: list[str]
    train: np.ndarray  # (E, 2) int64, child and parent, as everywhere below
    valid: np.ndarray  # (V, 2)
    valid_negatives: np.ndarray  # (V, 10, 2)
    test: np.ndarray  # (T, 2)
    test_negatives: np.ndarray  # (T, 10, 2)
    coverage: int  # per cent of the non-basic edges in train
    train_origin: str

    @property
    def nodes(self) -> int:
        return len(self.names)

    def counts(self) -> dict[str, int]:
        return {"nodes": self.nodes, **{part.replace("_", " "): getattr(self, part).size // 2 for part in PARTS}}

    def save(self, path: Path) -> str:
        """Write one npz, the same bytes for the same content on every machine; returns its sha256."""
        content = {part: getattr(self, part).astype(np.int32) for part in PARTS}
        names, origin = (
            np.frombuffer(text.encode(), dtype=np.uint8) for text in ("\n".join(self.names), self.train_origin)
        )
        return write_arrays(
            path, {"names": names, "coverage": np.int64(self.coverage), "train_origin": origin, **content}
        )

    @classmethod
    def load(cls, path: Path) -> Split:
        try:
            with np.load(path, allow_pickle=False) as content:
                names, origin = (content[key].tobytes().decode() for key in ("names", "train_origin"))
                arrays = {part: content[part].astype(np.int64).reshape(-1, *_shape(part)) for part in PARTS}
                split = cls(names.split("\n"), coverage=int(content["coverage"]), train_origin=origin, **arrays)
            _check(split, {part: f"{path} ({part})" for part in PARTS})
        except FileNotFoundError as error:
            raise UserError(f"{path} does not exist: build it with `snakemake --cores 1 -- {path}`.") from error
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            EOFError,
            NotImplementedError,
            BadZipFile,
            UserError,
        ) as error:
            raise UserError(f"{path} is not a split file ({error}): delete it and build it again.") from error
        return split


def read_split(folder: Path, coverage: int, fifty: Path | None = None, seed: int = 0) -> Split:
    """The split of Ganea et al. (2018) from its files, whose rows are parent, tab, child.

    Their train set of 50 % is used when `fifty` names it. Without it, as many non-basic edges as it holds are drawn from those outside
    valid and test; the closure that they come from is regenerated from the basic edges.
    """
    _check_coverage(coverage)
    files = {
        "train": folder / f"{STEM}.train_{coverage}percent",
        "valid": folder / f"{STEM}.valid",
        "valid_negatives": folder / f"{STEM}.valid_neg",
        "test": folder / f"{STEM}.test",
        "test_negatives": folder / f"{STEM}.test_neg",
    }
    drawn = coverage == 50 and fifty is None
    if drawn:
        files["train"] = folder / f"{STEM}.train_0percent"
    elif coverage == 50 and fifty is not None:
        files["train"] = _verified(fifty)
    try:
        names = _read_vocabulary(folder / f"{STEM}.vocab")
        rows = {part: _read_pairs(path, len(names)) for part, path in files.items()}
        for part in ("valid", "test"):
            rows[f"{part}_negatives"] = _blocks(rows[f"{part}_negatives"], rows[part], files[f"{part}_negatives"].name)
        if drawn:
            rows["train"] = _draw_train(
                names, rows["train"], np.concatenate([rows["valid"], rows["test"]]), coverage, seed
            )
        split = Split(names, **rows, coverage=coverage, train_origin="seeded draw" if drawn else "original file")
        _check(split, {part: path.name for part, path in files.items()})
    except UserError as error:
        raise UserError(f"{error} {FETCH}") from error
    return split


def draw_split(graph: Taxonomy, coverage: int, seed: int = 0) -> Split:
    """A split of the same construction drawn from any hierarchy. One seed: the same valid and test, and 10 % ⊂ 25 % ⊂ 50 %.

    As in the original, which leaves out entity.n.01, a node above all others is dropped: no edge to it can have a negative.
    """
    _check_coverage(coverage)
    graph = _without_tops(graph)
    rng = np.random.Generator(np.random.PCG64(seed))
    basic = transitive_reduction(graph)
    closure = _keys(graph.closure, graph.nodes)
    others = rng.permutation(_without(closure, _keys(basic, graph.nodes)))
    pairs = _pairs(others, graph.nodes)
    # Only edges with enough negatives on both sides may be held out; the few others stay available for training.
    room = graph.nodes - 1 - np.maximum(np.diff(graph.offsets)[pairs[:, 0]], graph.descendants[pairs[:, 1]])
    share = max(1, len(others) * HELD_OUT // 100)
    held = np.flatnonzero(room >= SIDE)[: 2 * share]
    if len(held) < 2 * share or len(others) < 3:
        raise _too_small(graph.nodes)
    valid, test = pairs[held[:share]], pairs[held[share:]]
    negatives = [_draw_negatives(some, graph, rng) for some in (valid, test)]
    train = np.concatenate([np.delete(pairs, held, axis=0)[: len(others) * coverage // 100], basic])
    split = Split(graph.names, train, valid, negatives[0], test, negatives[1], coverage, "drawn from WordNet")
    _check(split, {part: part for part in PARTS})
    return split


def write_split(split: Split, out: Path, key: str, extra: dict[str, Any]) -> dict[str, Any]:
    """Write `out`.npz (the split) and `out`.json (what it is, key, digest; `extra`: sample, source digests, seed), the second last."""
    record = {
        **extra,
        "key": key,
        "coverage": split.coverage,
        "counts": split.counts(),
        "train_origin": split.train_origin,
        "sha256": split.save(out.with_suffix(".npz")),
    }
    write_json(out.with_suffix(".json"), record)
    return record


def check_counts(split: Split, expected: dict[str, int]) -> None:
    """Refuse a split whose counts differ from those in `expected`, which may name some of them only."""
    counts = split.counts()
    wrong = [
        f"{name}: expected {count:,}, found {counts.get(name, 'nothing')}"
        for name, count in expected.items()
        if counts.get(name) != count
    ]
    if wrong:
        raise UserError(
            f"link prediction, coverage {split.coverage} %: {'; '.join(wrong)}. These are not the paper's files. {FETCH}"
        )


def transitive_reduction(graph: Taxonomy) -> np.ndarray:
    """The fewest edges with the same closure, (B, 2) int64: an edge goes when its parent is above another parent of the same child."""
    edges = graph.edges[np.lexsort((graph.edges[:, 1], graph.edges[:, 0]))].astype(np.int64)
    siblings = np.bincount(edges[:, 0], minlength=graph.nodes)
    first = np.cumsum(siblings) - siblings  # where each child's edges begin
    size = siblings[edges[:, 0]]
    one = np.repeat(np.arange(len(edges)), size)
    other = first[edges[one, 0]] + np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    detour = np.stack([edges[other, 1], edges[one, 1]], axis=1)
    longer = _found(_keys(detour, graph.nodes), _keys(graph.closure, graph.nodes))
    return np.delete(edges, np.unique(one[longer]), axis=0)


def _draw_train(names: list[str], basic: np.ndarray, held: np.ndarray, coverage: int, seed: int) -> np.ndarray:
    """Non-basic edges outside `held`, as many as the coverage says, then the basic ones: the order of the original files."""
    closure = _keys(build_hierarchy(names, basic).closure, len(names))
    others = _without(closure, _keys(basic, len(names)))
    free = _without(others, _keys(held, len(names)))
    wanted = len(others) * coverage // 100
    if wanted > len(free):
        raise UserError(
            f"{wanted:,} non-basic edges are needed for {coverage} %, but only {len(free):,} are outside valid and test."
        )
    chosen = np.random.Generator(np.random.PCG64(seed)).permutation(free)[:wanted]
    return np.concatenate([_pairs(chosen, len(names)), basic])


def _draw_negatives(edges: np.ndarray, graph: Taxonomy, rng: np.random.Generator) -> np.ndarray:
    """(E, 10, 2): five other children, then five other parents; uniform, different within a block, never linked this way round."""
    blocks = np.repeat(edges[:, None], NEGATIVES, axis=1)
    blocks[:, :SIDE, 0] = _draw_unlinked(edges[:, 1], graph.closure[:, ::-1], graph.nodes, rng)
    blocks[:, SIDE:, 1] = _draw_unlinked(edges[:, 0], graph.closure, graph.nodes, rng)
    return blocks


def _draw_unlinked(anchors: np.ndarray, links: np.ndarray, nodes: int, rng: np.random.Generator) -> np.ndarray:
    """(E, 5): different nodes, uniform over those that are neither the anchor nor b in a link (anchor, b); there must be five."""
    taken = np.sort(np.concatenate([_keys(links, nodes), np.arange(nodes) * (nodes + 1)]))  # a node is taken for itself
    owner = taken // nodes
    size = np.bincount(owner, minlength=nodes)
    first = np.cumsum(size) - size
    free = np.repeat((nodes - size[anchors])[:, None], SIDE, axis=1)
    choice, again = np.empty_like(free), np.ones(free.shape, dtype=bool)
    while again.any():
        choice[again] = rng.integers(free[again])
        again = np.tril(choice[:, :, None] == choice[:, None, :], -1).any(axis=2)
    # The choice-th free node lies behind all taken ones that have at most `choice` free nodes before them. Rejection would be slow near
    # the top, where almost everything is taken.
    before = taken - (np.arange(len(taken)) - first[owner])
    return choice + np.searchsorted(before, anchors[:, None] * nodes + choice, side="right") - first[anchors][:, None]


def _without_tops(graph: Taxonomy) -> Taxonomy:
    """The connected nodes, less any that is above all others. Such a node is a root, so the other edges still close to the rest."""
    while True:
        kept = graph.connected & (graph.descendants < graph.connected.sum() - 1)
        if kept.all():
            return graph
        edges = graph.edges[kept[graph.edges].all(axis=1)]
        if not len(edges):
            raise _too_small(graph.nodes)
        number = np.cumsum(kept) - 1
        graph = build_hierarchy([graph.names[node] for node in np.flatnonzero(kept)], number[edges])


def _too_small(nodes: int) -> UserError:
    return UserError(
        f"a hierarchy of {nodes:,} nodes is too small for a link-prediction split: it must give a valid, a test and a train edge that are "
        f"non-basic, and {SIDE} negatives on either side of the first two. Use a larger one."
    )


# Pairs as single numbers


def _keys(pairs: np.ndarray, nodes: int) -> np.ndarray:
    return pairs[..., 0] * nodes + pairs[..., 1]


def _pairs(keys: np.ndarray, nodes: int) -> np.ndarray:
    return np.stack(np.divmod(keys, nodes), axis=-1)


def _found(keys: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Which of `keys` are in `among`; much faster than np.isin, whose hashing is slow for keys."""
    among = np.sort(among)
    return np.searchsorted(among, keys, side="left") < np.searchsorted(among, keys, side="right")


def _without(keys: np.ndarray, removed: np.ndarray) -> np.ndarray:
    return keys[~_found(keys, removed)]


# Reading: numpy for the good case; only a bad file is looked at line by line


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}).") from error
    if not content:
        raise UserError(f"{path} is empty.")
    return content if content.endswith(b"\n") else content + b"\n"


def _verified(path: Path) -> Path:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read {path} ({error.strerror}): put the original {STEM}.train_50percent there, or name none to use a seeded draw."
        ) from error
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if blob != FIFTY_BLOB:
        raise UserError(
            f"{path} is not the original {STEM}.train_50percent: its git blob is {blob}, not {FIFTY_BLOB}. "
            "Delete it and fetch it again, or name none to use a seeded draw."
        )
    return path


def _read_vocabulary(path: Path) -> list[str]:
    """Rows id, tab, name; the ids are 0 … N−1 in any order."""
    names: dict[int, str] = {}
    for number, line in enumerate(_read_bytes(path)[:-1].split(b"\n"), 1):
        row = re.fullmatch(rb"([0-9]{1,18})\t(\S+)", line)
        try:
            if row is None:
                raise ValueError
            one, name = int(row[1]), row[2].decode()
        except ValueError:
            raise _malformed(path, number, "a node's id, a tab and its name", line) from None
        if one in names:
            raise UserError(f"{path.name}, line {number}: the id {one} is there twice.")
        names[one] = name
    missing = next(one for one in range(len(names) + 1) if one not in names)
    if missing < len(names):
        raise UserError(
            f"{path.name}: {len(names):,} nodes need the ids 0 to {len(names) - 1}, but {missing} is missing."
        )
    if len(set(names.values())) < len(names):
        raise UserError(f"{path.name}: two nodes have the same name.")
    return [names[one] for one in range(len(names))]


def _read_pairs(path: Path, nodes: int) -> np.ndarray:
    """Rows parent, tab, child as (E, 2) int64 of child, parent."""
    content = _read_bytes(path)
    text = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero((text < ord("0")) | (text > ord("9")))
    alternate = len(ends) % 2 == 0 and (text[ends[0::2]] == ord("\t")).all() and (text[ends[1::2]] == ord("\n")).all()
    try:
        if not alternate or (np.diff(ends, prepend=-1) < 2).any():
            raise ValueError
        rows = np.array(content.split(), dtype=np.int64).reshape(-1, 2)
    except (ValueError, OverflowError):
        number, line = _bad_line(content)
        raise _malformed(path, number, "a parent's id, a tab and a child's id", line) from None
    _check_ids(rows, nodes, path.name)
    return np.ascontiguousarray(rows[:, ::-1])


def _bad_line(content: bytes) -> tuple[int, bytes]:
    lines = enumerate(content[:-1].split(b"\n"), 1)
    return next((number, line) for number, line in lines if not re.fullmatch(rb"[0-9]{1,18}\t[0-9]{1,18}", line))


def _malformed(path: Path, number: int, expected: str, line: bytes) -> UserError:
    found = repr(line[:60].decode(errors="replace")) if line else "an empty line"
    return UserError(f"{path.name}, line {number}: expected {expected}, found {found}.")


def _blocks(negatives: np.ndarray, edges: np.ndarray, file: str) -> np.ndarray:
    if len(negatives) != NEGATIVES * len(edges):
        raise UserError(
            f"{file} has {len(negatives):,} rows, but {len(edges):,} edges with {NEGATIVES} negatives each need {NEGATIVES * len(edges):,}."
        )
    return negatives.reshape(-1, NEGATIVES, 2)


# What every split must satisfy


def _shape(part: str) -> tuple[int, ...]:
    return (NEGATIVES, 2) if part.endswith("negatives") else (2,)


def _check_coverage(coverage: int) -> None:
    if coverage not in COVERAGES:
        raise UserError(
            f"coverage {coverage} % is not one of {', '.join(map(str, COVERAGES))}: choose one of these in params.yaml."
        )


def _check_ids(rows: np.ndarray, nodes: int, file: str) -> None:
    wrong = (rows < 0) | (rows >= nodes)
    if wrong.any():
        place = int(wrong.argmax())
        raise UserError(
            f"{file}, line {place // 2 + 1}: {rows.flat[place]} is not in the vocabulary, whose ids are 0 to {nodes - 1}."
        )


def _check(split: Split, files: dict[str, str]) -> None:
    """Ids in the vocabulary, nothing held out is in train, each block belongs to its edge; `files` says where each part comes from."""
    _check_coverage(split.coverage)
    for part in PARTS:
        _check_ids(getattr(split, part), split.nodes, files[part])
    for part, other in (("valid", "train"), ("test", "train"), ("test", "valid")):
        edges = getattr(split, part)
        both = _found(_keys(edges, split.nodes), _keys(getattr(split, other), split.nodes))
        if both.any():
            line = int(both.argmax())
            child, parent = (split.names[node] for node in edges[line])
            raise UserError(
                f"{int(both.sum()):,} of the edges in {files[part]} are also in {files[other]}, the first is {child} → {parent} "
                f"(line {line + 1}): what is held out must be new."
            )
    for part in ("valid", "test"):
        edges, file = getattr(split, part), files[f"{part}_negatives"]
        negatives = _blocks(getattr(split, f"{part}_negatives").reshape(-1, 2), edges, file)
        strange = (negatives == edges[:, None]).sum(axis=2) != 1
        if strange.any():
            place = int(strange.argmax())
            pair, edge = negatives.reshape(-1, 2)[place], edges[place // NEGATIVES]
            raise UserError(
                f"{file}, line {place + 1}: the negative (child {pair[0]}, parent {pair[1]}) must share its child or its parent, not both, "
                f"with line {place // NEGATIVES + 1} of {files[part]} (child {edge[0]}, parent {edge[1]})."
            )
