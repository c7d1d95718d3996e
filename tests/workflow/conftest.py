"""Real runs of the real graph, in a copy of the project with its own package, the built-in sample and very small budgets."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

NLI_ROWS = ("minilm-mlp-diff", "minilm-subspace-64")  # and two of the twelve of SNLI, on the sample's tiny backbone
LINK_ROWS = ("cones-10", "subspace-64")  # two of the eight rows of link prediction are enough to see the graph work
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@dataclass
class Project:
    """A copy of the project that a test may change."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """No mirror, no network: the sample stands in. The copy's own package comes first."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SUBSPACES_", "SNAKEMAKE_", "DVC_"))
        }
        return kept | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "src"),
            "SUBSPACES_MIRROR": str(self.folder / "no-mirror"),
            "SUBSPACES_OFFLINE": "1",
            "GIT_CEILING_DIRECTORIES": str(self.folder.parent),
            "DVC_NO_ANALYTICS": "1",
        }

    def run(
        self, *command: str, check: bool = True, timeout: int = 1800, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | extra,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done

    def snakemake(self, *targets: str, options: tuple[str, ...] = (), **rest) -> subprocess.CompletedProcess[str]:
        return self.run("snakemake", "--cores", "2", *options, "--", *targets, **rest)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """In the background, in a process group of its own; all that it says comes from its stdout."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def planned(self, *targets: str) -> set[str]:
        """The outputs that a run would make: first output of every planned job, by rule."""
        return outputs_made(self.run("snakemake", "--cores", "2", "--dry-run", "--", *targets))

    def edit_params(self, **changes) -> None:
        """Keys are dotted paths with __ for the dot."""
        path = self.folder / "params.yaml"
        content = json.loads(json.dumps(yaml.safe_load(path.read_text())))  # rows that share an anchor become their own
        for dotted, value in changes.items():
            *way, last = dotted.split("__")
            place = content
            for part in way:
                place = place[part]
            place[last] = value
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1))


def outputs_made(done: subprocess.CompletedProcess[str]) -> set[str]:
    """First output of every job that Snakemake announced."""
    lines = [line.strip() for line in done.stdout.splitlines() + done.stderr.splitlines()]
    return {line.removeprefix("output: ").split(", ")[0] for line in lines if line.startswith("output: ")}


def copy_project(folder: Path, results: bool = False) -> Project:
    """The files that git knows, or would take; with or without the committed results."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if not results and name.startswith(("results/", "figures/", "dvc.lock")):
            continue
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.unlink(missing_ok=True)
            target.symlink_to(source.readlink())
        elif source.is_file():
            shutil.copyfile(source, target)
    return Project(folder)


def make_tiny(project: Project) -> None:
    """One or two epochs each: the numbers mean nothing, the way is the real one."""
    path = project.folder / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content["scale"] = "quick"
    content["bounds"] = {"lambdas": [0.05, 1.0], "dims": [4], "ranks": [1, 2], "draws": 1, "seed": 0}
    quick = content["reconstruction"]["scales"]["quick"]
    quick["all"]["epochs"] = 2
    for row in quick["rows"].values():
        row["both"].pop("epochs", None)
        row["both"].pop("burn_in", None)
    quick["not_run"] = {row: {"verbs": "a row of HyperLex only"} for row in ("euclidean-5", "poincare-5")}
    content["hyperlex"]["scales"]["quick"] |= {"training": {"epochs": 1}, "not_run": {}}
    link = content["link_prediction"]
    quick = link["scales"]["quick"]
    quick["all"] |= {"epochs": 2, "start_epochs": 1}
    for row in quick["rows"].values():
        for layer in row.values():
            layer.pop("epochs", None)
            layer.pop("start_epochs", None)
    skipped = {f"at_{coverage}": "left out of the tests' own small project" for coverage in (0, 10, 25, 50)}
    quick["not_run"] = {row: skipped for row in link["models"] if row not in LINK_ROWS}
    snli = content["snli"]
    quick = snli["scales"]["quick"]
    quick |= {"pairs": 30, "dev_pairs": 12, "test_pairs": 12, "curve": [12]}
    left_out = dict.fromkeys(("two", "three"), "left out of the tests' own small project")
    sweep = [f"lambda-{value:g}" for value in snli["sweep"]["lambdas"]]
    quick["not_run"] = {row: left_out for row in (*snli["models"], *sweep) if row not in NLI_ROWS}
    content["figures"]["snli_model"] = content["retrieval"]["model"] = "minilm-subspace-64"
    few = {"captions": 100, "queries": 8, "repeats": 1, "sentences": 4, "compression_nodes": 20, "compression_pairs": 9}
    content["retrieval"]["scales"]["quick"] |= few
    content["retrieval"]["batches"] = [1, 4, 16, 64, 128]
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    project.run("subspaces", "dvc-yaml")
    project.run("subspaces", "plan")


@pytest.fixture
def project(tmp_path) -> Project:
    copied = copy_project(tmp_path / "project")
    make_tiny(copied)
    return copied


def build(folder: Path) -> Project:
    copied = copy_project(folder)
    make_tiny(copied)
    copied.run("subspaces", "warm", "--", "snakemake", "--cores", "2", "--", "all")
    return copied


@pytest.fixture(scope="session")
def built(tmp_path_factory, worker_id) -> Project:
    """A copy with everything built once; tests that use it put back what they change. Of several workers the first one builds it, and
    each has a copy for itself. BUILT_PROJECT=FOLDER names one that is built already: its outputs, with today's code."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("BUILT_PROJECT"):
        again = copy_built(Project(Path(os.environ["BUILT_PROJECT"])), base / "built/project")
        copy_project(again.folder)
        make_tiny(again)
        return again
    if worker_id == "master":
        return build(base / "built/project")
    first = base.parent / "built"
    with open(base.parent / "built.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (first / "whole").exists():
            shutil.rmtree(first, ignore_errors=True)
            build(first / "project")
            (first / "whole").touch()
    shutil.copytree(first / "project", base / "built/project", symlinks=True)
    return Project(base / "built/project")


def copy_built(built: Project, folder: Path) -> Project:
    """A built project of one's own, without what no output is made from."""
    left = shutil.ignore_patterns(".snakemake", "src.before", "tests", "benchmarks", "logs", "checkpoints")
    shutil.copytree(built.folder, folder, ignore=left, symlinks=True)
    return Project(folder)


@pytest.fixture
def twin(built, tmp_path) -> Iterator[Project]:
    """A copy of the built project that a test may spoil."""
    yield copy_built(built, tmp_path / "project")
    shutil.rmtree(tmp_path / "project")


def stages_run(output: str) -> set[str]:
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")}


@pytest.fixture(scope="session")
def repo(built, tmp_path_factory) -> Project:
    """The built project under git and DVC, with everything remembered; tests that use it put back what they change.

    The samples are in git as well: that they stand for the real data is part of the keys.
    """
    copied = copy_built(built, tmp_path_factory.mktemp("dvc") / "project")
    for command in (
        ("git", "init", "-q"),
        ("git", "config", "user.email", "nobody@example.org"),
        ("git", "config", "user.name", "nobody"),
        ("subspaces", "plan"),
        ("git", "add", "-A"),
        ("git", "add", "--force", "data/sources"),
        ("git", "commit", "-qm", "built"),
        ("subspaces", "lock"),
        ("git", "add", "-A"),
        ("git", "commit", "-qm", "remembered"),
    ):
        copied.run(*command)
    return copied


@pytest.fixture
def edited(repo) -> Iterator[Project]:
    """The same, for a test that edits files or makes outputs anew: git and DVC put them back."""
    yield repo
    repo.run("git", "checkout", "-q", "--", ".")
    repo.run("dvc", "checkout", "-q", "--force")  # newly trained weights are in no cache
