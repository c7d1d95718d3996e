"""Builds that are killed, repeated, refused, cut into shards and merged."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.search.build import BLOCK, build_index, build_shard, merge, part_folder, shard_bounds
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from tests.search.stand_in import sentences, span, stand_in

COUNT = 3 * BLOCK + 100
TEXTS = sentences(COUNT)


class Counting:
    """Counts the texts that are encoded, and may stop before a block."""

    def __init__(self, stop_at: int | None = None):
        self.texts, self.stop_at = 0, stop_at

    def encoder(self) -> HalfVectorEncoder:
        return HalfVectorEncoder(self, 8, "counting")

    def __call__(self, texts: list[str]) -> torch.Tensor:
        if self.stop_at is not None and self.texts >= self.stop_at:
            raise KeyboardInterrupt
        self.texts += len(texts)
        return span(texts, 8)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("kind", ["exact-fp16", "compact"])
def test_a_stopped_build_goes_on_where_it_was(tmp_path: Path, kind: str) -> None:
    build_index(TEXTS, Counting().encoder(), tmp_path / "whole", kind=kind)
    with pytest.raises(KeyboardInterrupt):
        build_index(TEXTS, Counting(stop_at=2 * BLOCK).encoder(), tmp_path / "out", kind=kind)
    assert not (tmp_path / "out").exists() and read_json(tmp_path / "out.part/progress.json")["rows"] == 2 * BLOCK
    with open(tmp_path / "out.part/half.f16", "ab") as handle:
        handle.write(b"half a row")  # what a killed write may leave
    again = Counting()
    build_index(TEXTS, again.encoder(), tmp_path / "out", kind=kind)
    assert again.texts == COUNT - 2 * BLOCK
    assert content(tmp_path / "out") == content(tmp_path / "whole") and not part_folder(tmp_path / "out").exists()


def test_lost_vectors_are_encoded_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index(TEXTS, Counting(stop_at=2 * BLOCK).encoder(), tmp_path / "out")
    os.truncate(tmp_path / "out.part/half.f16", 1000)
    again = Counting()
    build_index(TEXTS, again.encoder(), tmp_path / "out")
    assert again.texts == COUNT


def test_a_build_killed_after_the_encoding_encodes_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TEXTS[:300]
    whole = build_index(texts, Counting().encoder(), tmp_path / "whole", kind="compact")
    for stopper in (
        "subspaces.search.build.StoredTexts.write",
        "subspaces.search.build.Manifest.write",
        "subspaces.search.build._rename",
    ):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(stopper, _stop)
            build_index(texts, Counting().encoder(), tmp_path / stopper, kind="compact")
        again = Counting()
        build_index(texts, again.encoder(), tmp_path / stopper, kind="compact")
        assert again.texts == 0 and content(tmp_path / stopper) == content(whole)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_process_killed_without_warning(tmp_path: Path) -> None:
    """SIGKILL in the middle of a real build in another process; this one finishes it."""
    code = f"""
        import os, signal
        from tests.search.test_build import Counting, TEXTS, BLOCK, build_index, span
        class Killed(Counting):
            def __call__(self, texts):
                if self.texts == BLOCK:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().__call__(texts)
        build_index(TEXTS, Killed().encoder(), {str(tmp_path / "out")!r})
    """
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=root, capture_output=True, timeout=120, check=False
    )
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    again = Counting()
    build_index(TEXTS, again.encoder(), tmp_path / "out")
    assert again.texts == COUNT - BLOCK
    assert content(tmp_path / "out") == content(build_index(TEXTS, Counting().encoder(), tmp_path / "whole"))


def test_the_same_request_does_nothing_and_another_is_refused(tmp_path: Path) -> None:
    texts = TEXTS[:80]
    build_index(texts, stand_in(), tmp_path / "out")
    before = (tmp_path / "out/manifest.json").stat().st_mtime_ns
    build_index(texts, stand_in(), tmp_path / "out")
    assert (tmp_path / "out/manifest.json").stat().st_mtime_ns == before
    others = [
        (texts[:-1], stand_in(), {}),
        (texts, stand_in(16, "other"), {}),
        (texts, stand_in(), {"kind": "reduced"}),
    ]
    for documents, encoder, more in others:
        with pytest.raises(UserError, match="index of other documents, model or settings"):
            build_index(documents, encoder, tmp_path / "out", **more)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index(TEXTS, Counting(stop_at=BLOCK).encoder(), tmp_path / "out")
    with pytest.raises(UserError, match=r"out\.part holds an unfinished index of other documents"):
        build_index(TEXTS[:-1], Counting().encoder(), tmp_path / "out")
    handle = os.open(tmp_path / "out.part", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(UserError, match="another run is building"):
        build_index(TEXTS, Counting().encoder(), tmp_path / "out")
    os.close(handle)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(UserError, match="exists and is not an index"):
        build_index(TEXTS, stand_in(), tmp_path / "other")
    with pytest.raises(UserError, match="cannot write"):
        build_index(TEXTS, stand_in(), tmp_path / "other/file/index")


@pytest.mark.parametrize("later", [TEXTS[:BLOCK], TEXTS[1 : BLOCK + 6]])
def test_documents_that_change_while_they_are_read(tmp_path: Path, later: list[str]) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS[: BLOCK + 5]))

    def change(texts: list[str]) -> torch.Tensor:
        path.write_text("\n".join(later))
        return span(texts, 8)

    with pytest.raises(UserError, match=r"documents changed while they were read: delete .*out\.part"):
        build_index(path, HalfVectorEncoder(change, 8, "slow"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("count", "shards"), [(COUNT, 3), (COUNT, 1), (COUNT, 100), (5, 4), (BLOCK, 2), (155_070, 16)])
def test_bounds_cover_everything_between_blocks(count: int, shards: int) -> None:
    bounds = shard_bounds(count, shards)
    assert bounds[0][0] == 0 and bounds[-1][1] == count and len(bounds) <= shards
    assert all(one[1] == two[0] for one, two in pairwise(bounds))
    assert all(start % BLOCK == 0 and start < stop for start, stop in bounds)
    if count == 155_070:
        assert len(bounds) == 16 and max(b - a for a, b in bounds) - min(b - a for a, b in bounds[:-1]) <= BLOCK


@pytest.mark.parametrize("kind", ["exact-fp16", "exact-fp32", "reduced", "ivfpq"])
def test_merged_shards_are_the_whole_byte_for_byte(tmp_path: Path, kind: str) -> None:
    precision = kind[-4:] if kind.startswith("exact") else "fp16"
    shards = []
    for start, stop in shard_bounds(COUNT, 3):
        shards.append(build_shard(TEXTS, start, stop, stand_in(8), tmp_path / f"shard-{start}", precision=precision))
    merged = merge(shards[::-1], tmp_path / "merged", kind=kind)
    whole = build_index(TEXTS, stand_in(8), tmp_path / "whole", kind=kind)
    assert content(merged) == content(whole)
    assert SubspaceIndex.open(shards[1], stand_in(8)).search("a man")[0].text in TEXTS[BLOCK:]
    merge(shards, tmp_path / "merged", kind=kind)  # nothing to do


def test_shards_that_do_not_fit_together(tmp_path: Path) -> None:
    texts = TEXTS[:300]
    a = build_shard(texts, 0, 100, stand_in(8), tmp_path / "a")
    b = build_shard(texts, 100, 200, stand_in(8), tmp_path / "b")
    c = build_shard(texts, 200, 300, stand_in(8), tmp_path / "c")
    overlapping = build_shard(texts, 150, 300, stand_in(8), tmp_path / "d")
    other_model = build_shard(texts, 200, 300, stand_in(8, "other"), tmp_path / "e")
    other_texts = build_shard(TEXTS[1:301], 200, 300, stand_in(8), tmp_path / "f")
    out = tmp_path / "out"
    for shards, message in (
        ([a, c], r"no shard holds the rows 100 to 199"),
        ([b, c], r"no shard holds the rows 0 to 99"),
        ([a, b], r"no shard holds the rows 200 to 299"),
        ([a, b, c, overlapping], "holds rows from 150 again"),
        ([a, b, other_model], "differ in their encoder: stand-in-8 and other-8"),
        ([a, b, other_texts], "slices of different documents"),
        ([], "no shards"),
    ):
        with pytest.raises(UserError, match=message):
            merge(shards, out)
    with pytest.raises(UserError, match=r"exact-fp32 is made from exact-fp32 shards, these are exact-fp16"):
        merge([a, b, c], out, kind="exact-fp32")
    with pytest.raises(UserError, match="no slice of 300 documents"):
        build_shard(texts, 200, 301, stand_in(8), tmp_path / "g")
    merge([a, b, c], out)
    assert len(SubspaceIndex.open(out)) == 300


def test_memory_does_not_grow_with_the_documents(tmp_path: Path) -> None:
    """The encoder never sees more than a block, and the documents' file is read as a stream."""
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    largest = 0

    def watched(texts: list[str]) -> torch.Tensor:
        nonlocal largest
        largest = max(largest, len(texts))
        return span(texts, 8)

    build_index(path, HalfVectorEncoder(watched, 8, "watched"), tmp_path / "out")
    assert largest == BLOCK
