"""The figure of effective rank against descendants."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from subspaces.report.figures.rank_vs_descendants import CHAIN, LABELLED, draw_ranks
from subspaces.report.style import save


def table(path, names):
    rng = np.random.default_rng(0)
    descendants = np.sort(rng.integers(0, 50_000, len(names)))[: len(names)].astype(np.int32)
    rank = (5 + 4 * np.log1p(descendants)).astype(np.float32)
    pq.write_table(pa.table({"name": names, "descendants": descendants, "rank": rank}), path)
    return path


def test_the_chain_is_drawn_and_labels_do_not_overlap(tmp_path):
    names = [*(f"leaf_{i}.n.01" for i in range(200)), *CHAIN]
    figure = draw_ranks(table(tmp_path / "r.parquet", names), "#0072b2", "#d55e00")
    (axes,) = figure.axes
    shown = {text.get_text() for text in axes.texts}
    assert shown <= {name.split(".")[0].replace("_", " ") for name in LABELLED}
    assert "entity" in shown
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    for place, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[place + 1 :])
    line = next(line for line in axes.lines if line.get_label().startswith("homo"))
    assert len(line.get_xdata()) == len(CHAIN)
    assert line.get_color() == "#d55e00"


def test_a_hierarchy_without_the_chain_still_has_a_figure(tmp_path):
    path = table(tmp_path / "r.parquet", [f"node_{i}" for i in range(30)])
    figure = draw_ranks(path, "#0072b2", "#d55e00")
    assert not figure.axes[0].texts
    save(figure, tmp_path / "figure", "e" * 64)
    assert b"e" * 64 in (tmp_path / "figure.png").read_bytes()
