"""The page's own style, script and frame, and the policy that lets a browser run those and nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

NAMES = ("page.html", "page.css", "page.js")


@cache
def asset(name: str) -> str:
    return files("subspaces.paper.page").joinpath("assets", name).read_text(encoding="utf-8")


def asset_digests() -> dict[str, str]:
    """For the page's key: the files that are no Python modules, but decide its bytes."""
    return {name: hashlib.sha256(asset(name).encode()).hexdigest() for name in NAMES}


def policy(style: str, script: str) -> str:
    """Content-Security-Policy: pictures inside the page, these two blocks, and nothing from anywhere."""
    return "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_source(style)}'",
            f"script-src '{_source(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _source(block: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
