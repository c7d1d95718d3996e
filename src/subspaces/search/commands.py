"""`subspaces encode | index | search | entail`: subspaces of the user's own texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from subspaces.errors import UserError

if TYPE_CHECKING:
    from subspaces.search.calibration import Method
    from subspaces.search.half_vectors import HalfVectorEncoder

Model = Annotated[
    Path | None,
    typer.Option(
        envvar="SUBSPACES_MODEL",
        help="The folder of a trained subspace model; default: the model of params.yaml if it is trained, else the one "
        "that ships.",
    ),
]
Index = Annotated[
    Path | None,
    typer.Option(
        envvar="SUBSPACES_INDEX",
        help="An index made by `subspaces index`; default: the workflow's index of captions.",
    ),
]
Threads = Annotated[int, typer.Option(help="Threads for the arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        help="product, sandwich-hard, exact (one matrix for the query), calibrated or hybrid (a probability for each "
        "term); default: the best of the model."
    ),
]


@dataclass(frozen=True)
class Defaults:
    """The model folder and the index folder that a project makes, the workflow target of the index, and the sources."""

    model: Path
    index: Path
    index_target: str
    sources: Path


_project: Callable[[], Defaults | None] = lambda: None  # noqa: E731


def use_project(defaults: Callable[[], Defaults | None]) -> None:
    """Set where --model and --index come from if they are not given; called by the command line of the project."""
    global _project
    _project = defaults


def _index(given: Path | None) -> Path:
    if given is not None:
        return given
    defaults = _project()
    if defaults is None:
        raise UserError(
            "give --documents FILE or --index DIR: outside of a project folder (params.yaml) there are no default documents."
        )
    if not defaults.index.is_dir():
        raise UserError(
            f"{defaults.index} is missing: run `snakemake --cores 2 -- {defaults.index_target}`, or give --documents FILE "
            "or another index with --index."
        )
    return defaults.index


def _encoder(model: Path | None, threads: int) -> HalfVectorEncoder:
    """The given model; else that of the project if it is trained; else the one that ships."""
    from subspaces.search.half_vectors import HalfVectorEncoder
    from subspaces.text.subspace_encoder import SubspaceEncoder
    from subspaces.training.loop import set_threads

    set_threads(threads)
    defaults = _project()
    if model is None and defaults is not None and defaults.model.is_dir():
        model = defaults.model
    sources = defaults.sources if defaults is not None and defaults.sources.is_dir() else None
    return HalfVectorEncoder.of(SubspaceEncoder.from_pretrained(model, sources))


def _report_cut(encoder: HalfVectorEncoder, texts: list[str]) -> None:
    """Say on the standard error which texts the model does not read to their end."""
    for text, windows in zip(texts, encoder.windows(texts), strict=True):
        if len(windows) > 1:
            typer.echo(f"longer than the model's limit, only its beginning is read: {text[:60]!r} …", err=True)


def encode(
    texts: Annotated[list[str] | None, typer.Argument(help="One or more sentences, or none with --documents.")] = None,
    documents: Annotated[
        Path | None, typer.Option(help="A text file, one document per line; plain or gzip. Goes to --out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The safetensors file to write: half-vectors and traces.")] = None,
    precision: Annotated[str, typer.Option(help="Of the vectors in --out: fp32 or fp16.")] = "fp32",
    model: Model = None,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Show the effective rank of texts and how much each lies in the others; or write the vectors of a file of
    documents."""
    if (documents is None) != (out is None):
        raise UserError("--documents FILE and --out VECTORS.safetensors go together.")
    if bool(texts) == (documents is not None):
        raise UserError(
            "give sentences to look at, or --documents FILE --out VECTORS.safetensors to write their vectors; not both."
        )
    if documents is not None and out is not None:
        _encode_documents(documents, out, precision, model, threads)
        return
    assert texts
    encoder = _encoder(model, threads)
    _report_cut(encoder, texts)
    subspaces = encoder.encode(texts)
    ranks = subspaces.rank.tolist()
    table = [[subspaces[a].inclusion(subspaces[b]).item() for b in range(len(texts))] for a in range(len(texts))]
    if as_json:
        typer.echo(json.dumps({"texts": texts, "ranks": ranks, "inclusion": table}, ensure_ascii=False))
        return
    for place, (text, rank) in enumerate(zip(texts, ranks, strict=True)):
        shares = "  ".join(f"{share:.2f}" for share in table[place])
        typer.echo(f"{place + 1}  rank {rank:6.2f}  in each of them: {shares}  {text}")


def _encode_documents(documents: Path, out: Path, precision: str, model: Path | None, threads: int) -> None:
    from subspaces.search.export import write_vectors
    from subspaces.training.progress import ConsoleProgress

    encoder = _encoder(model, threads)
    count = write_vectors(
        documents, encoder, out, precision=precision, progress=ConsoleProgress(f"encode {documents.name}", "documents")
    )
    typer.echo(f"{count:,} documents in {out}: half ({count}, {encoder.width}) {precision}, trace ({count},)")


def index(
    documents: Annotated[Path, typer.Option(help="A text file, one document per line; plain or gzip.")],
    index: Annotated[Path, typer.Option(help="The folder to make.")],
    model: Model = None,
    kind: Annotated[str, typer.Option(help="exact-fp32, exact-fp16, reduced, compact, ivfpq, or auto.")] = "auto",
    engine: Annotated[str, typer.Option(help="embedded, or milvus.")] = "embedded",
    uri: Annotated[
        str | None, typer.Option(help="Milvus: a file such as ./captions.db, or a server's address.")
    ] = None,
    threads: Threads = 1,
) -> None:
    """Encode a file of documents into an index; a killed build resumes."""
    from subspaces.search.index import SubspaceIndex
    from subspaces.training.progress import ConsoleProgress

    progress = ConsoleProgress(f"index {documents.name}", "documents")
    built = SubspaceIndex.build(
        documents, _encoder(model, threads), index, kind=kind, engine=engine, uri=uri, progress=progress
    )
    typer.echo(
        f"{len(built):,} documents in {index}, kind {built.manifest.kind}, "
        f"{built.manifest.bytes / len(built):,.0f} bytes each{_windows(built)}"
    )


def _windows(index) -> str:
    extra = index.manifest.rows - index.manifest.count
    return f"; long documents are split into windows, {extra:,} rows more than documents" if extra else ""


def search(
    query: Annotated[str, typer.Argument(help="Such as: a city street & ~at night")],
    index: Index = None,
    documents: Annotated[
        Path | None,
        typer.Option(help="A text file, one document per line: its index is built once, beside the file."),
    ] = None,
    model: Model = None,
    top: Annotated[int, typer.Option(help="How many documents.")] = 10,
    method: MethodName = None,
    effort: Annotated[
        float | None,
        typer.Option(help="Approximate kinds: the factor by which more candidates are scored."),
    ] = None,
    uri: Annotated[str | None, typer.Option(help="Milvus: another address than the one in the manifest.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare the digests of all blocks of the index.")] = False,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """The documents that lie most in the subspace of a query: &, |, ~ and parentheses over texts."""
    from subspaces.search.index import CARE, SubspaceIndex
    from subspaces.search.query import parse, terms

    tree = parse(query)  # a mistake is reported before the model is loaded
    if documents is not None and index is not None:
        raise UserError("give --documents FILE or --index DIR, not both.")
    if documents is not None:
        from subspaces.training.progress import ConsoleProgress

        progress = ConsoleProgress(f"index {documents.name}", "documents")
        opened = SubspaceIndex.of_documents(documents, _encoder(model, threads), progress=progress, verify=verify)
        if extra := _windows(opened):
            typer.echo(f"{len(opened):,} documents{extra}", err=True)
    else:
        opened = SubspaceIndex.open(_index(index), _encoder(model, threads), uri=uri, verify=verify)
    assert opened.encoder is not None
    _report_cut(opened.encoder, terms(tree))
    chosen = cast("Method | None", method)  # `search` names the choices where it is none of them
    hits = opened.search(tree, top, chosen, CARE if effort is None else effort)
    if as_json:
        typer.echo(json.dumps([hit._asdict() for hit in hits], ensure_ascii=False))
        return
    for hit in hits:
        typer.echo(f"{hit.score:6.3f}  {hit.text}")


def entail(premise: str, hypothesis: str, model: Model = None, threads: Threads = 1, as_json: AsJson = False) -> None:
    """Does PREMISE entail HYPOTHESIS? Inclusion both ways, probabilities, ranks."""
    encoder = _encoder(model, threads)
    _report_cut(encoder, [premise, hypothesis])
    pair = encoder.encode([premise, hypothesis])
    found = {
        "inclusion": pair[0].inclusion(pair[1]).item(),
        "inclusion_reversed": pair[1].inclusion(pair[0]).item(),
        "probabilities": encoder.model.probabilities([premise], [hypothesis])[0],
        "rank_premise": pair[0].rank.item(),
        "rank_hypothesis": pair[1].rank.item(),
    }
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    typer.echo(f"premise in hypothesis  {found['inclusion']:.3f}   (the other way {found['inclusion_reversed']:.3f})")
    typer.echo(
        "probabilities          " + ", ".join(f"{name} {value:.3f}" for name, value in found["probabilities"].items())
    )
    typer.echo(f"ranks                  premise {found['rank_premise']:.2f}, hypothesis {found['rank_hypothesis']:.2f}")
