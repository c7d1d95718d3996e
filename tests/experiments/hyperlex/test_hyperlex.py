"""HyperLex: the file, the senses of words, which senses stand for a pair, the scores by hand and their direction, and the real data."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from subspaces.errors import UserError
from subspaces.experiments.hyperlex import pairs as hyperlex
from subspaces.experiments.hyperlex.pairs import (
    Pair,
    Senses,
    distance_scorer,
    evaluate_hyperlex,
    gaussian_scorer,
    hyperlex_report,
    read_hyperlex,
    score_pairs,
    subspace_scorer,
)
from subspaces.files import write_json
from subspaces.geometries.base import make_geometry
from subspaces.sources.fetch import fetch
from subspaces.sources.origins import SAMPLES, mirror_folder
from subspaces.sources.wordnet_reader import read_wordnet
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import binary_tree, make_task, run_task

ROOT = Path(__file__).resolve().parents[3]
HEADER = "WORD1 WORD2 POS TYPE AVG_SCORE AVG_SCORE_0_10 STD SCORES..\n"
LINE = "dog animal N hyp-4 5.50 9.17 0.5 5 6\n"


def file_with(folder: Path, text: str) -> Path:
    path = folder / "pairs.txt"
    path.write_text(text)
    return path


def senses_of(**words: list[int]):
    return lambda word: np.array(words.get(word, []), dtype=np.int64)


def table_scorer(choice: np.ndarray, score: np.ndarray):
    return lambda first, second: (choice[first, second], score[first, second])


@pytest.fixture(scope="module")
def mirror() -> Path:
    folder = mirror_folder(ROOT)
    if folder is None or not folder.is_dir():
        pytest.skip("needs the mirror: set SUBSPACES_MIRROR, or put it in ../shared/data beside the project")
    return folder


@pytest.fixture(scope="module")
def real(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources wordnet and hyperlex."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_OFFLINE", "1")
        for name in ("wordnet", "hyperlex"):
            fetch(name, folder / name, root=ROOT)
    return folder


# --- the file ---------------------------------------------------------------------------------------------------------------------


def test_one_part_of_speech_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = file_with(
        tmp_path, HEADER + LINE + "run move V hyp-1 4 6.67 1 4 4\n" + "animal dog N r-hyp-4 0.25 0.42 0.5 0 1\n"
    )
    assert read_hyperlex(path) == [Pair("dog", "animal", "hyp-4", 5.5), Pair("animal", "dog", "r-hyp-4", 0.25)]
    assert read_hyperlex(path, "V") == [Pair("run", "move", "hyp-1", 4.0)]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (HEADER.replace("WORD1 WORD2", "WORD2 WORD1"), "found: WORD2 WORD1 POS"),
        (HEADER.replace("TYPE ", ""), "found: WORD1 WORD2 POS AVG_SCORE"),
        (
            HEADER.replace("AVG_SCORE AVG_SCORE_0_10", "AVG_SCORE_0_10 AVG_SCORE"),
            "found: .*AVG_SCORE_0_10 AVG_SCORE STD",
        ),
        ("\n", "found: nothing"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, header: str, found: str) -> None:
    with pytest.raises(
        UserError,
        match=rf"pairs\.txt must begin with the columns WORD1 WORD2 POS TYPE AVG_SCORE .*in this order; {found}",
    ):
        read_hyperlex(file_with(tmp_path, header + LINE))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("dog animal N hyp-4 5.50 9.17 0.5\n", "found 7 fields"),
        ("\n", "found 0 fields"),
        ("dog animal N hyp-4 much 9.17 0.5 5 6\n", "'much'"),
        ("dog animal N hyp-4 5.50 9.17 0.5 5 often\n", "'often'"),
        ("dog animal N hyp-4 9.17 5.50 0.5 5 6\n", "found AVG_SCORE 9.17"),
        ("dog animal N hyp-4 nan 5.50 0.5 5 6\n", "found AVG_SCORE nan"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, found: str) -> None:
    with pytest.raises(
        UserError, match=rf"pairs\.txt, line 3: expected two words, POS, TYPE, AVG_SCORE from 0 to 6.*{found}"
    ):
        read_hyperlex(file_with(tmp_path, HEADER + LINE + line + LINE))


def test_no_file_no_text_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.txt does not exist.*fetch the source hyperlex"):
        read_hyperlex(tmp_path / "absent.txt")
    with pytest.raises(UserError, match="does not exist, or is a folder"):
        read_hyperlex(tmp_path)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is not text"):
        read_hyperlex(tmp_path / "bytes.txt")
    with pytest.raises(UserError, match=r"no pairs with POS 'V' \(found: N\)"):
        read_hyperlex(file_with(tmp_path, HEADER + LINE), "V")
    with pytest.raises(UserError, match=r"no pairs with POS 'N' \(found: none at all\)"):
        read_hyperlex(file_with(tmp_path, HEADER))


# --- senses -----------------------------------------------------------------------------------------------------------------------


def test_senses_from_the_names_of_the_sample() -> None:
    names = ["dr..n.01", "dog.n.02", "cat.n.01", "dog.v.01", "dog.n.01", "hot_dog.n.01"]
    senses = Senses(names, SAMPLES)
    assert senses("dog").tolist() == [4, 1]  # by sense number, not by place
    assert senses("Dog").tolist() == [4, 1]
    assert senses("dr.").tolist() == [0]
    assert senses("hound").tolist() == []
    assert Senses(names, SAMPLES, pos="v")("dog").tolist() == [3]
    names, _ = read_wordnet(SAMPLES, "nouns")
    assert [names[node] for node in Senses(names, SAMPLES)("animal")] == ["animal.n.01"]


def test_a_word_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    senses = Senses(["dog.n.01"], SAMPLES)
    asked = []
    monkeypatch.setattr(senses, "_synsets", lambda word: asked.append(word) or ["dog.n.01"])
    assert [senses(word).tolist() for word in ("dog", "dog", "hound", "dog")] == [[0]] * 4
    assert asked == ["dog", "hound"]


def test_a_folder_without_wordnet(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="subspaces fetch wordnet"):
        Senses(["dog.n.01"], tmp_path)


# --- which senses, and what is reported -------------------------------------------------------------------------------------------


def test_the_largest_choice_wins_and_its_score_is_reported() -> None:
    draw = np.random.default_rng(3)
    choice, score = draw.integers(0, 4, (9, 9)).astype(float), draw.normal(size=(9, 9))  # few values: many ties
    words = {f"w{n}": draw.permutation(9)[: draw.integers(0, 5)].tolist() for n in range(12)}
    pairs = [Pair(f"w{a}", f"w{b}", "hyp-1", 1.0) for a in range(12) for b in range(12)]
    result = score_pairs(pairs, senses_of(**words), table_scorer(choice, score))
    for number, pair in enumerate(pairs):
        both = [(a, b) for a in words[pair.first] for b in words[pair.second]]
        if not both:
            assert (result["first"][number], result["second"][number]) == (-1, -1) and math.isnan(
                result["score"][number]
            )
            continue
        a, b = max(both, key=lambda nodes: choice[nodes])  # the first of equals
        assert (result["first"][number], result["second"][number], result["score"][number]) == (a, b, score[a, b])
    assert 0 < np.isnan(result["score"]).sum() < len(pairs)


def test_uncovered_pairs_get_the_median_and_are_reported(tmp_path: Path) -> None:
    words = {"a": [0], "b": [1], "c": [2], "d": [3]}
    pairs = [
        Pair("a", "b", "hyp-1", 5.0),
        Pair("b", "c", "hyp-1", 2.0),
        Pair("x", "a", "syn", 0.0),
        Pair("c", "d", "no-rel", 3.0),
        Pair("d", "y", "syn", 6.0),
    ]
    score = np.zeros((4, 4))
    score[0, 1], score[1, 2], score[2, 3] = 9.0, 1.0, 4.0
    result = evaluate_hyperlex(pairs, senses_of(**words), table_scorer(score, score))
    assert result["spearman_covered"] == pytest.approx(1.0)
    # scores 9 1 4 4 4 have the ranks 5 1 3 3 3, people's 4 2 1 3 5: covariance 2·1 + 2·1 = 4
    assert result["spearman"] == pytest.approx(4 / math.sqrt(8 * 10))
    assert (result["pairs"], result["scored"]) == (5, 3)
    assert result["missing_words"] == ["x", "y"]
    assert result["missing_pairs"] == [["x", "a"], ["d", "y"]]
    assert result["relations"] == {
        "hyp-1": {"pairs": 2, "scored": 2, "human": 3.5, "score": 5.0},
        "no-rel": {"pairs": 1, "scored": 1, "human": 3.0, "score": 4.0},
        "syn": {"pairs": 2, "scored": 0, "human": 3.0, "score": None},
    }
    write_json(tmp_path / "result.json", result)
    report = hyperlex_report(result).splitlines()
    assert report[0] == "HyperLex: Spearman 0.447 over all 5 pairs, 1.000 over the 3 whose words have synsets"
    assert report[1] == "no synset: x, y (2 pairs, given the median score)"
    assert [line.split() for line in report[3:]] == [
        ["hyp-1", "2", "3.50", "5"],
        ["no-rel", "1", "3.00", "4"],
        ["syn", "2", "3.00", "—"],
    ]


def test_a_model_that_says_nothing_gets_zero_not_nan() -> None:
    pairs = [Pair("a", "b", "syn", float(score)) for score in range(4)]
    result = evaluate_hyperlex(pairs, senses_of(a=[0], b=[1]), table_scorer(np.ones((2, 2)), np.ones((2, 2))))
    assert result["spearman"] == result["spearman_covered"] == 0.0
    assert "no synset" not in hyperlex_report(result)


def test_nothing_to_score_and_broken_models_are_refused() -> None:
    pairs, fine = [Pair("a", "b", "syn", 1.0)], np.ones((2, 2))
    for words in ({}, {"a": [0]}):
        with pytest.raises(UserError, match="none of the 1 HyperLex pairs"):
            evaluate_hyperlex(pairs, senses_of(**words), table_scorer(fine, fine))
    for choice, score in ((fine * np.nan, fine), (fine, fine * np.inf)):
        with pytest.raises(UserError, match="NaN or infinite"):
            evaluate_hyperlex(pairs, senses_of(a=[0], b=[1]), table_scorer(choice, score))


# --- scorers ----------------------------------------------------------------------------------------------------------------------


def started(name: str, **options):
    geometry = make_geometry(name, 9, 5, start=0.3, ranking=True, **options)
    geometry.initialise(generator_for(1))
    return geometry


def all_pairs(nodes: int = 9) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(nodes), nodes), np.tile(np.arange(nodes), nodes)


@pytest.mark.parametrize("block", [1, 4, 1024])
def test_subspaces_by_their_definition(block: int) -> None:
    geometry = started("subspace", vectors=3)
    first, second = all_pairs()
    choice, score = subspace_scorer(geometry, block)(first, second)
    X = geometry.X.double()
    P = X @ torch.linalg.inv(X.mT @ X + geometry.lam * torch.eye(3)) @ X.mT
    for a, b, similarity, inclusion in zip(first, second, choice, score, strict=True):
        assert similarity == pytest.approx(float(torch.trace(P[a] @ P[b])), rel=1e-4)
        assert inclusion == pytest.approx(float(torch.trace(P[a] @ P[b]) / torch.trace(P[a])), rel=1e-4)


def test_only_needed_subspaces_are_opened_each_once_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    geometry, opened = started("subspace"), []
    projectors = geometry.projectors
    monkeypatch.setattr(geometry, "projectors", lambda rows: opened.append(rows.tolist()) or projectors(rows))
    subspace_scorer(geometry, block=2)(np.array([7, 1, 7]), np.array([3, 7, 1]))
    assert opened == [[1, 3], [7]]


def test_an_empty_subspace_lies_in_everything() -> None:
    geometry = started("subspace")
    geometry.X[0] = 0
    choice, score = subspace_scorer(geometry)(np.array([0, 1]), np.array([1, 0]))
    assert choice == pytest.approx([0, 0], abs=1e-5)
    assert score == pytest.approx([1, 0], abs=1e-5)


def test_a_small_subspace_within_a_large_one() -> None:
    geometry = started("subspace", lam=1e-3)
    geometry.X.zero_()
    geometry.X[0, 0, 0] = 1
    geometry.X[1] = torch.diag(torch.tensor([1.0, 1, 1, 0, 0]))
    _, score = subspace_scorer(geometry)(np.array([0, 1]), np.array([1, 0]))
    assert score == pytest.approx([1, 1 / 3], abs=3e-3)


@pytest.mark.parametrize("name", ["euclidean", "poincare"])
def test_distances_by_their_definition(name: str) -> None:
    geometry = started(name)
    first, second = all_pairs()
    choice, score = distance_scorer(geometry, alpha=10.0)(first, second)
    table = geometry.table.double()
    for a, b, closeness, value in zip(first, second, choice, score, strict=True):
        u, v = table[a], table[b]
        apart = float((u - v).norm())
        if name == "poincare":
            apart = math.acosh(1 + 2 * apart**2 / float((1 - u @ u) * (1 - v @ v)))
        assert closeness == pytest.approx(-apart, abs=2e-6)
        assert value == pytest.approx(-(1 + 10.0 * float(v.norm() - u.norm())) * apart, abs=2e-5)


@pytest.mark.parametrize("name", ["euclidean", "poincare"])
def test_a_general_second_word_near_the_origin_scores_higher_than_the_pair_reversed(name: str) -> None:
    geometry = started(name)
    geometry.table[0] = 0.05
    geometry.table[1] = 0.3
    choice, score = distance_scorer(geometry)(np.array([1, 0]), np.array([0, 1]))
    assert choice[0] == pytest.approx(choice[1])
    assert score[0] > 0 > score[1]


def test_the_nearest_senses_are_chosen_not_those_with_the_highest_score() -> None:
    geometry = started("poincare")
    geometry.table.zero_()
    geometry.table[0, 0], geometry.table[1, 0], geometry.table[2, 1] = 0.8, 0.6, 0.1
    result = score_pairs([Pair("a", "b", "hyp-1", 6.0)], senses_of(a=[0], b=[2, 1]), distance_scorer(geometry))
    assert (result["first"][0], result["second"][0]) == (0, 1)
    assert distance_scorer(geometry)(np.array([0]), np.array([2]))[1] > result["score"][0]


def test_a_model_by_inner_product_is_refused() -> None:
    with pytest.raises(UserError, match=r"trained by inner product.*score: distance"):
        distance_scorer(started("euclidean", score="inner"))


def test_gaussians_against_torch_and_their_direction() -> None:
    generator = generator_for(4)
    means, variances = torch.randn(9, 5, generator=generator), torch.rand(9, 5, generator=generator) + 0.1
    first, second = all_pairs()
    choice, score = gaussian_scorer(means, variances)(first, second)
    one, other = (
        Independent(Normal(means[rows].double(), variances[rows].double().sqrt()), 1) for rows in (first, second)
    )
    assert np.array_equal(choice, score)
    assert score == pytest.approx(-kl_divergence(one, other).numpy(), abs=1e-9)
    _, score = gaussian_scorer(torch.zeros(2, 3), torch.tensor([[0.1] * 3, [2.0] * 3]))(
        np.array([0, 1]), np.array([1, 0])
    )
    assert score[0] > score[1]  # the narrow one is a kind of the wide one


def test_what_is_not_a_gaussian() -> None:
    with pytest.raises(UserError, match=r"not \(4, 2\) and \(4,\)"):
        gaussian_scorer(torch.zeros(4, 2), torch.ones(4))
    with pytest.raises(UserError, match="variances above zero"):
        gaussian_scorer(torch.zeros(4, 2), torch.zeros(4, 2))


def test_trained_subspaces_know_which_of_two_is_the_kind() -> None:
    graph = binary_tree(3)
    geometry = run_task(make_task("subspace", graph, epochs=60))
    pairs = [Pair(graph.names[a], graph.names[b], "hyp", 6.0) for a, b in graph.closure]
    pairs += [Pair(pair.second, pair.first, "r-hyp", 1.0) for pair in pairs]
    pairs += [Pair("node-7", "node-14", "no-rel", 0.0), Pair("node-9", "node-12", "no-rel", 0.0)]
    place = {name: np.array([index]) for index, name in enumerate(graph.names)}
    result = evaluate_hyperlex(pairs, place.__getitem__, subspace_scorer(geometry))
    means = {kind: values["score"] for kind, values in result["relations"].items()}
    assert means["hyp"] > means["r-hyp"] > means["no-rel"]
    assert result["spearman"] > 0.7


# --- the real data ----------------------------------------------------------------------------------------------------------------


def test_the_real_pairs_senses_and_closure(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model: the closure itself as the scorer agrees with people about as well as a perfect reconstruction could."""
    pairs = read_hyperlex(real / "hyperlex" / "hyperlex-nouns.txt")
    assert len(pairs) == 2163 and pairs[1] == Pair("mason", "worker", "hyp-3", 4.5)
    assert set(read_hyperlex(real / "hyperlex" / "hyperlex-all.txt")) == set(pairs)
    names, edges = read_wordnet(real / "wordnet", "nouns")
    senses = Senses(names, real / "wordnet")
    assert [names[node] for node in senses("dogs")][:2] == ["dog.n.01", "frump.n.01"]
    assert [names[node] for node in senses("domestic_dog")] == ["dog.n.01"]
    monkeypatch.setattr(hyperlex, "open_nltk", lambda folder: senses._reader)  # opening takes seconds
    some = Senses(["frump.n.01", "run.v.01"], real / "wordnet")
    assert (some("dog").tolist(), some("run").tolist(), some("xyzzy").tolist()) == ([0], [], [])

    parents: dict[int, list[int]] = {}
    for child, parent in edges:
        parents.setdefault(child, []).append(parent)

    @cache
    def above(node: int) -> set[int]:
        return {node}.union(*(above(parent) for parent in parents.get(node, [])))

    def closure(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.array([float(b in above(a)) for a, b in zip(first.tolist(), second.tolist(), strict=True)])
        return value, value

    result = evaluate_hyperlex(pairs, senses, closure)
    assert result["scored"] == 2163 and result["missing_words"] == result["missing_pairs"] == []
    assert result["spearman"] == result["spearman_covered"] == pytest.approx(0.782, abs=1e-3)
    means = {kind: values["score"] for kind, values in result["relations"].items()}
    assert min(means[f"hyp-{n}"] for n in (1, 2, 3, 4)) > 0.85 and means["syn"] > 0.85 and means["no-rel"] < 0.02
