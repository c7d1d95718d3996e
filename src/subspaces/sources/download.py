"""Stream one address into one file, and notice when what came is not what was asked for."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from subspaces.sources.archives import CHUNK, raise_if_disk
from subspaces.sources.model import OriginError

LARGEST = 1 << 30
PASSING = {408, 425, 429, 500, 502, 503, 504}
"""HTTP answers that may be different a moment later."""


class Passing(OriginError):
    """A failure worth a second attempt."""


def download(address: str, target: Path, *, limit: int = LARGEST, timeout: float = 30, attempts: int = 3, pause: float = 1) -> None:
    """Fetch `address` into `target`. Whatever goes wrong, no half of a file stays behind.

    `limit` is the largest number of bytes to accept; `timeout` is the longest silence of the server in seconds.
    """
    for attempt in range(1, attempts + 1):
        try:
            _stream(address, target, limit, timeout)
            return
        except BaseException as error:
            target.unlink(missing_ok=True)
            if not isinstance(error, Passing) or attempt == attempts:
                raise
            time.sleep(pause * attempt)


def _stream(address: str, target: Path, limit: int, timeout: float) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "subspaces", "Accept-Encoding": "identity"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            declared = answer.headers.get("Content-Length")
            if declared is not None and declared.isdigit() and int(declared) > limit:
                raise OriginError("the answer is larger than the file should be", address)
            received = _copy(answer, target, limit, address)
            if declared is not None and declared.isdigit() and received != int(declared):
                raise Passing("the download was cut short", f"{address}: {received} of {declared} bytes")
    except urllib.error.HTTPError as error:
        kind = Passing if error.code in PASSING else OriginError
        raise kind(f"the server answered {error.code}", address) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise Passing("the server did not answer in time", address) from error
        raise OriginError("the server cannot be reached", f"{address}: {error.reason}") from error
    except TimeoutError as error:
        raise Passing("the server fell silent", address) from error
    except http.client.HTTPException as error:
        raise Passing("the download was cut short", f"{address}: {type(error).__name__}") from error
    except ConnectionError as error:
        raise Passing("the connection broke", f"{address}: {error.strerror or error}") from error
    except OSError as error:
        raise_if_disk(error)
        raise OriginError("the download failed", f"{address}: {error.strerror or error}") from error


def _copy(answer: http.client.HTTPResponse, target: Path, limit: int, address: str) -> int:
    received = 0
    with target.open("wb") as sink:
        while block := answer.read(CHUNK):
            if not received and _is_page(block, answer.headers.get_content_type()):
                raise OriginError("a web page came instead of the file (a login, an error or a moved address)", address)
            received += len(block)
            if received > limit:
                raise OriginError("the answer is larger than the file should be", address)
            sink.write(block)
    return received


def _is_page(start: bytes, content_type: str) -> bool:
    """No source of this project is HTML, so either sign is enough."""
    head = start[:512].lstrip().lower()
    return content_type == "text/html" or head.startswith((b"<!doctype html", b"<html"))
