"""The command line. Rules of the workflow call `subspaces make OUTPUT`, so every job can be run by hand.

Commands work in the current folder and import what they need when they are called.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from subspaces.errors import DamagedModel, UserError, missing_package
from subspaces.experiments.composition.commands import app as composition_app
from subspaces.experiments.snli import commands as snli_commands
from subspaces.hierarchy.commands import app as hierarchy_app
from subspaces.pipeline.context import (
    Device,
    Threads,
    captions_here,
    choose,
    in_project,
    project_here,
    root,
    search_defaults,
)
from subspaces.search import commands as search_commands
from subspaces.serve import commands as serve_commands

app = typer.Typer(
    help="Concepts as linear subspaces: search, entailment, hierarchies, and the reproduction.", no_args_is_help=True
)
app.add_typer(composition_app, name="composition")
app.add_typer(hierarchy_app, name="hierarchy")
search_commands.use_project(search_defaults)
serve_commands.use_captions(captions_here)
Check = Annotated[bool, typer.Option("--check", help="Only compare; fail when the file is stale.")]

for _command in (
    search_commands.encode,
    search_commands.index,
    search_commands.search,
    search_commands.entail,
    snli_commands.train,
    serve_commands.serve,
):
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        import subspaces

        typer.echo(f"subspaces {subspaces.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    params: Annotated[Path, typer.Option(help="The parameter file.", envvar="SUBSPACES_PARAMS")] = Path("params.yaml"),
    scale: Annotated[
        str | None, typer.Option(help="quick, laptop or paper, instead of the file's own.", envvar="SUBSPACES_SCALE")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    choose(params, scale)


# --- the graph ------------------------------------------------------------------------------------------------------------


@app.command()
def make(
    outputs: Annotated[list[str], typer.Argument(metavar="OUTPUT...", help="One output, or all files of one job.")],
    threads: Threads = 1,
    device: Device = None,
) -> None:
    """Run the one job that makes OUTPUT from its inputs; `snakemake OUTPUT` makes the inputs too."""
    from subspaces.pipeline.artefact import Machine

    project = project_here()
    output, *more = outputs
    artefact = project.made_by(output)
    for other in more:
        if project.made_by(other) is not artefact:
            raise UserError(f"{output} and {other} belong to two jobs: run `subspaces make` for each.")
    if artefact.make is None:
        raise UserError(f"{output} is not the output of a job.")
    artefact.make(artefact, Machine(threads, device))


@app.command()
def status(
    check: Annotated[bool, typer.Option("--check", help="Only results/ and figures/; fail if one is stale.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List every output, current ones too.")] = False,
) -> None:
    """List the outputs that are not current, without running anything."""
    artefacts = [
        artefact
        for artefact in project_here().artefacts.values()
        if not check or artefact.output.startswith(("results/", "figures/"))
    ]
    if every:
        for artefact in artefacts:
            state = "current" if artefact.is_built() else "stale" if artefact.path.exists() else "missing"
            typer.echo(f"{state:8} {artefact.output}")
        return
    wanted = [artefact.output for artefact in artefacts if not artefact.is_built()]
    if check and wanted:
        raise UserError(f"stale or missing: {', '.join(wanted)}. Run `snakemake --cores 2`.")
    summary = f"{len(wanted)} of {len(artefacts)} outputs are not current" if wanted else "everything is current"
    typer.echo("\n".join([*wanted, summary]))


@app.command()
def sources() -> None:
    """Show each source: version, licence, where it came from, what is missing."""
    from subspaces.sources.status import format_status, status

    typer.echo(format_status(status(root(), Path("data/sources"))))


@app.command()
def fetch(name: str) -> None:
    """Download a source to data/sources/NAME, verified; at quick scale a sample may take its place."""
    from subspaces.pipeline.artefact import Machine

    data = project_here().experiment("data")
    data.fetch(data.source(name), Machine())


# --- reading the results --------------------------------------------------------------------------------------------------


@app.command()
def summary(
    folder: Annotated[Path, typer.Option(help="Where the results are.")] = Path(),
    seconds: Annotated[float | None, typer.Option(help="Time used, to show at the end.")] = None,
) -> None:
    """Show each table: our numbers beside the paper's, verdicts, scale, where the files are."""
    from subspaces.report.summary import summarise

    typer.echo(summarise(folder, seconds))


@app.command()
def readme(out: Path = Path("README.md")) -> None:
    """Put the headline numbers into the README, between its marks."""
    from subspaces.files import write_text
    from subspaces.report.summary import fill_headline, headline

    write_text(out, fill_headline(out.read_text(encoding="utf-8"), headline(Path())))


# --- files of the workflow ------------------------------------------------------------------------------------------------


@app.command()
def schema(out: Path = Path("workflow/schemas/params.schema.json")) -> None:
    """Write the JSON schema of params.yaml."""
    from subspaces.files import write_json
    from subspaces.pipeline.params import params_schema

    write_json(out, params_schema())


@app.command("dvc-yaml")
def dvc_yaml(out: Path = Path("dvc.yaml"), check: Check = False) -> None:
    """Generate dvc.yaml from the experiments and the number registry."""
    from subspaces.pipeline.dvc import dvc_text

    _write_or_check(out, dvc_text(project_here()), check, "subspaces dvc-yaml")


@app.command("rule-graph")
def rule_graph(out: Path = Path("docs/architecture.md"), check: Check = False) -> None:
    """Draw the rules of the workflow in docs/architecture.md."""
    from subspaces.pipeline.rulegraph import mermaid, with_graph

    _write_or_check(out, with_graph(out.read_text(encoding="utf-8"), mermaid(root())), check, "subspaces rule-graph")


def _write_or_check(out: Path, text: str, check: bool, command: str) -> None:
    from subspaces.files import write_text

    if not check:
        write_text(out, text)
    elif not out.exists() or out.read_text(encoding="utf-8") != text:
        raise UserError(f"{out} is stale: run `{command}` and commit the result.")


@app.command()
def plan() -> None:
    """Write the resolved settings of every trained row to results/settings; DVC's training stages depend on these files."""
    from subspaces.pipeline.dvc import write_plan

    changed = write_plan(project_here())
    typer.echo("\n".join([*changed, f"{len(changed)} files changed"]))


@app.command("restore")
def restore_results() -> None:
    """Pull all artefacts from the DVC remote and check that nothing is left to do."""
    from subspaces.pipeline.dvc import restore

    restore(project_here(), typer.echo)


@app.command("lock")
def lock_results() -> None:
    """Record in dvc.lock what Snakemake made, for every stage whose files exist and are current."""
    from subspaces.pipeline.dvc import lock

    kept, left = lock(project_here())
    lines = [f"unchanged: {stage} ({reason})" for stage, reason in left.items()]
    typer.echo("\n".join([*lines, f"{len(kept)} stages recorded"]))


@app.command(context_settings={"ignore_unknown_options": True})
def warm(command: Annotated[list[str], typer.Argument(help="What to run, after --.")]) -> None:
    """Run a command whose many `subspaces …` calls then start without waiting for their imports."""
    from subspaces.pipeline.warm import run_warm

    sys.exit(run_warm(command))


@app.command(context_settings={"ignore_unknown_options": True})
def watch(
    command: Annotated[list[str], typer.Argument(help="A Snakemake command, after --.")],
    folder: Annotated[Path, typer.Option(help="Where it works (its --directory).")] = Path(),
    verbose: Annotated[bool, typer.Option("--verbose", help="Show Snakemake's own log.")] = False,
) -> None:
    """Run Snakemake with one line per stage; its own log goes to logs/snakemake.log in the folder."""
    from subspaces.pipeline.watch import watch as watched

    sys.exit(watched(["subspaces", "warm", "--", *command], folder, folder / "logs/snakemake.log", verbose))


def _set_aside(error: UserError) -> str | None:
    """A damaged model that the workflow can rebuild is moved out of the way; a user's own folder is left alone."""
    if not isinstance(error, DamagedModel) or not in_project():
        return None
    folders = {artefact.path.parent.as_posix() for artefact in project_here().artefacts.values()}
    if error.folder.as_posix() not in folders:
        return None
    from subspaces.pipeline.run import set_aside

    weights, moved = error.folder / "weights.safetensors", set_aside(error.folder)
    return f"{weights} is damaged or missing. The folder is now {moved}; run the same command again to retrain it."


def main() -> None:
    try:
        app()
    except UserError as error:
        typer.secho(f"error: {_set_aside(error) or error}", fg=typer.colors.RED, err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if not (advice := missing_package(error)):
            raise
        typer.secho(f"error: {advice}", fg=typer.colors.RED, err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo(
            "stopped. What was saved is kept: the same command resumes from its last checkpoint, if it had made one.",
            err=True,
        )
        sys.exit(130)


if __name__ == "__main__":
    main()
