"""The page says what the files say, all of it, as text; and the same files give the same bytes."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from subspaces.errors import UserError
from subspaces.pipeline.artefact import carries
from subspaces.report import claims
from subspaces.report.numbers import frame as numbers_frame_of
from subspaces.report.page import provenance
from subspaces.report.page.build import ASSETS, asset, asset_digests, build_page
from subspaces.report.page.content import HEADLINE, Table, amount, duration, load_numbers, signed
from subspaces.report.registry import number, numbers
from subspaces.serve.commands import serve
from tests.report.elements import Page
from tests.report.made_results import EXPECTED, FIGURES, MEASURED, REASON, make_results

ROOT = Path(__file__).resolve().parents[2]
KEY = "9" * 64
SHORT, OTHER = "reconstruction/subspace-128/nouns-map", "reconstruction/subspace-128/verbs-map"
ROW = "reconstruction/subspace-128"
SEARCH_PAGE = "http://127.0.0.1:8000"


def build(folder: Path, frame: pd.DataFrame, **rest) -> Page:
    out = folder / "results/report.html"
    options = {"figures": FIGURES, "citation_file": ROOT / "CITATION.cff", "deviations": folder / "docs/deviations.md"}
    build_page(frame, folder, out, KEY, **(options | rest))
    return Page(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, pd.DataFrame, Page]:
    folder = tmp_path_factory.mktemp("results")
    frame = make_results(folder)
    return folder, frame, build(folder, frame)


@pytest.fixture()
def fresh(made, tmp_path) -> tuple[Path, pd.DataFrame]:
    """A copy that a test may change, without the page."""
    folder, frame, _ = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "results/report.html").unlink()
    return tmp_path, frame.copy()


def edit(frame: pd.DataFrame, identifier: str, **changes) -> pd.DataFrame:
    """The frame with other values for one number."""
    rows = [row | (changes if row["id"] == identifier else {}) for row in frame.to_dict("records")]
    return pd.DataFrame(rows, dtype=object)


def evidence_of(frame: pd.DataFrame, identifier: str) -> list[str]:
    return frame.set_index("id").at[identifier, "evidence"]


# --- content --------------------------------------------------------------------------------------------------------------


def test_every_number_has_one_cell_and_one_provenance(made):
    _, _, page = made
    for kind in ("td", "details"):
        found = [
            one.attributes["data-number"]
            for one in page.elements
            if one.tag == kind and "data-number" in one.attributes
        ]
        assert sorted(found) == sorted(numbers())
        assert len(found) == len(numbers())


def test_a_cell_shows_ours_the_papers_the_difference_and_the_verdict(made):
    _, _, page = made
    paper = number(SHORT).value
    text = page.one("td", data_number=SHORT).text
    mean = sum(MEASURED[SHORT]) / 3
    assert f"{paper + mean:.1f} ± 1.3" in text
    assert f"paper [{paper:.1f}]" in text
    assert f"−{-mean:.1f}" in text
    assert "short" in text
    assert page.one("td", data_number=SHORT).attributes["data-verdict"] == "short"


def test_another_scale_is_not_compared(made):
    _, _, page = made
    cell = page.one("td", data_number=OTHER)
    assert cell.attributes["data-verdict"] == "other scale"
    changes = [one for one in page.elements if one.attributes.get("class") == "change"]
    assert len(changes) == 3  # the three comparable ones
    assert "Difference" not in page.one("details", data_number=OTHER).text
    assert "not comparable" in page.one("details", data_number=OTHER).text


def test_numbers_that_were_not_run_say_why_and_what_to_do(made):
    _, _, page = made
    for identifier in numbers():
        if identifier not in MEASURED:
            told = page.one("details", data_number=identifier).text
            assert f"{REASON} {identifier}" in told
            assert "This number has no result at laptop scale" in told


def test_provenance_has_seeds_settings_digests_times_machine_and_origin(made):
    _, frame, page = made
    told = page.one("details", data_number=SHORT).text
    for seed in range(3):
        assert f"Seed {seed}" in told
        assert evidence_of(frame, SHORT)[seed] in told
        assert f"{seed}" * 64 in told
    for piece in (
        "an abacus",
        "mirror",
        "d" * 64,
        "e" * 64,
        "21 min",
        "epochs",
        "shared",
        "laptop",
        "whole hierarchy",
    ):
        assert piece in told, piece
    assert repr(float(frame.set_index("id").at[SHORT, "value"])) in told


def test_a_number_can_be_made_again_by_a_command_of_its_own(made):
    _, _, page = made
    assert (
        f"snakemake --cores 2 --forceall -- results/numbers/{SHORT}.json" in page.one("details", data_number=SHORT).text
    )
    assert f"--force -- results/numbers/{SHORT}.json" in page.one("details", data_number=SHORT).text


def test_commands_name_another_working_folder_and_quote_it():
    line = provenance.from_sources("snli/a/b", "quick", "runs/my quick; rm x")
    assert shlex.split(line)[3:7] == ["--directory", "runs/my quick; rm x", "--config", "scale=quick"]
    assert "--directory" not in provenance.from_sources("snli/a/b", "laptop", "")


def test_the_headline_counts_verdicts_and_names_scale_and_seeds(made):
    _, _, page = made
    overview = page.one("section", id="overview").text
    for verdict, count in EXPECTED.items():
        assert f"{count} {verdict}" in overview
    assert f"4 of the {len(numbers())} numbers" in overview
    assert "at laptop scale" in overview
    assert "1 to 3" in overview
    cards = [one for one in page.all("li") if "class" in one.attributes and "id" not in one.attributes]
    assert len(cards) == len(HEADLINE)
    assert all(f"{number(identifier).value:g}" in card.text for identifier, card in zip(HEADLINE, cards, strict=True))


def test_counts_on_the_filters_are_those_of_the_numbers(made):
    _, _, page = made
    shown = {
        one.attributes["data-verdict"]: int(one.text.split()[-1])
        for one in page.all("button")
        if "data-verdict" in one.attributes
    }
    assert shown == EXPECTED


def test_the_contents_name_every_table(made):
    _, _, page = made
    words = page.one("nav").text
    for title in (
        "1 Soft projectors",
        "2 WordNet reconstruction",
        "7 Encoding time by batch size",
        "9 SNLI accuracy by λ",
    ):
        assert title in words


def test_nothing_run_is_said_too(fresh):
    folder, frame = fresh
    for identifier in MEASURED:
        frame = edit(frame, identifier, value=None, sd=None, seeds=0, verdict="not run")
    assert f"None of the {len(numbers())} numbers" in build(folder, frame).one("section", id="overview").text


def test_figures_are_inside_and_missing_ones_are_said_to_be_missing(made):
    folder, _, page = made
    image = page.one("img")
    start, _, data = image.attributes["src"].partition(",")
    assert start == "data:image/webp;base64"
    shown, drawn = (Image.open(file) for file in (BytesIO(base64.b64decode(data)), folder / "figures/overview.png"))
    assert shown.size == drawn.size and shown.convert("RGB").tobytes() == drawn.convert("RGB").tobytes()
    assert len(image.attributes["alt"]) > 40
    assert "Missing: figures/rank_vs_descendants.png" in page.one("figure", id="figure-rank_vs_descendants").text


def test_the_pointer_of_a_cache_is_not_a_picture(fresh):
    folder, frame = fresh
    (folder / "figures/overview.png").write_text("version 1\noid sha256:12\n")
    assert not build(folder, frame).all("img")


def test_deviations_extra_tables_and_citation_are_there(made):
    _, _, page = made
    assert page.one("h2", id="deviations-title").text == "What differs"
    assert [one.text for one in page.all("li") if one.text in ("one", "two")] == ["one", "two"]
    assert "Projector" in page.one("section", id="table-soft_projectors").text
    cite = page.one("section", id="cite").text
    assert "@inproceedings{moreira2026native," in cite
    assert "@software{" in cite


def test_missing_files_are_named(fresh):
    folder, frame = fresh
    (folder / "results/tables/soft_projectors.md").unlink()
    path = evidence_of(frame, SHORT)[1]
    (folder / path).unlink()
    page = build(folder, frame, deviations=None, citation_file=None)
    assert "soft_projectors.md is missing" in page.one("section", id="table-soft_projectors").text
    assert f"The evaluation file {path} is missing" in page.one("details", data_number=SHORT).text
    assert "is missing" in page.one("section", id="deviations").text
    assert "See CITATION.cff" in page.one("section", id="cite").text


# --- claims, rows, seeds --------------------------------------------------------------------------------------------------


def test_claims_come_first_with_verdict_evidence_and_links(made):
    folder, frame, page = made
    assert next(one.attributes["id"] for one in page.all("section") if one.parents[-1] == "main") == "claims"
    judged = claims.judge(frame, folder)
    assert len(judged) >= 16
    for claim in judged:
        shown = page.one("li", id=f"claim-{claim.name}")
        assert claim.title in shown.text and claim.verdict in shown.text and claim.evidence in shown.text
    links = [one.attributes["href"] for one in page.all("a") if one.attributes["href"].startswith("#number=")]
    assert {link.removeprefix("#number=") for link in links} == {one for claim in judged for one in claim.numbers}


def test_a_row_shows_settings_and_training_curves(made):
    _, _, page = made
    told = page.one("details", data_row_id=ROW).text
    assert "sampling" in told and "validation map, against epoch, 0 to 3" in told
    assert all(end in told for end in ("60.00", "87.00", "0.250", "1.000"))
    assert len(page.all("polyline")) == 2 * sum(len(some) for some in MEASURED.values())
    assert "This row has no evaluation here" in page.one("details", data_row_id="snli/mpnet-mlp").text
    names = [one.attributes["data-row-id"] for one in page.all("button") if "data-row-id" in one.attributes]
    assert len(names) == len(set(names)) == len([one for one in page.all("details") if "data-row-id" in one.attributes])


def test_a_record_without_a_curve_and_no_record_are_said(fresh):
    """The evaluation of the verbs has no history: its curve is the one in the record of its model."""
    folder, frame = fresh
    (record,) = folder.glob("results/models/**/*.json")
    assert "No curve recorded" not in build(folder, frame).one("details", data_row_id=ROW).text
    content = json.loads(record.read_text())
    del content["seeds"][0]["curve"]
    record.write_text(json.dumps(content))
    assert build(folder, frame).one("details", data_row_id=ROW).text.count("No curve recorded") == 1
    record.unlink()
    assert build(folder, frame).one("details", data_row_id=ROW).text.count("No curve recorded") == 1


def test_the_page_of_the_search_is_linked_where_serve_answers(made):
    _, _, page = made
    port = inspect.signature(serve).parameters["port"].default
    assert page.one("section", id="try").text.count("subspaces serve") == 1
    assert [one.text for one in page.all("a", href=f"http://127.0.0.1:{port}")] == [SEARCH_PAGE]


def test_seeds_are_dots_on_the_axis_of_their_column(made):
    folder, frame, page = made
    assert len(page.all("circle")) == sum(len(some) for some in MEASURED.values())
    loaded = load_numbers(frame, folder)
    table = Table("reconstruction", [one for one in loaded if one.table == "reconstruction"])
    chosen = {one.id: one for one in table.numbers}
    dots = table.dots(chosen[SHORT])
    assert [float(at) for at in dots["seeds"]] == sorted((float(at) for at in dots["seeds"]), reverse=True)
    assert all(4 <= float(at) <= 92 for at in [*dots["seeds"], dots["paper"]])
    assert float(dots["seeds"][0]) < float(dots["paper"])
    assert table.dots(chosen["reconstruction/poincare-10/nouns-map"]) is None


def test_every_verdict_is_explained_beside_the_tables(made):
    _, _, page = made
    told = page.one("section", id="tables").text
    assert "Verdicts: " in told and all(name in told for name in EXPECTED)


# --- same files, same bytes -----------------------------------------------------------------------------------------------


def test_the_same_files_give_the_same_bytes_in_any_folder(made, tmp_path):
    _, _, page = made
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert build(other, make_results(other)).source == page.source
    assert str(tmp_path) not in page.source


def test_the_page_carries_its_key_and_the_digests_of_its_assets_follow_them(made):
    folder, _, _ = made
    assert carries(folder / "results/report.html", KEY)
    assert asset_digests() == {name: hashlib.sha256(asset(name).encode()).hexdigest() for name in ASSETS}


# --- data is never markup -------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-->]]></style></script><svg onload=alert(1)>",
    "</script><script>alert(1)//",
    "line\u2028and\u2029paragraph",
    "nul\x00, turned \u202e round, half \ud800 a pair",
    "$policy ${script} {{x}} %s",
    "[click](javascript:alert(1)) `<b>` **<i>** $<u>$ <!-- <a> -->",
    "| a | <td> |\n|---|---|\n| <tr> | ![x](http://a/b) |",
)


def test_hostile_strings_stay_text(fresh):
    folder, frame = fresh
    harmless = build(folder, frame)
    poison = "\n".join(HOSTILE)
    change = {poison: poison, "list": [poison, {poison: poison}]}
    frame = edit(frame, SHORT, reason=poison, scale=poison, unit=poison)
    other = next(one for one in numbers() if one not in MEASURED)
    frame = edit(frame, other, reason=poison)
    path = folder / evidence_of(frame, SHORT)[0]
    spoiled = {"machine": change, "timing": change, "seed": poison, "settings": change, "data": change, "key": poison}
    path.write_text(json.dumps(json.loads(path.read_text()) | spoiled))
    safe = poison.encode("utf-8", "replace").decode()
    (folder / "docs/deviations.md").write_text(f"# {HOSTILE[0]}\n\n{safe}\n")
    (folder / "results/tables/soft_projectors.md").write_text(safe)
    page = build(folder, frame, directory=poison.replace("\x00", ""))

    assert len(page.all("script")) == len(page.all("style")) == 1
    assert page.one("script").text == asset("page.js")
    allowed = {"strong", "em", "code", "a", "math"}
    assert {one.tag for one in page.elements} - {one.tag for one in harmless.elements} <= allowed
    attributes = {name for one in page.elements for name in one.attributes}
    assert attributes <= {name for one in harmless.elements for name in one.attributes}
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert len(page.all("img")) == 1
    assert all(one.attributes["href"].startswith("#") for one in page.all("a") if one.text != SEARCH_PAGE)
    for line in HOSTILE[:5]:
        assert line in page.one("details", data_number=SHORT).text
        assert line in page.one("details", data_number=other).text
    assert not set("\x00\u202e\ud800") & set(page.source)


def test_the_policy_allows_these_two_blocks_and_nothing_else(made):
    _, _, page = made
    (meta,) = page.all("meta", http_equiv="Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in meta.attributes["content"].split("; "))
    for kind, rule in (("script", "script-src"), ("style", "style-src")):
        block = page.one(kind).text
        assert f"<{kind}>{block}</{kind}>" in page.source
        assert rules.pop(rule) == f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'"
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    position = page.source.index("Content-Security-Policy")
    assert position < page.source.index("<style>") < page.source.index("<script>")


def test_nothing_is_loaded_from_anywhere(made):
    _, _, page = made
    for one in page.elements:
        for name in ("src", "href", "action", "poster", "data", "srcset"):
            assert one.attributes.get(name, "#").startswith(("#", "data:", SEARCH_PAGE)), one
    assert "url(" not in asset("page.css") and "@import" not in asset("page.css")


# --- structure ------------------------------------------------------------------------------------------------------------


def test_landmarks_headings_headers_and_names(made):
    _, _, page = made
    for landmark in ("main", "nav", "header", "footer", "h1"):
        assert len(page.all(landmark)) == 1
    assert page.one("html").attributes["lang"] == "en-GB"
    assert all(one.attributes.get("scope") in ("row", "col") for one in page.all("th"))
    assert all(one.text.strip() for one in page.all("button"))
    assert all(one.attributes.get("type") == "button" for one in page.all("button"))
    ids = Counter(one.attributes["id"] for one in page.elements if "id" in one.attributes)
    assert set(ids.values()) == {1}
    for one in page.elements:
        if "aria-labelledby" in one.attributes:
            assert one.attributes["aria-labelledby"] in ids
        if one.tag == "a":
            target = one.attributes["href"].removeprefix("#")
            assert target in ids or target.removeprefix("number=") in numbers() or target == SEARCH_PAGE
        if one.tag in ("select", "input"):
            assert "label" in one.parents
    assert page.one("p", id="filter-count").attributes["role"] == "status"


# --- wrong values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": "<b>1</b>"}, "not a number"),
        ({"value": True}, "not a number"),
        ({"value": float("inf")}, "not a number"),
        ({"sd": "0"}, "not a number"),
        ({"paper": None}, "paper's value is not a number"),
        ({"verdict": "excellent"}, "is not a verdict"),
        ({"verdict": "not run"}, "contradict"),
        ({"value": float("nan")}, "contradict"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(fresh, changes, message):
    folder, frame = fresh
    with pytest.raises(UserError, match=message) as caught:
        build(folder, edit(frame, SHORT, **changes))
    assert f"snakemake --cores 2 -- results/numbers/{SHORT}.json" in str(caught.value)
    assert not (folder / "results/report.html").exists()


def test_a_missing_number_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"results/numbers/reconstruction.json is missing"):
        numbers_frame_of(tmp_path)


# --- small things ---------------------------------------------------------------------------------------------------------


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [signed(value, 1) for value in (1.26, -1.26, 0.04, -0.04)] == ["+1.3", "−1.3", "0.0", "0.0"]
    assert amount(-2.0, 0.25, 2) == "−2.00 ± 0.25"


def test_durations():
    shown = [duration(seconds) for seconds in (0.25, 12.4, 119, 125, 3599, 7199, 7201, 13_680)]
    assert shown == ["0.2 s", "12 s", "119 s", "2 min", "60 min", "2 h 0 min", "2 h 0 min", "3 h 48 min"]


def test_the_committed_results_have_a_page_of_less_than_4_mb(tmp_path):
    out = tmp_path / "page.html"
    build_page(numbers_frame_of(ROOT), ROOT, out, KEY, deviations=ROOT / "docs/deviations.md")
    page = Page(out.read_text(encoding="utf-8"))
    assert len([one for one in page.all("td") if "data-number" in one.attributes]) == len(numbers())
    assert not [one.text for one in page.all("code") if one.text.startswith("\\")], (
        "a formula of Table 1 is shown as code"
    )
    assert out.stat().st_size < 4e6


@pytest.mark.workflow
def test_the_command_plans_everything_behind_the_number(tmp_path):
    """As printed, with --dry-run added."""
    words = shlex.split(provenance.from_sources("reconstruction/subspace-64/verbs-map", "quick", str(tmp_path)))
    program = [str(Path(sys.executable).parent / words[0]), "--dry-run", *words[1:]]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    planned = {line.split()[1].rstrip(":") for line in lines if line.startswith(("rule ", "localrule "))}
    assert planned >= {
        "fetch_source",
        "build_hierarchy",
        "train_reconstruction",
        "evaluate_reconstruction",
        "write_reconstruction_numbers",
    }
