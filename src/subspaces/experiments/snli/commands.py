"""`subspaces train`: a subspace model from the user's own labelled pairs, on any backbone."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from subspaces.errors import UserError

_NAMES = (("premise", "hypothesis", "label"), ("sentence1", "sentence2", "gold_label"))
_CLASSES = {"entailment": 0, "neutral": 1, "contradiction": 2, "other": 1, "1": 0, "0": 1}
Labelled = tuple[str, str, int]


def train(
    pairs: Annotated[
        Path,
        typer.Option(
            help="A table with tabs and a first line that names premise, hypothesis and label (or SNLI's names)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the model to make.")],
    backbone: Annotated[
        str, typer.Option(help="A source by name, or the folder of a model that transformers.AutoModel loads.")
    ] = "all-MiniLM-L6-v2",
    dim: Annotated[int, typer.Option(min=2, help="d of the subspaces.")] = 64,
    full: Annotated[
        bool, typer.Option("--full", help="Train the whole backbone; without it, adapters (LoRA) of its layers.")
    ] = False,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Pairs of one step.")] = 64,
    rate: Annotated[
        float, typer.Option(help="Learning rate of the head; the whole backbone takes a fifth with --full.")
    ] = 5e-4,
    unrelated: Annotated[
        float, typer.Option(min=0, help="Weight of the unrelated pairs of a batch, which search needs.")
    ] = 0.5,
    limit: Annotated[int, typer.Option(min=4, help="Tokens of a text.")] = 35,
    dev_share: Annotated[float, typer.Option(min=0.01, max=0.5, help="Share of the premises for validation.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads for the arithmetic.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train a subspace model on labelled pairs: entailment, neutral, contradiction, or other. A killed run resumes."""
    from subspaces.training.device import choose_device

    rows = read_pairs(pairs)
    sources, name = _backbone(backbone)
    job = make_job(name, dim, full, epochs, batch, rate, unrelated, limit)
    settings = fit_pairs(rows, job, out, sources, seed, threads, choose_device(device), dev_share)
    typer.echo(f"{out}: validation accuracy {settings['validation']:.1f} %, {settings['trained_on']['pairs']:,} pairs")


def read_pairs(path: Path) -> list[Labelled]:
    """(premise, hypothesis, class); rows with the label - are left out."""
    try:
        with open(path, encoding="utf-8", newline="") as handle:
            table = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
            names = next((some for some in _NAMES if set(some) <= set(table.fieldnames or [])), None)
            if names is None:
                raise UserError(
                    f"{path}: the first line must name the columns premise, hypothesis and label, separated by tabs."
                )
            rows = []
            for row in table:
                premise, hypothesis, label = ((row[name] or "").strip() for name in names)
                if label == "-":
                    continue
                if label not in _CLASSES:
                    raise UserError(
                        f"{path}, line {table.line_num}: the label {label!r} is none of {', '.join(_CLASSES)}, or - for none."
                    )
                if not premise or not hypothesis:
                    raise UserError(f"{path}, line {table.line_num}: premise or hypothesis is empty.")
                rows.append((premise, hypothesis, _CLASSES[label]))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start:,}.") from error
    if len({label > 0 for _, _, label in rows}) < 2:
        raise UserError(f"{path} has {len(rows):,} labelled pairs: both entailments and other pairs are needed.")
    return rows


def make_job(
    backbone: str, dim: int, full: bool, epochs: int, batch: int, rate: float, unrelated: float, limit: int
) -> Any:
    from subspaces.experiments.snli.settings import SnliJob

    model: dict[str, Any] = {"encoder": "subspace", "backbone": backbone, "dim": dim, "unrelated": unrelated}
    training = {"epochs": epochs, "batch": batch, "micro": batch, "lr": rate / 5 if full else rate, "lr_decay": 1.0}
    training |= {"lr_final": 0.05, "warmup": 0.06, "smoothing": 0.0, "dropout": 0.0, "validate_steps": 0}
    training |= {"by_length": True, "pad_to_longest": True, "share_premises": True, "autocast": True}
    return SnliJob.model_validate(
        {
            "model": model if full else model | {"adapters": {}},
            "backbone": {"name": backbone, "wanted": backbone},
            "ways": 2,
            "training": training,
            "limit": limit,
            "pairs": None,
            "dev_pairs": None,
            "test_pairs": None,
            "subset_seed": 0,
        }
    )


def fit_pairs(
    rows: list[Labelled], job: Any, out: Path, sources: Path, seed: int, threads: int, device: str, dev_share: float
) -> dict[str, Any]:
    """Train and write the folder `out`. The same request again does nothing; a killed one resumes from its checkpoint."""
    from subspaces.experiments.snli.fit import fit_entailment
    from subspaces.files import digest, read_json
    from subspaces.training.checkpoint import Checkpoints
    from subspaces.training.progress import ConsoleProgress
    from subspaces.training.run import Run

    key = digest([job.model_dump(mode="json"), rows, seed, dev_share])
    if (out / "settings.json").exists():
        settings: dict[str, Any] = read_json(out / "settings.json")
        if settings.get("key") != key:
            raise UserError(f"{out} holds a model of other pairs or settings: choose another folder, or delete it.")
        return settings
    if out.exists() and any(out.iterdir()):
        raise UserError(f"{out} exists and is not empty: choose another folder.")
    checkpoints = Checkpoints(out.with_name(out.name + ".checkpoints"), key)
    data = checkpoints.folder.parent / "pairs.parquet"
    counts = write_parts(rows, data, seed, dev_share)
    record = {"data": {"sample": False, "origin": "own pairs", "sha256": digest(rows), "counts": counts}}
    progress = ConsoleProgress(f"train {out.name}", "pairs", min(job.training.batch, counts["train"]))
    run = Run(out, key, checkpoints, progress, seed, threads, device, 120.0, 1, record)
    settings = fit_entailment(job, data, sources, run)
    shutil.rmtree(data.parent, ignore_errors=True)
    return settings


def write_parts(rows: list[Labelled], path: Path, seed: int, dev_share: float) -> dict[str, int]:
    """The pairs as `load_pairs` reads them; a share of the premises, with all their pairs, is for validation."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from subspaces.files import atomic_file

    premises = sorted({premise for premise, _, _ in rows})
    if len(premises) < 2:
        raise UserError("all pairs have the same premise: validation needs at least one more.")
    order = np.random.default_rng(seed).permutation(len(premises))
    held = {premises[place] for place in order[: max(1, round(dev_share * len(premises)))]}
    parts = ["dev" if premise in held else "train" for premise, _, _ in rows]
    table = pa.table(
        {
            "part": parts,
            "premise": [row[0] for row in rows],
            "hypothesis": [row[1] for row in rows],
            "label": pa.array([row[2] for row in rows], pa.int8()),
        }
    )
    with atomic_file(path) as handle:
        pq.write_table(table, handle)
    return {part: parts.count(part) for part in ("train", "dev")}


def _backbone(backbone: str) -> tuple[Path, str]:
    """The folder that holds the backbone's folder, and its name there."""
    from subspaces.search.storage import cache_folder
    from subspaces.sources.fetch import fetch
    from subspaces.sources.registry import SOURCES

    if Path(backbone).is_dir():
        folder = Path(backbone).resolve()
        return folder.parent, str(folder)
    if backbone not in SOURCES:
        known = ", ".join(
            name for name, source in SOURCES.items() if any(f.name == "config.json" for f in source.files)
        )
        raise UserError(f"{backbone} is neither a folder nor a source: give a folder, or one of {known}.")
    project = Path("data/sources")
    sources = project if (project / backbone).is_dir() else cache_folder()
    fetch(backbone, sources / backbone)
    return sources, backbone
