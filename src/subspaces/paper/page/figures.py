"""The figures, inside the page as data: each with a caption and a text that stands for it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from pathlib import Path

from subspaces.paper.page.markdown import inline
from subspaces.paper.page.markup import Html, tag

_PNG = b"\x89PNG\r\n\x1a\n"
# title, caption, what is to be seen
_KNOWN = {
    "overview": (
        "Concepts as subspaces",
        "Two concepts as planes of ℝ³ and what the operations make of them. Drawn from computed projectors.",
        "Four drawings of planes in space: two concepts as planes, their intersection as a line, the part of one that is orthogonal to the "
        "other as a line, and the plane that the two lines span.",
    ),
    "rank_vs_descendants": (
        "Rank and generality",
        "Effective rank of every WordNet noun against its number of descendants, with the chain from homo sapiens to entity.",
        "Scatter plot: effective rank against the number of descendants on a logarithmic axis, one dot per noun, with the median and the "
        "chain from homo sapiens to entity.",
    ),
    "link_prediction_coverage": (
        "Link prediction by coverage",
        "F1 by share of non-basic edges seen in training. Filled: ours; open: the paper’s.",
        "Line plot: F1 at 0, 10, 25 and 50 % of the non-basic edges, one line per geometry, with the paper’s values as open markers. "
        "The numbers are those of Table 4.",
    ),
    "link_prediction_time": (
        "Link prediction by training time",
        "F1 against training time, one marker per geometry and coverage.",
        "Scatter plot: F1 against training time on a logarithmic axis, markers of one geometry joined in the order of coverage.",
    ),
}


def figure(name: str, folder: Path, captions: Path | None) -> Html:
    """`figures/<name>.png` with its caption: from `<captions>/<name>.rst` where that exists, else the one known here."""
    title, caption, seen = _KNOWN.get(name, (name.replace("_", " ").capitalize(), "", ""))
    written = captions / f"{name}.rst" if captions else None
    if written and written.is_file():
        caption = _prose(written.read_text(encoding="utf-8", errors="replace"))
    words = tag("figcaption", tag("strong", f"{title}. "), inline(caption))
    image = _image(folder / f"figures/{name}.png", seen or f"Figure: {title}. {caption}")
    if image is None:
        image = tag("p", "Missing: ", tag("code", f"figures/{name}.png"), " has not been drawn, or is not a PNG.", class_="missing")
    return tag("figure", image, words, id=f"figure-{name}")


def figures(names: Sequence[str], folder: Path, captions: Path | None) -> Html:
    if not names:
        return tag("p", "There are no figures.", class_="missing")
    return tag("div", *(figure(name, folder, captions) for name in names), class_="figures")


def _image(path: Path, seen: str) -> Html | None:
    content = path.read_bytes() if path.is_file() else b""
    if not content.startswith(_PNG) or len(content) < 24:  # absent, or the pointer of a cache
        return None
    width, height = struct.unpack(">II", content[16:24])
    source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    # drawn at 200 dots per inch; shown smaller, so that the letters have the page's size and screens with small dots show all of it
    image = tag("img", src=source, alt=seen, width=width * 5 // 7, height=height * 5 // 7)
    wide = width > 2 * height
    return tag("div", image, class_="scroll wide" if wide else "scroll", tabindex=0 if wide else None)


def _prose(rst: str) -> str:
    """The words of a caption: comments and directives left out, literals as Markdown writes them."""
    lines = [line.strip() for line in rst.splitlines() if not line.startswith("..")]
    return " ".join(line for line in lines if line).replace("``", "`")
