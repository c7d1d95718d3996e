"""Answers in all their forms: what is written in a form is read back from it, and what cannot be read is kept with its reason."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subspaces.errors import UserError
from subspaces.experiments.composition.fields import Fields
from subspaces.experiments.composition.forms import read_examples
from subspaces.experiments.composition.parse import parse_entries, parse_record, write_rejects

A: Fields = (
    "Two children are sitting on a red picnic blanket, eating sandwiches.",
    "People are eating.",
    "People are sitting on a blanket.",
    "People are sitting directly on the grass.",
)
B: Fields = (
    'A man, "old Joe", waves at Mr. Li.',
    "A man waves.",
    "Joe is greeting someone.",
    "The man's arms are tied.",
)


def read(text: str) -> list[Fields]:
    examples, rejects = read_examples(text)
    assert rejects == []
    return examples


# --- forms, as models write them ------------------------------------------------------------------------------------------

LINES = "\n".join(A)
FORMS = {
    "as asked": ", ".join(A),
    "as asked, without stops": ", ".join(sentence.rstrip(".") for sentence in A),
    "wrapped": ", ".join(A).replace("blanket, eating", "blanket,\neating").replace("on a blanket", "on a\n  blanket"),
    "angle brackets": ", ".join(f"<{sentence}>" for sentence in A),
    "square brackets": ", ".join(f"[{sentence}]" for sentence in A),
    "quotes": ", ".join(f'"{sentence}"' for sentence in A),
    "curly quotes": ", ".join(f"“{sentence}”" for sentence in A),
    "single quotes": ", ".join(f"'{sentence}'" for sentence in A),
    "quotes on lines": ",\n".join(f'"{sentence}"' for sentence in A),
    "bold": ", ".join(f"**{sentence}**" for sentence in A),
    "lines": LINES,
    "numbered": "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(A, 1)),
    "numbered from 12": "\n".join(f"{number}) {sentence}" for number, sentence in enumerate(A, 12)),
    "bullets": "\n".join(f"- {sentence}" for sentence in A),
    "bold bullets": "\n".join(f"* **{sentence}**" for sentence in A),
    "blank lines between": "\n\n".join(A),
    "numbered answer": "12. " + ", ".join(A),
    "in words": f"Sure! Here is one example:\n\n{', '.join(A)}",
    "heading": f"### Example 1\n\n{', '.join(A)}",
    "form repeated": f"<premise>, <hypothesis 1>, <hypothesis 2>, <hypothesis 3>\n{', '.join(A)}",
    "fence": f"```\n{', '.join(A)}\n```",
    "labels": f"Premise: {A[0]}\nHypothesis 1: {A[1]}\nHypothesis 2: {A[2]}\nHypothesis 3: {A[3]}",
    "short labels": f"p: {A[0]}\nh1: {A[1]}\nh2: {A[2]}\nh3: {A[3]}",
    "bold labels": f"**Premise:** {A[0]}\n\n**Hypothesis 1 (Entailed):** {A[1]}\n**Hypothesis 2** (entailed): {A[2]}\n\n**H3**: {A[3]}",
    "bulleted labels": f"- **p**: {A[0]}\n- **h_1**: {A[1]}\n- $h_2$: {A[2]}\n- `h3`: {A[3]}",
    "numbered labels": f"1. Premise: {A[0]}\n2. Hypothesis 1: {A[1]}\n3. Hypothesis 2: {A[2]}\n4. Hypothesis 3: {A[3]}",
    "quoted labels": f'premise = "{A[0]}",\nh1 = "{A[1]}",\nh2 = "{A[2]}",\nh3 = "{A[3]}"',
    "labels in one line": f"Premise: {A[0]}, Hypothesis 1: {A[1]}, Hypothesis 2: {A[2]}, Hypothesis 3: {A[3]}",
    "labels and breaks": f"Premise: {A[0][:30]}\n  {A[0][30:]}\nh1: {A[1]}\nh2: {A[2]}\nh3: {A[3]}\n\nI hope this helps!".replace(
        "  ", " "
    ),
    "json": json.dumps(dict(zip(["premise", "h1", "h2", "h3"], A, strict=True))),
    "json in a fence": "```json\n"
    + json.dumps({"premise": A[0], "hypothesis_1": A[1], "hypothesis_2": A[2], "hypothesis_3": A[3]}, indent=2)
    + "\n```",
    "json list": json.dumps(list(A)),
    "json nested": json.dumps({"examples": [{"premise": A[0], "hypotheses": list(A[1:])}]}),
    "json, more nested": json.dumps({"p": A[0], "hypotheses": {"h1": A[1], "h2": A[2], "h3": A[3]}, "note": "fine"}),
    "csv": "premise,h1,h2,h3\n" + f'"{A[0]}",{A[1]},{A[2]},{A[3]}',
    "csv, other order": "h3,h2,h1,premise\n" + f'{A[3]},{A[2]},{A[1]},"{A[0]}"',
    "table": f"| Premise | Hypothesis 1 | Hypothesis 2 | Hypothesis 3 |\n|---|:--|:-:|--:|\n| {' | '.join(A)} |",
    "table without names": f"| {' | '.join(A)} |",
    "table with numbers": f"| # | p | h1 | h2 | h3 |\n|---|---|---|---|---|\n| 1 | {' | '.join(A)} |",
    "table of rows": f"| Field | Sentence |\n|---|---|\n| **Premise** | {A[0]} |\n| h1 | {A[1]} |\n| h2 | {A[2]} |\n| h3 | {A[3]} |",
    "windows lines": LINES.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_example(form: str) -> None:
    expected = tuple(sentence.rstrip(".") for sentence in A) if "without stops" in form else A
    assert read(FORMS[form]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        f"1. {', '.join(A)}\n2. {', '.join(B)}",
        f"{', '.join(A)}\n\n{', '.join(B)}",
        "\n\n".join("\n".join(one) for one in (A, B)),
        "\n\n".join(
            f"Example {n}:\nPremise: {p}\nh1: {x}\nh2: {y}\nh3: {z}" for n, (p, x, y, z) in enumerate((A, B), 1)
        ),
        json.dumps([{"premise": p, "h1": x, "h2": y, "h3": z} for p, x, y, z in (A, B)]),
        "\n".join(json.dumps({"premise": p, "h1": x, "h2": y, "h3": z}) for p, x, y, z in (A, B)),
    ],
)
def test_several_examples(text: str) -> None:
    assert read(text) == [A, B]


def test_four_lines_with_an_example_each() -> None:
    assert read("\n".join(f"{number}. {', '.join(A)}" for number in range(1, 5))) == [A] * 4
    bare = ", ".join(sentence.rstrip(".") for sentence in A)
    assert len(read("\n".join([bare] * 4))) == 4


# --- what cannot be read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("I cannot help with that.", "four sentences were asked for"),
        ("A man, old., A person is there., He is old.", "found 1 line and 3 commas|ambiguous"),
        ("a man, old, sits, a person, someone, nobody", "ambiguous"),
        ("Premise: A man sits.\nh1: A person sits.\nh3: A man stands.", "h2 missing"),
        ("Premise: A man sits.\nh1: A person sits.\nh2:\nh3: A man stands.", "h2 has no words"),
        ('{"premise": "A man sits.", "h1": "A person sits.", "h2": null, "h3": "A man stands."}', "JSON without"),
        ('{"premise": "A man sits.", "h1": "12", "h2": "A b.", "h3": "A man stands."}', "h1 has no words"),
        ("| A man sits. | A person sits. | A man stands. |", "a table row with 3 cells"),
        ("premise,h1,h2,h3\nA man, old, sits.,A person sits.,He is old.,He runs.", "a CSV record with 6 fields"),
        ("<premise>, <hypothesis 1>, <hypothesis 2>, <hypothesis 3>", "."),
    ],
)
def test_what_cannot_be_read_is_kept_with_its_reason(text: str, reason: str) -> None:
    import re

    examples, rejects = read_examples(text)
    assert examples == [] and len(rejects) == 1
    kept, why = rejects[0]
    assert re.search(reason, why)
    assert not text.strip() or kept.strip()


def test_good_lines_among_bad_ones() -> None:
    examples, rejects = read_examples(f"1. {', '.join(A)}\n2. A man, old.\n3. {', '.join(B)}")
    assert examples == [A, B]
    assert [text for text, _ in rejects] == ["2. A man, old."]


def test_a_record_becomes_candidates_and_rejects(tmp_path: Path) -> None:
    def entry(request: int, outcome: str, text: str = "", **more: Any) -> dict[str, Any]:
        return {"request": request, "outcome": outcome, "text": text, "model": "gemini-test", "reason": "", **more}

    entries = [
        entry(1, "answer", ", ".join(A)),
        entry(2, "failed"),
        entry(3, "refused", reason="SAFETY"),
        entry(4, "answer", "Two men, one", finish="MAX_TOKENS"),
        entry(2, "answer", f"{', '.join(A)}\n{', '.join(B)}"),
    ]
    candidates, rejects = parse_entries(entries)
    assert [one.id for one in candidates] == ["e0001", "e0002-1", "e0002-2"]
    assert tuple(candidates[2].sentences.values()) == B and {one.origin for one in candidates} == {"gemini-test"}
    assert [(one.request, one.reason.split(" ")[0]) for one in rejects] == [(3, "refused:"), (4, "four")]
    assert "cut off" in rejects[1].reason
    write_rejects(tmp_path / "rejects.csv", rejects)
    rows = list(csv.DictReader((tmp_path / "rejects.csv").open(encoding="utf-8")))
    assert rows[0] == {"request": "3", "reason": "refused: SAFETY", "text": ""} and rows[1]["text"] == "Two men, one"


def test_no_record(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        parse_record(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UserError, match="is empty"):
        parse_record(tmp_path / "empty.jsonl")


# --- written and read back ------------------------------------------------------------------------------------------------

NASTY = [
    "12.",
    "(3)",
    "h1:",
    "premise:",
    '"no, thanks"',
    "“so”",
    "it's",
    "Mr. Li",
    "a|b",
    "*",
    "**bold**",
    "<b>",
    "{x}",
    "[1]",
    "\\",
    "5,000",
    ";",
    "–",
    "- a",
    "`ls`",
    "ß",
    "日本",
]
PLAIN = ["a", "man", "old", "sits", "on the", "bench", "while", "12", "red-brown", "it's", "Anna"]


def sentences(words: list[str], pauses: list[str]) -> st.SearchStrategy[str]:
    """A capital first, a full stop last, anything between."""

    def build(parts: list[tuple[str, str]], stop: str) -> str:
        inner = "".join(word + pause for word, pause in parts).rstrip(" ,;")
        return " ".join(f"The {inner} end{stop}".split())

    return st.builds(
        build, st.lists(st.tuples(st.sampled_from(words), st.sampled_from(pauses)), max_size=6), st.sampled_from(".!?")
    )


nasty = st.tuples(*[sentences(PLAIN + NASTY, [" ", ", ", "; ", " "])] * 4)
plain = st.tuples(*[sentences(PLAIN, [" ", ", ", " "])] * 4)


def write_csv(rows: list[Fields], quoting: int) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=quoting, lineterminator="\n").writerows([("premise", "h1", "h2", "h3"), *rows])
    return buffer.getvalue()


def write_labels(row: Fields) -> str:
    names = ("**Premise:**", "- h1:", "Hypothesis 2 (entailed):", "4. h3 =")
    return "\n".join(f"{name} {sentence}" for name, sentence in zip(names, row, strict=True))


@given(st.lists(nasty, min_size=1, max_size=3))
def test_json_round_trip(rows: list[Fields]) -> None:
    assert read(json.dumps([dict(zip(["premise", "h1", "h2", "h3"], row, strict=True)) for row in rows])) == rows
    assert read("```json\n" + "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n```") == rows


@given(st.lists(nasty, min_size=1, max_size=3))
def test_table_round_trip(rows: list[Fields]) -> None:
    lines = ["| Premise | h1 | h2 | h3 |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(sentence.replace("|", "\\|") for sentence in row) + " |" for row in rows]
    assert read("\n".join(lines)) == rows


@given(st.lists(nasty, min_size=1, max_size=3))
def test_labelled_round_trip(rows: list[Fields]) -> None:
    assert read("\n\n".join(map(write_labels, rows))) == rows


@given(st.lists(plain, min_size=1, max_size=3), st.sampled_from(["", "12. ", "3) ", "- "]))
def test_commas_as_asked_round_trip(rows: list[Fields], mark: str) -> None:
    """The form of the paper's prompt, with commas inside the sentences and between them."""
    assert read("\n".join(mark + ", ".join(row) for row in rows)) == rows


COMMAS = (*A[:3], "The man, Anna, ends.")


@example([A, COMMAS, (*A[:2], "The a, 12 end.", "The a, Anna end.")], ("{}. ", 12))
@given(st.lists(plain, min_size=1, max_size=3), st.sampled_from([("{}. ", 12), ("{}) ", 1), ("- ", 1), ("", 1)]))
def test_line_blocks_round_trip(rows: list[Fields], mark: tuple[str, int]) -> None:
    form, first = mark
    blocks = ["\n".join(form.format(first + place) + sentence for place, sentence in enumerate(row)) for row in rows]
    assert read("\n\n".join(blocks)) == rows


@given(plain, st.sampled_from(["<>", "[]", "“”"]))
def test_delimited_round_trip(row: Fields, marks: str) -> None:
    assert read(", ".join(f"{marks[0]}{sentence}{marks[1]}" for sentence in row)) == [row]


@example([A, B, ("The premise: end.", *A[1:])], csv.QUOTE_MINIMAL)
@given(st.lists(nasty, min_size=1, max_size=3), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_csv_round_trip(rows: list[Fields], quoting: int) -> None:
    assert read(write_csv(rows, quoting)) == rows


@pytest.mark.parametrize("mark", ["*", "[", "{", "|", "<", '"', "a, ", "p ", "- ", "A., ", "1. ", "> ", "h1: "])
def test_a_model_that_repeats_itself_for_ever(mark: str) -> None:
    """Careless patterns take minutes on this."""
    examples, rejects = read_examples(mark * 20_000)
    assert examples == [] and len(rejects) >= 1


@given(st.text(max_size=200))
def test_any_text_is_read_or_rejected(text: str) -> None:
    examples, rejects = read_examples(text)
    assert examples or rejects
    assert all(field.strip() == field and "\n" not in field and field for example in examples for field in example)
