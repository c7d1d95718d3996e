"""A service on this machine that speaks like Gemini and misbehaves on request, and settings for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from subspaces.experiments.composition.elicit import Ended, Summary, elicit
from subspaces.experiments.composition.record import read_record

KEY = "AIzaNotARealKey-0123456789_abcdefghij+/="
PROMPT = "Generate one example. Output format: <premise>, <hypothesis 1>, <hypothesis 2>, <hypothesis 3>"


def example(number: int) -> str:
    """A different example for every number, in the form that the paper's prompt asks for."""
    return (
        f"Team {number} is rowing, slowly, on a lake., Some people are in boat {number}., "
        f"Team {number} is on the water., Team {number} is asleep at home."
    )


def answer(text: str, *, finish: str = "STOP", tokens: int = 40) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": tokens - 10, "totalTokenCount": tokens},
        "modelVersion": "gemini-test-001",
    }


def complaint(code: int, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": "COMPLAINT", "details": list(details)}}


Behaviour = Callable[[BaseHTTPRequestHandler], None]


class Service:
    """Each request takes the next behaviour of `script`; when the script is over, good answers follow."""

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append({"path": self.path, **body})
                outer.keys.append(self.headers.get("x-goog-api-key"))
                behaviour = outer.script.pop(0) if outer.script else outer.well
                behaviour(self)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that went away is what some tests are about."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def well(self, handler: BaseHTTPRequestHandler) -> None:
        send(handler, answer(example(len(self.requests))))

    def says(self, text: str, **more: Any) -> Behaviour:
        return lambda handler: send(handler, answer(text, **more))

    def sends(self, content: dict[str, Any] | bytes, code: int = 200, **headers: str) -> Behaviour:
        return lambda handler: send(handler, content, code, headers=headers)

    def is_silent(self, handler: BaseHTTPRequestHandler) -> None:
        self.over.wait(20)

    def is_cut_off(self, handler: BaseHTTPRequestHandler) -> None:
        send(handler, answer(example(1)), declare=100)
        handler.close_connection = True

    def echoes_the_key(self, code: int) -> Behaviour:
        def behave(handler: BaseHTTPRequestHandler) -> None:
            key = handler.headers.get("x-goog-api-key")
            send(
                handler,
                complaint(code, f"API key {key} is not valid ({key!r})", {"metadata": {"key": key}}),
                code,
                headers={"X-Key": key},
            )

        return behave


def send(
    handler: BaseHTTPRequestHandler,
    content: dict[str, Any] | bytes,
    code: int = 200,
    *,
    headers: dict[str, str] | None = None,
    declare: int = 0,
) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(code)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body) + declare))
    for name, value in (headers or {}).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.over.set()
    service.http.shutdown()
    service.http.server_close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up key, and nothing of the developer's own."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in (
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_ENTERPRISE",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["google-genai", "google-generativeai"])
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of both clients: every test that uses them runs twice."""
    return {
        "prompt": PROMPT,
        "model": "gemini-test",
        "count": 3,
        "temperature": 1.0,
        "seed": 7,
        "client": request.param,
        "max_requests": 50,
        "max_tokens": 100_000,
        "per_request": 1,
        "timeout": 20.0,
        "attempts": 4,
    }


class Bench:
    """One record, and the waits that were asked for instead of slept."""

    def __init__(self, path: Path, service: Service):
        self.path, self.service = path, service
        self.waits: list[float] = []

    def run(self, settings: dict[str, Any], **changes: Any) -> Summary:
        return elicit({**settings, **changes}, self.path, endpoint=self.service.url, sleep=self.waits.append)

    def ended(self, settings: dict[str, Any], **changes: Any) -> str:
        with pytest.raises(Ended) as caught:
            self.run(settings, **changes)
        return str(caught.value)

    @property
    def entries(self) -> list[dict[str, Any]]:
        return read_record(self.path)[1]

    @property
    def outcomes(self) -> list[tuple[int, str]]:
        return [(entry["request"], entry["outcome"]) for entry in self.entries]


@pytest.fixture
def bench(tmp_path: Path, service: Service) -> Bench:
    return Bench(tmp_path / "runs" / "record.jsonl", service)
