"""The page in a real browser, from a file, without a network: what a reader sees, presses, copies and hears."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

import pytest

from subspaces.report.page import provenance
from subspaces.report.registry import numbers, of_table
from tests.browser.conftest import SPOILED
from tests.report.made_results import EXPECTED

ALL = len(numbers())

pytestmark = pytest.mark.browser
BETTER = "reconstruction/subspace-64/nouns-rho"
ROW = "reconstruction/subspace-64"
ENTER, ESCAPE, TAB, CONTROL = "\ue007", "\ue00c", "\ue004", "\ue009"

CONTRAST = """
const parts = (colour) => { const found = colour.match(/[\\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
const light = ([r, g, b]) => [r, g, b].map((c) => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; })
  .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
const ground = (node) => {
  for (let one = node; one; one = one.parentElement) {
    const colour = parts(getComputedStyle(one).backgroundColor);
    if (colour[3] === 1) return colour;
    if (colour[3] > 0) return null;
  }
  return [255, 255, 255, 1];
};
const weak = [];
let seen = 0;
for (const node of document.querySelectorAll('body *')) {
  if (!node.checkVisibility()) continue;
  const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
  const style = getComputedStyle(node), box = node.getBoundingClientRect();
  if (!own || box.width < 2 || box.height < 2 || style.visibility !== 'visible') continue;
  const back = ground(node), front = parts(style.color);
  seen += 1;
  const [high, low] = [light(front), light(back ?? front)].sort((a, b) => b - a);
  const ratio = (high + .05) / (low + .05);
  if (ratio < 4.5) weak.push([node.tagName, node.className, ratio.toFixed(2), node.textContent.slice(0, 30)]);
}
return [seen, weak];
"""


Script = Callable[..., Any]


@pytest.fixture()
def visit(driver, made) -> Callable[..., Script]:
    """A function that opens the made page, or another, and returns what runs a script in it."""

    def visit(state: str = "", width: int = 1360, height: int = 900, address: str = made, **features: str) -> Script:
        driver.get("about:blank")
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        wanted = {"scheme": "light", "motion": "no-preference"} | features
        names = {"scheme": "prefers-color-scheme", "motion": "prefers-reduced-motion"}
        media = [{"name": names[name], "value": value} for name, value in wanted.items()]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": media})
        for kind in ("browser", "performance"):
            driver.get_log(kind)  # what was before is not this visit's
        driver.get(address + state)
        return driver.execute_script

    return visit


@pytest.fixture()
def page(visit) -> Script:
    return visit()


def shown(page: Script) -> set[str]:
    """The numbers that can be seen in the tables."""
    cells = "[...document.querySelectorAll('td[data-number]')]"
    return set(page(f"return {cells}.filter(c => c.firstElementChild.offsetHeight).map(c => c.dataset.number)"))


def press(driver, *keys: str) -> None:
    driver.switch_to.active_element.send_keys(*keys)


def focus(page: Script, selector: str) -> None:
    page("document.querySelector(arguments[0]).focus()", selector)


def state_of(driver) -> dict[str, list[str]]:
    return parse_qs(driver.current_url.partition("#")[2])


def count(page: Script) -> str:
    return page("return document.getElementById('filter-count').textContent")


def open_proof(driver, page: Script, identifier: str) -> None:
    focus(page, f"td[data-number='{identifier}'] button")
    press(driver, ENTER)


# --- loading --------------------------------------------------------------------------------------------------------------


def test_it_loads_quietly_and_asks_the_network_for_nothing(driver, page):
    assert driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert any(address.startswith("file:") for address in asked)
    assert all(address.startswith(("file:", "data:", "about:")) for address in asked), asked


def test_every_number_is_there(page):
    assert shown(page) == set(numbers())
    assert count(page) == f"{ALL} of {ALL} numbers shown"


def test_the_policy_is_in_force(driver, page):
    """A script that is not the page's own does not run: the browser refuses it, and says so."""
    page("const s = document.createElement('script'); s.textContent = 'window.hurt = 2'; document.body.append(s)")
    assert page("return window.hurt") is None
    assert "Content Security Policy" in str(driver.get_log("browser"))


def test_hostile_strings_are_text(driver, page):
    open_proof(driver, page, SPOILED)
    assert "<script>window.hurt=1</script>" in page("return document.getElementById('proof-content').textContent")
    counts = "document.images.length, document.scripts.length, document.querySelectorAll('[onload], [onerror]').length"
    assert page(f"return [window.hurt, {counts}]") == [None, 1, 1, 0]
    assert driver.get_log("browser") == []


# --- filter ---------------------------------------------------------------------------------------------------------------


def test_filter_by_verdict_with_the_keyboard(driver, page):
    focus(page, "button[data-verdict='better']")
    press(driver, " ")
    assert shown(page) == {BETTER}
    assert count(page) == f"1 of {ALL} numbers shown"
    focus(page, "button[data-verdict='short']")
    press(driver, ENTER)
    assert len(shown(page)) == EXPECTED["better"] + EXPECTED["short"]
    pressed = page(
        "return [...document.querySelectorAll('button[aria-pressed=true][data-verdict]')].map(b => b.dataset.verdict)"
    )
    assert set(pressed) == {"better", "short"}
    assert set(state_of(driver)["verdict"]) == {"better", "short"}


def test_filter_by_table_and_words_and_nothing_left(driver, page):
    page("const s = document.getElementById('filter-table'); s.value = 'snli'; s.dispatchEvent(new Event('change'))")
    assert shown(page) == {one.id for one in of_table("snli")}
    visible = page("return [...document.querySelectorAll('section.table')].filter(s => s.offsetHeight).map(s => s.id)")
    assert visible == ["table-snli"]
    focus(page, "#filter-words")
    press(driver, "SPH 3-way")
    assert shown(page) == {
        one.id for one in of_table("snli") if "subspace" in one.row and one.column == "accuracy-3way"
    }
    heads = page(
        "return [...document.querySelectorAll('#table-snli thead th')].filter(t => t.offsetHeight).map(t => t.textContent)"
    )
    assert heads == ["3-way ↑"]
    press(driver, " nonsense")
    assert shown(page) == set()
    assert count(page) == f"0 of {ALL} numbers shown"
    assert page("return document.getElementById('filter-none').offsetHeight > 0")
    page("document.getElementById('filter-clear').click()")
    assert shown(page) == set(numbers())


def test_the_state_is_in_the_address_and_comes_back(driver, page, visit):
    page("document.querySelector(\"button[data-verdict='not run']\").click()")
    page(
        "const s = document.getElementById('filter-table'); s.value = 'composition'; s.dispatchEvent(new Event('change'))"
    )
    focus(page, "#filter-words")
    press(driver, "negation & <b>")
    press(driver, *"\ue003" * len(" & <b>"))
    before = shown(page)
    assert before == {one.id for one in of_table("composition") if one.column == "auc-negation"}
    driver.refresh()
    assert shown(page) == before
    assert page(
        "return [document.getElementById('filter-table').value, document.getElementById('filter-words').value]"
    ) == [
        "composition",
        "negation",
    ]
    visit("#verdict=nothing&table=<b>&words=&number=../../x")
    assert shown(page) == set(numbers())
    assert driver.get_log("browser") == []


def test_links_within_the_page_work_with_and_without_a_filter(driver, page, visit):
    page("document.querySelector(\"nav a[href='#table-snli']\").click()")
    assert driver.current_url.endswith("#table-snli")
    visit("#table=snli")
    page("document.querySelector(\"nav a[href='#figures']\").click()")
    assert state_of(driver) == {"table": ["snli"]}
    assert page("return document.activeElement.id") == "figures"
    page("document.querySelector(\"nav a[href='#table-hyperlex']\").click()")
    assert shown(page) == set(numbers())
    assert page("return document.activeElement.id") == "table-hyperlex"


@pytest.mark.parametrize("width", [1100, 1360])
def test_a_link_to_a_table_leads_to_its_heading_below_the_filter(visit, width):
    page = visit(width=width)
    page("document.querySelector(\"nav a[href='#table-snli']\").click()")
    top = "getBoundingClientRect().top"
    heading, bar = page(
        f"return [document.querySelector('#table-snli h3').{top}, document.querySelector('.filters').getBoundingClientRect().bottom]"
    )
    assert bar <= heading < bar + 200


# --- provenance and copying -----------------------------------------------------------------------------------------------


def test_provenance_opens_and_closes_with_the_keyboard_and_focus_comes_back(driver, page):
    open_proof(driver, page, BETTER)
    assert page("return document.getElementById('proof').open")
    assert page("return document.getElementById('proof').contains(document.activeElement)")
    told = page("return document.getElementById('proof-content').textContent")
    assert "an abacus" in told and "mirror" in told and "c" * 64 in told
    assert state_of(driver)["number"] == [BETTER]
    press(driver, ESCAPE)
    assert not page("return document.getElementById('proof').open")
    assert page("return document.activeElement.closest('td').dataset.number") == BETTER
    assert "number" not in state_of(driver)


def test_a_row_opens_with_its_settings_and_training_curve(driver, page):
    focus(page, f"button[data-row-id='{ROW}']")
    press(driver, ENTER)
    assert page("return document.getElementById('proof').open")
    assert "sampling" in page("return document.getElementById('proof-content').textContent")
    heights = "return [...document.querySelectorAll('#proof polyline')].map(p => p.getBoundingClientRect().height)"
    assert page(heights) and all(height > 20 for height in page(heights))
    assert state_of(driver)["row"] == [ROW]
    press(driver, ESCAPE)
    assert page("return document.activeElement.dataset.rowId") == ROW
    assert "row" not in state_of(driver)


def test_a_claim_links_to_its_numbers(driver, page):
    page("document.querySelector('#claim-reconstruction details').open = true")
    focus(page, f"#claim-reconstruction a[href='#number={BETTER.replace('rho', 'map')}']")
    press(driver, ENTER)
    assert "Nouns mAP" in page("return document.getElementById('proof-title').textContent")
    assert state_of(driver)["number"] == [BETTER.replace("rho", "map")]


def test_the_switch_shows_one_kind_of_value_and_stays_in_the_address(driver, page):
    seen = f"""const cell = document.querySelector("td[data-number='{BETTER}']");
        return ['.value', '.printed', '.change', '.dots'].map((part) => cell.querySelector(part).checkVisibility())"""
    assert page(seen) == [True, True, True, True]
    expected = {"paper": [False, True, False, False], "ours": [True, False, False, False]}
    expected["difference"] = [False, False, True, False]
    for show, parts in expected.items():
        focus(page, f"button[data-show='{show}']")
        press(driver, ENTER)
        assert page(seen) == parts
        assert state_of(driver)["show"] == [show]
    driver.refresh()
    assert page(seen) == expected["difference"]
    page("document.querySelector(\"button[data-show='']\").click()")
    assert page(seen) == [True, True, True, True]


def test_a_link_to_a_number_opens_it(visit):
    page = visit(f"#number={BETTER}")
    assert page("return document.getElementById('proof').open")
    assert "Nouns ρ" in page("return document.getElementById('proof-title').textContent")


def test_the_list_below_a_table_opens_with_the_keyboard(driver, page):
    focus(page, "#table-reconstruction .proofs > summary")
    press(driver, ENTER)
    focus(page, f"details[data-number='{BETTER}'] > summary")
    press(driver, " ")
    assert page(
        "return document.querySelector(arguments[0]).offsetHeight > 0", f"details[data-number='{BETTER}'] .proof-body"
    )


def pasted(driver, page: Script) -> str:
    """What the clipboard holds, by pasting it."""
    focus(page, "#filter-words")
    press(driver, CONTROL, "a")
    press(driver, CONTROL, "v")
    return page("return document.getElementById('filter-words').value")


@pytest.mark.parametrize(
    "spoil", ["", "Object.defineProperty(navigator, 'clipboard', {value: undefined})"], ids=["clipboard", "without it"]
)
def test_the_command_can_be_copied(driver, page, spoil):
    identifier = BETTER if spoil else "reconstruction/subspace-64/nouns-map"
    page(spoil)
    open_proof(driver, page, identifier)
    focus(page, "#proof button.copy")
    press(driver, ENTER)
    wait_for(page, "document.querySelector('#proof .copied').textContent === 'Copied'")
    press(driver, ESCAPE)
    assert pasted(driver, page) == provenance.from_sources(identifier, "laptop", "")


def test_when_nothing_can_copy_the_command_is_selected_for_the_reader(driver, page):
    page("Object.defineProperty(navigator, 'clipboard', {value: undefined}); document.execCommand = () => false")
    open_proof(driver, page, BETTER)
    focus(page, "#proof button.copy")
    press(driver, ENTER)
    wait_for(page, "document.querySelector('#proof .copied').textContent.startsWith('Selected')")
    assert page("return getSelection().toString()") == provenance.from_sources(BETTER, "laptop", "")


def wait_for(page: Script, condition: str) -> None:
    look = f"const look = () => ({condition}) ? done() : Date.now() > end ? fail('it never came true') : setTimeout(look, 20)"
    page(f"return new Promise((done, fail) => {{ const end = Date.now() + 10000; {look}; look(); }})")


# --- looks ----------------------------------------------------------------------------------------------------------------

GROUND = "return getComputedStyle(document.body).backgroundColor"


def test_dark_by_the_system_and_by_the_button_and_remembered(driver, page, visit):
    bright = page(GROUND)
    visit(scheme="dark")
    assert page(GROUND) != bright
    assert page("return document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    try:
        focus(page, "#theme")
        press(driver, ENTER)
        assert page(GROUND) == bright
        driver.refresh()
        assert page(GROUND) == bright
        assert page("return document.getElementById('theme').getAttribute('aria-pressed')") == "false"
    finally:
        page("localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 360])
def test_text_has_enough_contrast(visit, scheme, width):
    """WCAG AA for all text that is seen, whatever its size; the dialog and the open provenance too."""
    page = visit(f"#number={BETTER}", width=width, scheme=scheme)
    page("document.querySelector('.proofs').open = true; document.querySelector('.proof').open = true")
    seen, weak = page(CONTRAST)
    assert seen > 500
    assert weak == []


@pytest.mark.parametrize("which", ["made", "committed"])
@pytest.mark.parametrize(("width", "height"), [(360, 740), (820, 1100), (1280, 900)])
def test_the_page_never_scrolls_sideways(visit, request, which, width, height):
    page = visit(width=width, height=height, address=request.getfixturevalue(which))
    page("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide, room = page("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    assert wide <= room
    page("document.querySelector('td[data-number] button').click()")
    fits = "d.scrollWidth <= d.clientWidth, d.getBoundingClientRect().width <= innerWidth"
    assert page(f"const d = document.getElementById('proof'); return [d.open, {fits}]") == [True, True, True]


def test_on_a_phone_rows_are_cards_that_name_their_columns(visit):
    page = visit(width=360, height=740)
    look = "getComputedStyle(c, '::before').content, b.left >= 0, b.right <= innerWidth"
    script = f"const c = document.querySelector(arguments[0]), b = c.getBoundingClientRect(); return [{look}]"
    cell = page(script, f"td[data-number='{BETTER}']")
    assert cell == ['"Nouns ρ ↑"', True, True]
    assert page(
        "return [...document.querySelectorAll('td[data-number] button')].every(b => b.getBoundingClientRect().height >= 24)"
    )


@pytest.mark.parametrize("width", [1360, 360])
def test_what_a_screen_reader_is_told(driver, visit, width):
    """From the browser's own accessibility tree: everything that can be pressed has a name, and cards are still tables."""
    page = visit(width=width, height=740)
    nodes = [one for one in driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"] if not one["ignored"]]
    named: dict[str, list[str]] = {}
    for one in nodes:
        named.setdefault(one["role"]["value"], []).append(one.get("name", {}).get("value", "").strip())
    for role in ("button", "link", "combobox", "searchbox", "image", "navigation", "search", "table"):
        assert named[role] and (role == "table" or all(named[role])), role
    assert len(named["main"]) == len(named["banner"]) == len(named["contentinfo"]) == 1
    assert len(named["table"]) == 9
    assert all(named["columnheader"]) and all(named["rowheader"])
    assert len([name for name in named["button"] if "Provenance of Table" in name]) == ALL
    levels = page(
        "return [...document.querySelectorAll('h1, main h2, main h3, main h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page("return [...document.images].every(i => i.alt.trim() && i.complete && i.naturalWidth > 0)")


def test_the_first_tab_skips_to_the_numbers_and_focus_is_seen(driver, page):
    page("document.body.focus()")
    press(driver, TAB)
    assert page("return document.activeElement.className") == "skip"
    assert page("return document.activeElement.getBoundingClientRect().top >= 0")
    press(driver, ENTER)
    assert page("return document.activeElement.id") == "main"
    press(driver, TAB)
    outline = page(
        "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, parseFloat(s.outlineWidth)]"
    )
    assert outline[0] == "solid" and outline[1] >= 2


def test_motion_is_left_out_when_asked(page, visit):
    moving = "return [...document.querySelectorAll('button')].some(b => parseFloat(getComputedStyle(b).transitionDuration) > 0)"
    assert page(moving)
    visit(motion="reduce")
    assert not page(moving)


def test_print_is_light_and_without_controls(driver, visit):
    page = visit(scheme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert page(GROUND) == "rgb(255, 255, 255)"
    assert page("return [...document.querySelectorAll('nav, .filters, #theme')].every(one => !one.offsetHeight)")
    assert len(shown(page)) == ALL


def test_without_scripts_everything_can_still_be_read(driver, made):
    driver.get("about:blank")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.get(made)
    root = driver.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    driver.execute_cdp_cmd("DOM.enable", {}), driver.execute_cdp_cmd("CSS.enable", {})

    def display(selector: str) -> str:
        node = driver.execute_cdp_cmd("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
        styles = driver.execute_cdp_cmd("CSS.getComputedStyleForNode", {"nodeId": node})["computedStyle"]
        return next(one["value"] for one in styles if one["name"] == "display")

    assert display(".filters") == display("#theme") == display("button.copy") == "none"
    assert display("td[data-number] button") == "block"
    assert display("details.proof > summary") != "none"
