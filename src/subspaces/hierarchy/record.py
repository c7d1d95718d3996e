"""hierarchy.json, the folder's own record: what was asked (written first) and what came of it (written last)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json

NAME = "hierarchy.json"
FORMAT = "subspaces hierarchy 2"


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a folder of ours; None when there is no folder or nothing in it; anything else is refused, never overwritten."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise UserError(f"{folder} is a file: choose another folder with --out.")
    if (folder / NAME).is_file():
        record = read_json(folder / NAME)
        if isinstance(record, dict) and record.get("format") == FORMAT:
            return record
    elif all(path.name.startswith(f".{NAME}.") and path.suffix == ".part" for path in folder.iterdir()):
        return None  # empty, or a fit that was killed in its first moment
    raise UserError(
        f"{folder} holds something else, which a fit would mix with: choose a new or empty folder with --out."
    )


def read_finished(folder: Path) -> dict[str, Any]:
    """The record of a fit that is done."""
    record = read_json(folder / NAME) if (folder / NAME).is_file() else None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UserError(
            f"{folder} holds no fitted hierarchy: give the folder of one, or make one with `subspaces hierarchy fit edges.tsv --out DIR`."
        )
    if not record["finished"]:
        raise UserError(
            f"the fit in {folder} is not finished: run the same `subspaces hierarchy fit` again, it resumes."
        )
    if geometry := record["asked"]["settings"].get("geometry"):
        raise UserError(
            f"{folder} holds a baseline ({geometry}), which is judged only: to ask questions, fit without --geometry in another folder."
        )
    return record


def differences(one: dict[str, Any], other: dict[str, Any], prefix: str = "") -> list[str]:
    """The settings in which two requests differ, as `name: one → other`."""
    found = []
    for name in sorted(one.keys() | other.keys()):
        a, b = one.get(name), other.get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            found += differences(a, b, f"{prefix}{name}.")
        elif a != b:
            found.append("other edges" if name == "edges_sha256" else f"{prefix}{name}: {a} → {b}")
    return found
