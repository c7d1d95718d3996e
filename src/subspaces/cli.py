"""The command line: every rule of the workflow is one of these commands, so every job can be run by hand.

Commands work in the current folder and import what they need when they are called: most take a tenth of a second to start.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from subspaces.composition.scoring_commands import app as composition_app
from subspaces.context import choose, in_project, project, recipes_here, with_current_inputs
from subspaces.errors import DamagedModel, UserError
from subspaces.hierarchy.commands import app as hierarchy_app
from subspaces.nli.commands import app as snli_app
from subspaces.retrieval import commands as retrieval_commands
from subspaces.retrieval.pipeline import app as retrieval_app
from subspaces.wordnet.commands import hyperlex_app, link_app, reconstruction_app, wordnet_app

app = typer.Typer(help="Concepts as linear subspaces: data, training, evaluation, tables and figures.", no_args_is_help=True)
paper_app = typer.Typer(help="Numbers, tables and figures of the paper.", no_args_is_help=True)
app.add_typer(wordnet_app, name="wordnet")
app.add_typer(reconstruction_app, name="reconstruction")
app.add_typer(hyperlex_app, name="hyperlex")
app.add_typer(link_app, name="link-prediction")
app.add_typer(snli_app, name="snli")
app.add_typer(composition_app, name="composition")
app.add_typer(retrieval_app, name="retrieval")
app.add_typer(hierarchy_app, name="hierarchy")
app.add_typer(paper_app, name="paper")


for _command in (retrieval_commands.encode, retrieval_commands.index, retrieval_commands.search, retrieval_commands.entail):
    app.command()(_command)


@app.callback()
def _options(
    params: Annotated[Path, typer.Option(help="The parameter file.", envvar="SUBSPACES_PARAMS")] = Path("params.yaml"),
    scale: Annotated[str | None, typer.Option(help="quick, laptop or paper, instead of the one the file names.")] = None,
) -> None:
    choose(params, scale)


# --- sources and data -----------------------------------------------------------------------------------------------------


@app.command()
def sources() -> None:
    """Show each source: version, licence, where it came from, what is missing."""
    from subspaces.sources.status import format_status, status

    typer.echo(format_status(status(project(), Path("data/sources"))))


@app.command()
def fetch(name: str) -> None:
    """Bring a source to data/sources/NAME, verified; at quick scale a sample may stand in."""
    from subspaces.files import write_json
    from subspaces.sources.fetch import fetch as fetch_source

    recipes = recipes_here()
    manifest = fetch_source(name, Path("data/sources") / name, root=project(), allow_sample=recipes.params.scale == "quick")
    files = {file: one["sha256"] for file, one in manifest["files"].items()}
    record = {"source": name, "origin": manifest["origin"], "sample": manifest["sample"], "files": files}
    path = Path(f"data/sources/{name}.json")
    write_json(path, record)  # first without the key: the recipe looks here to learn whether a sample stood in
    write_json(path, {**record, "key": recipes_here().source(name).key})
    typer.echo(f"{name}: {len(files)} files from {manifest['origin']}" + (" (SAMPLE, not the real data)" if manifest["sample"] else ""))


# --- the paper ------------------------------------------------------------------------------------------------------------


@paper_app.command("number")
def paper_number(identifier: str) -> None:
    """Make results/numbers/IDENTIFIER.json from the evaluations it needs."""
    from subspaces.paper.numbers import write_number
    from subspaces.paper.registry import number

    recipes = recipes_here()
    recipe = with_current_inputs(recipes.number(identifier))
    evaluations = [Path(one.output) for one in recipe.inputs]
    reason = recipes.reason_not_run(identifier)
    write_number(asdict(number(identifier)), recipes.params.scale, evaluations, Path(recipe.output), recipe.key, recipe.code_digest, reason)


@paper_app.command("bounds")
def paper_bounds() -> None:
    """Check every bound of Table 1 numerically; a broken one is an error."""
    from subspaces.bounds import check_bounds, require_bounds
    from subspaces.files import write_json

    recipe = recipes_here().bounds
    rows = check_bounds(**recipe.settings)
    require_bounds(rows)
    write_json(recipe.output, {"key": recipe.key, "settings": recipe.settings, "rows": [asdict(row) for row in rows]})


@paper_app.command("table")
def paper_table(name: str) -> None:
    """Make results/tables/NAME.tex and .md from number files, or from evaluations where it is one of our own."""
    from subspaces.recipes import EXTRA_TABLES

    recipes = recipes_here()
    recipe = with_current_inputs(recipes.any_table(name))
    tex = Path(recipe.output)
    if name == "soft_projectors":
        from subspaces.bounds import BoundRow, soft_projectors_table
        from subspaces.files import read_json, write_text

        rows = [BoundRow(**row) for row in read_json(recipe.inputs[0].output)["rows"]]
        write_text(tex.with_suffix(".md"), f"<!-- key:{recipe.key} -->\n" + soft_projectors_table(rows, "md"))
        write_text(tex, f"% key:{recipe.key}\n" + soft_projectors_table(rows, "tex"))
    elif name in EXTRA_TABLES:
        from subspaces.paper.extras import write_extra

        write_extra(name, [Path(one.output) for one in recipe.inputs], tex, recipe.key)
    else:
        from subspaces.paper.tables import write_table

        write_table(name, [Path(one.output) for one in recipe.inputs], tex, tex.with_suffix(".md"), recipe.key)


@paper_app.command("figure")
def paper_figure(name: str) -> None:
    """Draw figures/NAME.pdf and .png."""
    import importlib

    from subspaces.files import read_json
    from subspaces.paper.layouts import LAYOUTS
    from subspaces.paper.style import save
    from subspaces.recipes import FIGURES

    recipe = with_current_inputs(recipes_here().figure(name))
    module, function = FIGURES[name]
    draw = getattr(importlib.import_module(f"subspaces.paper.figures.{module}"), function)
    inputs = [Path(one.output) for one in recipe.inputs]
    if name == "rank_vs_descendants":
        figure = draw(inputs[0], recipe.settings["points"], recipe.settings["chain"])
    elif name.startswith(("link_prediction", "composition")):
        table = "composition" if name == "composition" else "link_prediction"
        figure = draw([read_json(path) for path in inputs], LAYOUTS[table].rows)
    elif name == "inclusion_histograms":
        shown = [read_json(path) for path in inputs]
        figure = draw(*([one for one in shown if one["settings"]["ways"] == ways] for ways in (2, 3)))
    elif name == "compression":
        figure = draw({name: value for path in inputs for name, value in read_json(path).items()})
    elif name in ("entailment_chains", "storage", "retrieval"):
        figure = draw(read_json(inputs[0]))
    else:
        figure = draw(*([[read_json(path) for path in inputs]] if inputs else []))
    save(figure, Path(recipe.output).with_suffix(""), recipe.key)


@paper_app.command("page")
def paper_page() -> None:
    """Make results/report.html: one file, no network, every number with its provenance."""
    import os

    from subspaces.paper import registry
    from subspaces.paper.page.build import build_page
    from subspaces.recipes import FIGURES, OWN_TABLES

    recipes = recipes_here()
    recipe = with_current_inputs(recipes.page)
    here, place = Path.cwd(), project()
    build_page(
        Path(),
        Path(recipe.output),
        recipe.key,
        place / "docs/deviations.md",
        evidence={identifier: [one.output for one in recipes.evidence(identifier)] for identifier in registry.numbers()},
        figures=tuple(FIGURES),
        extra_tables=OWN_TABLES,
        captions=recipes.report_captions,
        citation_file=place / "CITATION.cff",
        place="" if here == place else os.path.relpath(here, place),
    )


@app.command()
def summary(
    folder: Annotated[Path, typer.Option(help="Where the results are.")] = Path(),
    seconds: Annotated[float | None, typer.Option(help="Time used, to show at the end.")] = None,
) -> None:
    """Show each table: our numbers beside the paper's, verdicts, scale, where the files are."""
    from subspaces.paper.summary import summarise

    typer.echo(summarise(folder, seconds))


@paper_app.command("readme")
def paper_readme(out: Path = Path("README.md")) -> None:
    """Put the headline numbers into the README, between its marks."""
    from subspaces.files import write_text
    from subspaces.paper.summary import fill_headline, headline

    write_text(out, fill_headline(out.read_text(encoding="utf-8"), headline(Path())))


# --- the workflow's own files ---------------------------------------------------------------------------------------------


@app.command()
def schema(out: Path = Path("workflow/schemas/params.schema.json")) -> None:
    """Write the JSON schema of params.yaml."""
    from subspaces.files import write_json
    from subspaces.params import params_schema

    write_json(out, params_schema())


@app.command("dvc-yaml")
def dvc_yaml(
    out: Path = Path("dvc.yaml"), check: Annotated[bool, typer.Option("--check", help="Only compare; fail when stale.")] = False
) -> None:
    """Generate dvc.yaml from the parameters and the number registry."""
    from subspaces.dvcfile import dvc_text
    from subspaces.files import write_text

    text = dvc_text(recipes_here())
    if not check:
        write_text(out, text)
    elif not out.exists() or out.read_text() != text:
        raise UserError(f"{out} is stale: run `subspaces dvc-yaml` and commit the result.")


@app.command("rule-graph")
def rule_graph(
    out: Path = Path("docs/architecture.md"),
    check: Annotated[bool, typer.Option("--check", help="Only compare; fail when stale.")] = False,
) -> None:
    """Draw the rules of the workflow in docs/architecture.md."""
    from subspaces.files import write_text
    from subspaces.rulegraph import mermaid, with_graph

    old = out.read_text(encoding="utf-8")
    new = with_graph(old, mermaid(project()))
    if not check:
        write_text(out, new)
    elif old != new:
        raise UserError(f"the rule graph in {out} is stale: run `subspaces rule-graph` and commit the result.")


@app.command("restore")
def restore_results() -> None:
    """Pull all artefacts from the DVC remote and check that nothing is left to do."""
    from subspaces.restore import restore

    restore(recipes_here().everything(), Path(), typer.echo)


@app.command("lock")
def lock_results() -> None:
    """Let DVC remember what was made with Snakemake: dvc.lock, for every stage whose files are here and current."""
    from subspaces.lock import lock

    kept, left = lock(recipes_here().everything(), Path())
    typer.echo("\n".join([*(f"left as it was: {stage} ({reason})" for stage, reason in left.items()), f"{len(kept)} stages remembered"]))


@app.command("adopt")
def adopt_results(
    reason: Annotated[str, typer.Option(help="Why the results stay the same; kept beside each of them.")],
    since: Annotated[str, typer.Option(help="The git revision whose results are kept.")] = "HEAD",
    new: Annotated[list[str] | None, typer.Option(help="NAME=VALUE: a setting that is new, and says what was always done.")] = None,
) -> None:
    """Keep the results of a revision whose code has changed since without changing them. Settings must be the same, but for new ones."""
    import yaml

    from subspaces.adopt import adopt, commit_of, keys_at

    added = dict(one.partition("=")[::2] for one in new or ())
    recipes = recipes_here()
    revision = commit_of(since, project())
    before = keys_at(revision, project(), recipes.params.scale, Path())
    values = {name: yaml.safe_load(value) for name, value in added.items()}
    kept = adopt(recipes.everything(), before, reason, revision, new=values)
    typer.echo("\n".join([*kept, f"{len(kept)} outputs adopted from {revision}"]))


@app.command()
def status(
    check: Annotated[bool, typer.Option("--check", help="Only results/ and figures/, which git keeps; fail if one is stale.")] = False,
) -> None:
    """List the outputs that are not current, without running anything."""
    recipes = [one for one in recipes_here().everything() if not check or one.output.startswith(("results/", "figures/"))]
    wanted = [one.output for one in recipes if not one.is_built()]
    if check and wanted:
        raise UserError(f"made from other settings, other code or another text: {', '.join(wanted)}. Run `snakemake --cores 2`.")
    typer.echo("\n".join([*wanted, f"{len(wanted)} of {len(recipes)} outputs are not current"]) if wanted else "everything is current")


@app.command(context_settings={"ignore_unknown_options": True})
def warm(command: Annotated[list[str], typer.Argument(help="What to run, after --.")]) -> None:
    """Run a command whose many `subspaces …` calls then start without waiting for their imports."""
    from subspaces.warm import run_warm

    sys.exit(run_warm(command))


def _set_aside(error: UserError) -> str | None:
    """A damaged model that the workflow can make again is moved out of the way; what is somebody's own is left where it is."""
    if not isinstance(error, DamagedModel) or not in_project():
        return None
    if error.folder.as_posix() not in {Path(one.output).parent.as_posix() for one in recipes_here().everything()}:
        return None
    from subspaces.training.job import set_aside

    weights, place = error.folder / "weights.safetensors", set_aside(error.folder)
    return f"{weights} is damaged or missing. The folder is now {place}; the same command again trains the model anew."


def main() -> None:
    try:
        app()
    except UserError as error:
        typer.secho(f"error: {_set_aside(error) or error}", fg=typer.colors.RED, err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("stopped; the next run goes on from the last checkpoint", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
