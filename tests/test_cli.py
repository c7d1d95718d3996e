"""The start of the command line: version, and packages that are not installed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import subspaces
from subspaces import cli
from subspaces.errors import missing_package


def test_version():
    shown = CliRunner().invoke(cli.app, ["--version"])
    assert shown.exit_code == 0 and shown.output == f"subspaces {subspaces.__version__}\n"


@pytest.mark.parametrize(
    ("name", "extra"),
    [("matplotlib.figure", "plot"), ("dvc", "pipeline"), ("pymilvus", "milvus"), ("sklearn", "pipeline")],
)
def test_a_missing_package_is_answered_with_its_extra(name, extra):
    assert f"pip install 'subspaces[{extra}]'" in (missing_package(ModuleNotFoundError("…", name=name)) or "")


def test_a_missing_module_of_no_extra_keeps_its_traceback():
    assert missing_package(ModuleNotFoundError("…", name="subspaces.nothing")) is None


def test_the_command_line_says_it_without_a_traceback(monkeypatch, capsys):
    def fail() -> None:
        raise ModuleNotFoundError("No module named 'nltk'", name="nltk")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert "pip install 'subspaces[pipeline]'" in capsys.readouterr().err
