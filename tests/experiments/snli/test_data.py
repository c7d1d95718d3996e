"""SNLI's rows: what is kept, what is dropped and counted, what is refused; and subsets by whole premises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subspaces.errors import UserError
from subspaces.experiments.pairs import LABELS, load_pairs, prepare, split_sample, subset
from subspaces.files import read_json
from subspaces.sources.origins import SAMPLES

HEAD = "gold_label\tsentence1\tsentence2\tpairID\n"
KEY = "k" * 64


def table(path: Path, *rows: tuple[str, str, str]) -> Path:
    path.write_text(
        HEAD + "".join(f"{label}\t{premise}\t{hypothesis}\tx\n" for label, premise, hypothesis in rows),
        encoding="utf-8",
    )
    return path


def parts(folder: Path, train: list[tuple[str, str, str]]) -> dict[str, list[Path]]:
    return {
        "train": [table(folder / "train.tsv", *train)],
        "dev": [table(folder / "dev.tsv", ("neutral", "A dog runs.", "A dog is old."))],
        "test": [table(folder / "test.tsv", ("entailment", "A cat sleeps.", "An animal rests."))],
    }


def test_pairs_without_a_label_or_a_sentence_are_dropped_and_counted(tmp_path):
    rows = [("entailment", "P.", "H."), ("-", "P.", "Q."), ("neutral", "P.", " "), ("contradiction", "", "H.")]
    record = prepare(parts(tmp_path, rows), tmp_path / "snli", KEY, {"sample": False})
    assert record["counts"] == {"train": 1, "dev": 1, "test": 1}
    assert record["dropped"]["train"] == {"unlabelled": 1, "empty": 2, "in dev or test": 0}
    assert read_json(tmp_path / "snli.json") == record


def test_a_training_pair_that_is_judged_later_is_left_out(tmp_path):
    rows = [
        ("neutral", "A dog runs.", "A dog is old."),
        ("entailment", "A cat sleeps.", "An animal rests."),
        ("entailment", "P.", "H."),
    ]
    record = prepare(parts(tmp_path, rows), tmp_path / "snli", KEY, {})
    assert record["counts"]["train"] == 1 and record["dropped"]["train"]["in dev or test"] == 2
    assert load_pairs(tmp_path / "snli.parquet", "train").texts == ["H.", "P."]


def test_without_a_dev_file_whole_premises_are_cut_from_training(tmp_path):
    rows = [("entailment", f"P{number // 3}.", f"H{number}.") for number in range(30)]
    files = parts(tmp_path, rows)
    del files["dev"]
    record = prepare(files, tmp_path / "snli", KEY, {}, cut_dev=7)
    assert record["dev_from"] == "training pairs" and record["counts"] == {"train": 21, "dev": 9, "test": 1}
    train, dev = (load_pairs(tmp_path / "snli.parquet", part) for part in ("train", "dev"))
    premises = [{pairs.texts[row] for row in pairs.premise} for pairs in (train, dev)]
    assert not premises[0] & premises[1]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (HEAD + "maybe\tP.\tH.\tx\n", r"line 2: the label 'maybe' is none of entailment"),
        (HEAD + "neutral\tP.\tH.\tx\nneutral\tP.\n", "line 3: 2 fields instead of 4"),
        ("label\ta\tb\n", "the first line must name the columns gold_label"),
    ],
)
def test_malformed_tables_are_refused_with_the_line(tmp_path, content, complaint):
    files = parts(tmp_path, [("entailment", "P.", "H.")])
    files["train"][0].write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=complaint):
        prepare(files, tmp_path / "snli", KEY, {})
    assert not (tmp_path / "snli.json").exists()


def test_a_part_without_pairs_is_refused(tmp_path):
    with pytest.raises(UserError, match="no labelled pairs for train"):
        prepare(parts(tmp_path, [("-", "P.", "H.")]), tmp_path / "snli", KEY, {})


def test_smaller_subsets_are_inside_larger_ones_and_keep_premises_whole(tmp_path):
    rows = [("neutral", f"P{number // 3}.", f"H{number}.") for number in range(60)]
    prepare(parts(tmp_path, rows), tmp_path / "snli", KEY, {})
    train = load_pairs(tmp_path / "snli.parquet", "train")

    def named(pairs) -> set[tuple[str, str]]:
        return {(pairs.texts[p], pairs.texts[h]) for p, h in zip(pairs.premise, pairs.hypothesis, strict=True)}

    small, large = subset(train, 12, 0), subset(train, 30, 0)
    assert len(small) == 12 and named(small) < named(large) < named(train)
    assert len({premise for premise, _ in named(small)}) == 4
    assert named(subset(train, 12, 1)) != named(small)
    assert subset(train, None, 0) is train and subset(train, 1000, 0) is train


def test_labels_two_and_three_way(tmp_path):
    rows = [(label, "P.", f"H {label}.") for label in LABELS]
    prepare(parts(tmp_path, rows), tmp_path / "snli", KEY, {})
    train = load_pairs(tmp_path / "snli.parquet", "train")
    assert np.array_equal(train.labels(3), [0, 1, 2]) and np.array_equal(train.labels(2), [0, 1, 1])


def test_the_sample_has_all_parts(tmp_path):
    record = prepare(split_sample(SAMPLES / "snli.tsv", tmp_path / "sample"), tmp_path / "snli", KEY, {"sample": True})
    assert all(count >= 30 for count in record["counts"].values()) and record["dropped"]["train"]["in dev or test"] == 0
