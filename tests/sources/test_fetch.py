"""`fetch`: order of origins, verification, all or nothing, and errors that say what to do."""

import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import replace

import pytest

from subspaces.errors import UserError
from subspaces.sources import fetch as fetch_module
from subspaces.sources.fetch import fetch, fetch_source, verify
from subspaces.sources.model import OriginError, SourceFile
from subspaces.sources.origins import Mirror, Written
from subspaces.sources.registry import get

from .conftest import CONTENT, Nowhere

GOOD = Written({name: content.decode() for name, content in CONTENT.items()}, label="good")


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir())


def tar_of(members, kind="w:xz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=kind) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_manifest_is_complete_and_the_same_every_time(make_source, tmp_path):
    source = make_source(Mirror(), GOOD)
    first = fetch_source(source, tmp_path / "a" / "toy")
    fetch_source(source, tmp_path / "b" / "toy")
    text = (tmp_path / "a" / "toy" / "manifest.json").read_text()
    assert text == (tmp_path / "b" / "toy" / "manifest.json").read_text()
    assert json.loads(text) == first
    assert str(tmp_path) not in text
    assert set(first) == {"source", "version", "origin", "sample", "files", "licence", "citation", "tried"}
    assert first["files"]["one.txt"]["bytes"] == len(CONTENT["one.txt"])
    assert [entry["origin"] for entry in first["tried"]] == ["mirror", "good"]
    assert left_behind(tmp_path / "a") == ["toy"]


def test_a_folder_that_verifies_is_kept(make_source, tmp_path):
    fetch_source(make_source(GOOD), tmp_path / "toy")
    before = (tmp_path / "toy" / "one.txt").stat().st_mtime_ns
    assert fetch_source(make_source(Nowhere()), tmp_path / "toy")["origin"].startswith("good")
    assert (tmp_path / "toy" / "one.txt").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "damage", ["changed", "truncated", "deleted", "no manifest", "broken manifest", "other source"]
)
def test_a_damaged_folder_is_noticed_and_replaced(make_source, tmp_path, damage):
    source, out = make_source(GOOD), tmp_path / "toy"
    fetch_source(source, out)
    (out / ".gitignore").write_text("one.txt\n")
    one, manifest = out / "one.txt", out / "manifest.json"
    match damage:
        case "changed":
            one.write_bytes(CONTENT["one.txt"].replace(b"f", b"g"))
        case "truncated":
            one.write_bytes(CONTENT["one.txt"][:-1])
        case "deleted":
            one.unlink()
        case "no manifest":
            manifest.unlink()
        case "broken manifest":
            manifest.write_text("{")
        case "other source":
            manifest.write_text(manifest.read_text().replace('"toy"', '"joy"'))
    problems = verify(out, source)
    assert len(problems) == 1 and problems[0].split(":")[0] in ("one.txt", "manifest.json")
    fetch_source(source, out)
    assert verify(out, source) == []
    assert (out / ".gitignore").read_text() == "one.txt\n"
    assert left_behind(tmp_path) == ["toy"]


def test_a_bad_replacement_leaves_the_old_folder_alone(make_source, tmp_path):
    out = tmp_path / "toy"
    fetch_source(make_source(GOOD), out)
    (out / "one.txt").write_bytes(b"changed")
    with pytest.raises(UserError):
        fetch_source(make_source(Nowhere()), out)
    assert (out / "one.txt").read_bytes() == b"changed"
    assert left_behind(tmp_path) == ["toy"]


def test_foreign_files_are_never_deleted(make_source, tmp_path):
    (tmp_path / "thesis.docx").write_text("years of work")
    with pytest.raises(UserError, match="thesis"):
        fetch_source(make_source(GOOD), tmp_path)
    assert left_behind(tmp_path) == ["thesis.docx"]


def test_files_in_folders_of_a_source(make_source, tmp_path):
    """Two files of one name and one size: the folder decides."""
    content = {"config.json": b"first", "1_Pooling/config.json": b"other"}
    source, out = make_source(Mirror(), content=content, mirror="toy/all.tar"), tmp_path / "out" / "toy"
    (tmp_path / "shared" / "data" / "toy").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "toy" / "all.tar").write_bytes(
        tar_of({f"deep/{name}": body for name, body in content.items()}, "w")
    )
    manifest = fetch_source(source, out, root=tmp_path / "project")
    assert list(manifest["files"]) == ["1_Pooling/config.json", "config.json"]
    assert (out / "1_Pooling" / "config.json").read_bytes() == b"other"
    (out / "1_Pooling" / "config.json").unlink()
    assert verify(out, source) == ["1_Pooling/config.json: it is missing"]
    fetch_source(source, out, root=tmp_path / "project")
    (out / "1_Pooling" / "thesis.docx").write_text("years of work")
    (out / "config.json").unlink()
    with pytest.raises(UserError, match="1_Pooling/thesis"):
        fetch_source(source, out, root=tmp_path / "project")
    assert (out / "1_Pooling" / "thesis.docx").is_file()


def test_a_file_that_can_only_be_counted(make_source, tmp_path):
    """What came is counted; what is here must be what came."""
    source = make_source(GOOD)
    source = replace(source, files=(*source.files[:1], SourceFile("two.txt", None, None, lines=300)))
    assert fetch_source(source, tmp_path / "toy")["tried"][0]["result"] == "complete"
    assert verify(tmp_path / "toy", source) == []
    (tmp_path / "toy" / "two.txt").write_bytes(CONTENT["two.txt"].replace(b"s", b"z"))
    assert "sha256" in verify(tmp_path / "toy", source)[0]
    wrong = replace(source, files=(*source.files[:1], SourceFile("two.txt", None, None, lines=299)))
    with pytest.raises(UserError, match=r"refused two.txt: it has 300 lines instead of 299"):
        fetch_source(wrong, tmp_path / "other")
    assert left_behind(tmp_path) == ["toy"]


def test_an_empty_folder_and_a_symbolic_link_are_filled(make_source, tmp_path):
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "toy").symlink_to(tmp_path / "big-disk")
    fetch_source(make_source(GOOD), tmp_path / "toy")
    assert (tmp_path / "toy").is_symlink()
    assert (tmp_path / "big-disk" / "manifest.json").is_file()


def test_a_file_in_the_way_is_named(make_source, tmp_path):
    (tmp_path / "toy").write_text("")
    with pytest.raises(UserError, match="is a file"):
        fetch_source(make_source(GOOD), tmp_path / "toy")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_nothing(make_source, tmp_path, interruption):
    class Interrupted:
        label, network = "interrupted", False

        def fetch(self, source, files, into, root):
            (into / "one.txt").write_bytes(CONTENT["one.txt"][:100])
            raise interruption

    with pytest.raises(interruption):
        fetch_source(make_source(Interrupted(), GOOD), tmp_path / "toy")
    assert left_behind(tmp_path) == []


def test_origins_add_up_and_a_wrong_file_is_refused(make_source, tmp_path):
    wrong = Written(
        {"one.txt": CONTENT["one.txt"].decode(), "two.txt": CONTENT["two.txt"].decode().replace("s", "z")},
        label="wrong",
    )
    manifest = fetch_source(make_source(wrong, GOOD), tmp_path / "toy")
    assert manifest["tried"][0]["result"].startswith("refused two.txt: its sha256 is")
    assert manifest["tried"][1]["result"] == "complete"
    assert manifest["origin"].startswith("wrong (") and "good (two.txt)" in manifest["origin"]
    assert (tmp_path / "toy" / "two.txt").read_bytes() == CONTENT["two.txt"]


def test_the_error_names_files_origins_reasons_and_what_to_do(make_source, tmp_path):
    source = make_source(Mirror(), Nowhere("somewhere", "it moved"), mirror="toy/all.tar.xz")
    with pytest.raises(UserError) as caught:
        fetch_source(source, tmp_path / "toy", root=tmp_path)
    message = str(caught.value)
    for part in ("toy 1", "one.txt", "two.txt", "mirror: SUBSPACES_MIRROR is not set", "somewhere: it moved"):
        assert part in message
    assert "$SUBSPACES_MIRROR/toy/all.tar.xz" in message and "https://example.org/" in message
    assert left_behind(tmp_path) == []


def test_what_a_killed_run_left_is_swept_after_a_day(make_source, tmp_path, monkeypatch):
    (tmp_path / ".toy.abc.part").mkdir()
    fetch_source(make_source(GOOD), tmp_path / "toy")
    assert left_behind(tmp_path) == [".toy.abc.part", "toy"]
    now = fetch_module.time.time()
    monkeypatch.setattr(fetch_module.time, "time", lambda: now + 100_000)
    (tmp_path / "toy" / "one.txt").unlink()
    fetch_source(make_source(GOOD), tmp_path / "toy")
    assert left_behind(tmp_path) == ["toy"]


# The mirror


@pytest.fixture
def own_mirror(tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    monkeypatch.setenv("SUBSPACES_MIRROR", str(folder))
    return folder


@pytest.mark.parametrize("kind", ["tar.xz", "tar.gz", "tar", "zip"])
def test_archives_in_the_mirror(make_source, own_mirror, tmp_path, kind):
    members = {f"deep/inside/{name}": content for name, content in CONTENT.items()} | {"other": b"x"}
    holder = own_mirror / "toy" / f"all.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(holder, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        holder.write_bytes(tar_of(members, {"tar.xz": "w:xz", "tar.gz": "w:gz", "tar": "w"}[kind]))
    manifest = fetch_source(make_source(Mirror(), mirror=f"toy/all.{kind}"), tmp_path / "toy")
    assert manifest["origin"] == "mirror"
    assert left_behind(tmp_path / "toy") == ["manifest.json", "one.txt", "two.txt"]


def test_plain_and_gzipped_files_in_the_mirror(make_source, own_mirror, tmp_path):
    (own_mirror / "toy" / "one.txt").write_bytes(CONTENT["one.txt"])
    (own_mirror / "toy" / "two.txt").write_bytes(gzip.compress(CONTENT["two.txt"]))
    assert fetch_source(make_source(Mirror()), tmp_path / "toy")["origin"] == "mirror"


def test_a_mirror_beside_the_project_is_found(make_source, tmp_path):
    (tmp_path / "shared" / "data" / "toy").mkdir(parents=True)
    for name, content in CONTENT.items():
        (tmp_path / "shared" / "data" / "toy" / name).write_bytes(content)
    assert fetch_source(make_source(Mirror()), tmp_path / "toy", root=tmp_path / "project")["origin"] == "mirror"


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "gzip cut short", "absent", "no folder"])
def test_a_bad_mirror_is_never_believed(make_source, own_mirror, tmp_path, monkeypatch, damage):
    whole = tar_of(CONTENT)
    holder = own_mirror / "toy" / "all.tar.xz"
    expected = "damaged"
    match damage:
        case "truncated":
            holder.write_bytes(whole[: len(whole) // 2])
        case "garbage":
            holder.write_bytes(b"\0garbage" * 100)
        case "empty":
            holder.write_bytes(b"")
        case "gzip cut short":
            tar = tar_of(CONTENT, "w:gz")
            holder.write_bytes(tar[: len(tar) // 2])
        case "absent":
            expected = "does not hold toy/all.tar.xz"
        case "no folder":
            monkeypatch.setenv("SUBSPACES_MIRROR", str(tmp_path / "typo"))
            expected = "names a folder that does not exist"
    manifest = fetch_source(make_source(Mirror(), GOOD, mirror="toy/all.tar.xz"), tmp_path / "toy")
    assert expected in manifest["tried"][0]["result"]
    assert str(tmp_path) not in json.dumps(manifest)
    assert verify(tmp_path / "toy", make_source(GOOD)) == []


def test_an_archive_cannot_write_elsewhere_or_deliver_links(make_source, own_mirror, tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("../../../escaped.txt", "/var/../one.txt/../../escaped.txt"):
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"bad"))
        link = tarfile.TarInfo("one.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    (own_mirror / "toy" / "all.tar").write_bytes(buffer.getvalue())
    manifest = fetch_source(make_source(Mirror(), GOOD, mirror="toy/all.tar"), tmp_path / "toy")
    assert manifest["origin"].startswith("good")
    assert not list(tmp_path.rglob("escaped.txt"))


def test_a_decompression_bomb_is_cut_off(make_source, own_mirror, tmp_path):
    (own_mirror / "toy" / "one.txt").write_bytes(gzip.compress(b"x" * 50_000_000))
    (own_mirror / "toy" / "two.txt").write_bytes(CONTENT["two.txt"])
    manifest = fetch_source(make_source(Mirror(), GOOD), tmp_path / "toy")
    assert "one.txt: it has" in manifest["tried"][0]["result"]
    size = int(manifest["tried"][0]["result"].split()[4])
    assert size <= 2 * (1 << 20)


def test_a_full_disk_is_told_as_such(make_source, tmp_path):
    class Full:
        label, network = "full", False

        def fetch(self, source, files, into, root):
            raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left"):
        fetch_source(make_source(Full(), GOOD), tmp_path / "toy")
    assert left_behind(tmp_path) == []


def test_an_origin_may_deliver_a_part_and_fail(make_source, tmp_path):
    class Half:
        label, network = "half", False

        def fetch(self, source, files, into, root):
            (into / "one.txt").write_bytes(CONTENT["one.txt"])
            raise OriginError("the rest is gone")

    manifest = fetch_source(make_source(Half(), GOOD), tmp_path / "toy")
    assert manifest["origin"] == "half + good (two.txt)"


# Samples and the offline switch


def test_offline_skips_the_network_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    with pytest.raises(UserError) as caught:
        fetch("wordnet", tmp_path / "wordnet", root=tmp_path / "project")
    message = str(caught.value)
    assert message.count("skipped, SUBSPACES_OFFLINE is set") == 2
    assert "$SUBSPACES_MIRROR/wordnet/nltk_wordnet30.tar.xz" in message and "sample" in message


def test_the_sample_is_used_last_and_only_when_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    out = tmp_path / "wordnet"
    manifest = fetch("wordnet", out, root=tmp_path / "project", allow_sample=True)
    assert (manifest["sample"], manifest["origin"], list(manifest["files"])) == (True, "sample", ["wordnet.tsv"])
    assert verify(out, "wordnet") == []
    assert left_behind(out) == ["manifest.json", "wordnet.tsv"]
    assert fetch("wordnet", out, root=tmp_path / "project", allow_sample=True) == manifest
    with pytest.raises(UserError):
        fetch("wordnet", out, root=tmp_path / "project")
    (out / "wordnet.tsv").write_text("pos\n")
    assert len(verify(out, "wordnet")) == 1


def test_the_real_source_replaces_a_sample(tmp_path, monkeypatch, mirror):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    out = tmp_path / "wordnet"
    monkeypatch.delenv("SUBSPACES_MIRROR", raising=False)
    assert fetch("wordnet", out, root=None, allow_sample=True)["sample"]
    monkeypatch.setenv("SUBSPACES_MIRROR", str(mirror))
    assert fetch("wordnet", out, allow_sample=True)["sample"], "a folder that verifies is kept"
    assert not fetch("wordnet", out)["sample"]
    assert left_behind(out) == sorted([*(file.name for file in get("wordnet").files), "manifest.json"])


def test_a_sample_may_have_several_files(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_OFFLINE", "1")
    out = tmp_path / "backbone"
    manifest = fetch("all-MiniLM-L6-v2", out, allow_sample=True)
    assert manifest["sample"] and list(manifest["files"]) == ["tiny-backbone.json", "tiny-vocab.txt"]
    assert manifest["licence"] == "MIT, as this project"
    assert verify(out, "all-MiniLM-L6-v2") == []
    (out / "tiny-vocab.txt").unlink()
    assert verify(out, "all-MiniLM-L6-v2") == ["tiny-vocab.txt: it is missing"]
    assert fetch("all-MiniLM-L6-v2", out, allow_sample=True) == manifest


def test_half_of_a_source_does_not_stay_beside_the_sample(make_source, tmp_path):
    class Half:
        label, network = "half", False

        def fetch(self, source, files, into, root):
            (into / "folder").mkdir()
            (into / "folder" / "one.txt").write_bytes(b"one")
            raise OriginError("the rest is gone")

    source = make_source(Half(), content={"folder/one.txt": b"one", "two.txt": b"two"}, sample="hyperlex.txt")
    manifest = fetch_source(source, tmp_path / "toy", allow_sample=True)
    assert list(manifest["files"]) == ["hyperlex.txt"]
    assert not list((tmp_path / "toy").rglob("one.txt"))
