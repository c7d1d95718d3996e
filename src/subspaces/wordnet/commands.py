"""`subspaces wordnet | reconstruction | hyperlex | link-prediction …`: every rule of these rooms is one of these commands."""

from __future__ import annotations

from pathlib import Path

import typer

from subspaces.context import Device, Threads, device_for, project, recipes_here
from subspaces.errors import UserError

wordnet_app = typer.Typer(help="WordNet hierarchies.", no_args_is_help=True)
reconstruction_app = typer.Typer(help="WordNet reconstruction (Table 2).", no_args_is_help=True)
hyperlex_app = typer.Typer(help="HyperLex (Table 3).", no_args_is_help=True)
link_app = typer.Typer(help="WordNet link prediction (Table 4).", no_args_is_help=True)


@wordnet_app.command("build")
def wordnet_build(pos: str) -> None:
    """Close the hypernym relation of nouns or verbs: data/wordnet/POS.npz and .json."""
    from subspaces.paper.registry import claims
    from subspaces.wordnet.prepare import prepare_hierarchy

    recipes = recipes_here()
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
    from subspaces.training.job import open_run
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.fit import fit_reconstruction, graph_of

    recipes = recipes_here()
    recipe = recipes.reconstruction_model(row, pos, seed)
    job = recipes.params.reconstruction_job(row, pos)
    data = read_json(recipes.hierarchy(pos).output)
    graph = graph_of(job, Path(f"data/wordnet/{pos}.npz"), data["sample"])
    progress = ConsoleProgress(f"{row} {pos} seed {seed}", "edges", min(job["training"]["batch"], len(graph.ancestors)))
    record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "instance_hypernyms")}}
    where = device_for(recipes, job["model"]["geometry"], device)
    run = open_run(recipe, recipes.params.checkpoint, progress, seed, threads, record, where)
    if run is None:
        return
    settings = fit_reconstruction(job, graph, run)
    progress.say(f"{settings['steps']:,} steps done, weights in {run.out}")


@reconstruction_app.command("evaluate")
def reconstruction_evaluate(row: str, pos: str, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Rank all ancestors of all nodes with a trained model: one JSON of metrics."""
    from subspaces.training.job import JobCheckpoints
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.evaluate import evaluate_reconstruction

    recipes = recipes_here()
    recipe = recipes.reconstruction_evaluation(row, pos, seed)
    progress = ConsoleProgress(f"evaluate {row} {pos} seed {seed}", "nodes")

    def tick(done: int, total: int) -> None:
        if not hasattr(progress, "total"):
            progress.start(total, 0)
        progress.update(done, {})

    extra = {"row": row, "pos": pos, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    folder = Path(recipe.inputs[0].output).parent
    where = device_for(recipes, recipes.params.reconstruction.models[row].geometry, device)
    result = evaluate_reconstruction(folder, Path(f"data/wordnet/{pos}.npz"), Path(recipe.output), recipe.key, threads, tick, extra, where)
    JobCheckpoints(recipe.inputs[0]).drop_finished()
    metrics = result["metrics"]
    progress.say(f"mAP {metrics['map']:.2f} %  MR {metrics['mr']:.3f}  ρ {metrics['rho']:.1f}")


@reconstruction_app.command("ranks")
def reconstruction_ranks(row: str, pos: str, seed: int, threads: Threads = 1) -> None:
    """Effective rank and number of descendants of every node, for the figure."""
    from subspaces.wordnet.evaluate import write_ranks

    recipe = recipes_here().reconstruction_ranks(row, pos, seed)
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

    recipes = recipes_here()
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
        fetch_source(name, Path("data/sources") / name, root=project())
    except UserError as error:
        typer.echo(f"{error}\nA seeded draw takes its place.", err=True)
        return None
    return Path("data/sources") / name / "noun_closure.tsv.train_50percent"


@link_app.command("train")
def link_train(row: str, coverage: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Train one row of Table 4 at one coverage and freeze its threshold on validation; a killed run goes on from its checkpoint."""
    from subspaces.files import read_json
    from subspaces.training.job import open_run
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.link_fit import fit_link_prediction
    from subspaces.wordnet.splits import Split

    recipes = recipes_here()
    recipe, job = recipes.link_model(row, coverage, seed), recipes.params.link_job(row, coverage)
    data = read_json(recipes.split(coverage).output)
    split = Split.load(Path(f"data/link_prediction/{coverage}.npz"))
    progress = ConsoleProgress(f"{row} {coverage} % seed {seed}", "edges", min(job["training"]["batch"], len(split.train)))
    record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "train_origin")}}
    where = device_for(recipes, job["model"]["geometry"], device)
    run = open_run(recipe, recipes.params.checkpoint, progress, seed, threads, record, where)
    if run is None:
        return
    settings = fit_link_prediction(job, split, run)
    valid = settings["decision"]["validation"]
    progress.say(f"best epoch {settings['best_epoch']}: validation AUPRC {valid['auprc']:.2f} %, F1 {valid['f1']:.2f} %")


@link_app.command("evaluate")
def link_evaluate(row: str, coverage: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Apply a trained model's frozen threshold to test: one JSON of metrics."""
    from subspaces.training.job import JobCheckpoints
    from subspaces.wordnet.link_evaluate import evaluate_link_prediction

    recipes = recipes_here()
    recipe = recipes.link_evaluation(row, coverage, seed)
    extra = {"row": row, "coverage": coverage, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    folder, split = Path(recipe.inputs[0].output).parent, Path(f"data/link_prediction/{coverage}.npz")
    where = device_for(recipes, recipes.params.link_prediction.models[row].geometry, device)
    metrics = evaluate_link_prediction(folder, split, Path(recipe.output), recipe.key, threads, extra, where)["metrics"]
    JobCheckpoints(recipe.inputs[0]).drop_finished()
    typer.echo(
        f"{row} {coverage} %: F1 {metrics['f1']:.2f} %  AUPRC {metrics['auprc']:.2f} %  F1 on reversed {metrics['f1_reversed']:.2f} %"
    )


# --- HyperLex -------------------------------------------------------------------------------------------------------------


@hyperlex_app.command("train")
def hyperlex_train(seed: int, threads: Threads = 1) -> None:
    """Train the Gaussians of Table 3 on the noun closure; the other rows are models of reconstruction."""
    from subspaces.files import read_json
    from subspaces.training.job import open_run
    from subspaces.training.progress import ConsoleProgress
    from subspaces.wordnet.fit import graph_of
    from subspaces.wordnet.hyperlex_evaluate import closure_split
    from subspaces.wordnet.link_fit import fit_link_prediction

    recipes = recipes_here()
    recipe, job = recipes.gaussian_model(seed), recipes.params.gaussian_job()
    data = read_json(recipes.hierarchy("nouns").output)
    split = closure_split(graph_of(job, Path("data/wordnet/nouns.npz"), data["sample"]))
    progress = ConsoleProgress(f"gaussian-50 seed {seed}", "edges", min(job["training"]["batch"], len(split.train)))
    record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source")}}
    run = open_run(recipe, recipes.params.checkpoint, progress, seed, threads, record)
    if run is not None:
        fit_link_prediction(job, split, run)


@hyperlex_app.command("evaluate")
def hyperlex_evaluate(row: str, seed: int, threads: Threads = 1) -> None:
    """Correlate a noun model's scores with people's: one JSON, with the words that have no synset."""
    from subspaces.training.job import JobCheckpoints
    from subspaces.wordnet.hyperlex import hyperlex_report
    from subspaces.wordnet.hyperlex_evaluate import evaluate_on_hyperlex

    recipes = recipes_here()
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
    JobCheckpoints(recipe.inputs[0]).drop_finished()
    typer.echo(f"{row}: {hyperlex_report(result['metrics'])}")
