"""The page from the results of a working folder. The same files give the same bytes: it contains no time and no machine of its own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from subspaces.files import write_text
from subspaces.report import claims
from subspaces.report.figures import FIGURES
from subspaces.report.page import content, provenance
from subspaces.report.page.text import inline, label, markdown, plain, split_title
from subspaces.report.verdicts import VERDICTS

ASSETS = ("page.css", "page.js", "page.html.j2", "parts.html.j2")
_PNG = b"\x89PNG\r\n\x1a\n"
# characters that HTML cannot contain, that a parser drops, or that change the direction of the text
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def build_page(
    numbers: pd.DataFrame,
    folder: Path,
    out: Path,
    key: str,
    *,
    figures: Sequence[str] = tuple(FIGURES),
    extra_tables: Sequence[str] = ("soft_projectors",),
    deviations: Path | None = None,
    citation_file: Path | None = None,
    directory: str = "",
) -> None:
    """Write the page of the results in `folder` to `out`.

    `numbers` is the frame of all numbers; their evaluations are read from `folder`. A figure or table without a file is shown as
    missing. `directory` is the working folder relative to the project, for the commands; empty for the project's own folder.
    """
    loaded = content.load_numbers(numbers, folder)
    names = dict.fromkeys(number.table for number in loaded)
    tables = [content.Table(name, [number for number in loaded if number.table == name]) for name in names]
    texts = [content.text_table(name, folder) for name in extra_tables]
    style, script = asset("page.css"), asset("page.js")
    title, told = _deviations(deviations)
    page = (
        _environment()
        .get_template("page.html.j2")
        .render(
            policy=policy(style, script),
            style=Markup(style),
            script=Markup(script),
            key=key,
            paper=content.PAPER,
            claims=claims.judge(numbers, folder),
            claim_meanings=claims.MEANINGS,
            overview=content.overview(loaded),
            numbers={number.id: number for number in loaded},
            tables=tables,
            sections=sorted([*tables, *texts], key=lambda table: (not table.number.isdigit(), table.number.zfill(3))),
            figures=[_figure(name, folder) for name in figures],
            deviations_title=title,
            deviations=told,
            citations=content.citations(citation_file),
            directory=directory,
        )
    )
    write_text(out, _UNSHOWABLE.sub("\ufffd", page))


@cache
def asset(name: str) -> str:
    below = "templates" if name.endswith(".j2") else "assets"
    return files("subspaces.report.page").joinpath(below, name).read_text(encoding="utf-8")


def asset_digests() -> dict[str, str]:
    """The files that are not Python modules but decide the bytes of the page; part of the page's key."""
    return {name: hashlib.sha256(asset(name).encode()).hexdigest() for name in ASSETS}


def policy(style: str, script: str) -> str:
    """Content-Security-Policy: images inside the page, this style, this script, and nothing else."""
    rules = ["default-src 'none'", "img-src data:", f"style-src '{_source(style)}'", f"script-src '{_source(script)}'"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _source(block: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("subspaces.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"provenance": provenance, "VERDICTS": VERDICTS, "SIGNS": content.SIGNS}
    environment.globals |= {"MEANINGS": content.MEANINGS, "short_title": content.short_title, "LONG": provenance.LONG}
    environment.filters |= {"label": label, "plain": plain, "inline": inline, "style_of": content.style_of}
    environment.filters |= {"as_json": provenance.as_json}
    environment.tests["digest"] = provenance.is_digest
    return environment


def _figure(name: str, folder: Path) -> dict[str, Any]:
    """Title, caption, alternative text and the picture; the image is None where the file is missing or is not a PNG.

    Lossless WebP: all figures take 0.65 MB instead of 1.76 MB. The page may have 4 MB.
    """
    known = FIGURES[name]
    path = folder / f"figures/{name}.png"
    bytes_ = path.read_bytes() if path.is_file() else b""
    shown: dict[str, Any] = {
        "name": name,
        "title": known.title,
        "caption": known.caption,
        "alt": known.alt,
        "image": None,
    }
    if bytes_.startswith(_PNG):
        packed = BytesIO()
        with Image.open(BytesIO(bytes_)) as picture:
            width, height = picture.size
            picture.save(packed, "webp", lossless=True)
        # drawn at 200 dots per inch and shown at 280, so that letters have the size of the page's text
        size = {"width": width * 5 // 7, "height": height * 5 // 7, "wide": width > 2 * height}
        shown |= size | {"image": f"data:image/webp;base64,{base64.b64encode(packed.getvalue()).decode()}"}
    return shown


def _deviations(path: Path | None) -> tuple[Markup, Markup]:
    if path is None or not path.is_file():
        missing = "The list of deviations (docs/deviations.md) is missing."
        return Markup("Deviations from the paper"), Markup('<p class="missing">{}</p>').format(missing)
    title, rest = split_title(path.read_text(encoding="utf-8", errors="replace"))
    return inline(title or "Deviations from the paper"), markdown(rest, top=2)
