"""Where `subspaces` starts: in a warm process where one is offered (`subspaces.pipeline.warm`), else here. Imports nothing that takes time."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

VARIABLE = "SUBSPACES_WARM"


def main() -> None:
    # a job of a cluster inherits the variable of the machine that sent it, but has to run inside its own allocation
    address = None if "SLURM_JOB_ID" in os.environ else os.environ.get(VARIABLE)
    code = call_warm(address) if address else None
    if code is not None:
        sys.exit(code)
    from subspaces.cli import main as run

    run()


def call_warm(address: str) -> int | None:
    """Let the process at `address` run this command; None where it cannot be reached, and nothing was done."""
    import json
    import socket

    caller = socket.socket(socket.AF_UNIX)
    try:
        caller.connect(address)
        call = {"arguments": sys.argv, "folder": str(Path.cwd()), "environment": dict(os.environ)}
        content = json.dumps(call).encode()
        socket.send_fds(caller, [len(content).to_bytes(8, "big")], [0, 1, 2])
        caller.sendall(content)
        child = int(_line(caller))
    except (OSError, ValueError):
        caller.close()
        return None
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, lambda number, _: os.kill(child, number))
    with caller:
        answer = _line(caller)
    if not answer:
        print("error: the process behind this command is gone; run it again.", file=sys.stderr)
        return 1
    code = int(answer)
    if code < 0:  # ended by a signal: so does this process
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _line(caller) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        part = caller.recv(1)
        if not part:
            return b""
        found += part
    return found


def receive_all(caller, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = caller.recv(min(1 << 16, length - len(found)))
        if not part:
            raise EOFError("the caller is gone")
        found += part
    return found
