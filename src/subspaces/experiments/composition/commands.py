"""`subspaces composition …`: elicit candidates, parse the answers, check and review them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Compositional entailment (Table 6): elicit, parse, check and review candidates.", no_args_is_help=True
)
Candidates = Annotated[Path, typer.Argument(help="A CSV file of candidates.", show_default=False)]


@app.command()
def elicit(
    out: Annotated[Path, typer.Option(help="The record: every raw answer, one per line.", show_default=False)],
    settings: Annotated[
        Path, typer.Option(help="A YAML file with the settings, at the top level or under composition: elicitation:.")
    ] = Path("params.yaml"),
    endpoint: Annotated[
        str | None, typer.Option(help="Another address of the service, such as a proxy.", show_default=False)
    ] = None,
) -> None:
    """Ask Gemini for examples until there are enough; a stopped run resumes. The key is read from GEMINI_API_KEY."""
    from subspaces.experiments.composition.elicit import elicit as run
    from subspaces.training.progress import ConsoleProgress

    summary = run(_settings(settings), out, endpoint=endpoint, progress=ConsoleProgress("elicit", "candidates"))
    typer.echo(
        f"{summary.candidates:,} candidates from {summary.answers:,} answers ({summary.refused:,} refused), "
        f"{summary.failed:,} failed attempts, {summary.tokens:,} tokens\nin {out}; next: subspaces composition parse {out}"
    )


@app.command()
def parse(
    record: Annotated[Path, typer.Argument(help="A record made by `elicit`.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The candidates.", show_default="beside the record")] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Answers that are not candidates, and why.", show_default="beside the record")
    ] = None,
) -> None:
    """Turn recorded answers into candidates."""
    from subspaces.errors import UserError
    from subspaces.experiments.composition.candidates import has_decisions, load_reviewed, write_candidates
    from subspaces.experiments.composition.parse import parse_record, write_rejects

    out, rejects = out or record.with_suffix(".csv"), rejects or record.with_suffix(".rejects.csv")
    if len({path.resolve() for path in (record, out, rejects)}) < 3:
        raise UserError("the record, --out and --rejects must be three different files.")
    if out.exists() and has_decisions(out) and any(one.decision for one in load_reviewed(out)):
        raise UserError(f"{out} holds decisions of a review, which would be lost: choose another file with --out.")
    candidates, unread = parse_record(record)
    if not candidates:
        write_rejects(rejects, unread)
        raise UserError(f"no answer in {record} could be read as a candidate; the reasons are in {rejects}.")
    write_candidates(out, candidates)
    write_rejects(rejects, unread)
    typer.echo(
        f"{len(candidates):,} candidates in {out}, {len(unread):,} rejects in {rejects}\nnext: subspaces composition review {out}"
    )


@app.command()
def check(candidates: Candidates) -> None:
    """Show the automatic flags of each candidate. They are hints; people decide."""
    from subspaces.experiments.composition.candidates import load_candidates
    from subspaces.experiments.composition.checks import check as run
    from subspaces.experiments.composition.checks import count_flags

    flags = run(load_candidates(candidates))
    for name, some in flags.items():
        if some:
            typer.echo(f"{name}\t{', '.join(some)}")
    counts = ", ".join(f"{count} {kind}" for kind, count in count_flags(flags.values()).most_common())
    typer.echo(
        f"{sum(map(bool, flags.values())):,} of {len(flags):,} candidates have flags"
        + (f": {counts}" if counts else ""),
        err=True,
    )


@app.command()
def review(
    candidates: Candidates,
    out: Annotated[Path | None, typer.Option(help="The review.", show_default="CANDIDATES.reviewed.csv")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show decided candidates too.")] = False,
) -> None:
    """Keep or discard candidates, one key each; quit at any time; the same command resumes. Reads lines when there is no terminal."""
    from subspaces.experiments.composition.keyboard import keys_of
    from subspaces.experiments.composition.review import Review, run_review

    state = Review.open(candidates, out or candidates.with_suffix(".reviewed.csv"))
    try:
        run_review(state, keys_of(sys.stdin), typer.echo, everything=everything)
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; every decision is in {state.path}")


def _settings(path: Path) -> dict:
    import yaml

    from subspaces.errors import UserError

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path} was not found: run from the project's folder, or give --settings.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if isinstance(content, dict) and "composition" in content:
        content = (content["composition"] or {}).get("elicitation")
    elif isinstance(content, dict) and "prompt" not in content:
        content = None
    if not isinstance(content, dict):
        raise UserError(
            f"{path} has no settings for the elicitation: give prompt, model, count … at the top level or under composition: elicitation:."
        )
    return content
