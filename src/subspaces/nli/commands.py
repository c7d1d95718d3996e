"""`subspaces snli …`: every rule of this room is one of these commands."""

from __future__ import annotations

from pathlib import Path

import typer

from subspaces.context import Device, Threads, project, recipes_here
from subspaces.errors import UserError

app = typer.Typer(help="Textual entailment on SNLI (Tables 5 and 9).", no_args_is_help=True)

_SOURCES, _DATA = Path("data/sources"), Path("data/snli.parquet")
_DEV_PAIRS = 5000  # cut from the training pairs where no validation file can be had


def _fetched(name: str) -> bool:
    """A source that is taken where it can be had."""
    from subspaces.sources.fetch import fetch

    try:
        fetch(name, _SOURCES / name, root=project())
    except UserError as error:
        typer.echo(f"{error}\nGoing on without {name}.", err=True)
        return False
    return True


@app.command("build")
def build() -> None:
    """Gather the labelled pairs: data/snli.parquet and .json. Counts are checked, training pairs that are in dev or test are left out."""
    from subspaces.files import read_json
    from subspaces.nli.data import prepare, split_sample
    from subspaces.sources.registry import get

    recipes = recipes_here()
    recipe, wanted = recipes.snli_data(), recipes.snli_budget.data
    used = ["snli_full"]
    if wanted == "full" or (wanted == "auto" and _fetched("snli_full")):
        folder = _SOURCES / "snli_full"
        parts, counts = {part: [folder / f"{part}.tsv"] for part in ("train", "dev", "test")}, get("snli_full").counts
    elif read_json(_SOURCES / "snli.json")["sample"]:
        used, counts = ["snli"], {}
        parts = split_sample(_SOURCES / "snli" / "snli.tsv", Path("data/snli_sample"))
    else:
        first, more = _SOURCES / "snli", _SOURCES / "snli_more"
        parts = {"train": [first / "train_first100k.tsv"], "test": [first / "test.tsv"]}
        used, counts = ["snli"], {}
        if _fetched("snli_more"):
            used.append("snli_more")
            parts["dev"] = [more / "dev.tsv"]
            parts["train"].append(more / "train_extra.tsv")
    manifests = [read_json(_SOURCES / name / "manifest.json") for name in used]
    extra = {
        "sample": any(one["sample"] for one in manifests),
        "origin": "; ".join(one["origin"] for one in manifests),
        "sources": used,
        "source": {file: one["sha256"] for manifest in manifests for file, one in manifest["files"].items()},
    }
    record = prepare(parts, Path("data/snli"), recipe.key, extra, _DEV_PAIRS if "dev" not in parts else 0)
    for part, count in counts.items():
        if part in record["counts"] and record["counts"][part] != count:
            raise UserError(f"SNLI's {part} part has {record['counts'][part]:,} labelled pairs instead of {count:,}: fetch it again.")
    dropped = {part: {why: count for why, count in reasons.items() if count} for part, reasons in record["dropped"].items()}
    typer.echo(
        ", ".join(f"{count:,} {part}" for part, count in record["counts"].items()) + f" pairs from {', '.join(used)}; dropped {dropped}"
    )


@app.command("train")
def train(row: str, ways: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Train one row of Table 5 or 9, 2-way or 3-way; a killed run goes on from its checkpoint."""
    from subspaces.files import read_json
    from subspaces.nli.fit import fit_entailment
    from subspaces.training.device import choose_device
    from subspaces.training.job import open_run
    from subspaces.training.progress import ConsoleProgress

    recipes = recipes_here()
    recipe, job = recipes.snli_model(row, ways, seed), recipes.params.snli.job(row, ways, recipes.params.scale)
    data = read_json(recipes.snli_data().output)
    progress = ConsoleProgress(
        f"{row} {ways}-way seed {seed}", "pairs", min(job["training"]["batch"], job["pairs"] or data["counts"]["train"])
    )
    record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "counts", "dev_from", "dropped")}}
    where = choose_device(device or recipes.params.device)
    run = open_run(recipe, recipes.params.checkpoint, progress, seed, threads, record, where)
    if run is None:
        return
    settings = fit_entailment(job, _DATA, _SOURCES, run)
    progress.say(f"best after {settings['best_step']:,} of {settings['steps']:,} steps: validation {settings['validation']:.2f} %")


@app.command("evaluate")
def evaluate(row: str, ways: int, seed: int, threads: Threads = 1, device: Device = None) -> None:
    """Judge a trained model on the test pairs: one JSON of metrics, histograms and ranks."""
    from subspaces.nli.evaluate import evaluate_entailment
    from subspaces.training.device import choose_device
    from subspaces.training.job import JobCheckpoints

    recipes = recipes_here()
    recipe = recipes.snli_evaluation(row, ways, seed)
    extra = {"row": row, "ways": ways, "seed": seed, "scale": recipes.params.scale, "code_sha256": recipe.code_digest}
    folder = Path(recipe.inputs[0].output).parent
    where = choose_device(device or recipes.params.device)
    result = evaluate_entailment(folder, _DATA, _SOURCES, Path(recipe.output), recipe.key, threads, extra, where)
    JobCheckpoints(recipe.inputs[0]).drop_finished()
    typer.echo(f"{row} {ways}-way: accuracy {result['metrics']['accuracy']:.2f} % ({result['extent']['text']})")
