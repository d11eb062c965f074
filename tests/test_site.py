"""The site in a real browser, opened from disk: it searches, copies what one types, takes its colours."""

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="the docs need mkdocs-material and mkdocstrings-python")
sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "docs" / "tools"
PHONE = {"width": 360, "height": 800}
NAMELESS = """() => [...document.querySelectorAll('article img, article svg[role=img], article .drawing svg')]
  .filter(one => !(one.getAttribute('alt') || one.getAttribute('aria-label')
                   || one.getAttribute('aria-labelledby') || '').trim())
  .map(one => one.outerHTML.slice(0, 60))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", *build], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no browser here")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def opened(site: Path, browser: Any) -> Iterator[Any]:
    """Open a page from disk; what it asks of the network, and what it complains of, fails the test."""
    troubles: list[str] = []
    contexts = []

    def note(trouble: str, harmless: bool = False) -> None:
        if not harmless:
            troubles.append(trouble)

    def open_page(name: str, **settings: Any) -> Any:
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("request", lambda request: note(request.url, request.url.startswith(("file:", "data:"))))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("console", lambda said: note(said.text, said.type != "error"))
        page.goto((site / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.mark.parametrize("name", ["index.html", "how-to/streaming.html"])
def test_search_works_from_disk(opened: Any, name: str) -> None:
    page = opened(name)
    page.click("input.md-search__input")
    page.keyboard.type("persistence")
    page.wait_for_selector(".md-search-result__link", timeout=20_000)
    page.click(".md-search-result__link")
    page.wait_for_load_state()
    assert page.url.startswith("file:")
    assert "persistence" in page.inner_text("article").lower()


def test_links_between_pages_name_files(site: Path) -> None:
    """From disk nobody turns a folder into its index."""
    for page in site.rglob("*.html"):
        folders = [
            one for one in re.findall(r'<a[^>]* href="([^"#:]+)"', page.read_text()) if one.endswith("/")
        ]
        assert folders == [], page


@pytest.mark.parametrize(
    ("name", "has_not"), [("tutorial.html", [">>>", "$ ", "┃"]), ("reference/stream.html", [">>>"])]
)
def test_copied_code_has_neither_prompts_nor_outputs(opened: Any, name: str, has_not: list[str]) -> None:
    page = opened(name, permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("""() => { window.copied = []; const copy = document.execCommand.bind(document);
        document.execCommand = what => { window.copied.push(getSelection().toString()
            || document.activeElement.value); return copy(what); } }""")
    buttons = page.locator("[data-copy] button[data-md-type=copy]")
    buttons.first.wait_for(state="attached")
    assert buttons.count() >= 3
    for number in range(buttons.count()):
        buttons.nth(number).scroll_into_view_if_needed()
        buttons.nth(number).dispatch_event("click")
    copied = page.evaluate("window.copied")
    assert len(copied) == buttons.count()
    assert all(one.strip() for one in copied)
    assert [one for one in copied for mark in has_not if mark in one] == []


def test_figures_follow_the_switch_and_not_the_system(opened: Any) -> None:
    page = opened("index.html", color_scheme="light")
    ink = "getComputedStyle(document.querySelector('.drawing svg')).color"
    before = page.evaluate(ink)
    page.locator("label.md-header__button[title=Dark]").click()
    assert page.evaluate(ink) != before
    shown = page.locator("img[src*='report-']:visible").evaluate_all("all => all.map(one => one.src)")
    assert len(shown) == 1
    assert "report-dark.png" in shown[0]


def test_every_page_fits_a_phone_and_names_its_pictures(site: Path, opened: Any) -> None:
    page = opened("index.html", viewport=PHONE, color_scheme="dark")
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":  # which only a server shows
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
            assert page.evaluate(NAMELESS) == [], path


def test_parameters_are_shown_with_their_own_defaults(opened: Any) -> None:
    page = opened("reference/regressor.html")
    rows = page.locator(".doc-contents table").first.locator("tbody tr").all_inner_texts()
    defaults = {row.split()[0]: row.split()[-1] for row in rows}
    assert defaults["variant"] == '"ARM+AM"'
    assert (defaults["hidden_size"], defaults["window"]) == ("64", "None")
    assert "defaults." not in page.locator(".doc-signature").first.inner_text()


@pytest.mark.parametrize("tool", ["code_blocks", "true_defaults"])
def test_steps_of_the_build_do_what_their_examples_say(tool: str) -> None:
    import doctest

    names = runpy.run_path(str(TOOLS / f"{tool}.py"))
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    tested = [
        test
        for name in ("typed", "one_by_one")
        if name in names
        for test in finder.find(names[name], globs=names)
    ]
    assert tested
    assert sum(runner.run(test).failed for test in tested) == 0
