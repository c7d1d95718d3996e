"""The figures, inside the page as data: each with a caption and a text that stands for it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from pathlib import Path

from subspaces.paper.page.captions import KNOWN
from subspaces.paper.page.markdown import inline
from subspaces.paper.page.markup import Html, tag

_PNG = b"\x89PNG\r\n\x1a\n"


def figure(name: str, folder: Path, captions: Path | None) -> Html:
    """`figures/<name>.png` with its caption: from `<captions>/<name>.rst` where that exists, else the one known here."""
    title, caption, seen = KNOWN.get(name, (name.replace("_", " ").capitalize(), "", ""))
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
