"""SNLI as arrays: distinct sentences, and pairs of them with labels (paper §4.3).

Pairs without a gold label are dropped, as everywhere; what was dropped, and how many pairs are left, is kept beside the data and in
every number made from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from subspaces.errors import UserError
from subspaces.files import atomic_file, sha256_file, write_json, write_text

LABELS = ("entailment", "neutral", "contradiction")
PARTS = ("train", "dev", "test")
_UNLABELLED = "-"


@dataclass(frozen=True)
class Pairs:
    """Rows of `texts` that stand as premise and hypothesis, and the label of each pair (its place in LABELS)."""

    texts: list[str]
    premise: np.ndarray
    hypothesis: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray) -> Pairs:
        """Some of the pairs, with only the sentences that they use."""
        used, places = np.unique(np.concatenate([self.premise[rows], self.hypothesis[rows]]), return_inverse=True)
        count = len(rows)
        return Pairs([self.texts[one] for one in used], places[:count], places[count:], self.label[rows])

    def labels(self, ways: int) -> np.ndarray:
        """Classes for a 2-way (entailment, anything else) or a 3-way decision."""
        return self.label.astype(np.int64) if ways == 3 else (self.label != 0).astype(np.int64)


def read_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """(label, premise, hypothesis) of a table with the columns gold_label, sentence1, sentence2, and any others."""
    with open(path, encoding="utf-8", newline="\n") as handle:
        names = handle.readline().rstrip("\n").split("\t")
        wanted = ("gold_label", "sentence1", "sentence2")
        if not set(wanted) <= set(names):
            raise UserError(
                f"{path}: the first line must name the columns {', '.join(wanted)}; it has {', '.join(names)}."
            )
        places = [names.index(one) for one in wanted]
        for number, line in enumerate(handle, 2):
            fields = line.rstrip("\n").split("\t")
            if len(fields) != len(names):
                raise UserError(
                    f"{path}, line {number}: {len(fields)} fields instead of {len(names)}, separated by tabs."
                )
            label, premise, hypothesis = (fields[place].strip() for place in places)
            if label not in (*LABELS, _UNLABELLED):
                raise UserError(
                    f"{path}, line {number}: the label {label!r} is none of {', '.join(LABELS)}, or - for none."
                )
            yield label, premise, hypothesis


def gather(rows: Iterable[tuple[str, str, str]]) -> tuple[list[tuple[str, str, int]], dict[str, int]]:
    """Labelled pairs, and how many were dropped and why."""
    kept, dropped = [], {"unlabelled": 0, "empty": 0}
    for label, premise, hypothesis in rows:
        if label == _UNLABELLED:
            dropped["unlabelled"] += 1
        elif not premise or not hypothesis:
            dropped["empty"] += 1
        else:
            kept.append((premise, hypothesis, LABELS.index(label)))
    return kept, dropped


def prepare(
    parts: dict[str, list[Path]], out: Path, key: str, extra: dict[str, Any], cut_dev: int = 0
) -> dict[str, Any]:
    """Write OUT.parquet and OUT.json from the files of train, dev and test.

    A training pair that occurs in dev or test is left out, and counted. Where there is no dev file, `cut_dev` pairs are cut from the end of
    the training pairs, by whole premises, and the record says so.
    """
    pairs: dict[str, list[tuple[str, str, int]]] = {}
    dropped: dict[str, dict[str, int]] = {}
    for part in PARTS:
        pairs[part], dropped[part] = gather(row for path in parts.get(part, []) for row in read_rows(path))
    if not pairs["dev"] and cut_dev:
        pairs["train"], pairs["dev"] = _cut(pairs["train"], cut_dev)
    judged = {pair[:2] for part in ("dev", "test") for pair in pairs[part]}
    clean = [pair for pair in pairs["train"] if pair[:2] not in judged]
    dropped["train"]["in dev or test"] = len(pairs["train"]) - len(clean)
    pairs["train"] = clean
    for part in PARTS:
        if not pairs[part]:
            raise UserError(
                f"SNLI has no labelled pairs for {part}: look at the files in data/sources/snli, or fetch them again."
            )
    table = pa.table(
        {
            "part": pa.array([part for part in PARTS for _ in pairs[part]]).dictionary_encode(),
            "premise": [one[0] for part in PARTS for one in pairs[part]],
            "hypothesis": [one[1] for part in PARTS for one in pairs[part]],
            "label": pa.array([one[2] for part in PARTS for one in pairs[part]], pa.int8()),
        }
    )
    with atomic_file(out.with_suffix(".parquet")) as handle:
        pq.write_table(table, handle, compression="zstd")
    counts = {part: len(pairs[part]) for part in PARTS}
    balance = {
        part: {name: sum(one[2] == place for one in pairs[part]) for place, name in enumerate(LABELS)} for part in PARTS
    }
    record = {
        "key": key,
        "counts": counts,
        "labels": balance,
        "dropped": dropped,
        "sha256": sha256_file(out.with_suffix(".parquet")),
    }
    record |= {"dev_from": "training pairs" if cut_dev and not parts.get("dev") else "its own file", **extra}
    write_json(out.with_suffix(".json"), record)
    return record


def _cut(pairs: list[tuple[str, str, int]], count: int) -> tuple[list, list]:
    """Give the last premises, with all their pairs, to dev: about `count` pairs."""
    held: set[str] = set()
    total = 0
    sizes: dict[str, int] = {}
    for premise, _, _ in pairs:
        sizes[premise] = sizes.get(premise, 0) + 1
    for premise in reversed(list(sizes)):
        if total >= count:
            break
        held.add(premise)
        total += sizes[premise]
    return [one for one in pairs if one[0] not in held], [one for one in pairs if one[0] in held]


def load_pairs(path: Path, part: str) -> Pairs:
    """The pairs of one part; sentences in alphabetical order, so that the same pairs give the same arrays."""
    if not path.exists():
        raise UserError(f"{path} is missing: run `subspaces snli build`.")
    table = pq.read_table(path, filters=[("part", "==", part)], columns=["premise", "hypothesis", "label"])
    both = (
        pa.chunked_array([*table["premise"].chunks, *table["hypothesis"].chunks], pa.string())
        .combine_chunks()
        .dictionary_encode()
    )
    order = pc.sort_indices(both.dictionary)
    place = np.empty(len(order), np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    rows = place[both.indices.to_numpy()]
    return Pairs(
        both.dictionary.take(order).to_pylist(), rows[: len(table)], rows[len(table) :], table["label"].to_numpy()
    )


def subset(pairs: Pairs, count: int | None, seed: int) -> Pairs:
    """`count` pairs, by whole premises in a random order that depends on the seed alone: a smaller subset is part of a larger one."""
    if count is None or count >= len(pairs):
        return pairs
    generator = np.random.default_rng(seed)
    rank = generator.permutation(len(pairs.texts))[pairs.premise]
    return pairs.take(np.sort(np.argsort(rank, kind="stable")[:count]))


def split_sample(path: Path, folder: Path) -> dict[str, list[Path]]:
    """The sample is one table with a column that says train, dev or test; here it becomes three, as the real data are."""
    with open(path, encoding="utf-8") as handle:
        names, *rows = (line.rstrip("\n").split("\t") for line in handle)
    place = names.index("split")
    for part in PARTS:
        lines = ["\t".join(row) for row in (names, *(row for row in rows if row[place] == part))]
        write_text(folder / f"{part}.tsv", "\n".join(lines) + "\n")
    return {part: [folder / f"{part}.tsv"] for part in PARTS}
