"""Commands as tests call them: in this process, with the exceptions that people see as messages."""

from __future__ import annotations

import typer
from typer.testing import CliRunner


def invoke(app: typer.Typer, *words: object):
    """The result of a command that must succeed; what it raises is raised here."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result
