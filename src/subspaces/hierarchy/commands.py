"""`subspaces hierarchy …`: fit a hierarchy, ask about a node, score pairs, draw, export."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Any hierarchy as subspaces: fit it, ask about a node, score pairs, draw.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder made by `fit`.", show_default=False)]


@app.command()
def fit(
    edges: Annotated[
        str,
        typer.Argument(
            help="One child TAB parent per line, a CSV file, or paths A > B > C; plain or gzip; - for standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    geometry: Annotated[
        str,
        typer.Option(help="subspace; or poincare or order, to be judged on the same pairs and compared, nothing more."),
    ] = "subspace",
    dim: Annotated[int, typer.Option(help="Dimension d of the space.")] = 64,
    lam: Annotated[float, typer.Option("--lambda", help="λ of the soft projector.")] = 0.2,
    epochs: Annotated[str, typer.Option(help="Passes over the nodes, or auto.")] = "auto",
    batch: Annotated[int | None, typer.Option(help="Nodes of a step.", show_default="auto")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.", show_default="auto")] = None,
    parent_first: Annotated[
        bool, typer.Option("--parent-first", help="The first column is the parent, the second the child.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Pause after this many minutes of training; the same command resumes.")
    ] = None,
    closure: Annotated[
        bool,
        typer.Option("--closure/--no-closure", help="Train on the transitive closure, or on the given edges only."),
    ] = True,
    valid: Annotated[
        Path | None,
        typer.Option(help="Your own pairs: child, parent, 1 or 0 per line. The threshold is chosen on them."),
    ] = None,
) -> None:
    """Close the relation of an edge list and learn a subspace for every node; a stopped fit resumes from its checkpoint."""
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
            parent_first=parent_first,
            geometry=geometry,
            dim=dim,
            lam=lam,
            epochs=passes,
            batch=batch,
            lr=lr,
            seed=seed,
            threads=threads,
            minutes=minutes,
            closure=closure,
            valid=valid,
            progress=progress,
        )
    except Paused as pause:
        typer.echo(str(pause))
        raise typer.Exit(130 if pause.interrupted else 0) from None
    if not worked:
        typer.echo(f"nothing to do: {out} is a finished fit of these edges and settings")
    seconds = read_json(out / "timing.json")["seconds"]
    after = (
        f"next: subspaces hierarchy query {out} NAME" if geometry == "subspace" else "a baseline, for comparison only"
    )
    typer.echo(_summary(record, seconds) + f"\nin {out}; {after}")


def _summary(record: dict[str, Any], seconds: float) -> str:
    counts, quality = record["counts"], record["quality"]
    over = "all ordered pairs" if quality["all_pairs"] else "pairs stratified by parent"
    lines = [
        f"{counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['closure']:,} in the closure; trained in {seconds:,.0f} s",
        f"precision {quality['precision']:.2f} %, recall {quality['recall']:.2f} %, F1 {quality['f1']:.2f} % over {over} "
        f"({quality['edges']:,} edges, {quality['non_edges']:,} non-edges), entailed from inclusion {quality['threshold']:.4f}",
        "the worst of the 20 most general nodes, each against all nodes:",
    ]
    if valid := record.get("valid"):
        lines.insert(
            1,
            f"threshold chosen on {valid['pairs']:,} pairs of yours: precision {valid['precision']:.2f} %, recall {valid['recall']:.2f} %, "
            f"F1 {valid['f1']:.2f} % on them",
        )
    lines += [
        f"  precision {node['precision']:6.2f} %, recall {node['recall']:6.2f} %  {node['name']} ({node['descendants']:,} descendants)"
        for node in quality["general"][:5]
    ]
    lines.append(
        f"generality: Spearman with the number of descendants {quality['rho_descendants']:.1f} %; "
        f"the ancestor is the more general node in {quality['ancestor_larger']:.2f} % of the closure"
    )
    return "\n".join(lines)


@app.command()
def query(
    folder: Folder,
    name: Annotated[
        str, typer.Argument(help="A node: its name, in any case, or a part that no other has.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=1, help="Lines of each list.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Show a node's rank, its ancestors and its descendants by inclusion; * marks given edges, + those that follow from them."""
    from dataclasses import asdict

    from subspaces.hierarchy.model import Hierarchy

    hierarchy = Hierarchy.load(folder)
    name = hierarchy.names[hierarchy.place(name)]
    rank, lists = (
        hierarchy.rank(name),
        {"ancestors": hierarchy.ancestors(name, top), "descendants": hierarchy.descendants(name, top)},
    )
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
    pairs: Annotated[str, typer.Argument(help="Pairs as `fit` reads them; - for standard input.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The table to write.", show_default="the terminal")] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave lines with unknown names out, and count them.")
    ] = False,
) -> None:
    """Score pairs: child, parent, inclusion, entailed (yes or no, by the fitted threshold), one line each."""
    from subspaces.files import atomic_file
    from subspaces.hierarchy.model import Hierarchy
    from subspaces.hierarchy.scoring import Scorer

    scorer = Scorer(Hierarchy.load(folder), skip_unknown)
    written = 0
    with atomic_file(out, "w") if out else nullcontext(sys.stdout) as handle:
        handle.write("child\tparent\tinclusion\tentailed\n")
        for one in scorer.scores(pairs):
            written += 1
            handle.write(f"{one.child}\t{one.parent}\t{one.inclusion:.6f}\t{'yes' if one.entailed else 'no'}\n")
    left = f", {scorer.unknown:,} left out (unknown names)" if skip_unknown else ""
    typer.echo(f"{written:,} pairs scored{left}", err=True)


@app.command()
def plot(
    folder: Folder,
    around: Annotated[str, typer.Option(help="The node in the middle.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="A .png, .pdf or .svg file.", show_default="the node's name, as PNG")
    ] = None,
    neighbours: Annotated[int, typer.Option(min=1, help="How many of the closest nodes.")] = 8,
) -> None:
    """Draw a node: rank against descendants, its chain upwards, its neighbours."""
    import re

    from subspaces.hierarchy.model import Hierarchy
    from subspaces.hierarchy.plot import plot_around

    hierarchy = Hierarchy.load(folder)
    if out is None:
        name = hierarchy.names[hierarchy.place(around)]
        out = Path(re.sub(r"[^\w.-]+", "-", name)[-80:].strip("-.") + ".png")
    typer.echo(plot_around(hierarchy, around, out, neighbours))


@app.command()
def export(folder: Folder, out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)]) -> None:
    """Write export.json (names, edges, threshold) and subspaces.safetensors (X), for other programs."""
    from subspaces.hierarchy.model import Hierarchy

    typer.echo(Hierarchy.load(folder).export(out))


@app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(metavar="EXPORT", help="A folder made by `export`.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
) -> None:
    """Make a folder that `query`, `score` and `plot` read from an exported one."""
    from subspaces.hierarchy.model import Hierarchy

    typer.echo(Hierarchy.from_export(folder, out))
