"""`subspaces warm -- COMMAND`: commands that COMMAND starts do not wait for their imports.

Most of a quick-scale job is the import of torch. Here one process imports it once and is forked for each `subspaces …` that runs below
COMMAND: the child takes over that call's arguments, folder, environment and files, and its exit code goes back. It is only a faster
start: without the process, or when it cannot be reached, a call runs by itself (`subspaces.pipeline.entry`).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from subspaces.pipeline.entry import VARIABLE, receive_all

PRELOADED = (
    "torch",
    "geoopt",
    "pyarrow.parquet",
    "matplotlib.figure",
    "subspaces.cli",
    "subspaces.experiments.snli.evaluate",
    "subspaces.experiments.snli.fit",
    "subspaces.report.numbers",
    "subspaces.pipeline.report",
    "subspaces.experiments.hyperlex.evaluate",
    "subspaces.experiments.reconstruction.evaluate",
    "subspaces.experiments.link_prediction.evaluate",
)


def run_warm(command: Sequence[str], preloaded: Sequence[str] = PRELOADED) -> int:
    """Run a command with a warm process behind it; returns its exit code."""
    if not hasattr(os, "pidfd_open"):  # not Linux: libraries are not made to be forked there
        return subprocess.call(command)
    folder = Path(tempfile.mkdtemp(prefix="subspaces-"))  # only this user may enter
    address = folder / "warm"
    server = os.fork()
    if server == 0:
        _leave(lambda: _serve(address, preloaded))
    try:
        return _supervise(command, address)
    finally:
        os.kill(server, signal.SIGTERM)
        os.waitpid(server, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _supervise(command: Sequence[str], address: Path) -> int:
    run = subprocess.Popen(command, env=os.environ | {VARIABLE: str(address)})
    old = {
        one: signal.signal(one, lambda number, _: run.send_signal(number)) for one in (signal.SIGTERM, signal.SIGHUP)
    }
    old[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
    try:
        code = run.wait()
        return code if code >= 0 else 128 - code
    finally:
        for one, handler in old.items():
            signal.signal(one, handler)


def _serve(address: Path, preloaded: Sequence[str]) -> None:
    """Listen first, so that early callers wait instead of starting by themselves; then import; then fork for each caller."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        for name in preloaded:
            import_module(name)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the helpers below are not waited for
        while os.getppid() == parent:
            if not select.select([listener], [], [], 1.0)[0]:
                continue
            caller, _ = listener.accept()
            with caller:
                if os.fork() == 0:
                    listener.close()
                    _leave(partial(_answer, caller))


def _answer(caller: socket.socket) -> None:
    """One caller: start its command, tell its process number, pass its end back; if the caller ends, its command is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    files, length = _receive_files(caller)
    call = json.loads(receive_all(caller, length))
    child = os.fork()
    if child == 0:
        caller.close()
        _become(call, files)
    for one in files:
        os.close(one)
    try:
        caller.sendall(b"%d\n" % child)
        ended = os.pidfd_open(child)
        waited: list[int | socket.socket] = [ended, caller]
        if ended not in select.select(waited, [], [])[0]:  # the caller never writes again: it can only have gone
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        caller.sendall(b"%d\n" % code)
    except OSError:  # gone as well
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _receive_files(caller: socket.socket) -> tuple[list[int], int]:
    head, files, _, _ = socket.recv_fds(caller, 8, 3)
    while len(head) < 8:
        head += receive_all(caller, 8 - len(head))
    return files, int.from_bytes(head, "big")


def _become(call: dict, files: list[int]) -> None:
    """This process is the caller's command from here on."""
    os.setpgid(0, 0)  # signals come from the caller, not from the terminal a second time
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for target, one in enumerate(files):
        os.dup2(one, target)
        os.close(one)
    for name, target, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        setattr(
            sys, name, os.fdopen(target, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        )
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = call["arguments"]
    from subspaces.cli import main

    _leave(main)


def _leave(work: Callable[[], None]) -> None:
    """Do something and end this process, whatever happens: a fork must never run on into its parent's code."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)
