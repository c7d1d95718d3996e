"""`subspaces retrieval …`: every rule of this room is one of these commands."""

from __future__ import annotations

from pathlib import Path

import typer

from subspaces.context import Threads, recipes_here

app = typer.Typer(help="Retrieval and efficiency (Tables 7 and 8): the steps of the workflow.", no_args_is_help=True)
_SOURCES, _DOCUMENTS = Path("data/sources"), Path("data/captions.txt")


def _encoder(recipes):
    from subspaces.nli.load import load_text_model
    from subspaces.retrieval.encoder import SubspaceEncoder

    model = load_text_model(Path(recipes.retrieval_model.output).parent, _SOURCES)
    return SubspaceEncoder(model.projectors, model.dim, model.fingerprint, model)


def _make_room(folder: Path, key: str) -> None:
    """Remove what was made for another key: a finished folder, and one that a killed run left half done."""
    import shutil

    from subspaces.files import write_text

    mark = folder.with_suffix(".key")
    shutil.rmtree(folder, ignore_errors=True)
    if not mark.exists() or mark.read_text() != key:
        shutil.rmtree(folder.with_name(folder.name + ".part"), ignore_errors=True)
        write_text(mark, key)


@app.command("captions")
def captions() -> None:
    """Write the captions that are searched: data/captions.txt and .json."""
    from subspaces.files import read_json
    from subspaces.retrieval.captions import write_captions

    recipes = recipes_here()
    recipe = recipes.captions()
    manifest = read_json(_SOURCES / "flickr30k" / "manifest.json")
    extra = {"sample": manifest["sample"], "origin": manifest["origin"]}
    table = _SOURCES / "flickr30k" / "captions.txt"
    record = write_captions(table, recipe.settings["captions"], Path(recipe.output).with_suffix(""), recipe.key, extra)
    typer.echo(f"{record['captions']:,} of {record['of']:,} captions")


@app.command("shard")
def shard(place: int, threads: Threads = 1) -> None:
    """Encode one slice of the captions; a killed run goes on where it was."""
    from subspaces.files import read_json, write_json
    from subspaces.retrieval.build import build_shard, shard_bounds
    from subspaces.training.loop import set_threads
    from subspaces.training.progress import ConsoleProgress

    recipes = recipes_here()
    recipe, encoder = recipes.shard(place), None
    set_threads(threads)
    count = read_json(recipes.captions().output)["captions"]
    bounds = shard_bounds(count, recipes.retrieval_budget.shards)
    folder = Path(recipe.output).with_suffix("")
    rows = bounds[place] if place < len(bounds) else None
    _make_room(folder, recipe.key)
    if rows:
        encoder = _encoder(recipes)
        build_shard(_DOCUMENTS, *rows, encoder, folder, progress=ConsoleProgress(f"captions {rows[0]:,} to {rows[1]:,}", "captions"))
    write_json(recipe.output, {"key": recipe.key, "rows": rows, "encoder": encoder.fingerprint if encoder else None})


@app.command("index")
def index(kind: str, threads: Threads = 1) -> None:
    """Merge the shards into one index of a kind."""
    from subspaces.files import read_json, write_json
    from subspaces.retrieval.build import merge
    from subspaces.retrieval.manifest import Manifest
    from subspaces.training.loop import set_threads

    recipes = recipes_here()
    recipe = recipes.index(kind)
    set_threads(threads)
    parts = [Path(one.output).with_suffix("") for one in recipes.shards if read_json(one.output)["rows"]]
    folder = Path(recipe.output).with_suffix("")
    _make_room(folder, recipe.key)
    merge(parts, folder, kind=kind)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    count = Manifest.read(folder).count
    write_json(recipe.output, {"key": recipe.key, "kind": kind, "documents": count, "bytes": size, "bytes_per_document": size / count})
    typer.echo(f"{kind}: {count:,} captions, {size / count:,.0f} bytes each")


@app.command("latency")
def latency(threads: Threads = 1) -> None:
    """Measure top-10 latency, recall and bytes of every kind of index, and the other rows of Table 8."""
    from subspaces.retrieval.index import SubspaceIndex
    from subspaces.retrieval.measured import measure_latency

    recipes = recipes_here()
    recipe, encoder = recipes.latency, _encoder(recipes)
    rows = [recipe, *(recipes.latency_row(row) for row in recipes.rows_of("retrieval_latency"))]
    outputs = {Path(one.output).stem: (Path(one.output), one.key) for one in rows}
    indexes = {Path(one.output).stem: SubspaceIndex.load(Path(one.output).with_suffix(""), encoder) for one in recipe.inputs}
    found = measure_latency(recipe.settings, indexes, _DOCUMENTS, outputs, threads, recipes.params.scale)
    for kind in indexes:
        one = found["rows"][kind]
        typer.echo(f"{kind}: {one['latency_ms']:.2f} ms, recall {one['recall']}, {one['bytes_per_document']:,.0f} bytes")
    typer.echo("  ".join(f"{row} {value:.2f} ms" for row, value in found["metrics"].items()) + f"  half/full {found['half_over_full']:.2f}")


@app.command("encoding")
def encoding(threads: Threads = 1) -> None:
    """Time the backbone with the head and without it (Table 7)."""
    from subspaces.retrieval.encoding import measure_encoding
    from subspaces.training.device import choose_device

    recipes = recipes_here()
    rows = [recipes.encoding, *(recipes.encoding_row(row) for row in recipes.rows_of("encoding_time"))]
    outputs = {Path(one.output).stem: (Path(one.output), one.key) for one in rows}
    device = choose_device(recipes.params.device)
    found = measure_encoding(recipes.encoding.settings, _DOCUMENTS, _SOURCES, outputs, threads, device, recipes.params.scale)
    typer.echo("  ".join(f"{size}: +{value:.2f} ms" for size, value in found["added"].items()))


@app.command("queries")
def queries(threads: Threads = 1) -> None:
    """Answer the figure's queries by subspace logic, by plain text and by vector arithmetic."""
    from subspaces.retrieval.found import write_found
    from subspaces.retrieval.index import SubspaceIndex

    recipes = recipes_here()
    recipe, family = recipes.found, recipes.params.retrieval
    job = recipes.params.snli.job(family.model, 2, recipes.params.scale)
    index = SubspaceIndex.load(Path(recipes.index(family.kinds[0]).output).with_suffix(""), _encoder(recipes))
    backbone = _SOURCES / job["backbone"]["name"]
    content = write_found(index, recipe.settings, backbone, job, Path(recipe.output), recipe.key, threads, recipes.params.scale)
    for one in content["queries"]:
        typer.echo(f"{one['query']}: {one['subspace'][0]['text']}")


@app.command("compression")
def compression(part: str, threads: Threads = 1) -> None:
    """Drop eigenvalues below τ and see what it costs: PART is wordnet or snli."""
    from subspaces.retrieval.compressed import write_compression

    recipes = recipes_here()
    recipe = recipes.compression(part)
    model = Path(recipe.inputs[0].output).parent
    extra = {"scale": recipes.params.scale, "model": model.parts[2]}
    write_compression(part, model, recipe.settings, _SOURCES, Path(recipe.output), recipe.key, threads, extra)
