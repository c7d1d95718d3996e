"""Link-prediction splits of the real data: needs the mirror."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
from subspaces.hierarchy.splits import (
    Split,
    check_counts,
    draw_split,
    read_split,
    transitive_reduction,
)
from subspaces.sources.fetch import fetch
from subspaces.sources.origins import mirror_folder
from subspaces.sources.registry import get
from subspaces.sources.wordnet_reader import read_wordnet
from tests.hierarchy.toys import pairs_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources fetched once from the mirror; tests must not change them."""
    mirror = mirror_folder(ROOT)
    if mirror is None or not mirror.is_dir():
        pytest.skip("needs the mirror: set SUBSPACES_MIRROR, or put it in ../shared/data beside the project")
    out = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBSPACES_OFFLINE", "1")
        for name in ("wordnet_link_prediction", "wordnet"):
            fetch(name, out / name, root=ROOT)
    return out


@pytest.fixture(scope="module")
def basic(real: Path) -> Split:
    return read_split(real / "wordnet_link_prediction", 0)


@pytest.fixture(scope="module")
def closure(basic: Split) -> Taxonomy:
    return build_hierarchy(basic.names, basic.train)


def keys(pairs: np.ndarray) -> np.ndarray:
    return pairs[..., 0] * 100_000 + pairs[..., 1]


def inside(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of `some` pairs are among the `others`; np.isin takes seconds here."""
    known = np.append(np.sort(keys(others)), -1)
    return known[np.searchsorted(known[:-1], keys(some))] == keys(some)


def test_the_real_counts(real: Path, basic: Split, closure: Taxonomy) -> None:
    counts = get("wordnet_link_prediction").counts
    for coverage in (0, 10, 25):
        split = read_split(real / "wordnet_link_prediction", coverage)
        check_counts(
            split,
            {
                **{name: counts[name] for name in split.counts() if name != "train"},
                "train": counts[f"train {coverage} %"],
            },
        )
        assert np.array_equal(
            split.train[-len(basic.train) :], basic.train
        )  # every train set ends with the basic edges
        assert inside(split.train, closure.closure).all()
    assert "entity.n.01" not in basic.names
    assert len(closure.closure) == 661_127
    assert pairs_of(transitive_reduction(closure)) == pairs_of(basic.train)


def test_the_real_negatives(basic: Split, closure: Taxonomy) -> None:
    for negatives, reversed_links in ((basic.valid_negatives, 17), (basic.test_negatives, 11)):
        assert not inside(negatives, closure.closure).any()
        assert inside(negatives[..., ::-1], closure.closure).sum() == reversed_links
    for edges, negatives in ((basic.valid, basic.valid_negatives), (basic.test, basic.test_negatives)):
        assert (negatives[:, :5, 1] == edges[:, None, 1]).all() and (negatives[:, 5:, 0] == edges[:, None, 0]).all()


def test_the_real_draw_of_fifty_per_cent(real: Path, basic: Split, closure: Taxonomy, tmp_path: Path) -> None:
    split = read_split(real / "wordnet_link_prediction", 50)
    assert (len(split.train), split.train_origin) == (372_745, "seeded draw")
    assert (np.diff(np.sort(keys(split.train))) > 0).all() and inside(split.train, closure.closure).all()
    assert not inside(split.valid, split.train).any() and not inside(split.test, split.train).any()
    assert inside(basic.train, split.train).all()
    # Numbers at 50 % belong to these bytes: another numpy that permutes otherwise must not change them unseen.
    assert split.save(tmp_path / "fifty.npz") == "10ac4e5e8a4285510fa16780ac7adc328a7c6fbccbf5c82b883a75e6945f08c5"


def test_the_construction_is_that_of_the_files(real: Path, basic: Split) -> None:
    """WordNet with instance hypernyms gives the nodes, the basic edges and all counts of the original split."""
    split = draw_split(build_hierarchy(*read_wordnet(real / "wordnet", "nouns", True)), 0)
    assert set(split.names) == set(basic.names) and split.counts() == basic.counts()
    number = {name: node for node, name in enumerate(basic.names)}
    turned = np.array([number[name] for name in split.names])[split.train]
    assert pairs_of(turned) == pairs_of(basic.train)
