"""Keep results when only the code has moved: a renamed function or a faster import should not cost a day of training.

Keys are made from code, so a refactoring makes every model stale. Whoever knows that the results stay the same may say so: outputs that
were current at a revision, and whose settings and inputs are the same now, take today's key, and carry the reason for ever. Only
records of data, models and evaluations are adopted (JSON, and lists in parquet, which hold key and reasons in their metadata); numbers,
tables and figures are made anew from them in seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import atomic_file, digest, read_json, write_json
from subspaces.keys import Recipe

_ADOPTED = ("data/", "models/", "results/evaluations/", "results/composition/")
_KINDS = (".json", ".parquet")
# Runs with the code of the other revision, which may not have this module.
_LIST = """
import json, sys
from pathlib import Path
from subspaces.files import digest
from subspaces.params import load_params
from subspaces.recipes import Recipes

def meant(one):
    return digest([one.settings, [meant(each) for each in one.inputs]])

recipes = Recipes(load_params(Path(sys.argv[1]), sys.argv[2]), Path(sys.argv[3]))
print(json.dumps({one.output: [one.key, meant(one)] for one in recipes.everything()}))
"""


def meant(recipe: Recipe, new: Mapping[str, Any] | None = None) -> str:
    """What an output is meant to be, code apart: its settings and those of all that it is made from.

    `new` are settings that did not exist before, with the value that says what was always done: they do not count.
    """
    return digest([_without(recipe.settings, new or {}), [meant(one, new) for one in recipe.inputs]])


def _without(settings: Any, new: Mapping[str, Any]) -> Any:
    if isinstance(settings, dict):
        return {name: _without(value, new) for name, value in settings.items() if name not in new or value != new[name]}
    return [_without(value, new) for value in settings] if isinstance(settings, list) else settings


def commit_of(revision: str, project: Path) -> str:
    """The full name of a commit: what is written beside a result must mean the same tomorrow, and HEAD does not."""
    return _run(["git", "-C", str(project), "rev-parse", "--verify", f"{revision}^{{commit}}"], f"git has no revision {revision!r}").strip()


def keys_at(revision: str, project: Path, scale: str, folder: Path) -> dict[str, tuple[str, str]]:
    """(key, meaning) of every output, by the code and parameters of a git revision."""
    with tempfile.TemporaryDirectory(prefix="subspaces-") as place:
        tree = Path(place) / "tree"
        _run(
            ["git", "-C", str(project), "worktree", "add", "--quiet", "--detach", str(tree), revision], f"git has no revision {revision!r}"
        )
        try:
            command = [sys.executable, "-c", _LIST, str(tree / "params.yaml"), scale, str(folder.resolve())]
            text = _run(command, f"the code of {revision} cannot list its outputs", {"PYTHONPATH": str(tree / "src")})
        finally:
            _run(["git", "-C", str(project), "worktree", "remove", "--force", str(tree)], "git cannot remove its work tree")
    return {output: (key, meaning) for output, (key, meaning) in json.loads(text).items()}


def _run(command: list[str], problem: str, more: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(more or {})}, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise UserError(f"{problem}: {lines[-1] if lines else 'no reason given'}. Run this in the project's folder, with a commit's name.")
    return result.stdout


def adopt(
    recipes: list[Recipe],
    before: dict[str, tuple[str, str]],
    reason: str,
    revision: str,
    folder: Path = Path(),
    new: Mapping[str, Any] | None = None,
) -> list[str]:
    """Give today's keys to the outputs that were current `before` and mean the same now (see `meant`); returns their names."""
    if len(reason.split()) < 3:
        raise UserError("say in a sentence why the results stay the same (--reason): it is kept beside each of them.")
    chosen: dict[str, Recipe] = {}
    renamed: dict[str, str] = {}
    for one in recipes:
        old = before.get(one.output)
        if old is None or old[1] != meant(one, new) or not one.output.startswith(_ADOPTED) or not one.output.endswith(_KINDS):
            continue
        renamed[old[0]] = one.key
        if one.is_stale(folder) and _key_of(folder / one.output) == old[0]:
            chosen[one.output] = one
    for output, one in chosen.items():
        content = _rename(_read(folder / output), renamed)
        content["adopted"] = [*content.get("adopted", []), {"from": before[output][0], "revision": revision, "reason": reason}]
        assert content["key"] == one.key
        _write(folder / output, content)
    return list(chosen)


def _read(path: Path) -> Any:
    """What a record says of itself: a JSON file, or the metadata of a parquet file."""
    if path.suffix != ".parquet":
        return read_json(path)
    import pyarrow.parquet as pq

    found = {name.decode(): value.decode() for name, value in (pq.read_schema(path).metadata or {}).items()}
    return found | ({"adopted": json.loads(found["adopted"])} if "adopted" in found else {})


def _write(path: Path, content: dict[str, Any]) -> None:
    if path.suffix != ".parquet":
        write_json(path, content)
        return
    import pyarrow.parquet as pq

    table = pq.read_table(path).replace_schema_metadata(content | {"adopted": json.dumps(content["adopted"])})
    with atomic_file(path) as handle:
        pq.write_table(table, handle, compression="zstd", compression_level=19)


def _key_of(path: Path) -> str | None:
    content = _read(path)
    return content.get("key") if isinstance(content, dict) else None


def _rename(content: Any, renamed: dict[str, str]) -> Any:
    """Old keys become new ones wherever they stand: an evaluation names its model's."""
    if isinstance(content, dict):
        return {name: value if name == "adopted" else _rename(value, renamed) for name, value in content.items()}
    if isinstance(content, list):
        return [_rename(value, renamed) for value in content]
    return renamed.get(content, content) if isinstance(content, str) else content
