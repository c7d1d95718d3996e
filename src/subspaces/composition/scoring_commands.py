"""The rest of `subspaces composition …`: filter and compose the set, score the models, write the extra table."""

from __future__ import annotations

from pathlib import Path

import typer

from subspaces.composition.commands import app
from subspaces.context import Threads, recipes_here

__all__ = ["app"]
_SOURCES = Path("data/sources")


@app.command("build")
def build() -> None:
    """Drop the premises that a baseline misjudges, compose the rest: results/composition/elicited.csv and .json."""
    from subspaces.composition.build import build_set

    recipes = recipes_here()
    recipe, family = recipes.composition_set(), recipes.params.composition
    folders = {one.output.split("/")[2].partition("@")[0]: Path(one.output).parent for one in recipe.inputs}
    out = Path(recipe.output).with_suffix(".csv")
    report = build_set(recipes.reviewed_candidates, folders, family.premises, family.least, out, recipe.key, _SOURCES)
    typer.echo(report["text"])


@app.command("evaluate")
def evaluate(row: str, seed: int, threads: Threads = 1) -> None:
    """Score one 2-way SNLI model on the composites of both sets: one JSON of AUCs with intervals."""
    from subspaces.composition.authors import read_authors
    from subspaces.composition.build import chosen_candidates
    from subspaces.composition.evaluate import evaluate_composition

    recipes = recipes_here()
    recipe, family = recipes.composition_evaluation(row, seed), recipes.params.composition
    elicited, report = chosen_candidates(recipes.reviewed_candidates, Path(recipes.composition_set().output))
    sets = {"elicited": elicited, "authors": read_authors(_SOURCES / "composition" / "composite_entailment.txt")}
    extra = {"row": row, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    result = evaluate_composition(
        Path(recipe.inputs[0].output).parent,
        sets,
        Path(recipe.output),
        recipe.key,
        family.operator,
        threads,
        extra,
        chosen=family.set,
        reports={"elicited": report},
        sources=_SOURCES,
    )
    shown = ", ".join(f"{name} {'none' if value is None else f'{value:.1f} %'}" for name, value in result["metrics"].items())
    typer.echo(f"{row}: {shown} ({result['extent']['text']})")


@app.command("extra")
def extra() -> None:
    """Write the table of what the paper leaves out: results/tables/composition_extra.tex and .md."""
    from subspaces.composition.extra_table import extra_table
    from subspaces.files import read_json, write_text
    from subspaces.paper.layouts import LAYOUTS

    recipe = recipes_here().composition_extra
    found: dict[str, list] = {}
    for one in recipe.inputs:
        content = read_json(one.output)
        found.setdefault(content["row"], []).append(content)
    markdown, latex = extra_table(found, LAYOUTS["composition"].rows, recipe.key)
    write_text(Path(recipe.output).with_suffix(".md"), markdown)
    write_text(Path(recipe.output), latex)
