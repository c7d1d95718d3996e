"""The picture around a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.hierarchy import Hierarchy
from subspaces.hierarchy.plot import draw_around, plot_around


def test_it_shows_the_chain_the_ranks_and_the_neighbours(tree: Hierarchy) -> None:
    ranks, inclusions = draw_around(tree, "node 5", neighbours=4).axes
    assert len(ranks.collections[0].get_offsets()) == 300
    chain = ranks.lines[0].get_xydata()
    assert chain[-1].tolist() == pytest.approx([tree.graph.descendants[tree.place("node 5")] + 1, tree.rank("node 5")])
    assert chain[:, 1].tolist() == sorted(chain[:, 1].tolist(), reverse=True)  # from the root down
    labels = [label.get_text() for label in inclusions.get_yticklabels()]
    assert labels[:2] == ["in node 0", "in node 1"] and len(labels) == 6
    widths = [bar.get_width() for bar in inclusions.patches]
    assert widths[1] == pytest.approx(tree.inclusion("node 5", "node 1"), abs=1e-5)


def test_a_root_has_no_chain(tree: Hierarchy) -> None:
    ranks, _ = draw_around(tree, "node 0").axes
    assert len(ranks.lines[0].get_xydata()) == 1


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_it_is_written_as_png_or_pdf(tmp_path: Path, tree: Hierarchy, ending: str, magic: bytes) -> None:
    assert plot_around(tree, "NODE 5", tmp_path / f"x.{ending}").read_bytes().startswith(magic)


def test_another_ending_is_refused(tmp_path: Path, tree: Hierarchy) -> None:
    with pytest.raises(UserError, match=r"must end in \.png, \.pdf"):
        plot_around(tree, "node 5", tmp_path / "x.doc")
