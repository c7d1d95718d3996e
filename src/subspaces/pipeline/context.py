"""What every command shares: the parameter file and scale given on the command line, and the project that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from subspaces.pipeline.project import Project
    from subspaces.search.commands import Defaults


@dataclass
class _State:
    params: Path = Path("params.yaml")
    scale: str | None = None


_state = _State()
Threads = Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")]
Device = Annotated[
    str | None, typer.Option(help="auto, cpu or cuda, instead of what params.yaml says.", show_default="params.yaml")
]


def choose(params: Path, scale: str | None) -> None:
    """Called once, by the options before the command."""
    _state.params, _state.scale = params, scale


def project_here() -> Project:
    from subspaces.pipeline.project import Project

    return Project.open(_state.params, _state.scale)


def in_project() -> bool:
    return _state.params.is_file()


def root() -> Path:
    """The folder of params.yaml; a mirror may lie beside it."""
    return _state.params.resolve().parent


def search_defaults() -> Defaults | None:
    """The model and the index of the workflow, for `subspaces search` without options inside the project's folder."""
    from subspaces.pipeline.experiment import SOURCES
    from subspaces.search.commands import Defaults

    if not in_project():
        return None
    project = project_here()
    efficiency = project.experiment("efficiency")
    model, index = efficiency.text_model, efficiency.index(project.params.retrieval.search_kind)
    return Defaults(model.path.parent, index.path.with_suffix(""), index.output, SOURCES)


def captions_here() -> Path | None:
    """The captions that the workflow prepared, for `subspaces serve` without options inside the project's folder."""
    if not in_project():
        return None
    from subspaces.experiments.data import CAPTIONS

    path = root() / f"{CAPTIONS}.txt"
    return path if path.is_file() else None
