"""Keys from a person: single presses in a terminal, lines from a pipe."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

QUIT = "q"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|)")  # arrows and function keys, which are no commands


class Keys(Protocol):
    """`key` gives a command and what was said with it, which only lines can do; `line` asks for some words."""

    def key(self) -> tuple[str, str]: ...

    def line(self) -> str: ...


class Lines:
    """One command per line: a key, and words after it. The end of the input means quit."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def key(self) -> tuple[str, str]:
        line = self.stream.readline()
        if not line:
            return QUIT, ""
        key, _, words = line.strip().partition(" ")
        return key, words.strip()

    def line(self) -> str:
        return self.stream.readline().strip()


class Presses:
    """Single presses. The terminal is in its raw way only while a key is awaited, so it is whole again whatever happens."""

    def __init__(self, stream: TextIO):
        self.stream, self.descriptor = stream, stream.fileno()
        self.typed = ""

    def key(self) -> tuple[str, str]:
        while not self.typed:
            try:
                with _raw(self.descriptor):
                    content = os.read(self.descriptor, 64)
            except OSError:  # the terminal is gone
                return QUIT, ""
            if not content or content.startswith(b"\x04"):
                return QUIT, ""
            self.typed = "".join(_ESCAPES.sub("", content.decode("utf-8", "ignore")).split())
        key, self.typed = self.typed[0], self.typed[1:]
        return key, ""

    def line(self) -> str:
        self.typed = ""
        return self.stream.readline().strip()


def keys_of(stream: TextIO) -> Keys:
    return Presses(stream) if stream.isatty() else Lines(stream)


@contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
