"""Where one number comes from: seeds, settings, times, machines, digests, and the command that makes it again."""

from __future__ import annotations

import json
from typing import Any

from subspaces.paper.page import rerun
from subspaces.paper.page.facts import Evaluation, Number
from subspaces.paper.page.markup import Html, join, tag
from subspaces.paper.page.verdict import badge, explanation

_LONG = 12  # entries of a list that are shown one by one


def provenance(number: Number, place: str) -> Html:
    """One disclosure; the script shows its body in a dialog too."""
    summary = f"{number.name}: {number.ours()}, paper {number.papers()}, {number.verdict}, {number.scale} scale"
    if number.value is None:
        summary = f"{number.name}: not run, paper {number.papers()}, {number.scale} scale"
    body = tag("div", *_parts(number, place), class_="proof-body")
    return tag(
        "details", tag("summary", summary), body, class_="proof", data_number=number.id, data_name=number.name.replace("-", "\u2011")
    )


def _parts(number: Number, place: str) -> list[Html]:
    judged = tag("p", badge(number.verdict), ": ", explanation(number), class_="judged")
    reason = tag("p", tag("strong", "Why: " if number.value is None else "What was run: "), number.reason, ".")
    parts: list[Html | None] = [judged, reason, tree(_facts(number)), *_rerun(number, place)]
    for evaluation in number.evaluations:
        parts += [tag("h4", _run_title(evaluation)), _warning(number, evaluation), _run(evaluation)]
    if number.content.get("settings"):
        parts += [tag("h4", "Settings"), tree(number.content["settings"])]
    if number.content.get("data"):
        parts += [tag("h4", "Data, by sha256"), tree(number.content["data"])]
    return [part for part in (*parts, tag("h4", "Digests"), tree(_digests(number))) if part is not None]


def _facts(number: Number) -> dict[str, Any]:
    unit = f" {number.content['unit']}" if number.content.get("unit") else ""
    facts: dict[str, Any] = {"Number": number.id}
    if number.value is not None:
        facts |= {"Ours": f"{number.value!r}{unit}", "Standard deviation over seeds": _or(number.sd, "none: one seed")}
        facts |= {"Seeds": number.content["seeds"], "Value of each seed": number.content.get("values")}
    facts["Paper’s value"] = f"{number.papers()}{unit}"
    if number.difference is not None:
        facts["Difference"] = number.change()
    better = {"up": "larger", "down": "smaller"}.get(str(number.content.get("better")))
    return facts | {"Better is": better, "Scale": number.scale, "Made from a sample": number.content.get("sample")}


def _digests(number: Number) -> dict[str, Any]:
    names = {"settings_sha256": "Settings", "code_sha256": "Code that wrote the number", "weights_sha256": "Weights"}
    found = {label: number.content[name] for name, label in names.items() if number.content.get(name)}
    return found | {"Key: settings, code and all inputs": number.content.get("key")}


def _rerun(number: Number, place: str) -> list[Html]:
    whole = rerun.from_sources(number.id, number.scale, place)
    if not number.evaluations:
        how = (
            f"No command gives this number at {number.scale} scale as things stand. If its row has an entry under not_run in "
            "params.yaml, remove that entry; then run:"
        )
        return [tag("h4", "How to run it"), command(how, whole)]
    seconds = [one.content.get("timing", {}).get("train_seconds") for one in number.evaluations if one.content]
    known = [one for one in seconds if isinstance(one, int | float)]
    took = f"; the training alone took {duration(sum(known))} when this was made" if known else ""
    return [
        tag("h4", "Run it again"),
        command(f"From the sources on: data, training, evaluation, number{took}.", whole),
        command("From the evaluation files: seconds.", rerun.from_evaluations(number.id, number.scale, place)),
    ]


def command(how: str, line: str, what: str = "the command") -> Html:
    """A text to take away and its copy button; the script shows the button, and says in the status whether it worked."""
    button = tag("button", "Copy", tag("span", f" {what}", class_="unseen"), type="button", class_="copy js-only")
    status = tag("span", class_="copied", role="status")
    shown = tag("pre", tag("code", line), tabindex=0)
    return tag("div", tag("p", how), tag("div", shown, tag("div", button, status, class_="do"), class_="line"), class_="command")


def _run_title(evaluation: Evaluation) -> str:
    seed = (evaluation.content or {}).get("seed")
    return "Evaluation" if seed is None else f"Seed {seed}"


def _warning(number: Number, evaluation: Evaluation) -> Html | None:
    """An evaluation that was made again after its number tells of other weights."""
    weights = (evaluation.content or {}).get("weights_sha256")
    if not isinstance(weights, str) or weights in (number.content.get("weights_sha256") or [weights]):
        return None
    return tag("p", "This evaluation has other weights than the number was made from: make the number again.", class_="missing")


def _run(evaluation: Evaluation) -> Html:
    content = evaluation.content
    if content is None:
        return tag("p", "Its evaluation file ", tag("code", evaluation.path), " is not in this folder.", class_="missing")
    timing, machine, data = (content.get(name) or {} for name in ("timing", "machine", "data"))
    facts: dict[str, Any] = {_time_name(name): _seconds(value) for name, value in _items(timing)}
    facts |= {"Machine": machine, "Origin of the data": data.get("origin") if isinstance(data, dict) else None}
    names = {"weights_sha256": "Weights", "model_key": "Key of the model", "code_sha256": "Code of the evaluation"}
    facts |= {label: content.get(name) for name, label in names.items()}
    return tree({name: value for name, value in facts.items() if value not in (None, {})} | {"File": evaluation.path})


def _items(value: Any) -> list[tuple[str, Any]]:
    return sorted(value.items(), key=lambda item: item[0] != "train_seconds") if isinstance(value, dict) else []


def _time_name(name: str) -> str:
    return {"train_seconds": "Training time", "evaluate_seconds": "Evaluation time"}.get(name, name)


def _seconds(value: Any) -> Any:
    return duration(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 else value


def duration(seconds: float) -> str:
    """Two units, as people say it."""
    whole = round(seconds)
    if whole < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _or(value: Any, otherwise: str) -> Any:
    return otherwise if value is None else value


def tree(value: Any) -> Html:
    """Any JSON as nested name and value pairs; all of it is data, none of it is markup."""
    if isinstance(value, dict):
        entries = [join([tag("dt", str(name)), tag("dd", tree(one))]) for name, one in value.items()]
        return tag("dl", *entries) if entries else tag("span", "none")
    if isinstance(value, list) and (len(value) > _LONG or any(isinstance(one, dict | list) for one in value)):
        return tag("code", json.dumps(value, ensure_ascii=False, allow_nan=True))
    if isinstance(value, list):
        return join((tree(one) for one in value), ", ") if value else tag("span", "none")
    if value is None or isinstance(value, bool):
        return tag("span", {None: "none", True: "yes", False: "no"}[value])
    return tag("code", value) if _is_digest(value) else tag("span", value)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 32 and all(letter in "0123456789abcdef" for letter in value)
