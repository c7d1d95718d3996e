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
from subspaces.hierarchy.commands import app as hierarchy_app

app = typer.Typer(help="Concepts as linear subspaces: data, training, evaluation, tables and figures.", no_args_is_help=True)
wordnet_app = typer.Typer(help="WordNet hierarchies.", no_args_is_help=True)
reconstruction_app = typer.Typer(help="WordNet reconstruction (Table 2).", no_args_is_help=True)
hyperlex_app = typer.Typer(help="HyperLex (Table 3).", no_args_is_help=True)
link_app = typer.Typer(help="WordNet link prediction (Table 4).", no_args_is_help=True)
paper_app = typer.Typer(help="Numbers, tables and figures of the paper.", no_args_is_help=True)
app.add_typer(wordnet_app, name="wordnet")
app.add_typer(reconstruction_app, name="reconstruction")
app.add_typer(hyperlex_app, name="hyperlex")
app.add_typer(link_app, name="link-prediction")
app.add_typer(hierarchy_app, name="hierarchy")
app.add_typer(paper_app, name="paper")


@dataclass
class _State:
    params: Path = Path("params.yaml")
    scale: str | None = None


_state = _State()
Threads = Annotated[int, typer.Option(help="Threads for the arithmetic; the same number gives the same bits.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda, instead of what params.yaml says.", show_default="params.yaml")]


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


def _device(recipes, geometry: str, asked: str | None) -> str:
    """Small vectors gain nothing from a GPU, so only subspaces look for one by themselves."""
    from subspaces.training.device import choose_device

    return choose_device(asked or (recipes.params.device if geometry == "subspace" else "cpu"))


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
def reconstruction_train(row: str, pos: str, seed: int, threads: Threads = 1, device: Device = None) -> None:
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
        _device(recipes, job["model"]["geometry"], device),
    )
    progress.say(f"{settings['steps']:,} steps done, weights in {Path(recipe.output).parent}")


@reconstruction_app.command("evaluate")
def reconstruction_evaluate(row: str, pos: str, seed: int, threads: Threads = 1, device: Device = None) -> None:
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
    where = _device(recipes, recipes.params.reconstruction.models[row].geometry, device)
    result = evaluate_reconstruction(folder, Path(f"data/wordnet/{pos}.npz"), Path(recipe.output), recipe.key, threads, tick, extra, where)
    metrics = result["metrics"]
    progress.say(f"mAP {metrics['map']:.2f} %  MR {metrics['mr']:.3f}  ρ {metrics['rho']:.1f}")


@reconstruction_app.command("ranks")
def reconstruction_ranks(row: str, pos: str, seed: int, threads: Threads = 1) -> None:
    """Effective rank and number of descendants of every node, for the figure."""
    from subspaces.wordnet.evaluate import write_ranks

    recipe = _recipes().reconstruction_ranks(row, pos, seed)
    folder = Path(recipe.inputs[0].output).parent
    write_ranks(folder, Path(f"data/wordnet/{pos}.npz"), Path(recipe.output), recipe.key, threads)


# --- link prediction ------------------------------------------------------------------------------------------------------


@link_app.command("build")
def link_build(coverage: int) -> None:
    """Read and check the split at COVERAGE per cent, or draw one at quick scale: data/link_prediction/COVERAGE.npz and .json."""
    from subspaces.files import read_json
    from subspaces.sources.registry import get
    from subspaces.wordnet.graph import Hierarchy
    from subspaces.wordnet.splits import check_counts, draw_split, read_split, write_split

    recipes = _recipes()
    recipes.params.link_job(next(iter(recipes.params.link_prediction.models)), coverage)  # refuses an unknown coverage
    recipe, seed, subtree = recipes.split(coverage), recipes.params.link_prediction.draw_seed, recipes.params.link_budget.subtree
    if subtree:
        data = read_json("data/wordnet/nouns.json")
        graph = Hierarchy.load(Path("data/wordnet/nouns.npz"))
        split = draw_split(graph if data["sample"] else graph.subtree(subtree), coverage, seed)
        extra = {"sample": data["sample"], "origin": data["origin"], "source": {"nouns.npz": data["sha256"]}, "seed": seed}
    else:
        name = "wordnet_link_prediction"
        manifest = read_json(f"data/sources/{name}/manifest.json")
        split = read_split(Path("data/sources") / name, coverage, _original_fifty() if coverage == 50 else None, seed)
        counts = {**get(name).counts, **get(f"{name}_50").counts}
        expected = {part: counts[part] for part in split.counts() if part in counts} | {"train": counts[f"train {coverage} %"]}
        check_counts(split, expected)
        source = {file: one["sha256"] for file, one in manifest["files"].items()}
        extra = {"sample": False, "origin": manifest["origin"], "source": source, "seed": seed}
    record = write_split(split, Path(recipe.output).with_suffix(""), recipe.key, extra)
    typer.echo(f"{coverage} %: " + ", ".join(f"{count:,} {part}" for part, count in record["counts"].items()) + f" ({split.train_origin})")


def _original_fifty() -> Path | None:
    """The original file of the 50 % training edges where it can be had; else a seeded draw takes its place, and every number says so."""
    from subspaces.sources.fetch import fetch as fetch_source

    name = "wordnet_link_prediction_50"
    try:
        fetch_source(name, Path("data/sources") / name, root=_project())
    except UserError as error:
        typer.echo(f"{error}\nA seeded draw takes its place.", err=True)
        return None
    return Path("data/sources") / name / "noun_closure.tsv.train_50percent"


@link_app.command("train")
def link_train(row: str, coverage: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Train one row of Table 4 at one coverage and freeze its threshold on validation; a killed run goes on from its checkpoint."""
    from subspaces.files import read_json
    from subspaces.training.checkpoint import Checkpoints
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.link_fit import fit_link_prediction
    from subspaces.wordnet.splits import Split

    recipes = _recipes()
    recipe, job = recipes.link_model(row, coverage, seed), recipes.params.link_job(row, coverage)
    data = read_json(recipes.split(coverage).output)
    split = Split.load(Path(f"data/link_prediction/{coverage}.npz"))
    progress = ConsoleProgress(f"{row} {coverage} % seed {seed}", "edges", min(job["training"]["batch"], len(split.train)))
    checkpoint = recipes.params.checkpoint
    settings = fit_link_prediction(
        job,
        seed,
        split,
        Path(recipe.output).parent,
        recipe.key,
        Checkpoints(Path("checkpoints/link_prediction") / row / str(coverage) / f"seed-{seed}", recipe.key, progress.say),
        progress,
        threads,
        checkpoint.seconds,
        checkpoint.epochs,
        {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "train_origin")}},
        _device(recipes, job["model"]["geometry"], device),
    )
    valid = settings["decision"]["validation"]
    progress.say(f"best epoch {settings['best_epoch']}: validation AUPRC {valid['auprc']:.2f} %, F1 {valid['f1']:.2f} %")


@link_app.command("evaluate")
def link_evaluate(row: str, coverage: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Apply a trained model's frozen threshold to test: one JSON of metrics."""
    from subspaces.wordnet.link_evaluate import evaluate_link_prediction

    recipes = _recipes()
    recipe = recipes.link_evaluation(row, coverage, seed)
    extra = {"row": row, "coverage": coverage, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    folder, split = Path(recipe.inputs[0].output).parent, Path(f"data/link_prediction/{coverage}.npz")
    where = _device(recipes, recipes.params.link_prediction.models[row].geometry, device)
    metrics = evaluate_link_prediction(folder, split, Path(recipe.output), recipe.key, threads, extra, where)["metrics"]
    typer.echo(
        f"{row} {coverage} %: F1 {metrics['f1']:.2f} %  AUPRC {metrics['auprc']:.2f} %  F1 on reversed {metrics['f1_reversed']:.2f} %"
    )


# --- HyperLex -------------------------------------------------------------------------------------------------------------


@hyperlex_app.command("train")
def hyperlex_train(seed: int, threads: Threads = 1) -> None:
    """Train the Gaussians of Table 3 on the noun closure; the other rows are models of reconstruction."""
    from subspaces.files import read_json
    from subspaces.training.checkpoint import Checkpoints
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.fit import graph_of
    from subspaces.wordnet.hyperlex_evaluate import closure_split
    from subspaces.wordnet.link_fit import fit_link_prediction

    recipes = _recipes()
    recipe, job = recipes.gaussian_model(seed), recipes.params.gaussian_job()
    data = read_json(recipes.hierarchy("nouns").output)
    split = closure_split(graph_of(job, Path("data/wordnet/nouns.npz"), data["sample"]))
    progress = ConsoleProgress(f"gaussian-50 seed {seed}", "edges", min(job["training"]["batch"], len(split.train)))
    checkpoint = recipes.params.checkpoint
    fit_link_prediction(
        job,
        seed,
        split,
        Path(recipe.output).parent,
        recipe.key,
        Checkpoints(Path("checkpoints/hyperlex/gaussian-50") / f"seed-{seed}", recipe.key, progress.say),
        progress,
        threads,
        checkpoint.seconds,
        checkpoint.epochs,
        {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source")}},
    )


@hyperlex_app.command("evaluate")
def hyperlex_evaluate(row: str, seed: int, threads: Threads = 1) -> None:
    """Correlate a noun model's scores with people's: one JSON, with the words that have no synset."""
    from subspaces.wordnet.hyperlex import hyperlex_report
    from subspaces.wordnet.hyperlex_evaluate import evaluate_on_hyperlex

    recipes = _recipes()
    recipe = recipes.hyperlex_evaluation(row, seed)
    extra = {"row": row, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    result = evaluate_on_hyperlex(
        Path(recipe.inputs[0].output).parent,
        Path("data/wordnet/nouns.npz"),
        Path("data/sources/hyperlex"),
        Path("data/sources/wordnet"),
        Path(recipe.output),
        recipe.key,
        threads,
        recipes.params.hyperlex.alpha,
        extra,
    )
    typer.echo(f"{row}: {hyperlex_report(result['metrics'])}")


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
    elif name.startswith("link_prediction"):
        from subspaces.files import read_json
        from subspaces.paper.figures.link_prediction import draw_coverage, draw_time
        from subspaces.paper.layouts import LAYOUTS

        draw = draw_coverage if name == "link_prediction_coverage" else draw_time
        figure = draw([read_json(one.output) for one in recipe.inputs], LAYOUTS["link_prediction"].rows)
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
