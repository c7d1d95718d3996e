"""Flickr30k's captions as documents: one per line, in the order of the table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import atomic_file, sha256_file, write_json


def write_captions(table: Path, count: int | None, out: Path, key: str, extra: dict[str, Any]) -> dict[str, Any]:
    """OUT.txt with the first `count` captions (null: all), OUT.json with how many and where from."""
    with open(table, encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        if "caption" not in (rows.fieldnames or []):
            raise UserError(f"{table}: the first line must name a column caption; fetch flickr30k again.")
        texts = [" ".join(row["caption"].split()) for row in rows]
    total, texts = len(texts), texts[:count]
    if not texts or not all(texts):
        raise UserError(f"{table} holds no captions, or an empty one (line {texts.index('') + 2 if texts else 1}): fetch flickr30k again.")
    with atomic_file(out.with_suffix(".txt"), "w") as handle:
        handle.writelines(f"{text}\n" for text in texts)
    record = {"key": key, "captions": len(texts), "of": total, "sha256": sha256_file(out.with_suffix(".txt")), **extra}
    write_json(out.with_suffix(".json"), record)
    return record
