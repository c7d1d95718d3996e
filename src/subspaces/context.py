"""What every command shares: the parameter file and scale given on the command line, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subspaces.errors import UserError

if TYPE_CHECKING:
    from subspaces.keys import Recipe


@dataclass
class _State:
    params: Path = Path("params.yaml")
    scale: str | None = None


_state = _State()
Threads = Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda, instead of what params.yaml says.", show_default="params.yaml")]


def choose(params: Path, scale: str | None) -> None:
    """Called once, by the options before the command."""
    _state.params, _state.scale = params, scale


def recipes_here():
    from subspaces.params import load_params
    from subspaces.recipes import Recipes

    return Recipes(load_params(_state.params, _state.scale), project=project())


def with_current_inputs(recipe: Recipe) -> Recipe:
    """The recipe, unless something that it is made from is stale: what is made from that would carry a key that it does not deserve."""
    stale = [one.output for one in recipe.inputs if one.is_stale()]
    if stale:
        some = ", ".join(stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
        verb = "was" if len(stale) == 1 else "were"
        make = f"run `snakemake --cores 2 {recipe.output}`, which makes all that is stale"
        raise UserError(f"{some} {verb} made from other settings or other code: {make}.")
    return recipe


def in_project() -> bool:
    return _state.params.is_file()


def project() -> Path:
    """The folder of params.yaml: a mirror may lie beside it."""
    return _state.params.resolve().parent


def device_for(recipes, geometry: str, asked: str | None) -> str:
    """Small vectors gain nothing from a GPU, so only subspaces look for one by themselves."""
    from subspaces.training.device import choose_device

    return choose_device(asked or (recipes.params.device if geometry == "subspace" else "cpu"))
