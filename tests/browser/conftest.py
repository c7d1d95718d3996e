"""A real browser without a window, with an empty profile, that can reach nothing but files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from subspaces.paper.page.build import build_page
from tests.paper.made_results import FIGURES, make_results

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
ROOT = Path(__file__).resolve().parents[2]
SPOILED = "snli/mpnet-mlp/accuracy-2way"
POISON = "<script>window.hurt=1</script>\"><img src=x onerror='window.hurt=1'></script>\u2028<svg onload=window.hurt=1>"


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Iterator:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install the dev extra")
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    helper = shutil.which("chromedriver")
    if not browser or not helper:
        pytest.skip("no Chromium with chromedriver here: install both to run the browser tests")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    os.environ.setdefault("NO_PROXY", "localhost,127.0.0.1")  # the driver listens on this machine
    service = webdriver.ChromeService(executable_path=helper)
    chrome = webdriver.Chrome(options=options, service=service)
    chrome.set_page_load_timeout(60)
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> str:
    """The address of a page of made results, one number of which was written by an enemy."""
    folder = tmp_path_factory.mktemp("page")
    evidence = make_results(folder)
    path = folder / f"results/numbers/{SPOILED}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"reason": POISON, "settings": {POISON: POISON}}))
    return _write(folder, evidence)


@pytest.fixture(scope="session")
def committed(tmp_path_factory) -> str:
    """The address of a page of the project's own results."""
    return _write(ROOT, {}, tmp_path_factory.mktemp("committed") / "report.html")


def _write(folder: Path, evidence: dict, out: Path | None = None) -> str:
    out = out or folder / "results/report.html"
    options = {"figures": FIGURES, "citation_file": ROOT / "CITATION.cff"}
    build_page(folder, out, "9" * 64, folder / "docs/deviations.md", evidence=evidence, **options)
    return out.as_uri()
