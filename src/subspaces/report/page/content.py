"""What the page shows of the numbers: formatted values, verdicts, tables, the overview and the citation."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from markupsafe import Markup

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.report.layouts import LAYOUTS, Layout
from subspaces.report.numbers import records
from subspaces.report.page.text import markdown, plain
from subspaces.report.verdicts import VERDICTS, tolerance

PAPER = "Native Hierarchical and Compositional Representations with Subspace Embeddings"
SIGNS = {"reproduced": "=", "better": "+", "short": "−", "other scale": "~", "not run": "○"}
MEANINGS = {
    "reproduced": "within the tolerance: max(2·√(sd² + paper’s sd²), 0.5 % of the paper’s value)",
    "better": "better than the paper’s value by more than the tolerance",
    "short": "worse than the paper’s value by more than the tolerance",
    "other scale": "other data or a part of it: not comparable with the paper’s value",
    "not run": "not computed; the number says why",
}
# one or two numbers of every experiment, always of the paper's largest subspaces: chosen by the question, not by the result
HEADLINE = (
    "reconstruction/subspace-128/nouns-map",
    "reconstruction/subspace-128/nouns-rho",
    "hyperlex/subspace-128/spearman",
    "link_prediction/subspace-128/f1-50",
    "snli/mpnet-subspace-128/accuracy-2way",
    "composition/mpnet-subspace-128/auc-conjunction",
    "composition/mpnet-subspace-128/auc-negation",
    "retrieval_latency/subspace-128-faiss/latency",
)
SCALES = {
    "quick": "Quick scale: small budgets, minutes of training. A number is judged only where it follows the paper’s protocol.",
    "laptop": "Laptop scale: budgets, samplers and rates differ from the paper’s (see the deviations). A number that is short "
    "here can be short because of its budget; a number that is better does not prove a better method.",
    "paper": "Paper scale: the paper’s settings; the remaining differences are in the list of deviations.",
}


@dataclass(frozen=True)
class EvaluationFile:
    """One model and seed: the path of its file, the content (None: the file is missing), and the curve of its training."""

    path: str
    content: dict[str, Any] | None
    curve: Any = None


@dataclass(frozen=True)
class Number:
    """A row of the numbers frame, its evaluations, and how the layout of its table shows it."""

    id: str
    table: str
    row: str
    column: str
    unit: str
    better: str
    paper: float
    paper_sd: float | None
    value: float | None
    sd: float | None
    seeds: int
    verdict: str
    scale: str
    reason: str
    values: tuple[float, ...]
    sample: bool
    evaluations: tuple[EvaluationFile, ...] = field(repr=False)

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.table]

    @property
    def row_label(self) -> str:
        return self.layout.rows[self.row]

    @property
    def column_label(self) -> str:
        return self.layout.columns[self.column]

    @property
    def name(self) -> str:
        """Table, row and column in plain words."""
        return f"Table {self.layout.number}, {plain(self.row_label)}, {self.column_label}"

    @property
    def digits(self) -> int:
        return self.layout.decimals(self.column)

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where the two are not comparable."""
        return None if self.value is None or self.verdict == "other scale" else self.value - self.paper

    @cached_property
    def tolerance(self) -> float:
        return tolerance(self.paper, self.sd, self.paper_sd)

    @property
    def ours(self) -> str:
        return self.verdict if self.value is None else amount(self.value, self.sd, self.digits)

    @property
    def papers(self) -> str:
        return amount(self.paper, self.paper_sd, self.digits)

    @property
    def change(self) -> str | None:
        return None if self.difference is None else signed(self.difference, self.digits)

    @property
    def explanation(self) -> str:
        """Why this number has its verdict, with the tolerance in its own unit."""
        if self.difference is None:
            return f"{MEANINGS[self.verdict]}."
        allowed = fixed(self.tolerance, max(2, self.digits + 1))
        return f"{MEANINGS[self.verdict]}. The tolerance is ±{allowed}; the difference is {self.change}."

    @property
    def words(self) -> str:
        """What the filter searches."""
        text = f"{self.id} {plain(self.row_label)} {self.name} {self.layout.caption} {self.verdict} {self.reason}"
        return text.lower()


def load_numbers(frame: pd.DataFrame, folder: Path) -> list[Number]:
    """The numbers in the order of the paper with their evaluations; values of a wrong kind are an error."""
    found: dict[str, EvaluationFile] = {}
    numbers = []
    curves = _recorded_curves(folder)
    for table in LAYOUTS:
        for record in records(frame, table):
            _check(record)
            for path in record["evidence"]:
                if path not in found:
                    found[path] = _evaluation_file(folder, path, curves)
            record |= {"values": tuple(record.get("values") or ()), "sample": bool(record.get("sample"))}
            record |= {"reason": record["reason"] or "no reason is recorded", "scale": str(record["scale"])}
            record["evaluations"] = tuple(found[path] for path in record["evidence"])
            numbers.append(Number(**{name: record[name] for name in Number.__dataclass_fields__}))
    return numbers


def _evaluation_file(folder: Path, path: str, curves: Mapping[str, Any]) -> EvaluationFile:
    content = read_json(folder / path) if (folder / path).is_file() else None
    if not isinstance(content, dict):
        return EvaluationFile(path, None)
    return EvaluationFile(path, content, content.get("history") or curves.get(str(content.get("weights_sha256"))))


def _recorded_curves(folder: Path) -> dict[str, Any]:
    """sha256 of a model's weights -> its training curve, from the records of models; the older ones have none."""
    records = [read_json(path) for path in sorted(folder.glob("results/models/**/*.json"))]
    return {seed["weights_sha256"]: seed.get("curve") for record in records for seed in record["seeds"]}


def _check(record: dict[str, Any]) -> None:
    wrong = None
    if record["verdict"] not in VERDICTS:
        wrong = f"{record['verdict']!r} is not a verdict"
    elif not _is_number(record["paper"]):
        wrong = "the paper's value is not a number"
    elif any(record[name] is not None and not _is_number(record[name]) for name in ("value", "sd", "paper_sd")):
        wrong = "its value or deviation is not a number"
    elif (record["value"] is None) != (record["verdict"] == "not run"):
        wrong = f"value {record['value']} and verdict {record['verdict']!r} contradict each other"
    if wrong:
        target = f"results/numbers/{record['table']}/{record['row']}/{record['column']}.json"
        raise UserError(f"{target}: {wrong}. Delete it and run `snakemake --cores 2 -- {target}`.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# --- formats --------------------------------------------------------------------------------------------------------


def amount(value: float, sd: float | None, digits: int) -> str:
    return fixed(value, digits) if sd is None else f"{fixed(value, digits)} ± {fixed(sd, digits)}"


def fixed(value: float, digits: int) -> str:
    """With a minus sign instead of a hyphen, and no minus before a zero."""
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown.replace("-", "−")


def signed(value: float, digits: int) -> str:
    shown = fixed(value, digits)
    return shown if shown.startswith("−") or not float(shown) else f"+{shown}"


def duration(seconds: float) -> str:
    """At most two units."""
    whole = round(seconds)
    if whole < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def style_of(verdict: str) -> str:
    """The CSS class of a verdict."""
    return "is-" + verdict.replace(" ", "-")


# --- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table of the paper: its numbers by row and column."""

    name: str
    numbers: Sequence[Number]

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.name]

    @property
    def number(self) -> str:
        return self.layout.number

    @property
    def title(self) -> str:
        return short_title(self.layout)

    @property
    def lead(self) -> str:
        rest = self.layout.caption.partition(": ")[2]
        return f"{rest[:1].upper()}{rest[1:]}." if rest else ""

    @property
    def note(self) -> str:
        """Scale, verdicts and seeds in one sentence."""
        counts = Counter(number.verdict for number in self.numbers)
        parts = [f"Scale {self.numbers[0].scale}", listed([f"{count} {name}" for name, count in counts.items()])]
        if seeds := spread([number.seeds for number in self.numbers if number.value is not None]):
            parts.append(f"seeds per number {seeds}")
        if any(number.sample for number in self.numbers):
            parts.append("made from a sample, not from the real data")
        return "; ".join(parts) + "."

    def cells(self, row: str) -> list[Number | None]:
        known = {(number.row, number.column): number for number in self.numbers}
        return [known.get((row, column)) for column in self.layout.columns]

    def dots(self, number: Number, width: int = 96) -> dict[str, Any] | None:
        """Seeds as dots and the paper's value as a tick, on the axis of the column; None without a value."""
        if number.value is None:
            return None
        column = [other for other in self.numbers if other.column == number.column]
        shown = [value for other in column for value in (other.paper, *_values(other))]
        low, high = min(shown), max(shown)
        room = (high - low) or 1.0

        def across(value: float) -> str:
            return f"{4 + (width - 8) * (value - low) / room:.1f}"

        return {"width": width, "paper": across(number.paper), "seeds": [across(value) for value in _values(number)]}


def _values(number: Number) -> tuple[float, ...]:
    return number.values or (() if number.value is None else (number.value,))


@dataclass(frozen=True)
class TextTable:
    """A table of our own, from its Markdown file."""

    name: str
    number: str
    title: str
    body: Markup


_OPENING = re.compile(r"\s*(?:<!--.*?-->\s*)?\*\*(?:Table (\w+)\. )?([^*]+?)\.?\*\*[.,;]?\s*", re.DOTALL)


def text_table(name: str, folder: Path) -> TextTable:
    path = folder / f"results/tables/{name}.md"
    title = name.replace("_", " ").capitalize()
    if not path.is_file():
        missing = Markup('<p class="missing"><code>{}</code> is missing.</p>').format(f"results/tables/{name}.md")
        return TextTable(name, "", title, missing)
    source = path.read_text(encoding="utf-8", errors="replace")
    opening = _OPENING.match(source)
    if not opening:
        return TextTable(name, "", title, markdown(source, top=4))
    title, _, lead = opening[2].partition(": ")
    rest = f"{lead}. {source[opening.end() :]}" if lead else source[opening.end() :]
    return TextTable(name, opening[1] or "", title, markdown(rest[:1].upper() + rest[1:], top=4))


def short_title(layout: Layout) -> str:
    """The caption without the part behind its colon and without units."""
    return re.sub(r" \([^)]*\)", "", layout.caption.partition(":")[0])


def listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def spread(counts: Sequence[int]) -> str:
    """The smallest and the largest of some counts."""
    return " to ".join(str(count) for count in dict.fromkeys((min(counts), max(counts)))) if counts else ""


# --- overview -------------------------------------------------------------------------------------------------------


def overview(numbers: Sequence[Number]) -> dict[str, Any]:
    """How many numbers have which verdict, at which scale, with how many seeds and how much training."""
    counts = Counter(number.verdict for number in numbers)
    return {
        "lead": _lead(numbers, counts),
        "scales": [text for scale, text in SCALES.items() if any(number.scale == scale for number in numbers)],
        "bar": _bar(counts, len(numbers)),
        "summary": ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name]),
        "counts": {name: counts[name] for name in VERDICTS},
        "chosen": [number for name in HEADLINE for number in numbers if number.id == name],
        "budget": _budget(numbers),
    }


def _lead(numbers: Sequence[Number], counts: Counter[str]) -> str:
    at = f"at {' and '.join(sorted({number.scale for number in numbers}))} scale"
    missing = counts["not run"]
    run = len(numbers) - missing
    if not run:
        return f"None of the {len(numbers)} numbers of the paper has been computed yet, {at}."
    judged = [f"{counts[name]} {name}" for name in VERDICTS if counts[name] and name != "not run"]
    first = f"{run} of the {len(numbers)} numbers of the paper have been computed, {at}: {listed(judged)}."
    return first + (f" {missing} {'is' if missing == 1 else 'are'} not run; each gives the reason." if missing else "")


def _bar(counts: Counter[str], total: int) -> list[dict[str, str]]:
    """Rectangles of the verdict bar, in percent: the content policy allows no style attributes."""
    pieces, start = [], 0.0
    for name in VERDICTS:
        width = 100 * counts[name] / total
        if counts[name]:
            pieces.append({"x": f"{start:.3f}%", "width": f"{width:.3f}%", "style": style_of(name)})
        start += width
    return pieces


def _budget(numbers: Sequence[Number]) -> dict[str, str]:
    """Seeds per number, and the training behind all numbers, each model counted once."""
    run = [number for number in numbers if number.value is not None]
    facts = {"Scale": ", ".join(sorted({number.scale for number in numbers}))}
    if run:
        seeds = spread([number.seeds for number in run])
        facts["Seeds per number"] = "1, so there is no spread to show" if seeds == "1" else seeds
    times: dict[str, float] = {}
    for evaluation in (evaluation for number in run for evaluation in number.evaluations):
        content = evaluation.content or {}
        timing = content.get("timing")
        seconds = timing.get("train_seconds") if isinstance(timing, dict) else None
        if isinstance(seconds, int | float):
            times[str(content.get("weights_sha256") or evaluation.path)] = seconds
    if times:
        low, high, total = (duration(function(times.values())) for function in (min, max, sum))
        facts |= {"Models trained": str(len(times)), "Training time": f"{total} in total, {low} to {high} per model"}
    if any(number.sample for number in numbers):
        facts["Data"] = "some numbers are made from a small sample of the data; each says so"
    return facts


# --- citation -------------------------------------------------------------------------------------------------------


def citations(path: Path | None) -> list[tuple[str, str]]:
    """(what, BibTeX entry) of the paper and of this project, from CITATION.cff."""
    if path is None or not path.is_file():
        return []
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: correct it, the page cites from it.") from error
    if not isinstance(content, dict) or "title" not in content:
        raise UserError(f"{path} has no title: it should be a citation file of format 1.2.")
    paper = content.get("preferred-citation")
    entries = [("The paper", bibtex(paper))] if isinstance(paper, dict) else []
    return [*entries, ("This project", bibtex(content))]


def bibtex(entry: dict[str, Any]) -> str:
    """One entry of a citation file as BibTeX."""
    kind = "inproceedings" if entry.get("type") == "conference-paper" else "software"
    authors = entry.get("authors") or [{}]
    fields = {
        "title": f"{{{entry['title']}}}",
        "author": " and ".join(_person(person) for person in authors),
        "booktitle": entry.get("collection-title"),
        "year": entry.get("year"),
        "version": entry.get("version"),
        "doi": entry.get("doi"),
    }
    long = [word for word in str(entry["title"]).lower().split() if len(word) > 3]
    parts = f"{authors[0].get('family-names', '')}{entry.get('year', '')}{long[0] if long else ''}".lower()
    handle = "".join(letter for letter in parts if letter.isalnum()) or "entry"
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{handle},", *lines, "}"])


def _person(person: dict[str, Any]) -> str:
    if "name" in person:
        return f"{{{person['name']}}}"
    return f"{person.get('family-names', '')}, {person.get('given-names', '')}".strip(", ")
