"""The command line: every rule of the workflow is one of these commands, so every job can be run by hand.

Commands work in the current folder and import what they need when they are called: most take a tenth of a second to start.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from subspaces.errors import UserError

app = typer.Typer(help="Concepts as linear subspaces: data, training, evaluation, tables and figures.", no_args_is_help=True)
wordnet_app = typer.Typer(help="WordNet hierarchies.", no_args_is_help=True)
reconstruction_app = typer.Typer(help="WordNet reconstruction (Table 2).", no_args_is_help=True)
paper_app = typer.Typer(help="Numbers, tables and figures of the paper.", no_args_is_help=True)
app.add_typer(wordnet_app, name="wordnet")
app.add_typer(reconstruction_app, name="reconstruction")
app.add_typer(paper_app, name="paper")


@dataclass
class _State:
    params: Path = Path("params.yaml")
    scale: str | None = None


_state = _State()
Threads = Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")]


@app.callback()
def _options(
    params: Annotated[Path, typer.Option(help="The parameter file.", envvar="SUBSPACES_PARAMS")] = Path("params.yaml"),
    scale: Annotated[str | None, typer.Option(help="quick, laptop or paper, instead of the one the file names.")] = None,
) -> None:
    _state.params, _state.scale = params, scale


def _recipes():
    from subspaces.params import load_params
    from subspaces.recipes import Recipes

    return Recipes(load_params(_state.params, _state.scale))


def _project() -> Path:
    """The folder of params.yaml: a mirror may lie beside it."""
    return _state.params.resolve().parent


# --- sources and data -----------------------------------------------------------------------------------------------------


@app.command()
def sources() -> None:
    """Show each source: version, licence, where it came from, what is missing."""
    from subspaces.sources.status import format_status, status

    typer.echo(format_status(status(_project(), Path("data/sources"))))


@app.command()
def fetch(name: str) -> None:
    """Bring a source to data/sources/NAME, verified; at quick scale a sample may stand in."""
    from subspaces.files import write_json
    from subspaces.sources.fetch import fetch as fetch_source

    recipes = _recipes()
    manifest = fetch_source(name, Path("data/sources") / name, root=_project(), allow_sample=recipes.params.scale == "quick")
    files = {file: one["sha256"] for file, one in manifest["files"].items()}
    record = {"source": name, "origin": manifest["origin"], "sample": manifest["sample"], "files": files}
    path = Path(f"data/sources/{name}.json")
    write_json(path, record)  # first without the key: the recipe looks here to learn whether a sample stood in
    write_json(path, {**record, "key": _recipes().source(name).key})
    typer.echo(f"{name}: {len(files)} files from {manifest['origin']}" + (" (SAMPLE, not the real data)" if manifest["sample"] else ""))


@wordnet_app.command("build")
def wordnet_build(pos: str) -> None:
    """Close the hypernym relation of nouns or verbs: data/wordnet/POS.npz and .json."""
    from subspaces.paper.registry import claims
    from subspaces.wordnet.prepare import prepare_hierarchy

    recipes = _recipes()
    recipe = recipes.hierarchy(pos)
    expected = {name: int(claims()[f"wordnet-{pos[:-1]}-{name}"]) for name in ("nodes", "edges", "closure")}
    switch = recipes.params.wordnet.instance_hypernyms
    record = prepare_hierarchy(Path("data/sources/wordnet"), pos, switch, expected, Path(recipe.output), recipe.key)
    typer.echo(f"{pos}: " + ", ".join(f"{count:,} {name}" for name, count in record["counts"].items()))


# --- reconstruction -------------------------------------------------------------------------------------------------------


@reconstruction_app.command("train")
def reconstruction_train(row: str, pos: str, seed: int, threads: Threads = 1) -> None:
    """Train one row of Table 2; a killed run goes on from its checkpoint."""
    from subspaces.files import read_json
    from subspaces.training.checkpoint import Checkpoints
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.fit import fit_reconstruction, graph_of

    recipes = _recipes()
    recipe = recipes.reconstruction_model(row, pos, seed)
    job = recipes.params.reconstruction_job(row, pos)
    data = read_json(recipes.hierarchy(pos).output)
    graph = graph_of(job, Path(f"data/wordnet/{pos}.npz"), data["sample"])
    progress = ConsoleProgress(f"{row} {pos} seed {seed}", "edges", min(job["training"]["batch"], len(graph.ancestors)))
    checkpoint = recipes.params.checkpoint
    settings = fit_reconstruction(
        job,
        seed,
        graph,
        Path(recipe.output).parent,
        recipe.key,
        Checkpoints(Path("checkpoints/reconstruction") / row / pos / f"seed-{seed}", recipe.key, progress.say),
        progress,
        threads,
        checkpoint.seconds,
        checkpoint.epochs,
        {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "instance_hypernyms")}},
    )
    progress.say(f"{settings['steps']:,} steps done, weights in {Path(recipe.output).parent}")


@reconstruction_app.command("evaluate")
def reconstruction_evaluate(row: str, pos: str, seed: int, threads: Threads = 1) -> None:
    """Rank all ancestors of all nodes with a trained model: one JSON of metrics."""
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.evaluate import evaluate_reconstruction

    recipes = _recipes()
    recipe = recipes.reconstruction_evaluation(row, pos, seed)
    progress = ConsoleProgress(f"evaluate {row} {pos} seed {seed}", "nodes")

    def tick(done: int, total: int) -> None:
        if not hasattr(progress, "total"):
            progress.start(total, 0)
        progress.update(done, {})

    extra = {"row": row, "pos": pos, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    folder = Path(recipe.inputs[0].output).parent
    result = evaluate_reconstruction(folder, Path(f"data/wordnet/{pos}.npz"), Path(recipe.output), recipe.key, threads, tick, extra)
    metrics = result["metrics"]
    progress.say(f"mAP {metrics['map']:.2f} %  MR {metrics['mr']:.3f}  ρ {metrics['rho']:.1f}")


@reconstruction_app.command("ranks")
def reconstruction_ranks(row: str, pos: str, seed: int, threads: Threads = 1) -> None:
    """Effective rank and number of descendants of every node, for the figure."""
    from subspaces.wordnet.evaluate import write_ranks

    recipe = _recipes().reconstruction_ranks(row, pos, seed)
    folder = Path(recipe.inputs[0].output).parent
    write_ranks(folder, Path(f"data/wordnet/{pos}.npz"), Path(recipe.output), recipe.key, threads)


# --- the paper ------------------------------------------------------------------------------------------------------------


@paper_app.command("number")
def paper_number(identifier: str) -> None:
    """Make results/numbers/IDENTIFIER.json from the evaluations it needs."""
    from subspaces.paper.numbers import write_number
    from subspaces.paper.registry import number

    recipes = _recipes()
    recipe = recipes.number(identifier)
    evaluations = [Path(one.output) for one in recipe.inputs]
    reason = recipes.reason_not_run(identifier)
    write_number(asdict(number(identifier)), recipes.params.scale, evaluations, Path(recipe.output), recipe.key, recipe.code_digest, reason)


@paper_app.command("bounds")
def paper_bounds() -> None:
    """Check every bound of Table 1 numerically; a broken one is an error."""
    from subspaces.bounds import check_bounds, require_bounds
    from subspaces.files import write_json

    recipe = _recipes().bounds
    rows = check_bounds(**recipe.settings)
    require_bounds(rows)
    write_json(recipe.output, {"key": recipe.key, "settings": recipe.settings, "rows": [asdict(row) for row in rows]})


@paper_app.command("table")
def paper_table(name: str) -> None:
    """Make results/tables/NAME.tex and .md from number files."""
    recipes = _recipes()
    recipe = recipes.any_table(name)
    tex = Path(recipe.output)
    if name == "soft_projectors":
        from subspaces.bounds import BoundRow, soft_projectors_table
        from subspaces.files import read_json, write_text

        rows = [BoundRow(**row) for row in read_json(recipe.inputs[0].output)["rows"]]
        write_text(tex.with_suffix(".md"), f"<!-- key:{recipe.key} -->\n" + soft_projectors_table(rows, "md"))
        write_text(tex, f"% key:{recipe.key}\n" + soft_projectors_table(rows, "tex"))
    else:
        from subspaces.paper.tables import write_table

        write_table(name, [Path(one.output) for one in recipe.inputs], tex, tex.with_suffix(".md"), recipe.key)


@paper_app.command("figure")
def paper_figure(name: str) -> None:
    """Draw figures/NAME.pdf and .png."""
    from subspaces.paper.style import save

    recipe = _recipes().figure(name)
    if name == "overview":
        from subspaces.paper.figures.overview import draw_overview

        figure = draw_overview()
    else:
        from subspaces.paper.figures.rank_vs_descendants import draw_ranks

        figure = draw_ranks(Path(recipe.inputs[0].output), recipe.settings["points"], recipe.settings["chain"])
    save(figure, Path(recipe.output).with_suffix(""), recipe.key)


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

    text = dvc_text(_recipes())
    if not check:
        write_text(out, text)
    elif not out.exists() or out.read_text() != text:
        raise UserError(f"{out} is stale: run `subspaces dvc-yaml` and commit the result.")


@app.command()
def status() -> None:
    """List the outputs that are not current, without running anything."""
    recipes = _recipes().everything()
    wanted = [one.output for one in recipes if not one.is_built()]
    typer.echo("\n".join([*wanted, f"{len(wanted)} of {len(recipes)} outputs are not current"]) if wanted else "everything is current")


def main() -> None:
    try:
        app()
    except UserError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("stopped; the next run goes on from the last checkpoint", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
