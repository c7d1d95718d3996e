"""Elicitation (paper, appendix on the compositional set): ask a language model for examples until there are enough.

Each answer is in the record before it is parsed, so a stopped run resumes and asks nothing twice. Only the request that was
under way when a process died is asked again. Passing failures (429, 5xx, silence, a broken connection, an unreadable answer) are tried
again with growing waits; a refusal is an answer, and the next request follows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.errors import UserError
from subspaces.experiments.composition.clients import Answer, Client, Failure, make_client
from subspaces.experiments.composition.parse import parse_entries
from subspaces.experiments.composition.record import Record, open_record
from subspaces.experiments.composition.secret import ApiKey
from subspaces.experiments.composition.settings import ElicitationSettings, read_settings
from subspaces.training.progress import ConsoleProgress, Silent

FIRST_WAIT = 2.0
LONGEST_WAIT = 120.0
"""Seconds. Waits double from the first to the longest; a service that asks for more has no quota left for this run."""
PATIENCE = 10
"""Requests in a row without a single new candidate, after which it is no use to go on."""


@dataclass(frozen=True)
class Summary:
    """What a record holds."""

    requests: int
    answers: int
    refused: int
    failed: int
    candidates: int
    """Different ones: an answer that repeats another word for word does not count towards those wanted."""
    tokens: int


class Ended(UserError):
    """The run ended before there were enough candidates. What came is in the record."""

    def __init__(self, message: str, summary: Summary):
        super().__init__(message)
        self.summary = summary


def elicit(
    settings: Mapping[str, Any],
    path: Path,
    *,
    key: ApiKey | None = None,
    endpoint: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
    progress: ConsoleProgress | Silent | None = None,
) -> Summary:
    """Fill the record at `path` until it holds `count` different candidates; raise `Ended` when that is not possible now.

    `settings` are those of `ElicitationSettings`. The key comes from the environment unless given.
    """
    wanted = read_settings(settings)
    path, progress = Path(path), progress or Silent()
    with open_record(path, asked(wanted)) as record:
        if record.set_aside:
            progress.say(f"the last line of {path} was half-written; it is now in {record.set_aside}")
        if summarise(record.entries).candidates < wanted.count:
            key = key or ApiKey.from_environment()
            client = make_client(
                wanted.client, wanted.model, wanted.temperature, key, timeout=wanted.timeout, endpoint=endpoint
            )
            _Run(wanted, record, client, sleep, progress).go()
        return summarise(record.entries)


def asked(settings: ElicitationSettings) -> dict[str, Any]:
    """What a record is about: an answer depends on these settings, on nothing else."""
    return {
        "model": settings.model,
        "prompt": settings.sent_prompt,
        "prompt_sha256": _sha256(settings.sent_prompt),
        "temperature": settings.temperature,
        "seed": settings.seed,
        "per_request": settings.per_request,
    }


def summarise(entries: list[dict[str, Any]]) -> Summary:
    outcomes = [entry["outcome"] for entry in entries]
    candidates, _ = parse_entries(entries)
    different = {tuple(candidate.sentences.values()) for candidate in candidates}
    return Summary(
        requests=len(entries),
        answers=outcomes.count("answer"),
        refused=outcomes.count("refused"),
        failed=outcomes.count("failed"),
        candidates=len(different),
        tokens=sum(map(_tokens, entries)),
    )


def _tokens(entry: dict[str, Any]) -> int:
    """As counted by the service; one that does not count is counted roughly, so that the limit holds. Failures say nothing."""
    return entry.get("total_tokens") or len(entry.get("text", "")) // 4


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class _Run:
    settings: ElicitationSettings
    record: Record
    client: Client
    sleep: Callable[[float], None]
    progress: ConsoleProgress | Silent

    def go(self) -> None:
        summary, fruitless = summarise(self.record.entries), 0
        self.generator = np.random.default_rng([self.settings.seed, summary.requests])
        if not self.client.seeded:
            self.progress.say(f"{self.client.name} cannot send a seed: answers cannot be asked for again")
        self.progress.start(self.settings.count, summary.candidates)
        try:
            while summary.candidates < self.settings.count:
                self._ask(self._next_request())
                before, summary = summary.candidates, summarise(self.record.entries)
                fruitless = 0 if summary.candidates > before else fruitless + 1
                if fruitless == PATIENCE:
                    last = self.record.entries[-1]
                    why = f"the last one: {last['reason'] or 'an answer without a new candidate'}"
                    advice = (
                        "Read the answers in the record; the prompt, the model or the temperature may have to change."
                    )
                    raise self._ended(f"{PATIENCE} requests in a row brought nothing new ({why})", advice)
                self.progress.update(min(summary.candidates, self.settings.count), {})
        finally:
            self.progress.close()

    def _next_request(self) -> int:
        """The first number without an answer."""
        done = {entry["request"] for entry in self.record.entries if entry["outcome"] != "failed"}
        return next(number for number in range(1, len(done) + 2) if number not in done)

    def _ask(self, request: int) -> None:
        """Ask until there is an answer, which may be a refusal."""
        again = "Run the same command again to go on"
        for attempt in range(1, self.settings.attempts + 1):
            self._check_limits()
            try:
                answer = self.client.ask(self.settings.sent_prompt, self.settings.seed + request)
            except Failure as error:
                failure = error
            else:
                self.record.append(self._entry(request, attempt, answer))
                return
            self.record.append(self._entry(request, attempt, failure))
            if failure.kind == "final":
                raise self._ended(failure.reason, _ADVICE.get(failure.status, "Correct the settings, then run again."))
            last, too_long = attempt == self.settings.attempts, (failure.retry_after or 0) > LONGEST_WAIT
            if failure.kind == "quota" or (failure.status == 429 and (last or too_long)):
                later = f" (the service asks to wait {failure.retry_after:,.0f} s)" if failure.retry_after else ""
                raise self._ended(
                    f"the quota is used up: {failure.reason}{later}",
                    f"{again} when there is quota, or with another key.",
                )
            if last or too_long:
                raise self._ended(f"{attempt} attempts failed, the last one: {failure.reason}", f"{again} later.")
            wait = self._wait(attempt, failure.retry_after)
            self.progress.say(f"request {request}, attempt {attempt}: {failure.reason}; next attempt in {wait:.0f} s")
            self.sleep(wait)

    def _wait(self, attempt: int, asked_for: float | None) -> float:
        """Exponential with jitter, and never less than the service asks for."""
        jitter = self.generator.uniform(0.5, 1.0)
        own = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * jitter
        return own if asked_for is None else max(own, asked_for + jitter)

    def _check_limits(self) -> None:
        requests, tokens = len(self.record.entries), sum(map(_tokens, self.record.entries))
        if requests >= self.settings.max_requests:
            raise self._ended(
                f"the limit of {self.settings.max_requests:,} requests is reached", "Raise max_requests to go on."
            )
        if tokens >= self.settings.max_tokens:
            raise self._ended(
                f"the limit of {self.settings.max_tokens:,} tokens is reached ({tokens:,})",
                "Raise max_tokens to go on.",
            )

    def _ended(self, why: str, advice: str) -> Ended:
        summary, path = summarise(self.record.entries), self.record.path
        kept = f"{summary.candidates:,} of {self.settings.count:,} candidates are kept in {path}"
        use = f" To use what was answered: subspaces composition parse {path}." if summary.candidates else ""
        return Ended(f"{why.rstrip('.')}. {kept}. {advice}{use}", summary)

    def _entry(self, request: int, attempt: int, result: Answer | Failure) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "request": request,
            "attempt": attempt,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "client": self.client.name,
            "model": self.settings.model,
            "prompt_sha256": _sha256(self.settings.sent_prompt),
            "seed": self.settings.seed + request if self.client.seeded else None,
        }
        if isinstance(result, Failure):
            return entry | {"outcome": "failed", "reason": result.reason, "status": result.status}
        return entry | {
            "outcome": "refused" if result.refusal else "answer",
            "reason": result.refusal,
            "finish": result.finish,
            "text": result.text,
            "model_version": result.model_version,
            "prompt_tokens": result.prompt_tokens,
            "answer_tokens": result.answer_tokens,
            "total_tokens": result.total_tokens,
        }


_ADVICE: dict[int | None, str] = {
    400: "If the key is not valid, set GEMINI_API_KEY again; otherwise correct the settings, then run again.",
    401: "Set GEMINI_API_KEY to a valid key, then run again.",
    403: "Set GEMINI_API_KEY to a key that may use this model, then run again.",
    404: "Correct the model's name in the settings, then run again.",
}
