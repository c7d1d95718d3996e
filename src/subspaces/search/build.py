"""From documents to an index: encode as a stream, make the kind, rename when complete.

The build works in DIR.part. Complete blocks are flushed together with their count, so a killed build resumes after its
last block, and the memory is that of one block. Shards are slices that independent jobs encode; merged, they give the
same bytes as one build of all documents if the cuts lie between blocks (`shard_bounds`) and the encoder is
deterministic.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, write_json
from subspaces.search.documents import Documents, StoredTexts
from subspaces.search.engines import check_engine, fill_engine
from subspaces.search.half_vectors import HalfVectorEncoder, TextEncoder
from subspaces.search.kinds import kind_named
from subspaces.search.kinds.base import read_settings
from subspaces.search.storage import (
    MANIFEST,
    WINDOWS,
    Manifest,
    Slice,
    StaleIndex,
    Store,
    StoreWriter,
    read_windows,
    store_files,
)
from subspaces.training.progress import ConsoleProgress, Silent

BLOCK = 512  # documents encoded and flushed together
LARGE = 20_000  # documents from which `auto` chooses an approximate kind
_PROGRESS = "progress.json"
_CHUNK = 1 << 26
Progress = ConsoleProgress | Silent


def build_index(
    documents: str | Path | Iterable[str],
    encoder: TextEncoder,
    out: str | Path,
    *,
    kind: str = "auto",
    engine: str = "embedded",
    uri: str | None = None,
    settings: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make the index `out`. The same request again does nothing; another request into the same folder is refused."""
    return _build(
        Documents.check(documents),
        0,
        None,
        HalfVectorEncoder.of(encoder),
        Path(out),
        kind,
        engine,
        uri,
        settings,
        progress,
    )


def build_shard(
    documents: str | Path | Iterable[str],
    start: int,
    stop: int,
    encoder: TextEncoder,
    out: str | Path,
    *,
    precision: str = "fp16",
    progress: Progress | None = None,
) -> Path:
    """Encode rows start … stop − 1: an exact index of its own, and a part for `merge`."""
    checked = Documents.check(documents)
    if not 0 <= start < stop <= checked.count:
        raise UserError(
            f"rows {start:,} to {stop:,} are no slice of {checked.count:,} documents: 0 ≤ start < stop ≤ {checked.count:,}."
        )
    return _build(
        checked,
        start,
        stop,
        HalfVectorEncoder.of(encoder),
        Path(out),
        f"exact-{precision}",
        "embedded",
        None,
        None,
        progress,
    )


def shard_bounds(count: int, shards: int) -> list[tuple[int, int]]:
    """Cut `count` rows into at most `shards` slices of about equal size, each a whole number of blocks."""
    if count < 1 or shards < 1:
        raise UserError(f"cannot cut {count:,} documents into {shards:,} shards: both must be at least 1.")
    blocks = -(-count // BLOCK)
    cuts = sorted({min(count, BLOCK * (blocks * place // shards)) for place in range(shards)} | {count})
    return list(pairwise(cuts))


def merge(
    shards: Sequence[str | Path],
    out: str | Path,
    *,
    kind: str = "auto",
    engine: str = "embedded",
    uri: str | None = None,
    settings: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """One index from shards that together hold every row of the same documents, encoded with the same model; any
    order."""
    out, progress = Path(out), progress or Silent()
    parts = sorted(((Manifest.read(Path(one)), Path(one)) for one in shards), key=lambda part: part[0].documents.start)
    _check_parts(parts)
    first = parts[0][0]
    whole = first.documents.model_copy(update={"start": 0, "stop": first.documents.total})
    wanted = _wanted(kind, engine, uri, first.encoder, first.dim, whole, settings, first.columns)
    if first.kind != f"exact-{wanted_precision(wanted)}":
        raise UserError(
            f"{wanted.kind} is made from exact-{wanted_precision(wanted)} shards, these are {first.kind}: encode them again."
        )
    with _work_folder(out, wanted) as work:
        if work is None:
            return out
        if not (work / MANIFEST).exists():
            for name in (*store_files(kind_named(wanted.kind).precision), WINDOWS, *wanted.columns):
                _join([folder / name for _, folder in parts], work / name)
            texts = (text for _, folder in parts for text in _texts(StoredTexts(folder)))
            _finish(work, wanted, texts, progress.say)
        _rename(work, out)
    return out


def _build(
    documents: Documents,
    start: int,
    stop: int | None,
    encoder: HalfVectorEncoder,
    out: Path,
    kind: str,
    engine: str,
    uri: str | None,
    settings: dict[str, Any] | None,
    progress: Progress | None,
) -> Path:
    progress = progress or Silent()
    stop = documents.count if stop is None else stop
    rows = Slice(start=start, stop=stop, total=documents.count, of=documents.sha256)
    wanted = _wanted(kind, engine, uri, encoder.fingerprint, encoder.dim, rows, settings, encoder.columns)
    with _work_folder(out, wanted) as work:
        if work is None:
            return out
        if not (work / MANIFEST).exists():
            _encode(documents, encoder, work, wanted, progress)
            _finish(work, wanted, documents.texts(rows.start, rows.stop), progress.say)
        _rename(work, out)
    return out


def _wanted(
    kind: str,
    engine: str,
    uri: str | None,
    encoder: str,
    dim: int,
    rows: Slice,
    settings: dict[str, Any] | None,
    columns: dict[str, int],
) -> Manifest:
    """The manifest of the request, checked before any work."""
    count = rows.stop - rows.start
    if kind == "auto":
        kind = "exact-fp32" if engine != "embedded" else "exact-fp16" if count < LARGE else "reduced"
    if count < kind_named(kind).smallest:
        raise UserError(
            f"an index of kind {kind} needs at least {kind_named(kind).smallest:,} documents, there are {count:,}: use exact-fp16."
        )
    read_settings(kind_named(kind), settings or {})
    return Manifest(
        kind=kind,
        encoder=encoder,
        dim=dim,
        count=count,
        documents=rows,
        asked=settings or {},
        engine=engine,
        uri=check_engine(engine, uri, kind),
        columns=columns,
    )


def wanted_precision(wanted: Manifest) -> str:
    return {"float16": "fp16", "float32": "fp32"}[kind_named(wanted.kind).precision]


def _encode(documents: Documents, encoder: HalfVectorEncoder, work: Path, wanted: Manifest, progress: Progress) -> None:
    before = read_json(work / _PROGRESS)
    precision = kind_named(wanted.kind).precision
    writer = StoreWriter(work, precision, wanted.width, before["documents"], before["rows"], wanted.columns)
    texts = documents.texts(wanted.documents.start + writer.documents, wanted.documents.stop)
    progress.start(wanted.count, writer.documents)
    try:
        while block := list(islice(texts, BLOCK)):
            windows = encoder.windows(block)
            flat = [window for split in windows for window in split]
            half, trace = encoder.half_vectors_and_traces(flat)
            writer.append(half, trace, [len(split) for split in windows], encoder.column_values(flat, half, trace))
            _note_progress(work, wanted, writer.documents, writer.rows)
            progress.update(writer.documents, {})
    finally:
        writer.close()
        progress.close()
    _same_documents(writer.documents == wanted.count, work)
    if writer.rows > writer.documents:
        long = int((read_windows(work) > 1).sum())
        progress.say(
            f"{long:,} documents are longer than the model's limit: split into windows, {writer.rows:,} rows in all"
        )


def _note_progress(work: Path, wanted: Manifest, documents: int, rows: int) -> None:
    write_json(work / _PROGRESS, {"request": wanted.request, "documents": documents, "rows": rows})


def _finish(work: Path, wanted: Manifest, texts: Iterable[str], say: Callable[[str], None]) -> None:
    """Everything after the encoding. The manifest is written last; `_rename` removes files that it does not list."""
    kind = kind_named(wanted.kind)
    written = StoredTexts.write(work, texts)
    _same_documents(len(StoredTexts(work)) == wanted.count, work)
    _same_documents(wanted.count != wanted.documents.total or written == wanted.documents.of, work)
    store = Store(work, kind.precision, wanted.width)
    names, used = [*StoredTexts.NAMES, WINDOWS, *wanted.columns], None
    if wanted.engine != "embedded":
        fill_engine(wanted, store, say)
    else:
        used = kind.make(store, work, read_settings(kind, wanted.asked), say)
        names += kind.files
        names += store_files(kind.precision) if kind.keeps_vectors else ()
    wanted.finished(work, names, len(store), used).write(work)


def _same_documents(same: bool, work: Path) -> None:
    if not same:
        raise UserError(
            f"the documents changed while they were read: delete {work}, and build again when they no longer change."
        )


@contextmanager
def _work_folder(out: Path, wanted: Manifest) -> Iterator[Path | None]:
    """DIR.part, locked and of this request; None if the index exists already."""
    if _is_there(out, wanted):
        yield None
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists and is not an index: choose another folder.")
    work = part_folder(out)
    try:
        work.mkdir(parents=True, exist_ok=True)
        handle = os.open(work, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"cannot write to {work}: {error.strerror}. Choose another folder.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"another run is building {out}. Wait for it, or stop it; the build can be resumed."
            ) from error
        if _is_there(out, wanted):  # another run finished it after the first check
            work.rmdir()
            yield None
            return
        if not (work / _PROGRESS).exists():
            _note_progress(work, wanted, 0, 0)
        elif read_json(work / _PROGRESS)["request"] != wanted.request:
            raise StaleIndex(
                f"{work} holds an unfinished index of other documents, model or settings: delete it, or choose another folder."
            )
        try:
            yield work
        except OSError as error:
            raise UserError(
                f"cannot write to {work}: {error.strerror}. Encoded blocks are kept; free some space and run again."
            ) from error
    finally:
        os.close(handle)


def _is_there(out: Path, wanted: Manifest) -> bool:
    if not (out / MANIFEST).exists():
        return False
    if Manifest.read(out).request != wanted.request:
        raise StaleIndex(
            f"{out} is an index of other documents, model or settings: choose another folder, or delete it first."
        )
    return True


def _rename(work: Path, out: Path) -> None:
    listed = {*Manifest.read(work).files, MANIFEST}
    for path in work.iterdir():
        if path.name not in listed:
            path.unlink()
    work.replace(out)


def part_folder(out: Path) -> Path:
    """The folder in which an index is built."""
    return out.with_name(out.name + ".part")


def _check_parts(parts: list[tuple[Manifest, Path]]) -> None:
    if not parts:
        raise UserError("there are no shards to merge.")
    first, home = parts[0]
    for one, folder in parts[1:]:
        for what in ("encoder", "dim", "kind", "columns"):
            if getattr(one, what) != getattr(first, what):
                raise UserError(
                    f"{home} and {folder} differ in their {what}: {getattr(first, what)} and {getattr(one, what)}."
                )
        if (one.documents.of, one.documents.total) != (first.documents.of, first.documents.total):
            raise UserError(f"{home} and {folder} are slices of different documents.")
    position = 0
    total = first.documents.total
    slices = [(one.documents.start, one.documents.stop, folder) for one, folder in parts]
    for start, stop, folder in [*slices, (total, total, home)]:
        if start > position:
            raise UserError(f"no shard holds the rows {position:,} to {start - 1:,}: encode them too, then merge.")
        if start < position:
            raise UserError(
                f"{folder} holds rows from {start:,} again, which another shard has: leave one of them out."
            )
        position = stop
    for one, folder in parts:
        one.check_files(folder)


def _join(sources: list[Path], target: Path) -> None:
    with open(target, "wb") as out:
        for source in sources:
            with open(source, "rb") as handle:
                shutil.copyfileobj(handle, out, _CHUNK)


def _texts(texts: StoredTexts) -> Iterator[str]:
    return (texts[row] for row in range(len(texts)))
