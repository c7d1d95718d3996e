"""Elicitation with the real clients, against a service on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.elicit import FIRST_WAIT, LONGEST_WAIT, PATIENCE, Summary
from subspaces.experiments.composition.record import read_record
from tests.experiments.composition.conftest import KEY, PROMPT, Bench, Service, answer, complaint, example

RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "RequestsPerDayPerProject"}],
}


def test_good_answers_are_recorded_with_all_that_matters(bench: Bench, settings: dict[str, Any]) -> None:
    summary = bench.run(settings)
    assert summary == Summary(requests=3, answers=3, refused=0, failed=0, candidates=3, tokens=120)
    header, entries = read_record(bench.path)
    sha256 = hashlib.sha256(PROMPT.encode()).hexdigest()
    assert header["prompt"] == PROMPT and header["prompt_sha256"] == sha256 and header["temperature"] == 1.0
    assert [entry["request"] for entry in entries] == [1, 2, 3]
    assert [entry["text"] for entry in entries] == [example(number) for number in (1, 2, 3)]
    assert all(entry["model"] == "gemini-test" and entry["prompt_sha256"] == sha256 for entry in entries)
    assert all(entry["client"] == settings["client"] and entry["finish"] == "STOP" for entry in entries)
    assert all(
        (entry["prompt_tokens"], entry["answer_tokens"], entry["total_tokens"]) == (10, 30, 40) for entry in entries
    )
    assert all(
        abs(datetime.now(UTC) - datetime.fromisoformat(entry["time"])) < timedelta(minutes=5) for entry in entries
    )
    assert bench.waits == []


def test_what_is_sent(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    bench.run(settings)
    assert service.keys == [KEY] * 3
    for number, request in enumerate(service.requests, start=1):
        assert request["path"].startswith("/v1beta/models/gemini-test:generateContent")
        assert KEY not in request["path"]
        assert request["contents"][0]["parts"] == [{"text": PROMPT}]
        assert request["generationConfig"]["temperature"] == 1.0
        if settings["client"] == "google-genai":
            assert request["generationConfig"]["seed"] == 7 + number
    seeds = [entry["seed"] for entry in bench.entries]
    assert seeds == ([8, 9, 10] if settings["client"] == "google-genai" else [None] * 3), (
        "only a seed that was sent is recorded"
    )


def test_a_finished_record_asks_nothing_and_needs_no_key(
    bench: Bench, settings: dict[str, Any], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.run(settings)
    before = bench.path.read_bytes()
    monkeypatch.delenv("GEMINI_API_KEY")
    assert bench.run(settings) == first
    assert bench.path.read_bytes() == before and len(service.requests) == 3


def test_a_larger_count_goes_on_where_the_record_ends(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    bench.run(settings)
    assert bench.run(settings, count=5).candidates == 5
    assert [entry["request"] for entry in bench.entries] == [1, 2, 3, 4, 5] and len(service.requests) == 5


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_service_is_asked_again(bench: Bench, settings: dict[str, Any], service: Service, code: int) -> None:
    service.script = [
        service.well,
        service.sends(complaint(code, "busy"), code),
        service.sends(complaint(code, "busy"), code),
    ]
    assert bench.run(settings) == Summary(5, 3, 0, 2, 3, 120)
    assert bench.outcomes == [(1, "answer"), (2, "failed"), (2, "failed"), (2, "answer"), (3, "answer")]
    assert bench.entries[1]["status"] == code and "busy" in bench.entries[1]["reason"]
    assert len(service.requests) == 5, "the clients do not try again behind our back"
    assert FIRST_WAIT / 2 <= bench.waits[0] <= FIRST_WAIT <= bench.waits[1] <= 2 * FIRST_WAIT


def test_waits_grow_up_to_a_limit_and_differ(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [service.sends(complaint(503, "busy"), 503)] * 11
    bench.run(settings, attempts=12)
    tops = [min(LONGEST_WAIT, FIRST_WAIT * 2**step) for step in range(11)]
    assert all(top / 2 <= wait <= top for wait, top in zip(bench.waits, tops, strict=True))
    assert len({wait / top for wait, top in zip(bench.waits, tops, strict=True)}) == 11, "jitter"


@pytest.mark.parametrize("code", [429, 503])
def test_the_service_says_how_long_to_wait(bench: Bench, settings: dict[str, Any], service: Service, code: int) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    service.script = [
        service.sends(complaint(code, "busy"), code, Retry_After="17"),
        service.sends(complaint(code, "busy"), code, Retry_After=later),
        service.sends(complaint(code, "busy", RETRY_INFO), code),
    ]
    bench.run(settings)
    assert 17 <= bench.waits[0] <= 18 and 50 <= bench.waits[1] <= 61 and 33 <= bench.waits[2] <= 34


def test_silence_is_a_time_out(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [service.is_silent]
    assert bench.run(settings, count=1, timeout=0.3).failed == 1
    assert "no answer within 0.3 s" in bench.entries[0]["reason"]
    assert bench.outcomes == [(1, "failed"), (1, "answer")] and len(bench.waits) == 1


def test_broken_and_unreadable_answers_are_asked_for_again(
    bench: Bench, settings: dict[str, Any], service: Service
) -> None:
    service.script = [service.is_cut_off, service.sends(b'{"candidates": [{'), service.sends(b"<html>Sign in</html>")]
    assert bench.run(settings, count=1) == Summary(4, 1, 0, 3, 1, 40)
    assert bench.outcomes == [(1, "failed")] * 3 + [(1, "answer")]
    reasons = [entry.get("reason") for entry in bench.entries]
    assert "connection failed" in reasons[0] and "not valid JSON" in reasons[1] and "not valid JSON" in reasons[2]


@pytest.mark.parametrize(
    "body",
    [b"", b"5", b"\xff\xfe", b'{"usageMetadata": 5}', b'{"candidates": [{"content": {"parts": [{"text": 5}]}}]}'],
)
def test_odd_answers_do_not_end_the_run(bench: Bench, settings: dict[str, Any], service: Service, body: bytes) -> None:
    service.script = [service.sends(body)]
    assert bench.run(settings, count=1) == Summary(2, 1, 0, 1, 1, 40)


def test_nobody_listens(tmp_path: Path, settings: dict[str, Any], service: Service) -> None:
    service.http.shutdown()
    service.http.server_close()
    bench = Bench(tmp_path / "record.jsonl", service)
    message = bench.ended(settings)
    assert "4 attempts failed" in message and "connection failed" in message and "0 of 3 candidates" in message
    assert len(bench.waits) == 3


def test_a_refusal_is_an_answer(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    usage = {"usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}}
    service.script = [
        service.sends({"promptFeedback": {"blockReason": "SAFETY"}, **usage}),
        service.sends({"candidates": [{"finishReason": "RECITATION", "index": 0}], **usage}),
        service.sends({"candidates": []}),
    ]
    assert bench.run(settings, count=2) == Summary(5, 2, 3, 0, 2, 100)
    assert [entry["reason"] for entry in bench.entries[:3]] == ["SAFETY", "RECITATION", "no candidate"]
    assert [entry["request"] for entry in bench.entries] == [1, 2, 3, 4, 5] and bench.waits == []


def test_answers_that_bring_nothing_new_end_the_run(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [service.says(example(1))] * 100
    message = bench.ended(settings)
    assert f"{PATIENCE} requests in a row brought nothing new" in message and "1 of 3 candidates are kept" in message
    assert len(service.requests) == PATIENCE + 1


def test_every_line_is_flushed_to_disk(bench: Bench, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, fsync = [], os.fsync

    def watching(descriptor: int) -> None:
        fsync(descriptor)
        sizes.append(bench.path.stat().st_size)

    monkeypatch.setattr(os, "fsync", watching)
    bench.run(settings)
    lines = bench.path.read_bytes().splitlines(keepends=True)
    assert sizes == [sum(map(len, lines[: number + 1])) for number in range(4)], (
        "what was asked, and three answers, one by one"
    )


def test_an_answer_is_recorded_before_it_is_parsed(
    bench: Bench, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import subspaces.experiments.composition.parse as parse

    def broken(text: str) -> None:
        raise RuntimeError("a fault in the parser")

    monkeypatch.setattr(parse, "parse_answer", broken)
    with pytest.raises(RuntimeError):
        bench.run(settings)
    assert [entry["text"] for entry in bench.entries] == [example(1)]
    monkeypatch.undo()
    os.environ["GEMINI_API_KEY"] = KEY
    assert bench.run(settings).requests == 3


def test_the_limit_on_requests_counts_failures_and_earlier_runs(
    bench: Bench, settings: dict[str, Any], service: Service
) -> None:
    service.script = [service.well, service.sends(complaint(503, "busy"), 503)]
    message = bench.ended(settings, max_requests=3)
    assert (
        "limit of 3 requests" in message and "2 of 3 candidates are kept" in message and "Raise max_requests" in message
    )
    bench.ended(settings, max_requests=3)
    assert len(service.requests) == 3
    assert bench.run(settings, max_requests=4).candidates == 3


def test_the_limit_on_tokens(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    assert "limit of 80 tokens is reached (80)" in bench.ended(settings, max_tokens=80)
    assert len(service.requests) == 2
    assert bench.run(settings, max_tokens=200).tokens == 120


def test_a_service_that_does_not_count_tokens_is_limited_too(
    bench: Bench, settings: dict[str, Any], service: Service
) -> None:
    bare = answer(example(1))
    del bare["usageMetadata"]
    service.script = [service.sends(bare)]
    assert "tokens is reached" in bench.ended(settings, max_tokens=20)
    assert bench.entries[0]["total_tokens"] is None


def test_the_end_of_the_quota_keeps_what_came(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [service.well, service.well] + [service.sends(complaint(429, "quota exceeded"), 429)] * 4
    message = bench.ended(settings)
    assert (
        "the quota is used up" in message and "quota exceeded" in message and "2 of 3 candidates are kept in" in message
    )
    assert "Run the same command again" in message and f"subspaces composition parse {bench.path}" in message
    assert len(bench.waits) == 3
    assert bench.run(settings).candidates == 3
    assert [entry["request"] for entry in bench.entries if entry["outcome"] == "answer"] == [1, 2, 3]


@pytest.mark.parametrize("sign", ["per day", "long wait"])
def test_no_waiting_for_a_quota_that_does_not_come_back_soon(
    bench: Bench, settings: dict[str, Any], service: Service, sign: str
) -> None:
    daily, slow = (
        service.sends(complaint(429, "no", PER_DAY), 429),
        service.sends(complaint(429, "no"), 429, Retry_After="3600"),
    )
    service.script = [daily if sign == "per day" else slow]
    message = bench.ended(settings)
    assert "the quota is used up" in message and bench.waits == [] and len(service.requests) == 1
    assert ("3,600 s" in message) == (sign == "long wait")


@pytest.mark.parametrize(
    ("code", "advice"),
    [(400, "GEMINI_API_KEY"), (401, "valid key"), (403, "may use this model"), (404, "model's name")],
)
def test_final_complaints_end_at_once(
    bench: Bench, settings: dict[str, Any], service: Service, code: int, advice: str
) -> None:
    service.script = [service.well] + [service.sends(complaint(code, "no such thing"), code)] * 9
    message = bench.ended(settings)
    assert message.startswith(f"the service answered {code}: no such thing") and advice in message and bench.waits == []
    assert [outcome for _, outcome in bench.outcomes] == ["answer", "failed"]


def test_several_examples_per_request(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    service.script = [
        service.says(f"1. {example(1)}\n2. {example(2)}"),
        service.says(f"1. {example(3)}\n2. {example(4)}"),
    ]
    assert bench.run(settings, count=4, per_request=2) == Summary(2, 2, 0, 0, 4, 80)
    (part,) = service.requests[0]["contents"][0]["parts"]
    assert part["text"].startswith(PROMPT) and "Give 2 different examples" in part["text"]


# --- going on after a stop ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "half", [b'{"request": 3, "outcome": "answer", "text": "A man is', b"\0\0\0\0", '{"text": "\u00e9'.encode()[:-1]]
)
def test_half_a_line_is_set_aside_and_its_request_asked_again(
    bench: Bench, settings: dict[str, Any], service: Service, half: bytes
) -> None:
    bench.run(settings, count=2)
    whole = bench.path.read_bytes()
    bench.path.write_bytes(whole + half)
    assert read_record(bench.path)[1][-1]["request"] == 2, "a reader does not mind"
    bench.run(settings)
    assert bench.path.read_bytes().startswith(whole)
    assert [entry["request"] for entry in bench.entries] == [1, 2, 3] and len(service.requests) == 3
    assert bench.path.with_name("record.jsonl.damaged").read_bytes() == half + b"\n"


def test_a_last_line_that_only_lacks_its_end_counts(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    bench.run(settings, count=2)
    bench.path.write_bytes(bench.path.read_bytes().removesuffix(b"\n"))
    bench.run(settings)
    assert [entry["request"] for entry in bench.entries] == [1, 2, 3] and len(service.requests) == 3
    assert not bench.path.with_name("record.jsonl.damaged").exists()


def test_a_run_that_died_while_it_wrote_the_first_line(bench: Bench, settings: dict[str, Any]) -> None:
    bench.run(settings, count=1)
    bench.path.write_bytes(bench.path.read_bytes()[:30])
    assert bench.run(settings).candidates == 3


def test_a_damaged_line_in_the_middle_is_named(bench: Bench, settings: dict[str, Any]) -> None:
    bench.run(settings)
    lines = bench.path.read_bytes().splitlines(keepends=True)
    bench.path.write_bytes(b"".join([*lines[:2], b'{"request": \n', *lines[3:]]))
    with pytest.raises(UserError, match=r"record\.jsonl, line 3: damaged"):
        bench.run(settings)


def test_other_files_are_never_touched(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    bench.path.parent.mkdir()
    for content in (b"my diary", b"my diary\n", b'{"format": "something else"}\n'):
        bench.path.write_bytes(content)
        with pytest.raises(UserError, match="not the record of an elicitation"):
            bench.run(settings)
        assert bench.path.read_bytes() == content
    assert service.requests == []


@pytest.mark.parametrize(
    "change", [{"temperature": 0.5}, {"model": "gemini-other"}, {"prompt": "Hello"}, {"seed": 8}, {"per_request": 2}]
)
def test_a_record_is_about_one_question(
    bench: Bench, settings: dict[str, Any], service: Service, change: dict[str, Any]
) -> None:
    bench.run(settings)
    with pytest.raises(UserError, match=rf"records other questions \(.*{next(iter(change))}: "):
        bench.run(settings, count=9, **change)
    assert len(service.requests) == 3


def test_one_elicitation_at_a_time(bench: Bench, settings: dict[str, Any], service: Service) -> None:
    seen = []

    def second(handler: Any) -> None:
        try:
            bench.run(settings)
        except UserError as error:
            seen.append(str(error))
        service.well(handler)

    service.script = [second]
    bench.run(settings, count=1)
    assert len(seen) == 1 and "another elicitation is writing" in seen[0]


@pytest.mark.parametrize("settings", ["google-genai"], indirect=True)
def test_a_killed_run_goes_on(bench: Bench, settings: dict[str, Any], service: Service, tmp_path: Path) -> None:
    """Killed with no chance to tidy up, in the middle of its third request."""
    service.script = [service.well, service.well, service.is_silent]
    program = """
        import json, sys
        from pathlib import Path
        from subspaces.experiments.composition.elicit import elicit
        elicit(json.loads(sys.argv[1]), Path(sys.argv[2]), endpoint=sys.argv[3])
    """
    arguments = [json.dumps(settings), str(bench.path), service.url]
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), *arguments])
    try:
        for _ in range(600):
            if len(service.requests) == 3:
                break
            service.over.wait(0.05)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert bench.outcomes == [(1, "answer"), (2, "answer")]
    assert bench.run(settings).candidates == 3
    assert bench.outcomes == [(1, "answer"), (2, "answer"), (3, "answer")] and len(service.requests) == 4


# --- settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", ["google-genai"], indirect=True)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": 0}, "count"),
        ({"temprature": 1}, "temprature"),
        ({"client": "telnet"}, "client"),
        ({"prompt": ""}, "prompt"),
        ({"model": "a b"}, "model"),
    ],
)
def test_wrong_settings_are_named(bench: Bench, settings: dict[str, Any], change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=f"settings of the elicitation are not right: {said}: "):
        bench.run(settings, **change)
    assert not bench.path.exists()
