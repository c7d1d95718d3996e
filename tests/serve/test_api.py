"""The JSON API: answers, refusals, many requests at once."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from subspaces.search.query import DEPTH, LENGTH, OPERATORS, TERMS
from subspaces.serve.app import make_app
from subspaces.serve.schemas import BODY_BYTES, SENTENCE, TOP
from subspaces.serve.service import Service

JSON = {"Content-Type": "application/json"}


def test_answers(client: TestClient, service: Service) -> None:
    status = client.get("/api/status").json()
    assert (status["model"], status["dim"], status["documents"], status["count"]) == ("tiny-model", 8, "sample", 200)
    assert status["hierarchy"]["nodes"] == 60 and status["limits"]["terms"] == TERMS
    found = client.post("/api/search", json={"query": "a dog & ~on a leash", "top": 3})
    assert found.status_code == 200
    assert found.json() == service.search("a dog & ~on a leash", 3, None).model_dump()
    pair = {"premise": "A dog runs on grass.", "hypothesis": "An animal is outside."}
    assert client.post("/api/entail", json=pair).json() == service.entail(**pair).model_dump()
    assert client.get("/api/hierarchy/nodes", params={"like": "5"}).json() == service.nodes("5", 10).model_dump()
    node = client.get("/api/hierarchy/node", params={"name": "node 5", "top": 2})
    assert node.json() == service.node("node 5", 2).model_dump()


@pytest.mark.parametrize(
    ("query", "error", "at"),
    [
        ("(a dog", "this parenthesis is never closed.", 0),
        ("a dog & | a cat", "nothing follows the operator &.", 6),
        ("", "the query is empty: write words, joined by & | ~ and parentheses.", 0),
        ("ein Bär )", "this parenthesis was never opened.", 8),
        ("🐶🐶 )", "this parenthesis was never opened.", 3),
        ("(" * 10_000, "the query has 10,000 operators and parentheses, at most 200 are allowed.", None),
        ("~" * (DEPTH + 1) + "a", f"parentheses and negations are nested deeper than {DEPTH}.", DEPTH),
        (" & ".join(f"a{n}" for n in range(TERMS + 1)), f"the query has {TERMS + 1} terms, at most {TERMS} are allowed.", None),
        ("a &" * (OPERATORS + 1) + "a", f"the query has {OPERATORS + 1} operators and parentheses, at most {OPERATORS} are allowed.", None),
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_read_is_refused_with_the_place(
    client: TestClient, query: str, error: str, at: int | None
) -> None:
    answer = client.post("/api/search", json={"query": query})
    assert answer.status_code == 400
    assert answer.json() == {"error": error, "at": at, "close": []}


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ({"query": "a" * (LENGTH + 1)}, r"query: .*at most 10000 characters"),
        ({"query": "a", "top": TOP + 1}, r"top: .*less than or equal to 100"),
        ({"query": "a", "top": 0}, r"top: .*greater than or equal to 1"),
        ({"query": "a", "top": "3"}, r"top: .*valid integer"),
        ({"query": "a", "method": "xor"}, r"method: .*'product'"),
        ({"query": "a", "documents": "/etc/passwd"}, r"documents: Extra inputs are not permitted"),
        ({"query": ["a"]}, r"query: .*valid string"),
        ({}, r"query: Field required"),
        (["a"], r"JSON object"),
    ],
)
def test_fields_beyond_their_limits(client: TestClient, body: object, pattern: str) -> None:
    answer = client.post("/api/search", json=body)
    assert answer.status_code == 422
    assert re.search(pattern, answer.json()["error"]), answer.json()
    assert len(answer.content) < 1000  # what was sent is not repeated


def test_sentences_beyond_their_limits(client: TestClient) -> None:
    good = "a dog"
    for bad, pattern in (("", "empty"), (" \n", "empty"), ("a" * (SENTENCE + 1), "at most"), (7, "valid string")):
        for body in ({"premise": bad, "hypothesis": good}, {"premise": good, "hypothesis": bad}):
            answer = client.post("/api/entail", json=body)
            assert answer.status_code == 422 and pattern in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "status", "pattern"),
    [
        (b'{"query": "a"', 422, "not valid JSON"),
        (b"[" * 60_000, 4, ""),
        (b'{"query": "\\ud800"}', 422, "valid string"),
        (b'{"query": "\xff\xfe"}', 4, ""),
        (b'{"query": "' + b"a" * BODY_BYTES + b'"}', 413, "more than 65,536 bytes"),
        (b'{"query": "a", "top": NaN}', 422, "top"),
    ],
)
def test_bodies_that_are_not_requests(client: TestClient, content: bytes, status: int, pattern: str) -> None:
    answer = client.post("/api/search", content=content, headers=JSON)
    assert answer.status_code == status or answer.status_code // 100 == status
    assert pattern in answer.json()["error"]


def test_a_body_of_unknown_length_is_cut_off(client: TestClient) -> None:
    sent = []

    def endless():
        for _ in range(10_000):
            sent.append(1)
            yield b" " * 1024

    answer = client.post("/api/search", content=endless(), headers=JSON)
    assert answer.status_code == 413


def test_no_address_reaches_a_file(client: TestClient) -> None:
    for address in (
        "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page/index.html", "/sample.txt", "/app.py", "/page.css/..%2fapp.py",
        "//etc/passwd", "/static/../app.py", "/api/hierarchy/node/../../etc/passwd",
    ):  # fmt: skip
        answer = client.get(address)
        assert answer.status_code == 404 and answer.json()["error"], address
    hostile = client.get("/api/hierarchy/node", params={"name": "../../../etc/passwd"})
    assert hostile.status_code == 404 and "no node" in hostile.json()["error"]


def test_unknown_nodes_and_methods(client: TestClient, service: Service) -> None:
    answer = client.get("/api/hierarchy/node", params={"name": "nod 17"})
    assert answer.status_code == 404 and "node 17" in answer.json()["close"]
    assert str(service.hierarchy.folder) not in answer.text  # type: ignore[union-attr]
    assert client.get("/api/search").status_code == 405
    assert client.get("/api/hierarchy/node").status_code == 422
    assert client.get("/api/hierarchy/node", params={"name": "a" * 2000}).status_code == 422
    without = TestClient(make_app(Service(service.encoder, service.index, "sample")))
    assert without.get("/api/status").json()["hierarchy"] is None
    for address in ("/api/hierarchy/node?name=dog", "/api/hierarchy/nodes", "/api/hierarchy/nodes?like=dog"):
        answer = without.get(address)
        assert answer.status_code == 404 and "--hierarchy DIR" in answer.json()["error"]


def test_a_failure_is_json_and_tells_nothing_of_the_machine(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(service, "entail", broken)
    client = TestClient(make_app(service), raise_server_exceptions=False)
    answer = client.post("/api/entail", json={"premise": "a", "hypothesis": "b"})
    assert answer.status_code == 500 and "secret" not in answer.text and answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LocalHost"])
def test_own_names_are_answered_to(service: Service, host: str) -> None:
    client = TestClient(make_app(service, ["127.0.0.1", "localhost", "::1"]))
    assert client.get("/api/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "[::1", "", "evil.example@localhost:1:2"])
def test_other_names_are_refused(service: Service, host: str) -> None:
    client = TestClient(make_app(service, ["127.0.0.1", "localhost", "::1"]))
    answer = client.get("/api/status", headers={"Host": host})
    assert answer.status_code == 400 and "another name" in answer.json()["error"]


def test_fifty_requests_at_once_give_the_answers_of_one_after_the_other(client: TestClient) -> None:
    things = ["a dog", "a cat", "children", "a street at night", "a boat", "a person cooking"]
    asked: list[tuple[str, dict[str, object]]] = []
    for number in range(50):
        one, other = things[number % 6], things[number // 6 % 6]
        if number % 5 == 4:
            asked.append(("/api/entail", {"premise": f"{one} number {number}", "hypothesis": other}))
        else:
            sign = "&|"[number % 2]
            asked.append(("/api/search", {"query": f"{one} {sign} ~({other} & word{number})", "top": 5 + number % 7}))

    def ask(request: tuple[str, dict[str, object]]) -> tuple[int, str]:
        answer = client.post(request[0], json=request[1])
        return answer.status_code, answer.text

    serial = [ask(request) for request in asked]
    with ThreadPoolExecutor(50) as pool:
        together = list(pool.map(ask, asked))
    assert {status for status, _ in serial} == {200}
    assert len({text for _, text in serial}) == 50
    assert together == serial


def test_pages_load_nothing_from_elsewhere(client: TestClient) -> None:
    for address, kind in (
        ("/", "text/html"),
        ("/docs", "text/html"),
        ("/page.css", "text/css"),
        ("/page.js", "text/javascript"),
        ("/icon.svg", "image/svg+xml"),
    ):
        answer = client.get(address)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        foreign = [found for found in re.findall(r"https?://[^\s\"'<>)]+", answer.text) if "www.w3.org" not in found]
        assert not foreign, (address, foreign)


def test_the_description_of_the_api_is_complete(client: TestClient) -> None:
    api, page = client.get("/openapi.json").json(), client.get("/docs").text
    assert set(api["paths"]) == {
        "/api/status",
        "/api/search",
        "/api/entail",
        "/api/hierarchy/nodes",
        "/api/hierarchy/node",
    }
    for path in api["paths"]:
        assert path in page
    for name in ("method", "inclusion_reversed", "threshold", "413"):
        assert name in page
    assert "a dog &amp; ~on a leash" in page
    assert json.dumps(api).count("HTTPValidationError") == 0  # refusals have their own form
