"""`subspaces warm`: the same commands, in processes that are forked instead of started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = "from subspaces.pipeline.warm import run_warm; import sys; sys.exit(run_warm(sys.argv[1:], preloaded=['subspaces.cli']))"
pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux forks")


def environment(**more: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("SUBSPACES_")}
    return bare | {"PYTHONPATH": str(ROOT / "src")} | more


def script(folder: Path, text: str) -> list[str]:
    path = folder / "script.sh"
    path.write_text(text.replace("subspaces", f"{sys.executable} -m subspaces"))
    return [sys.executable, "-c", FEW, "bash", str(path)]


def run(folder: Path, text: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        script(folder, text), cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=120
    )


def test_a_call_has_the_folder_the_files_and_the_environment_of_its_caller(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/params.yaml").write_text("scale: [\n")
    done = run(
        tmp_path, "cd below\nSUBSPACES_PARAMS=params.yaml subspaces sources > ../out 2> ../err\necho code $?\nls .."
    )
    assert done.stdout.splitlines()[0].startswith("code "), done.stderr
    alone = subprocess.run(
        [sys.executable, "-m", "subspaces", "sources"],
        cwd=tmp_path / "below",
        env=environment(SUBSPACES_PARAMS="params.yaml"),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[0] == f"code {alone.returncode}"
    assert (tmp_path / "out").read_text() == alone.stdout and (tmp_path / "err").read_text() == alone.stderr


def test_errors_keep_their_code_and_their_words(tmp_path: Path) -> None:
    done = run(tmp_path, "subspaces make results/none.json\necho code $?\nsubspaces --help | head -3\nexit 7")
    assert done.returncode == 7
    assert "code 1" in done.stdout and "Usage" in done.stdout
    assert "params.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_call_runs_by_itself_where_nobody_listens(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "subspaces", "--help"],
        env=environment(SUBSPACES_WARM=str(tmp_path / "nothing")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "Usage" in done.stdout


SLEEPER = """
import os, sys, time
from subspaces import cli
def main():
    open("child", "w").write(str(os.getpid()))
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        open("interrupted", "w").close()
        sys.exit(130)
cli.main = main
from subspaces.pipeline.warm import run_warm
sys.exit(run_warm(sys.argv[1:], preloaded=[]))
"""


def started(folder: Path) -> tuple[subprocess.Popen, int, int]:
    """A warm process with one call that sleeps: what was started, the process of the call, the one that works for it."""
    caller = f"import os; open('caller', 'w').write(str(os.getpid())); os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'subspaces'])"
    top = subprocess.Popen([sys.executable, "-c", SLEEPER, sys.executable, "-c", caller], cwd=folder, env=environment())
    deadline = time.monotonic() + 60
    while not (folder / "child").exists() or not (folder / "child").read_text():
        assert time.monotonic() < deadline and top.poll() is None
        time.sleep(0.05)
    return top, int((folder / "caller").read_text()), int((folder / "child").read_text())


def gone(process: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_an_interruption_reaches_the_one_that_works_and_its_end_comes_back(tmp_path: Path) -> None:
    top, caller, child = started(tmp_path)
    os.kill(caller, signal.SIGINT)
    assert top.wait(30) == 130
    assert gone(child) and (tmp_path / "interrupted").exists()


def test_a_caller_that_is_killed_takes_its_work_along(tmp_path: Path) -> None:
    top, caller, child = started(tmp_path)
    os.kill(caller, signal.SIGKILL)
    assert top.wait(30) == 128 + signal.SIGKILL
    assert gone(child) and not (tmp_path / "interrupted").exists()


def test_termination_goes_down_the_whole_line(tmp_path: Path) -> None:
    top, caller, child = started(tmp_path)
    top.terminate()
    assert top.wait(30) == 128 + signal.SIGTERM
    assert gone(caller) and gone(child)
