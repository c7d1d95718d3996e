"""`subspaces hierarchy …`: fit an edge list, ask about a node, score pairs."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Any hierarchy as subspaces: fit an edge list, ask about a node, score pairs.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder made by `fit`.", show_default=False)]


@app.command()
def fit(
    edges: Annotated[Path, typer.Argument(help="One child TAB parent per line, plain or gzip.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    dim: Annotated[int, typer.Option(help="Dimension d of the space.")] = 64,
    lam: Annotated[float, typer.Option("--lambda", help="λ of the soft projector.")] = 0.2,
    epochs: Annotated[str, typer.Option(help="Passes over the closure, or auto.")] = "auto",
    batch: Annotated[int | None, typer.Option(help="Edges of a step.", show_default="auto")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.", show_default="auto")] = None,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")] = 1,
    minutes: Annotated[float | None, typer.Option(help="Pause after so many minutes of training; the same command goes on.")] = None,
) -> None:
    """Close the relation of an edge list and learn a subspace for every node; a killed fit goes on from its checkpoint."""
    from subspaces.errors import UserError
    from subspaces.files import read_json
    from subspaces.hierarchy.fit import Paused, fit_hierarchy
    from subspaces.training.progress import ConsoleProgress

    if epochs != "auto" and not (epochs.isdecimal() and int(epochs) > 0):
        raise UserError(f"--epochs must be auto or a whole number from 1, not {epochs!r}.")
    passes = None if epochs == "auto" else int(epochs)
    progress = ConsoleProgress("hierarchy", "steps")
    try:
        record, worked = fit_hierarchy(
            edges,
            out,
            dim=dim,
            lam=lam,
            epochs=passes,
            batch=batch,
            lr=lr,
            seed=seed,
            threads=threads,
            minutes=minutes,
            progress=progress,
        )
    except Paused as pause:
        typer.echo(str(pause))
        return
    if not worked:
        typer.echo(f"nothing to do: {out} is a finished fit of these edges and settings")
    counts, quality, threshold = record["counts"], record["quality"], record["threshold"]
    seconds = read_json(out / "timing.json")["seconds"]
    of = f"{quality['sources']:,} nodes" + (" at random" if quality["sources"] >= 2000 else "")
    typer.echo(
        f"{counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['closure']:,} in the closure; trained in {seconds:,.0f} s\n"
        f"mAP {quality['map']:.2f} %, MR {quality['mr']:.3f} (on {of}, the training edges themselves)\n"
        f"rank: Spearman with number of descendants {quality['rho_descendants']:.1f} %, "
        f"the ancestor is the larger one in {quality['ancestor_larger']:.2f} % of the closure\n"
        f"entailed from inclusion {threshold['threshold']:.4f} (F1 {threshold['f1']:.2f} % on training edges)\n"
        f"in {out}; next: subspaces hierarchy query {out} NAME"
    )


@app.command()
def query(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="A node.", show_default=False)],
    top: Annotated[int, typer.Option(min=1, help="Lines of each list.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Show a node's rank, its ancestors and its descendants by inclusion; * marks given edges, + those that follow from them."""
    from dataclasses import asdict

    from subspaces.hierarchy.model import SubspaceHierarchy

    hierarchy = SubspaceHierarchy.load(folder)
    rank, lists = hierarchy.rank(name), {"ancestors": hierarchy.ancestors(name, top), "descendants": hierarchy.descendants(name, top)}
    if as_json:
        answer = {"name": name, "rank": rank, "threshold": hierarchy.threshold}
        answer |= {title: [asdict(one) for one in some] for title, some in lists.items()}
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{name}: effective rank {rank:.2f} of {hierarchy.dim}")
    marks = {"given": "*", "closure": "+", "": " "}
    for title, some in lists.items():
        typer.echo(f"\n{title}" + ("  (inclusion, rank)" if some else ": none"))
        for one in some:
            typer.echo(f"  {one.inclusion:6.4f}  {one.rank:6.2f}  {marks[one.known]} {one.name}")
    typer.echo(f"\n* given  + follows from given edges  (entailed from {hierarchy.threshold:.4f})")


@app.command()
def score(
    folder: Folder,
    pairs: Annotated[Path, typer.Argument(help="One child TAB parent per line, plain or gzip.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The table to write.", show_default="the terminal")] = None,
    skip_unknown: Annotated[bool, typer.Option("--skip-unknown", help="Leave lines with unknown names out, and count them.")] = False,
) -> None:
    """Score pairs: child, parent, inclusion, entailed (yes or no, by the fitted threshold), one line each."""
    from subspaces.files import atomic_file
    from subspaces.hierarchy.model import SubspaceHierarchy
    from subspaces.hierarchy.scoring import Scorer

    scorer = Scorer(SubspaceHierarchy.load(folder), skip_unknown)
    written = 0
    with atomic_file(out, "w") if out else nullcontext(sys.stdout) as handle:
        handle.write("child\tparent\tinclusion\tentailed\n")
        for one in scorer.scores(pairs):
            written += 1
            handle.write(f"{one.child}\t{one.parent}\t{one.inclusion:.6f}\t{'yes' if one.entailed else 'no'}\n")
    left = f", {scorer.unknown:,} left out (unknown names)" if skip_unknown else ""
    typer.echo(f"{written:,} pairs scored{left}", err=True)
