"""`subspaces serve`: the page and the API on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from subspaces.errors import UserError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CONNECTIONS = 200  # open at a time; more get the status 503

_captions: Callable[[], Path | None] = lambda: None  # noqa: E731


def use_captions(captions: Callable[[], Path | None]) -> None:
    """Set where the documents come from if none are given; called by the command line of the project."""
    global _captions
    _captions = captions


def serve(
    documents: Annotated[
        Path | None,
        typer.Option(
            help="A text file, one document per line: its index is built once, beside the file. "
            "Default: the captions of the project, or a sample of 200 sentences."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="SUBSPACES_MODEL",
            metavar="NAME",
            help="A model by name, or the folder of a trained one; default: the model of this package.",
        ),
    ] = None,
    hierarchy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder made by `subspaces hierarchy fit`.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0: every machine of the network can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
    threads: Annotated[int, typer.Option(min=1, help="Threads for the arithmetic.")] = 1,
) -> None:
    """Start a local page: search with logic, entailment, a hierarchy; with a JSON API."""
    try:
        import uvicorn

        from subspaces.serve.app import make_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("uvicorn", "fastapi", "starlette"):
            raise
        raise UserError(
            f"the page needs {error.name}, which is not installed: pip install 'subspaces[serve]'."
        ) from error
    from subspaces.serve.service import Service
    from subspaces.text.subspace_encoder import SubspaceEncoder
    from subspaces.training.loop import set_threads
    from subspaces.training.progress import ConsoleProgress

    listener = listen(host, port)
    with listener:
        set_threads(threads)
        documents = documents or _captions()
        progress = ConsoleProgress(f"index {documents.name}", "documents") if documents else None
        service = Service.open(SubspaceEncoder.from_pretrained(model), documents, hierarchy, progress)
        shown = f"[{host}]" if ":" in host else host
        typer.echo(f"{len(service.index):,} documents ({service.documents}), model {service.status().model}")
        typer.echo(f"http://{shown}:{listener.getsockname()[1]}  (Ctrl+C stops)")
        # under a loopback address, only requests to that address: a foreign page cannot ask through the reader's browser
        names = _LOOPBACK if host in _LOOPBACK else None
        config = uvicorn.Config(
            make_app(service, names),
            log_level="warning",
            limit_concurrency=_CONNECTIONS,
            server_header=False,
            proxy_headers=False,
        )
        with suppress(KeyboardInterrupt):  # raised again by uvicorn, unless the shell had Ctrl-C ignored
            uvicorn.Server(config).run(sockets=[listener])
        typer.echo("stopped")


def listen(host: str, port: int) -> socket.socket:
    """Bind before the model is loaded: an address that is taken is reported at once."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UserError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}. Choose another with --host and --port."
        ) from error
