"""A real browser without a window, with an empty profile, that can reach nothing but files and this machine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from subspaces.report.numbers import frame
from subspaces.report.page.build import build_page
from tests.report.made_results import FIGURES, make_results

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
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
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
    """The address of a page of made results; one number and one evaluation contain hostile text."""
    folder = tmp_path_factory.mktemp("page")
    frame = make_results(folder)
    frame.loc[frame["id"] == SPOILED, "reason"] = POISON
    path = folder / frame.set_index("id").at["reconstruction/subspace-128/nouns-map", "evidence"][0]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"settings": {POISON: POISON}}))
    return _write(frame, folder, folder / "results/report.html")


@pytest.fixture(scope="session")
def committed(tmp_path_factory) -> str:
    """The address of a page of the project's own results."""
    return _write(frame(ROOT), ROOT, tmp_path_factory.mktemp("committed") / "report.html")


def _write(frame: pd.DataFrame, folder: Path, out: Path) -> str:
    options = {"figures": FIGURES, "citation_file": ROOT / "CITATION.cff", "deviations": folder / "docs/deviations.md"}
    build_page(frame, folder, out, "9" * 64, **options)
    return out.as_uri()
