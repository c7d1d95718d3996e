"""What is here and what is not: the table behind `subspaces sources`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from subspaces.files import read_json
from subspaces.sources.fetch import MANIFEST, verify
from subspaces.sources.model import Source
from subspaces.sources.origins import mirror_folder, mirror_places
from subspaces.sources.registry import SOURCES


@dataclass(frozen=True)
class Row:
    """One line of the table. `missing` names the files that are absent or wrong; `in_mirror`: a mirror could supply them."""

    name: str
    version: str
    present: bool
    origin: str
    sample: bool
    missing: tuple[str, ...]
    in_mirror: bool
    licence: str
    counts: Mapping[str, int]
    used_by: tuple[str, ...]


def status(root: Path | None, data_dir: Path) -> list[Row]:
    """One row per source, judged by content: every file under `data_dir`/<name>/ is hashed."""
    return [_row(source, root, Path(data_dir) / source.name) for source in SOURCES.values()]


def _row(source: Source, root: Path | None, folder: Path) -> Row:
    problems = verify(folder, source)
    manifest = {} if problems else read_json(folder / MANIFEST)
    wrong = {problem.partition(":")[0] for problem in problems}
    names = {file.name for file in source.files}
    # Without a manifest nothing in the folder counts.
    missing = tuple(sorted(wrong & names or names)) if problems else ()
    mirror = mirror_folder(root)
    in_mirror = mirror is not None and all(
        any((mirror / place).is_file() for place in mirror_places(source, file)) for file in source.files
    )
    return Row(
        name=source.name,
        version=source.version,
        present=not problems,
        origin=manifest.get("origin", ""),
        sample=manifest.get("sample", False),
        missing=missing,
        in_mirror=in_mirror,
        licence=source.licence,
        counts=source.counts,
        used_by=source.used_by,
    )


def format_status(rows: Sequence[Row]) -> str:
    """Aligned plain text."""
    header = ("source", "version", "here", "origin", "licence", "used by", "should hold")
    table = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    if row.present:
        here, origin = "sample" if row.sample else "yes", row.origin
    else:
        here = "no"
        several = len(row.missing) > 1
        origin = f"{len(row.missing)} file{'s' * several} missing"
        origin += f", mirror has {'them' if several else 'it'}" * row.in_mirror
    counts = ", ".join(f"{value:,} {what}" for what, value in list(row.counts.items())[:2])
    return row.name, row.version, here, origin, row.licence, ", ".join(row.used_by), counts
