"""Gemini behind one small protocol, through either of its two Python clients.

`google-genai` is the current one. `google-generativeai` is its predecessor, whose support ended; it cannot send a seed. Whatever a client
raises becomes a `Failure` without the key: it is made after the client's own exception is gone, so no traceback can show that one.
"""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import logging
import re
import urllib.parse
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Protocol

from subspaces.errors import UserError
from subspaces.experiments.composition.secret import ApiKey

VERSION = "v1beta"  # of the interface: the one that the older client speaks, and where preview models appear first
LONGEST_REASON = 300
_LOGGERS = ("google", "google_genai", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3")


@dataclass(frozen=True)
class Answer:
    """What came back. A refusal (safety block, no candidate) has a reason and no text."""

    text: str
    finish: str = ""
    refusal: str = ""
    model_version: str | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    total_tokens: int | None = None


class Failure(Exception):
    """No answer. `passing`: worth another attempt; `quota`: not today; `final`: not with this key, model or request."""

    def __init__(
        self,
        kind: Literal["passing", "quota", "final"],
        reason: str,
        status: int | None = None,
        retry_after: float | None = None,
    ):
        super().__init__(reason)
        self.kind, self.reason, self.status, self.retry_after = kind, reason, status, retry_after


class Client(Protocol):
    """Asks one prompt once: an `Answer`, or a `Failure`. `seeded` says whether the seed is sent."""

    name: str
    seeded: bool

    def ask(self, prompt: str, seed: int) -> Answer: ...


def make_client(
    name: str, model: str, temperature: float, key: ApiKey, *, timeout: float, endpoint: str | None = None
) -> Client:
    """`timeout` is the longest silence in seconds; `endpoint` replaces the service's own address."""
    if endpoint is not None:
        _check_endpoint(endpoint)
    clients = {one.name: one for one in (GoogleGenai, GoogleGenerativeai)}
    if name not in clients:
        raise UserError(f"unknown client {name!r}; choose {' or '.join(clients)}.")
    return clients[name](model, temperature, key, timeout, endpoint)


class GoogleGenai:
    """The client of the package google-genai."""

    name = "google-genai"
    seeded = True

    def __init__(self, model: str, temperature: float, key: ApiKey, timeout: float, endpoint: str | None):
        with _quiet():
            from google import genai
            from google.genai import errors, types

        self._types, self._api_error = types, errors.APIError
        self._model, self._temperature, self._key, self._timeout = model, temperature, key, timeout
        # It runs on either of two HTTP libraries, whichever is installed.
        http = [importlib.import_module(module) for module in ("httpx2", "httpx") if importlib.util.find_spec(module)]
        self._timeouts = tuple(module.TimeoutException for module in http)
        self._broken = tuple(module.TransportError for module in http)
        options = types.HttpOptions(
            base_url=endpoint,
            api_version=VERSION,
            timeout=max(1, round(1000 * timeout)),
            retry_options=types.HttpRetryOptions(attempts=1),  # attempts are counted and recorded by the caller
        )
        with _quiet():
            self._client = genai.Client(api_key=key.reveal(), vertexai=False, http_options=options)

    def ask(self, prompt: str, seed: int) -> Answer:
        config = self._types.GenerateContentConfig(temperature=self._temperature, seed=seed)
        try:
            with _quiet():
                response = self._client.models.generate_content(model=self._model, contents=prompt, config=config)
            return self._answer(response)
        except self._api_error as error:
            headers = getattr(error.response, "headers", None) or {}
            failure = _failure(self._key, error.code, headers, error.details, error.message or error.status or "")
        except self._timeouts:
            failure = _silence(self._timeout)
        except self._broken as error:
            failure = Failure("passing", _line(self._key, f"the connection failed ({type(error).__name__}: {error})"))
        except (ValueError, TypeError) as error:
            failure = _unreadable(self._key, error)
        raise failure

    def _answer(self, response: Any) -> Answer:
        if response.candidates is None and response.prompt_feedback is None:
            raise ValueError("neither candidates nor a reason for none")
        candidate = response.candidates[0] if response.candidates else None
        parts = (candidate.content.parts if candidate and candidate.content else None) or []
        feedback = response.prompt_feedback.block_reason if response.prompt_feedback else None
        usage = response.usage_metadata
        counts = (
            (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count)
            if usage
            else (None, None, None)
        )
        return _answer(
            self._key,
            (part.text or "" for part in parts if not part.thought),
            _name(candidate.finish_reason) if candidate else "",
            _name(feedback),
            response.model_version,
            counts,
        )


class GoogleGenerativeai:
    """The client of the package google-generativeai, over REST."""

    name = "google-generativeai"
    seeded = False

    def __init__(self, model: str, temperature: float, key: ApiKey, timeout: float, endpoint: str | None):
        with _quiet():
            import google.generativeai as genai
            import requests
            from google.api_core import exceptions
            from google.auth.exceptions import GoogleAuthError
            from google.protobuf import json_format

        self._api_error, self._parse_error = exceptions.GoogleAPICallError, json_format.ParseError
        self._timeouts, self._broken = (
            requests.exceptions.Timeout,
            (requests.exceptions.RequestException, GoogleAuthError),
        )
        self._key, self._timeout = key, timeout
        options = {"api_endpoint": endpoint.rstrip("/")} if endpoint else {}
        genai.configure(api_key=key.reveal(), transport="rest", client_options=options)
        self._model = genai.GenerativeModel(model, generation_config=genai.GenerationConfig(temperature=temperature))

    def ask(self, prompt: str, seed: int) -> Answer:
        try:
            with _quiet():
                # No retries of its own: attempts are counted and recorded by the caller.
                options: Any = {"retry": None, "timeout": self._timeout}
                response = self._model.generate_content(prompt, request_options=options)
            return self._answer(response)
        except self._api_error as error:
            headers = getattr(error.response, "headers", None) or {}
            failure = _failure(
                self._key,
                error.code,
                headers,
                {"error": {"details": error.details}},
                re.sub(r"^POST \S+: ", "", error.message),
            )
        except self._timeouts:
            failure = _silence(self._timeout)
        except self._broken as error:
            failure = Failure("passing", _line(self._key, f"the connection failed ({type(error).__name__}: {error})"))
        except (self._parse_error, ValueError, TypeError) as error:
            failure = _unreadable(self._key, error)
        raise failure

    def _answer(self, response: Any) -> Answer:
        candidate = response.candidates[0] if response.candidates else None
        usage, feedback = response.usage_metadata, response.prompt_feedback
        sent, received, total = usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count
        return _answer(
            self._key,
            (part.text for part in candidate.content.parts) if candidate else (),
            _name(candidate.finish_reason) if candidate else "",
            _name(feedback.block_reason) if feedback.block_reason else "",
            None,
            (sent or None, received or None, total or None),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings about Python versions and ended support, and no logs: at debug level they show headers, which may hold the key."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _answer(
    key: ApiKey,
    texts: Iterable[str],
    finish: str,
    block: str,
    version: str | None,
    counts: tuple[int | None, int | None, int | None],
) -> Answer:
    text = key.redact("".join(texts).encode("utf-8", "replace").decode())  # half a surrogate pair cannot be stored
    refusal = "" if text.strip() else block or finish or "no candidate"
    return Answer(text, finish, key.redact(refusal), version, *counts)


def _name(value: Any) -> str:
    """An enumeration's name, whether it is one of ours or one that the library has not heard of."""
    return "" if value is None else str(getattr(value, "name", value))


def _failure(key: ApiKey, status: int | None, headers: Mapping[str, str], body: Any, message: str) -> Failure:
    details = _details(body)
    reason = _line(key, f"the service answered {status}: {message}" if message else f"the service answered {status}")
    if status == 429:
        wait = _retry_after(headers, details)
        return Failure("quota" if "PerDay" in str(details) else "passing", reason, status, wait)
    if status in (408, 425) or (status is not None and status >= 500):
        return Failure("passing", reason, status, _retry_after(headers, details))
    return Failure("final", reason, status)


def _silence(timeout: float) -> Failure:
    return Failure("passing", f"no answer within {timeout:g} s")


def _unreadable(key: ApiKey, error: Exception) -> Failure:
    return Failure("passing", _line(key, f"the answer is not valid JSON, or not what was agreed ({error})"))


def _line(key: ApiKey, text: str) -> str:
    """One line without the key. It is hidden first: half a key would not be found."""
    line = " ".join(key.redact(text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def _details(body: Any) -> list[Any]:
    error = body.get("error", body) if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return details if isinstance(details, list) else []


def _retry_after(headers: Mapping[str, str], details: list[Any]) -> float | None:
    """Seconds to wait: the longest that the header Retry-After (a number or a date) or the RetryInfo in the body asks for."""
    waits = []
    header = str(headers.get("Retry-After") or "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", header):
        waits.append(float(header))
    elif header:
        with suppress(ValueError):
            waits.append((parsedate_to_datetime(header).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    for detail in details:
        delay = str(detail.get("retryDelay", "")) if isinstance(detail, dict) else ""
        if re.fullmatch(r"\d+(\.\d+)?s", delay):
            waits.append(float(delay[:-1]))
    return max(0.0, *waits) if waits else None


def _check_endpoint(endpoint: str) -> None:
    """The key goes with every request, so it must be encrypted unless it stays on this machine."""
    parts = urllib.parse.urlsplit(endpoint)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or not _is_loopback(parts.hostname or ""):
        raise UserError(
            f"the endpoint {endpoint} must begin with https:// (or be http:// on this machine): the key travels with each request."
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
