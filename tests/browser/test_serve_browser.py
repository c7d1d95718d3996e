"""The page of `subspaces serve` in a real browser, from a real server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from subspaces.serve.app import make_app
from subspaces.serve.commands import listen
from subspaces.serve.service import Service
from tests.browser.test_page_browser import CONTRAST
from tests.serve.served import model, service, taxonomy  # noqa: F401

pytestmark = pytest.mark.browser
ENTER, RIGHT, END = "\ue007", "\ue014", "\ue010"
QUERY = "a dog & ~on a leash"


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:  # noqa: F811
    listener: socket.socket = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(service, ["127.0.0.1"]), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


class Page:
    def __init__(self, driver: Any):
        self.driver = driver

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.05)
        raise AssertionError(f"{what} did not appear; the page says: {self.find('body').text[:500]}")

    def type(self, selector: str, text: str) -> None:
        box = self.find(selector)
        box.clear()
        box.send_keys(text)

    @property
    def tab(self) -> str:
        (chosen,) = self.all("[role=tab][aria-selected=true]")
        shown = [panel.get_attribute("id") for panel in self.all("[role=tabpanel]") if panel.is_displayed()]
        assert shown == [chosen.get_attribute("aria-controls")]
        return shown[0]


@pytest.fixture()
def visit(driver: Any, address: str) -> Callable[..., Page]:
    def visit(state: str = "", width: int = 1100, scheme: str = "light") -> Page:
        driver.get("about:blank")
        sizes = {"width": width, "height": 850, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        driver.get_log("browser")
        driver.get(address + state)
        page = Page(driver)
        page.wait(lambda: "200 documents" in page.find("#about").text, "the number of documents")
        return page

    return visit


def test_a_query_is_typed_and_answered(visit: Callable[..., Page], service: Service) -> None:  # noqa: F811
    page = visit()
    page.type("#query", QUERY + ENTER)
    page.wait(lambda: len(page.all("#hits > li")) == 10, "the results")
    expected = service.search(QUERY, 10, None)
    assert [one.text for one in page.all("#hits .text")] == [hit.text for hit in expected.hits]
    first = page.all("#hits > li")[0]
    assert f"score {expected.hits[0].score:.3f} · rank {expected.hits[0].rank:.1f}" in first.text
    tracks = first.find_elements("css selector", ".track")
    assert ["excluded" in one.get_attribute("class") for one in tracks] == [False, True]
    for track, share in zip(tracks, expected.hits[0].inclusions, strict=True):
        width = track.find_element("css selector", "span").rect["width"] / track.rect["width"]
        assert width == pytest.approx(share, abs=0.01)
    assert "#search?query=" in page.driver.current_url  # can be shared
    page.find("#top").send_keys("20")
    page.wait(lambda: len(page.all("#hits > li")) == 20, "twenty results")
    assert not [line for line in page.driver.get_log("browser") if line["level"] == "SEVERE"]


def test_a_mistake_is_shown_with_a_caret_and_goes_away(visit: Callable[..., Page]) -> None:
    page = visit()
    page.type("#query", "🐶 & (a dog" + ENTER)
    shown = page.wait(lambda: page.find("#search-mistake").text, "the mistake")
    assert shown.startswith("This parenthesis is never closed.")
    # the browser counts the sign of a dog as two
    assert page.driver.execute_script("return document.querySelector('#search-mistake pre').textContent") == (
        "🐶 & (a dog\n     ^"
    )
    assert page.driver.execute_script("return document.getElementById('query').selectionStart") == 5
    assert not page.all("#hits > li")
    page.type("#query", "a dog" + ENTER)
    page.wait(lambda: page.all("#hits > li"), "the results")
    assert not page.find("#search-mistake").is_displayed()


def test_tabs_by_mouse_keyboard_and_address(visit: Callable[..., Page]) -> None:
    page = visit()
    assert page.tab == "search"
    page.find("#tab-entail").click()
    page.wait(lambda: page.tab == "entail", "the tab")
    page.find("#tab-entail").send_keys(RIGHT)
    page.wait(lambda: page.tab == "hierarchy", "the tab")
    page.driver.switch_to.active_element.send_keys(RIGHT)
    page.wait(lambda: page.tab == "search", "the tab")
    page.driver.switch_to.active_element.send_keys(END)
    page.wait(lambda: page.tab == "hierarchy", "the tab")
    page.driver.back()
    page.wait(lambda: page.tab == "search", "the tab before")
    page.find("body").send_keys("/")
    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("id") == "query", "the focus")
    assert page.find("#query").get_attribute("value") == ""


def test_entailment(visit: Callable[..., Page], service: Service) -> None:  # noqa: F811
    page = visit("#entail")
    page.type("#premise", "A boy runs.")
    page.type("#hypothesis", "A person moves." + ENTER)
    page.wait(lambda: page.find("#verdict").is_displayed(), "the probabilities")
    answer = service.entail("A boy runs.", "A person moves.")
    for classes in (answer.two_way, answer.three_way):
        for name, share in (classes or {}).items():
            assert (
                name in page.find("#probabilities").text and f"{100 * share:.1f} %" in page.find("#probabilities").text
            )
    widths = {kind: page.find(f"#picture rect.{kind}").rect["width"] for kind in ("premise", "hypothesis", "shared")}
    assert widths["premise"] / widths["hypothesis"] == pytest.approx(
        answer.premise_rank / answer.hypothesis_rank, abs=0.02
    )
    assert widths["shared"] / widths["premise"] == pytest.approx(answer.inclusion, abs=0.02)
    page.find("#swap").click()
    page.wait(lambda: page.find("#premise").get_attribute("value") == "A person moves.", "the other order")
    page.type("#premise", "  ")
    page.find("#entail-form [type=submit]").click()
    assert "empty" in page.wait(lambda: page.find("#entail-mistake").text, "the mistake")


def test_the_hierarchy_is_walked(visit: Callable[..., Page], service: Service) -> None:  # noqa: F811
    page = visit("#hierarchy")
    page.type("#node", "node 5")
    page.wait(lambda: page.all("#names option"), "suggestions")
    page.find("#node").send_keys(ENTER)
    page.wait(lambda: page.all("#ancestors button"), "ancestors")
    answer = service.node("node 5", 20)
    assert [one.text for one in page.all("#ancestors button")] == [one.name for one in answer.ancestors]
    assert [one.text for one in page.all("#descendants button")] == [one.name for one in answer.descendants]
    child = answer.descendants[0].name
    page.all("#descendants button")[0].click()
    page.wait(lambda: page.find("#node-told").text.startswith(f"{child}:"), "the child")
    page.type("#node", "nod 17" + ENTER)
    page.wait(lambda: "There is no node 'nod 17'." in page.find("#node-mistake").text, "the mistake")
    page.find("#node-mistake button").click()
    page.wait(lambda: page.find("#node-told").text.startswith("node 17:"), "the close one")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1100])
def test_readable_on_every_screen(visit: Callable[..., Page], scheme: str, width: int, address: str) -> None:
    states = {
        "#search?query=a dog %26 ~on a leash | a very long text of many words": "#hits > li",
        "#search?query=(a dog": "#search-mistake pre",
        "#entail?premise=A dog runs.&hypothesis=An animal.": "#picture rect",
        "#hierarchy?node=node 5": "#ancestors button",
    }
    grounds = set()
    for state, sign in states.items():
        page = visit(state, width, scheme)
        page.wait(lambda page=page, sign=sign: page.all(sign), sign)
        page.driver.execute_script("document.querySelector('details').open = true")
        wide, inner = page.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner, state
        seen, weak = page.driver.execute_script(CONTRAST)
        assert seen > 10 and not weak, (state, weak)
        grounds.add(page.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
        if width < 500:
            small = page.driver.execute_script(
                "return [...document.querySelectorAll('button, input, select')].filter((one) => one.checkVisibility() "
                "&& one.getBoundingClientRect().height < 24).map((one) => one.outerHTML)"
            )
            assert not small, state
    assert grounds == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)"}
    page.driver.get(address + "docs")
    assert page.driver.execute_script(CONTRAST)[1] == []


def test_hostile_texts_stay_texts(visit: Callable[..., Page]) -> None:
    page = visit("#search?query=" + "%3Cimg src=x onerror=window.hurt=1%3E %26 ~%3Cb%3E")
    page.wait(lambda: page.all("#hits > li"), "the results")
    assert page.driver.execute_script("return window.hurt") is None
    assert not page.all("main img") and "<img src=x" in page.find("#terms").text
