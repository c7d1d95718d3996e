"""The page and the JSON API as a FastAPI application.

The few files of the page are read when the application is made, and served under fixed addresses: nothing in a request
names a file. Every refusal is JSON of the form {"error": …} with a status from 400 to 422.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from jinja2 import Environment
from starlette.exceptions import HTTPException as HttpError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import subspaces
from subspaces.errors import UserError
from subspaces.search.query import SyntaxMistake
from subspaces.serve.schemas import (
    BODY_BYTES,
    NAME,
    TOP,
    EntailAnswer,
    EntailRequest,
    Mistake,
    NodeAnswer,
    NodeNames,
    SearchAnswer,
    SearchRequest,
    Status,
)
from subspaces.serve.service import Service, UnknownNode

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d+)?")
_PAGE = Path(__file__).with_name("page")
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_DESCRIPTION = """Texts as linear subspaces: search with AND, OR and NOT, entailment, and a fitted hierarchy.

All answers are JSON. A request that is refused gets a status from 400 to 422 and an object Mistake, which says what is wrong."""
_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Mistake, "description": "The query cannot be read, or has no answer"},
    413: {"model": Mistake, "description": f"The body has more than {BODY_BYTES:,} bytes"},
    422: {"model": Mistake, "description": "A field is missing, of another type, or beyond its limit"},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": Mistake, "description": "No such node, or no hierarchy is loaded"},
    422: _REFUSED[422],
}


def make_app(service: Service, names: Sequence[str] | None = None) -> FastAPI:
    """The application. `names` are the hosts under which it may be asked (None: any), so that a web page that points a
    name of its own at 127.0.0.1 is refused."""
    app = FastAPI(
        title="subspaces",
        version=subspaces.__version__,
        description=_DESCRIPTION,
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
    )
    app.add_middleware(_Guard, names=names)
    _add_api(app, service)
    _add_errors(app)
    _add_pages(app)
    return app


def _add_api(app: FastAPI, service: Service) -> None:
    @app.get("/api/status")
    def status() -> Status:
        """The model, the documents, the hierarchy, and the limits of requests."""
        return service.status()

    @app.post("/api/search", responses=_REFUSED)
    def search(request: SearchRequest) -> SearchAnswer:
        """The documents that lie most in the subspace of a query."""
        return service.search(request.query, request.top, request.method)

    @app.post("/api/entail", responses={status: _REFUSED[status] for status in (413, 422)})
    def entail(request: EntailRequest) -> EntailAnswer:
        """Does the premise entail the hypothesis?"""
        return service.entail(request.premise, request.hypothesis)

    @app.get("/api/hierarchy/nodes", responses=_UNKNOWN)
    def nodes(
        like: Annotated[str, Query(max_length=NAME, description="Part of a name; empty: the most general nodes")] = "",
        top: Annotated[int, Query(ge=1, le=TOP)] = 10,
    ) -> NodeNames:
        """Find nodes by a part of their name."""
        return service.nodes(like, top)

    @app.get("/api/hierarchy/node", responses=_UNKNOWN)
    def node(
        name: Annotated[str, Query(max_length=NAME, description="The whole name")],
        top: Annotated[int, Query(ge=1, le=TOP)] = 10,
    ) -> NodeAnswer:
        """The ancestors and descendants of a node by inclusion."""
        return service.node(name, top)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(UserError)
    def refused(_: Request, error: UserError) -> Response:
        if isinstance(error, SyntaxMistake):
            return _mistake(400, f"{error.reason}.", at=error.at)
        return _mistake(400, str(error))

    @app.exception_handler(UnknownNode)
    def unknown(_: Request, error: UnknownNode) -> Response:
        if not error.name:
            return _mistake(404, "no hierarchy is loaded: start the server with --hierarchy DIR.")
        return _mistake(404, f"there is no node {error.name!r}.", close=error.close)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        return _mistake(422, "; ".join(dict.fromkeys(map(_told, error.errors()))) + ".")

    @app.exception_handler(HttpError)
    def http(_: Request, error: HTTPException) -> Response:
        return _mistake(error.status_code, f"{error.detail}.", headers=error.headers)

    @app.exception_handler(Exception)
    def failed(_: Request, error: Exception) -> Response:
        return _mistake(500, "the server failed on this request; its terminal shows where.")


def _mistake(status: int, error: str, headers: Any = None, **more: Any) -> Response:
    return JSONResponse(Mistake(error=error, **more).model_dump(), status, headers)


def _told(error: Any) -> str:
    """One mistake of a request, without what was sent: that may be long."""
    if error["type"] == "json_invalid":
        return "the body is not valid JSON"
    if error["type"] == "model_attributes_type":
        return "the body must be a JSON object, sent with Content-Type: application/json"
    field = ".".join(str(part) for part in error["loc"][1:])
    message = error["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def _add_pages(app: FastAPI) -> None:
    def add(address: str, content: bytes, suffix: str) -> None:
        kind = _TYPES[suffix]

        @app.get(address, include_in_schema=False)
        async def page() -> Response:
            return Response(content, media_type=kind)

    for name, address in (
        ("index.html", "/"),
        ("page.css", "/page.css"),
        ("page.js", "/page.js"),
        ("icon.svg", "/icon.svg"),
    ):
        add(address, (_PAGE / name).read_bytes(), Path(name).suffix)
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (_PAGE / "api.html.j2").read_text(encoding="utf-8")
    )
    add("/docs", template.render(**_operations(app.openapi())).encode(), ".html")


def _operations(api: dict[str, Any]) -> dict[str, Any]:
    """What the page of the API shows of its OpenAPI document."""
    schemas = api["components"]["schemas"]

    def kind(schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            return schema["$ref"].rsplit("/", 1)[1]
        if "anyOf" in schema:
            return " or ".join(kind(one) for one in schema["anyOf"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        if schema.get("type") == "array":
            return f"list of {kind(schema['items'])}"
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"name → {kind(schema['additionalProperties'])}"
        return schema.get("type", "any")

    def field(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
        bounds = {"maxLength": "at most {} characters", "minimum": "from {}", "maximum": "to {}"}
        notes = [text.format(f"{schema[key]:,.0f}") for key, text in bounds.items() if key in schema]
        if not required:
            notes.append(f"default {json.dumps(schema.get('default'))}")
        return {"name": name, "kind": kind(schema), "notes": ", ".join(notes), "about": schema.get("description", "")}

    def fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
        required = schema.get("required", [])
        return [field(name, one, name in required) for name, one in schema.get("properties", {}).items()]

    operations = []
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
            given = [
                field(
                    one["name"], one["schema"] | {"description": one.get("description", "")}, one.get("required", False)
                )
                for one in operation.get("parameters", [])
            ]
            schema = schemas[kind(body)] if body else {}
            example = {
                name: one["examples"][0] for name, one in schema.get("properties", {}).items() if "examples" in one
            }
            operations.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": operation["description"],
                    "given": given or fields(schema),
                    "example": json.dumps(example, ensure_ascii=False) if example else "",
                    "answer": kind(answer),
                    "refused": {
                        status: one["description"] for status, one in operation["responses"].items() if status != "200"
                    },
                }
            )
    shown = [name for name in schemas if not name.endswith(("Request", "ValidationError"))]
    return {
        "api": api["info"],
        "operations": operations,
        "objects": [{"name": name, "fields": fields(schemas[name])} for name in shown],
    }


class _Guard:
    """Refuses requests to other hosts and large bodies, whether their length is announced or not, and adds the headers
    of every answer."""

    def __init__(self, app: ASGIApp, names: Sequence[str] | None):
        self.app, self.names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        async def refuse(status: int, error: str) -> None:
            await _mistake(status, error, headers={"Connection": "close"})(scope, receive, send_with_headers)

        if self.names is not None and _host(scope) not in self.names:
            await refuse(400, "the server is asked under another name than its own.")
            return
        body = await _bounded_body(scope, receive)
        if body is None:
            await refuse(413, f"the body has more than {BODY_BYTES:,} bytes.")
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, receive_again, send_with_headers)


def _host(scope: Scope) -> str | None:
    """The name in the header Host, without its port."""
    found = _HOST.fullmatch(dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower())
    return (found[1] or found[2]) if found else None


async def _bounded_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None as soon as it is longer than the limit."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > BODY_BYTES:
        return None
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return body
