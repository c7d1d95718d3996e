"""`subspaces serve` as a user starts and stops it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from subspaces.cli import app
from subspaces.errors import UserError
from subspaces.pipeline import context
from subspaces.serve.commands import listen
from tests.invoke import invoke


def test_start_ask_stop(model: Path, taxonomy: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a dog\na cat\na street at night\n")
    command = [sys.executable, "-m", "subspaces", "serve", "--port", "0", "--model", model, "--documents", "texts.txt"]
    command += ["--hierarchy", taxonomy]
    variables = os.environ | {"PYTHONUNBUFFERED": "1", "SUBSPACES_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = [server.stdout.readline(), server.stdout.readline()]
            assert said[0] == "3 documents (texts.txt), model tiny-model\n"
            found = re.match(r"http://127\.0\.0\.1:(\d+) ", said[1])
            assert found, said
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
            connection.request(
                "POST", "/api/search", json.dumps({"query": "a dog"}), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.load(answer)["hits"]) == 3
            connection.request("GET", "/api/status", headers={"Host": "evil.example"})
            assert connection.getresponse().status == 400
            connection.close()
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0 and server.stdout.read() == "stopped\n"


def test_an_address_that_is_taken_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"cannot listen at 127\.0\.0\.1, port {port}: Address already in use"):
            invoke(app, "serve", "--port", port, "--model", tmp_path / "nothing")
    with pytest.raises(UserError, match=r"cannot listen at 203\.0\.113\.7"):
        invoke(app, "serve", "--host", "203.0.113.7", "--model", tmp_path / "nothing")


def test_what_is_missing_is_named(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="nothing is no model"):
        invoke(app, "serve", "--port", 0, "--model", tmp_path / "nothing")
    with pytest.raises(UserError, match="holds no fitted hierarchy"):
        invoke(app, "serve", "--port", 0, "--model", model, "--hierarchy", tmp_path / "nothing")
    with pytest.raises(UserError, match=r"no\.txt does not exist"):
        invoke(app, "serve", "--port", 0, "--model", model, "--documents", tmp_path / "no.txt")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UserError, match=r"needs uvicorn, which is not installed: pip install 'subspaces\[serve\]'"):
        invoke(app, "serve", "--port", 0, "--model", model)


def test_the_captions_of_a_project_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    context.choose(Path("params.yaml"), None)
    assert context.captions_here() is None
    (tmp_path / "params.yaml").write_text("")
    assert context.captions_here() is None
    (tmp_path / "data").mkdir()
    (tmp_path / "data/captions.txt").write_text("a dog\n")
    assert context.captions_here() == tmp_path / "data/captions.txt"
