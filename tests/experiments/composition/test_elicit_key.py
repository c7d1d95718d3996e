"""The key of an elicitation: nowhere in what is written or said, and never sent in clear."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.clients import make_client
from subspaces.experiments.composition.elicit import Ended, elicit
from subspaces.experiments.composition.secret import ApiKey
from tests.experiments.composition.conftest import KEY, Bench, Service


@pytest.mark.parametrize("code", [400, 429, 503])
def test_the_key_is_nowhere(
    bench: Bench,
    settings: dict[str, Any],
    service: Service,
    code: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from subspaces.training.progress import ConsoleProgress

    service.script = [service.well] + [service.echoes_the_key(code)] * 9
    with caplog.at_level(logging.DEBUG), pytest.raises(Ended) as caught:
        elicit(settings, bench.path, endpoint=service.url, sleep=bench.waits.append, progress=ConsoleProgress("elicit"))
    assert service.keys[-1] == KEY, "the service did get it"
    shown = "".join(traceback.format_exception(caught.value))
    shown += "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    shown += repr(vars(caught.value)) + caplog.text + "".join(str(vars(one)) for one in caplog.records)
    shown += "".join(capfd.readouterr()) + "".join(path.read_text() for path in bench.path.parent.iterdir())
    assert "key hidden" in shown and str(code) in shown
    for form in (KEY, KEY[4:-4], KEY.lower()):
        assert form not in shown and form not in shown.lower()
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error!r} {error.args} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_a_key_in_an_answer_is_hidden_too(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [service.says(f"Your key is {KEY}."), service.sends(f'{{"key": "{KEY}" nonsense'.encode())]
    bench.run(settings)
    assert KEY not in bench.path.read_text() and "key hidden" in bench.path.read_text()


def test_which_key(
    bench: Bench,
    settings: dict[str, Any],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "the-other-key")
    bench.run(settings, count=1)
    monkeypatch.setenv("GEMINI_API_KEY", " ")
    bench.run(settings, count=2)
    monkeypatch.setenv("GOOGLE_API_KEY", "the-other-key\n")
    bench.run(settings, count=3)
    assert service.keys == [KEY, "the-other-key", "the-other-key"]
    assert caplog.text == "", "one client says that it takes the other variable, which is not so"
    monkeypatch.delenv("GOOGLE_API_KEY")
    with pytest.raises(UserError, match="set the environment variable GEMINI_API_KEY"):
        bench.run(settings, count=4)
    for nonsense in ("schl\u00fcssel-123", "two words here", "k7Q!"):
        monkeypatch.setenv("GEMINI_API_KEY", nonsense)
        with pytest.raises(UserError, match="does not hold a key") as caught:
            bench.run(settings, count=4)
        assert nonsense not in str(caught.value)


def test_the_key_object_hides_itself() -> None:
    key = ApiKey("abc+def/ghi&jkl")
    assert "abc" not in f"{key} {key!r}"
    with pytest.raises(TypeError):
        key.__reduce__()
    hidden = key.redact("a abc+def/ghi&jkl b abc%2Bdef%2Fghi%26jkl c ABC+DEF/GHI&amp;JKL d AIza" + "x" * 35)
    assert hidden.replace("[key hidden]", "") == "a  b  c  d "


def test_the_key_does_not_travel_in_clear() -> None:
    for endpoint in ("http://example.org", "ftp://127.0.0.1", "127.0.0.1:80", "http://127.0.0.1.example.org"):
        with pytest.raises(UserError, match="must begin with https://"):
            make_client("google-genai", "m", 1.0, ApiKey(KEY), timeout=1, endpoint=endpoint)
    with pytest.raises(UserError, match="unknown client"):
        make_client("telnet", "m", 1.0, ApiKey(KEY), timeout=1)
