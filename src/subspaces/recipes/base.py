"""What all rooms share: the parameters, the working folder, and raw files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subspaces.files import read_json
from subspaces.keys import Recipe
from subspaces.params import Params
from subspaces.sources.registry import get


class BaseRecipes:
    """The recipes for one set of parameters in one working folder."""

    def __init__(self, params: Params, folder: Path = Path(), project: Path | None = None):
        self.params, self.folder = params, Path(folder)
        self.project = self.folder if project is None else Path(project)  # where params.yaml and the documents are

    def source(self, name: str) -> Recipe:
        """The raw files: the registry's digests, or the sample's when a sample is what there is (quick scale only)."""
        source = get(name)
        output = f"data/sources/{name}.json"
        settings: dict[str, Any] = {"source": name, "files": {one.name: one.sha256 for one in source.files}}
        record = self.folder / output
        if self.params.scale == "quick" and record.exists():
            content = read_json(record)
            if content.get("sample"):
                settings = {"source": name, "sample": content["files"]}
        return Recipe(output, settings)
