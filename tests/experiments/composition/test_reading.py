"""Files of candidates, reviews, and the authors' released set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from subspaces.errors import UserError
from subspaces.experiments.composition.authors import read_authors
from subspaces.experiments.composition.candidates import (
    CANDIDATE_COLUMNS,
    DISCARD,
    KEEP,
    REASONS,
    REVIEW_COLUMNS,
    UNGRAMMATICAL_OR_AMBIGUOUS,
    Candidate,
    Reviewed,
    kept,
    load_candidates,
    load_reviewed,
    write_candidates,
    write_reviewed,
)
from subspaces.sources.origins import mirror_folder

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "src/subspaces/experiments/composition/candidates.csv"
ONE = Candidate("c1", 'A man, "old Joe",\nsits.', "A man sits.", "Joe is seated.", "Joe stands.", "here, by hand")
TWO = Candidate("c2", "Ein Mädchen läuft.", "A girl runs.", "Someone runs.", "A girl sleeps.", "here")


def test_candidates_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    write_candidates(path, [ONE, TWO])
    assert load_candidates(path) == [ONE, TWO]
    content = path.read_bytes()
    assert b"\r" not in content and content.endswith(b"\n") and "Mädchen" in content.decode("utf-8")
    assert (
        content.decode().splitlines()[0]
        == "id,premise,h1,h2,h3,origin,decision,reason,note"
        == ",".join(CANDIDATE_COLUMNS)
    )
    assert kept(load_reviewed(path)) == []


def test_reviews_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    rows = [
        Reviewed(ONE, KEEP, "", "fine, I think", ("h1-short:2", "article:a apple")),
        Reviewed(TWO, DISCARD, UNGRAMMATICAL_OR_AMBIGUOUS),
    ]
    write_reviewed(path, rows)
    first = path.read_bytes()
    assert load_reviewed(path) == rows and kept(load_reviewed(path)) == [ONE] and load_candidates(path) == [ONE, TWO]
    assert (
        first.decode().splitlines()[0]
        == "id,premise,h1,h2,h3,origin,decision,reason,note,flags"
        == ",".join(REVIEW_COLUMNS)
    )
    write_reviewed(path, load_reviewed(path))
    assert path.read_bytes() == first


def test_other_programs_write_csv_too(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes("\ufeffh3,h2,h1,premise,origin,id\r\nD.,C.,B.,A.,me,c9\r\n\r\n".encode())
    assert load_candidates(path) == [Candidate("c9", "A.", "B.", "C.", "D.", "me")]


HEAD = "id,premise,h1,h2,h3,origin,decision,reason,note\n"
ROW = "c1,A b.,B.,C.,D.,me,,,\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEAD, "holds no candidates"),
        (HEAD.replace("h3,", ""), r"lacks the column h3\."),
        (HEAD.replace("note", "notes"), "column 'notes' is not known"),
        (HEAD.replace("note", "h1"), "column 'h1' appears twice"),
        (HEAD + ROW + 'c2,"A\nb.",B.,,D.,me,,,\n', "line 3: h2 is empty"),
        (HEAD + 'c0,"A\nb.",B.,C.,D.,me,,,\n' + "c2,A.,B.,C., ,me,,,\n", "line 4: h3 is empty"),
        (HEAD + ROW + ROW, "line 3: the id 'c1' is taken by line 2"),
        (HEAD + ROW + "c2,A, b.,B.,C.,D.,me,,,\n", "line 3: 10 fields instead of 9"),
        (HEAD + ROW + "c2,A b.\n", "line 3: 2 fields instead of 9"),
        (HEAD + ROW + 'c2,"A" b.,B.,C.,D.,me,,,\n', "line 3: not valid CSV"),
        (HEAD + ROW + 'c2,"A b.,B.,C.,D.,me,,,\n', "line 3: not valid CSV"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(content, encoding="utf-8")
    for load in (load_candidates, load_reviewed):
        with pytest.raises(UserError, match=rf"c\.csv.*{said}"):
            load(path)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        load_candidates(tmp_path / "none.csv")
    with pytest.raises(UserError, match="or is a folder"):
        load_candidates(tmp_path)
    (tmp_path / "latin.csv").write_bytes(HEAD.encode() + "é".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8"):
        load_candidates(tmp_path / "latin.csv")


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ("maybe,,", "'maybe' must be keep, discard or empty"),
        ("Keep,,", "'Keep' must be keep"),
        ("discard,,", "needs one of the reasons"),
        ("discard,ugly,", "found 'ugly'"),
        ("keep,wrong-label,", "only a discarded candidate has a reason"),
        (",wrong-label,", "only a discarded candidate has a reason"),
    ],
)
def test_decisions_are_checked(tmp_path: Path, decision: str, said: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEAD + ROW + f"c2,A b.,B.,C.,D.,me,{decision}\n")
    with pytest.raises(UserError, match=rf"r\.csv, line 3: .*{said}"):
        load_reviewed(path)
    assert len(load_candidates(path)) == 2


def test_a_review_needs_the_columns_of_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("id,premise,h1,h2,h3,origin\nc1,A b.,B.,C.,D.,me\n")
    assert len(load_candidates(path)) == 1
    with pytest.raises(UserError, match="lacks the columns decision, reason, note"):
        load_reviewed(path)


def test_the_papers_three_reasons() -> None:
    assert len(REASONS) == 3
    label, context, language = REASONS.values()
    assert (
        "label" in label
        and "contradict" in context
        and "theme" in context
        and "ungrammatical" in language
        and "refers" in language
    )


@pytest.mark.skipif(not SHIPPED.exists(), reason="no candidates are shipped")
def test_the_shipped_set_can_be_read() -> None:
    assert len(load_candidates(SHIPPED)) == len(load_reviewed(SHIPPED)) > len(kept(load_reviewed(SHIPPED))) > 0


# --- the authors' file ----------------------------------------------------------------------------------------------------

TOP = "premise.hypothesis.hypothesis.label\n"
PAIR = "A man, old, sits.A man is there.He sits.0\nA man, old, sits.A man is there.He runs.2\n"


@pytest.fixture(scope="module")
def released() -> Path:
    folder = mirror_folder(ROOT)
    if folder is None or not (folder / "composition/composite_entailment.txt").is_file():
        pytest.skip("needs the mirror: set SUBSPACES_MIRROR, or put it in ../shared/data beside the project")
    return folder / "composition/composite_entailment.txt"


def test_the_released_set_has_150_premises(released: Path) -> None:
    candidates = read_authors(released)
    assert len(candidates) == 150 and len({one.premise for one in candidates}) == 150
    assert [candidates[0].id, candidates[-1].id] == ["a001", "a150"] and {one.origin for one in candidates} == {
        "authors"
    }
    assert candidates[0].h3 == "People sitting sitting directly on the grass", "as released, doubled word and all"
    text = released.read_text()
    for one in candidates:
        assert f"{one.premise}.{one.h1}.{one.h2}.0" in text
        assert f".{one.h1}.{one.h3}.2" in text


def test_rows_are_paired_by_premise_not_by_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    first, second = PAIR.splitlines()
    other = ["A dog runs.An animal is there.It runs.0 ", "A dogruns.An animal is there.It sleeps.2"]
    path.write_text(TOP + "\n".join([first, other[1], second, "", other[0]]))
    assert read_authors(path) == [
        Candidate("a001", "A man, old, sits", "A man is there", "He sits", "He runs", "authors"),
        Candidate("a002", "A dog runs", "An animal is there", "It runs", "It sleeps", "authors"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "line 1: expected"),
        (PAIR, "line 1: expected"),
        (TOP, "holds no rows"),
        (TOP + PAIR + "A dog.An animal.0\n", "line 4: .*found 3 fields"),
        (TOP + PAIR + "A dog.An animal.It runs.It sits.0\n", "line 4: .*found 5 fields"),
        (TOP + PAIR + "A dog..It runs.0\n", "line 4: the first hypothesis is empty"),
        (TOP + PAIR + "A dog.An animal.It runs.1\n", "line 4: the label must be 0"),
        (TOP + PAIR + "A dog.An animal.It runs.0\n", "line 4: h3 is missing"),
        (TOP + "A dog.An animal.It runs.2\n" + PAIR, "line 2: h2 is missing"),
        (TOP + PAIR + PAIR, "line 4: this premise has label 0 on line 2"),
        (TOP + PAIR.replace("is there.He runs", "is gone.He runs"), "line 3: its first hypothesis is 'A man is gone'"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        read_authors(path)
    assert re.search(rf"a\.txt.*{said}", str(caught.value))
    with pytest.raises(UserError, match="subspaces fetch composition"):
        read_authors(tmp_path / "none.txt")
