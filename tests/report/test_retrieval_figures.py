"""The figures of retrieval: compression, composed queries, storage."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from subspaces.errors import UserError
from subspaces.report.figures.compression import draw_compression
from subspaces.report.figures.retrieval import COLUMNS, HITS, UNWANTED, WANTED, draw_retrieval
from subspaces.report.figures.storage import draw_storage
from subspaces.report.style import save
from tests.report.made_figures import CAPTIONS, QUERIES, compression, retrieval, storage
from tests.report.seeing import said, unreadable, words

pytestmark = pytest.mark.filterwarnings("error")


def test_compression_marks_the_first_quarter_and_its_price():
    content = {
        "wordnet": {
            "taus": [0.0, 0.1, 0.2, 0.3],
            "map": [99.0, 98.9, 98.25, 60.0],
            "rank": [128, 40, 32, 2],
            "full_rank": 128,
        },
        "snli": {"taus": [0.3, 0.0, 0.1], "accuracy": [85.0, 85.0, 86.0], "rank": [8.0, 64.0, 12.8]},
    }
    figure = draw_compression(content)
    text = "\n".join(said(figure))
    assert "≥ 4× from τ = 0.2 (4.0×)" in text and "quality −0.75 → 98.25" in text
    assert "≥ 4× from τ = 0.1 (5.0×)" in text and "quality +1.00 → 86.00" in text
    quality = [line for line in figure.axes[0].lines if line.get_label() == "quality"]
    assert list(quality[0].get_ydata()) == content["wordnet"]["map"]
    assert not unreadable(figure)


def test_compression_tells_bytes_where_they_are_known():
    text = "\n".join(said(draw_compression(compression())))
    assert "kB instead of 32.8 kB" in text
    assert text.count("instead of") == 1


def test_compression_that_is_not_reached_or_not_run():
    content = {"wordnet": {"taus": [0.0, 0.5], "map": [99.0, 98.0], "rank": [100.0, 90.0], "full_rank": 128}}
    text = said(draw_compression(content))
    assert "4× compression: not reached" in text and text.count("not run") == 1
    assert said(draw_compression({})).count("not run") == 2
    broken = {"wordnet": {"taus": [0.0, 0.1], "map": [None, float("nan")], "rank": [1.0, 1.0]}, "snli": None}
    assert said(draw_compression(broken)).count("not run") == 2


@pytest.mark.parametrize("part", ["wordnet", "snli"])
def test_half_of_the_compression_can_be_read(part):
    figure = draw_compression({part: compression()[part]})
    assert not unreadable(figure)
    assert "0.2" in said(figure)  # the axis keeps its numbers when the lower panel is empty


def test_one_threshold_and_equal_quality():
    assert "4× compression: not reached" in said(
        draw_compression({"snli": {"taus": [0.0], "accuracy": [80.0], "rank": [64.0]}})
    )
    figure = draw_compression({"snli": {"taus": [0.0, 0.1], "accuracy": [80.0, 80.0], "rank": [64.0, 8.0]}})
    assert any("±0.00 → 80.00" in text for text in said(figure))


def test_retrieval_shows_queries_columns_and_three_hits():
    figure = draw_retrieval(retrieval())
    text = said(figure)
    assert all(query in text for query in QUERIES) and all(title in text for title in COLUMNS.values())
    scores = [one for one in text if one.replace(".", "").isdigit()]
    assert len(scores) == len(QUERIES) * (HITS + HITS + 2)
    assert not unreadable(figure)


def coloured(figure, colour):
    """Words of the captions in a colour, those of the foot left out."""
    return {
        one.get_text().strip(".,")
        for one in words(figure)
        if to_hex(one.get_color()) == colour.lower() and "terms" not in one.get_text()
    }


def query(text, *captions):
    hits = [{"text": caption, "score": 0.5} for caption in captions]
    return {"queries": [{"query": text, "subspace": hits, "text": None, "vector": []}]}


def test_words_that_a_query_rules_out_are_told_from_those_it_wants():
    figure = draw_retrieval(
        query("an umbrella & ~it's raining", "Umbrellas are up while it rains.", "A night in a city.")
    )
    assert coloured(figure, WANTED) == {"Umbrellas"} and coloured(figure, UNWANTED) == {"rains"}
    figure = draw_retrieval(query("~(~sitting | a bench)", "He sits at the side of benches."))
    assert coloured(figure, WANTED) == {"sits"} and coloured(figure, UNWANTED) == {"benches"}


def test_empty_cells_say_why():
    text = said(draw_retrieval(query("a & b", "c")))
    assert "not run" in text and "no hits" in text
    assert "retrieval: not run" in said(draw_retrieval({"queries": []})) and "retrieval: not run" in said(
        draw_retrieval({})
    )


def test_strange_captions_are_drawn_as_they_are():
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrikbesitzer" * 2
    figure = draw_retrieval(
        query("a price", "It costs $5, not $6_0^2 {or so}.", "word " * 80, long, "a fourth one is left out")
    )
    text = " ".join(said(figure))
    assert "$5, not $6_0^2 {or so}." in text and "fourth" not in text and "…" in text
    assert not unreadable(figure)


def test_long_captions_keep_all_their_words():
    text = " ".join(said(draw_retrieval(query("a thing", CAPTIONS[5]))))
    assert all(word in text for word in CAPTIONS[5].split())


def test_a_query_that_cannot_be_read_is_refused_in_words():
    with pytest.raises(UserError):
        draw_retrieval(query("a city & ", "c"))


def points(figure):
    return sorted(
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in figure.axes[0].lines
        if len(line.get_xdata()) == 1
    )


def test_storage_shows_every_form_with_a_letter():
    content = storage()
    figure = draw_storage(content)
    assert np.allclose(points(figure), sorted((one["bytes"], 100 * one["recall"]) for one in content["points"]))
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names[0] == "a  PQ 64 × 8 bit, 64 B" and names[-1] == "g  full fp32, 65.5 kB"
    assert [text.get_text() for text in figure.axes[0].texts] == list("abcdefg")
    assert not unreadable(figure)


def test_storage_by_kind_of_query_and_what_was_not_run():
    recall = {"plain": 0.99, "conjunction": 0.9, "negation": None}
    content = {
        "points": [{"form": "PQ", "bytes": 64, "recall": recall}, {"form": "rank-4 fp16", "bytes": 512, "recall": None}]
    }
    figure = draw_storage(content)
    assert points(figure) == [(64.0, 90.0), (64.0, 99.0)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plain", "conjunction"]
    assert "not run: rank-4 fp16" in said(figure)
    assert not unreadable(figure)


def test_forms_of_the_same_size_keep_their_letters_apart():
    content = {"points": [{"form": f"form {place}", "bytes": 1000 + place, "recall": 0.9} for place in range(3)]}
    assert not unreadable(draw_storage(content))


def test_storage_without_points():
    assert said(draw_storage({"points": []})) == ["storage: not run"]
    assert said(draw_storage({"points": [{"form": "PQ", "bytes": 0, "recall": 0.5}]})) == ["storage: not run"]


@pytest.mark.parametrize(
    "draw, make",
    [(draw_compression, compression), (draw_retrieval, retrieval), (draw_storage, storage)],
    ids=lambda one: one.__name__,
)
def test_saving_twice_gives_the_same_bytes(tmp_path, draw, make):
    for name in ("a", "b"):
        save(draw(make()), tmp_path / name, "e" * 64)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
