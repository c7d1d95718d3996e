"""Recorded results, one file per computation, and when a new one may take the place of an old one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from subspaces.files import write_json
from tests.golden.summary import differences

RECORDED = Path(__file__).resolve().parent / "recorded"
RECORD = "`pytest tests/golden --record`"


def check(computation: str, versions: dict[str, int], result: Any, record: bool, folder: Path = RECORDED) -> str | None:
    """What is wrong with a result; None: nothing. With `record`, a result whose version was raised is recorded."""
    path = folder / f"{computation}.json"
    result = json.loads(json.dumps(result))
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    if old is not None and old["versions"] == versions:
        changed = differences(old["result"], result)
        return _changed(computation, versions, changed) if changed else None
    if record:
        write_json(path, {"versions": versions, "result": result})
        return None
    if old is None:
        return f"{computation} has no recorded result: {RECORD} writes it."
    raised = [
        name for name in old["versions"].keys() | versions.keys() if old["versions"].get(name) != versions.get(name)
    ]
    return f"the version of {', '.join(sorted(raised))} is not the recorded one: {RECORD} records the result of {computation}."


def _changed(computation: str, versions: dict[str, int], changed: list[str]) -> str:
    others = ", ".join(name for name in versions if name != computation)
    lines = [
        f"the result of {computation} changed: bump {computation} in workflow/versions.yaml and record the new value",
        *([f"(or bump what it is made with, if the change is there: {others})"] if others else []),
        f"{RECORD} records it. Changed:",
        *(line[:200] for line in changed[:10]),
    ]
    return "\n".join([*lines, *([f"and {len(changed) - 10} more"] if len(changed) > 10 else [])])
