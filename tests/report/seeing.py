"""What a reader sees of a figure: its words, and whether they can be read."""

from __future__ import annotations

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


def words(figure: Figure) -> list[Text]:
    """All texts in sight, after a draw; ticks beyond the axes are none of them."""
    figure.draw_without_rendering()
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    found += [text for text in (figure._supxlabel, figure._supylabel, figure._suptitle) if text is not None]
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        found += axes.get_legend().get_texts() if axes.get_legend() else []
        if not axes.axison:
            continue
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [
                axis.label,
                *(
                    one
                    for tick in axis.get_major_ticks()
                    if low <= tick.get_loc() <= high
                    for one in (tick.label1, tick.label2)
                ),
            ]
    return list({id(text): text for text in found if text.get_visible() and text.get_text().strip()}.values())


def said(figure: Figure) -> list[str]:
    return [text.get_text() for text in words(figure)]


def unreadable(figure: Figure) -> list[str]:
    """What is wrong with the words: on each other, beyond the edge, or too small."""
    texts = words(figure)
    boxes = [text.get_window_extent().padded(-0.5) for text in texts]
    edge = figure.bbox.padded(1)
    wrong = [
        f"{s.get_text()!r} on {t.get_text()!r}"
        for (s, a), (t, b) in combinations(zip(texts, boxes, strict=True), 2)
        if a.overlaps(b)
    ]
    beyond = [text for text, box in zip(texts, boxes, strict=True) if not (edge.x0 <= box.x0 and box.x1 <= edge.x1)]
    beyond += [text for text, box in zip(texts, boxes, strict=True) if not (edge.y0 <= box.y0 and box.y1 <= edge.y1)]
    wrong += [f"{text.get_text()!r} reaches beyond the figure" for text in beyond]
    return wrong + [f"{text.get_text()!r} is small" for text in texts if text.get_fontsize() < 7]
