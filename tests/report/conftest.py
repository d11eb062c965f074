"""A browser, and the file of each kind of page, made once for all tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.page_kinds import MAKERS


@pytest.fixture(scope="module")  # its event loop must be gone before tests of other rooms bring their own
def browser() -> Iterator[Any]:
    """Give a browser; playwright's own download is not needed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture(scope="session", params=MAKERS)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of each kind of page."""
    path: Path = tmp_path_factory.mktemp(request.param) / "report.html"
    MAKERS[request.param]().write(path)
    return path
