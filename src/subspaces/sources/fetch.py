"""Fetch a source: try its origins in order, accept only files that verify, and write the folder in one step.

Everything happens in a temporary folder beside the target. Only when every file has the registry's sha256 is the manifest written
and the folder renamed into place, so a damaged, wrong or interrupted download is never used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json
from subspaces.sources.archives import raise_if_disk
from subspaces.sources.model import Origin, OriginError, Source, SourceFile
from subspaces.sources.origins import MIRROR, SAMPLES, Mirror, Sample, mirror_places
from subspaces.sources.registry import get

MANIFEST = "manifest.json"
OFFLINE = "SUBSPACES_OFFLINE"


class Unavailable(UserError):
    """No origin delivers a source; `tried` says why, without paths or addresses."""

    def __init__(self, message: str, tried: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.tried = tried


def fetch(name: str, out: Path, *, root: Path | None = None, allow_sample: bool = False) -> dict[str, Any]:
    """Bring source `name` into the folder `out` and return its manifest.

    `root` is the project's folder (a mirror may lie beside it). A folder that is already there and verifies is kept; delete it to
    look for a better origin. Raises Unavailable with every origin tried and why each failed.
    """
    return fetch_source(get(name), Path(out), root=root, allow_sample=allow_sample)


def fetch_source(source: Source, out: Path, *, root: Path | None = None, allow_sample: bool = False) -> dict[str, Any]:
    """The same for a row that need not be in the registry."""
    out = out.resolve()
    if kept := _keep(source, out, allow_sample):
        return kept
    _refuse_foreign(source, out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out)
        holder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".part", dir=out.parent))
    except OSError as error:
        raise UserError(
            f"cannot write beside {out}: {error.strerror}. Check the folder's permissions and free space."
        ) from error
    try:
        staging = holder / "new"
        staging.mkdir()
        manifest = _collect(source, staging, root, allow_sample)
        write_json(staging / MANIFEST, manifest)
        return _install(source, staging, out, manifest)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def _sweep(out: Path) -> None:
    """Remove what a killed run left behind; a day is longer than any download, so a living one is not disturbed."""
    for left in out.parent.glob(f".{out.name}.*.part"):
        if left.is_dir() and time.time() - left.stat().st_mtime > 86_400:
            shutil.rmtree(left, ignore_errors=True)


def offline() -> bool:
    return os.environ.get(OFFLINE, "").strip().lower() not in ("", "0", "false", "no")


def _keep(source: Source, out: Path, allow_sample: bool) -> dict[str, Any] | None:
    """The manifest of what is already there, when it may stay."""
    if not (out / MANIFEST).is_file() or verify(out, source):
        return None
    manifest = read_json(out / MANIFEST)
    return manifest if allow_sample or not manifest["sample"] else None


def _refuse_foreign(source: Source, out: Path) -> None:
    """`out` will be replaced as a whole, so it must not hold anything else. Hidden files belong to tools and are carried over."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file; {source.name} needs a folder. Move it away or choose another folder.")
    ours = {MANIFEST, *source.samples, *(file.name for file in source.files)}
    foreign = [name for name in files_in(out) if name not in ours and not name.startswith(".")]
    if foreign:
        raise UserError(
            f"{out} holds files that do not belong to {source.name} ({', '.join(foreign[:5])}). Choose a folder for this source alone."
        )


def _collect(source: Source, staging: Path, root: Path | None, allow_sample: bool) -> dict[str, Any]:
    """Fill `staging` from the origins in order; each is asked only for what the earlier ones could not give."""
    missing, used, tried, details = source.files, [], [], []
    for origin in source.origins:
        got, text, reason, detail = _try(origin, source, missing, staging, root)
        missing = tuple(file for file in missing if file not in got)
        if got:
            used.append(text)
        result = reason or ("complete" if not missing else f"{len(got)} of {len(source.files)} files")
        tried.append({"origin": origin.label, "result": result})
        details.append(f"{origin.label}: {result}" + (f" ({detail})" if detail else ""))
        if not missing:
            return _manifest(source, " + ".join(used), tried, staging)
    if allow_sample and source.samples:
        for name in files_in(staging):
            (staging / name).unlink()
        text = Sample().fetch(source, (), staging, root)
        return _manifest(source, text, tried, staging, sample=True)
    raise Unavailable(_explain(source, missing, details, allow_sample), tried)


def _try(
    origin: Origin, source: Source, missing: tuple[SourceFile, ...], staging: Path, root: Path | None
) -> tuple[set[SourceFile], str, str, str]:
    """Ask one origin. Returns the files that verify, the origin's text, and why it fell short (reason, detail)."""
    text, reason, detail = origin.label, "", ""
    if origin.network and offline():
        return set(), text, f"skipped, {OFFLINE} is set", ""
    try:
        text = origin.fetch(source, missing, staging, root)
    except OriginError as error:
        reason, detail = error.reason, error.detail
    except OSError as error:
        raise_if_disk(error)
        reason, detail = "it could not be read", str(error)
    got = set()
    for file in missing:
        path = staging / file.name
        if not path.exists():
            continue
        if problem := check(path, file):
            path.unlink()
            reason = reason or f"refused {file.name}: {problem}"
        else:
            got.add(file)
    return got, text, reason, detail


def files_in(folder: Path) -> list[str]:
    """The files of a folder and the folders in it, by their paths from there."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def check(path: Path, file: SourceFile) -> str | None:
    """What is wrong with the file at `path`, or None."""
    if not path.is_file():
        return "it is missing"
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"it has {size} bytes instead of {file.size}"
    if file.sha256 is None and file.git_blob is not None:
        found = git_blob(path)
        return None if found == file.git_blob else f"as a git blob it is {found[:12]}… instead of {file.git_blob[:12]}…"
    if file.sha256 is None and file.lines is not None:
        lines = count_lines(path)
        return None if lines == file.lines else f"it has {lines} lines instead of {file.lines}"
    if file.sha256 is None:
        return "its sha256 is not known yet, so it cannot be trusted"
    found = sha256_file(path)
    return None if found == file.sha256 else f"its sha256 is {found[:12]}… instead of {file.sha256[:12]}…"


def git_blob(path: Path) -> str:
    """The name that git gives to the content of a file."""
    hasher = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with open(path, "rb") as handle:
        while piece := handle.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()


def count_lines(path: Path) -> int:
    with open(path, "rb") as handle:
        return sum(piece.count(b"\n") for piece in iter(lambda: handle.read(1 << 20), b""))


def _manifest(
    source: Source, origin: str, tried: list[dict[str, str]], staging: Path, *, sample: bool = False
) -> dict[str, Any]:
    """Nothing in it depends on the machine or the hour: the same bytes from the same origin give the same manifest."""
    paths = {name: staging / name for name in files_in(staging)}
    files = {name: {"sha256": sha256_file(path), "bytes": path.stat().st_size} for name, path in paths.items()}
    licence = "MIT, as this project" if sample else source.licence
    return {
        "source": source.name,
        "version": source.version,
        "origin": origin,
        "sample": sample,
        "files": files,
        "licence": licence,
        "citation": "" if sample else source.citation,
        "tried": tried,
    }


def _install(source: Source, staging: Path, out: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Put the finished folder in place of `out`; if that fails, what was there comes back."""
    old = staging.parent / "old"
    try:
        if out.exists():
            for hidden in out.glob(".*"):
                if hidden.is_file():
                    shutil.copy2(hidden, staging / hidden.name)
            out.rename(old)
        try:
            staging.rename(out)
        except OSError:
            if old.exists() and not out.exists():
                old.rename(out)
            raise
    except OSError as error:
        # Another process may have finished the same work a moment earlier.
        if theirs := _keep(source, out, manifest["sample"]):
            return theirs
        raise UserError(
            f"cannot put {source.name} into {out}: {error.strerror}. Check the folder's permissions."
        ) from error
    return manifest


def _explain(source: Source, missing: tuple[SourceFile, ...], details: list[str], allow_sample: bool) -> str:
    names = [file.name for file in missing]
    lines = [
        f"{source.name} {source.version} is unavailable: {len(names)} of {len(source.files)} files are missing ({', '.join(names)})."
    ]
    lines += ["Tried, in order:", *(f"  - {detail}" for detail in details)]
    if any(isinstance(origin, Mirror) for origin in source.origins):
        places = sorted({f"${MIRROR}/{mirror_places(source, file)[0]}" for file in missing})
        lines += [
            f"What to do: get it from {source.homepage} or from a colleague's mirror, set {MIRROR} to a folder, and put there:"
        ]
        lines += [f"  {place}" for place in places]
        lines += [
            f"Plain, unpacked files under ${MIRROR}/{source.name}/ are accepted too. Then run the same command again."
        ]
    if source.samples and not allow_sample:
        lines += ["Scale quick can run on a small sample instead."]
    return "\n".join(lines)


def verify(out: Path, source: Source | str) -> list[str]:
    """Every problem of the folder `out` as a copy of `source`; an empty list means that it may be used."""
    source = get(source) if isinstance(source, str) else source
    out = Path(out)
    if not out.is_dir():
        return [f"{out.name}: the folder does not exist"]
    try:
        manifest = read_json(out / MANIFEST)
    except (UserError, OSError):
        return [f"{MANIFEST}: it is missing or cannot be read"]
    if (
        not isinstance(manifest, dict)
        or not isinstance(manifest.get("sample"), bool)
        or not isinstance(manifest.get("origin"), str)
    ):
        return [f"{MANIFEST}: it is not a manifest of this project"]
    if (manifest.get("source"), manifest.get("version")) != (source.name, source.version):
        return [
            f"{MANIFEST}: it is about {manifest.get('source')} {manifest.get('version')}, not {source.name} {source.version}"
        ]
    if manifest["sample"] and not source.samples:
        return [f"{MANIFEST}: it claims a sample, and there is none for {source.name}"]
    if manifest["sample"]:
        expected = tuple(_sample_file(name) for name in source.samples)
    else:
        expected = tuple(_as_fetched(file, manifest.get("files")) for file in source.files)
    return [f"{file.name}: {problem}" for file in expected if (problem := check(out / file.name, file))]


def _as_fetched(file: SourceFile, recorded: Any) -> SourceFile:
    """Of a file that was only counted when it came, the manifest knows the digest."""
    if file.lines is None or file.sha256 is not None:
        return file
    try:
        return replace(file, sha256=recorded[file.name]["sha256"], size=recorded[file.name]["bytes"])
    except (KeyError, TypeError):
        return file


def _sample_file(name: str) -> SourceFile:
    path = SAMPLES / name
    return SourceFile(name, sha256_file(path), path.stat().st_size)
