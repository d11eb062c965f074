"""The dashboard in a real browser, before the real service: ``varnn serve``, fed over HTTP."""

import csv
import io
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image, ImageColor
from playwright.sync_api import Browser, Dialog, Page, Request, expect, sync_playwright

from tests.service.models import save_model
from varnn.service import Client
from varnn.service.tokens import Tokens

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
)
EVIL = "<img src=x onerror=alert(1)>"
NAMES = [EVIL, "a/b?c#d%20&e", "日本", *(f"room {number:02d}" for number in range(57))]
ROWS = 120
START = np.datetime64("2026-01-05T00:00", "m")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")

Open = Callable[..., Page]


@contextmanager
def served(folder: Path, *models: Path) -> Iterator[str]:
    """Run ``varnn serve`` on any free port, and give its address."""
    command = [sys.executable, "-c", "from varnn.cli.app import main; main()", "serve", *map(str, models)]
    command += ["--data", str(folder), "--port", "0"]
    # Its line is not to be folded in the middle of the address.
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "500"}
    )
    try:
        assert process.stderr is not None
        said: list[str] = []  # a first start may say that it compiles
        while not (found := re.search(r"dashboard (http://[0-9.:]+)", said[-1] if said else "")):
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        yield found[1]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def row(series: str, number: int, **more: Any) -> dict[str, Any]:
    """A message that opens a row; one comes each minute, with a label from its inputs."""
    x = [float(np.sin(number / 9)), float(number % 3)]
    return {"series": series, "x": x, "time": str(START + np.timedelta64(number, "m")), **more}


def label(number: int) -> float:
    return float(np.sin(number / 9) + 0.05 * np.cos(7 * number))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "house.varnn")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Iterator[str]:
    """A service with 60 series, the first dozen of 120 rows; one of them goes wrong at the end."""
    with served(tmp_path_factory.mktemp("open") / "service", model) as address:
        with closing(Client(address, timeout=240)) as client:
            messages = [
                row(name, number, y=label(number) + 9.0 * (name == "room 07" and number > 100))
                for number in range(ROWS)
                for name in NAMES[: 13 if number < ROWS - 10 else None]
            ]
            answers = client.step(messages)
        assert not [one for one in answers if "error" in one]
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())


@pytest.fixture
def pages(browser: Browser) -> Iterator[Open]:
    """Open pages; at the end no console was written to, no dialog seen, nobody else asked."""
    troubles: list[str] = []
    contexts = []

    def opened(address: str, *, quiet: bool = True, **options: Any) -> Page:
        given: dict[str, Any] = {
            "viewport": {"width": 1200, "height": 800},
            "locale": "en-GB",
            "timezone_id": "Europe/Berlin",
        }
        context = browser.new_context(**given | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        host = address.split("/")[2]

        def dismissed(dialog: Dialog) -> None:
            troubles.append(dialog.message)
            dialog.dismiss()

        def asked(request: Request) -> None:
            if request.url.split("/")[2] != host:
                troubles.append(request.url)

        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", asked)
        if quiet:
            page.on("console", lambda message: troubles.append(message.text))
            page.on("dialog", dismissed)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def at(url: str, series: str = "", stream: str = "house") -> str:
    return f"{url}/#/s/{stream}" + (f"/{quote(series, safe='')}" if series else "")


def names_on(page: Page) -> list[str]:
    return page.locator(".list .name a").all_text_contents()


def wide(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width


def inked(page: Page, name: str) -> int:
    """How many pixels of the chart have one of the page's colours."""
    text = page.evaluate("(name) => getComputedStyle(document.documentElement).getPropertyValue(name)", name)
    seen = Image.open(io.BytesIO(page.locator(".plot").first.screenshot())).convert("RGB")
    return int((np.asarray(seen) == ImageColor.getrgb(text)).all(axis=-1).sum())


def test_list_shows_trouble_first_and_pages(pages: Open, url: str) -> None:
    page = pages(url)
    expect(page.locator(".list .name a")).to_have_count(50)
    assert names_on(page)[0] == "room 07"
    worst = page.locator(".line:not(.head)").first
    expect(worst.locator(".alarms")).to_have_text(re.compile("^[1-9]"))
    expect(worst.locator(".value").first).to_have_text(re.compile(r"^[−0-9.]+$"))
    expect(worst.locator(".skill")).to_have_text(re.compile(" %$"))
    expect(page.get_by_text("1–50 of 60")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".list .name a")).to_have_count(10)
    page.reload()  # the address holds the page
    expect(page.get_by_text("51–60 of 60")).to_be_visible()


def test_search_and_sort(pages: Open, url: str) -> None:
    page = pages(url)
    page.get_by_label("Sort by").select_option("name")
    expect(page.locator(".list .name a").first).to_have_text(EVIL)
    assert [name for name in names_on(page) if name in NAMES[3:]] == NAMES[3:51]
    page.get_by_label("Search series").fill("ROOM 1")
    expect(page.locator(".list .name a")).to_have_count(10)
    expect(page.get_by_text("10 found")).to_be_visible()
    page.get_by_label("Search series").fill("<b>")
    expect(page.get_by_text("No series has “<b>” in its name.")).to_be_visible()


def test_list_is_live(pages: Open, url: str) -> None:
    page = pages(f"{at(url)}?q=room+03")
    line = page.locator(".line", has_text="room 03")
    expect(page.locator("#connection")).to_have_text("live")
    with closing(Client(url, stream="house")) as client:
        client.step(row("room 03", ROWS, y=123.25))
        expect(line.locator(".value").first).to_have_text(re.compile("^123.2"), timeout=3000)
        told = client.step(row("room 03", ROWS + 1))
    expect(line.locator(".value").nth(1)).to_have_text(
        re.compile(f"^{told['prediction']:.1f}"[:-1].replace("-", "−"))
    )


def test_first_row_appears_by_itself(pages: Open, url: str) -> None:
    with closing(Client(url)) as client:
        client.request("POST", "/v1/streams", b'{"name": "yard", "champion": "house"}')
        page = pages(at(url, stream="yard"))
        command = page.locator("pre").text_content() or ""
        assert f"curl '{url}/v1/streams/yard/step'" in command
        assert '{"series":"first","x":{"heat":0,"wind":0}}' in command
        assert (
            subprocess.run(command, shell=True, capture_output=True, check=True).stdout.count(b"prediction")
            == 2
        )
    expect(page.locator(".list .name a")).to_have_text(["first"])


def test_series_page(pages: Open, url: str) -> None:
    page = pages(at(url, "room 07"))
    expect(page.locator(".plot canvas")).to_have_count(2)
    frame = page.get_by_role("group", name="Chart of room 07")
    expect(frame).to_have_attribute("aria-label", re.compile("120 points.*RMSE.*inside the band"))
    for colour in ("--truth", "--prediction", "--event"):
        assert inked(page, colour) > 20, colour
    expect(page.get_by_role("region", name="Newest first").locator("tbody tr")).to_have_count(20)
    expect(page.locator(".events li").first).to_contain_text(re.compile("Coverage lost: −[0-9]+ points"))
    expect(page.locator(".weights li").first).to_contain_text("%")
    expect(page.get_by_text("Times in Europe/Berlin, UTC+1.")).to_be_visible()
    with page.expect_download() as given:
        page.get_by_role("link", name="CSV").click()
    with given.value.path().open() as file:
        assert len(list(csv.DictReader(file))) == ROWS


def test_truth_never_hides_behind_the_prediction(pages: Open, url: str) -> None:
    """Labels that are what was predicted: both lines lie in the same place."""
    with closing(Client(url, stream="house")) as client:
        for number in range(30):
            said = client.step(row("foretold", number))
            client.observe({"series": "foretold", "y": said["prediction"]})
    page = pages(at(url, "foretold"))
    expect(page.locator(".plot canvas")).to_have_count(2)
    assert inked(page, "--truth") > 300
    assert inked(page, "--prediction") > 300  # and is wide enough to be seen beside it


def test_zoom_and_pan_by_mouse_and_keys(pages: Open, url: str) -> None:
    page = pages(at(url, "room 05"))
    frame = page.get_by_role("group", name="Chart of room 05")
    expect(frame).to_have_attribute("aria-label", re.compile("120 points"))
    over = page.locator(".u-over").first.bounding_box()
    assert over is not None
    left, width, middle = over["x"], over["width"], over["y"] + 100
    page.mouse.move(left + 0.25 * width, middle)
    page.mouse.down()
    page.mouse.move(left + 0.75 * width, middle, steps=3)
    page.mouse.up()
    expect(frame).to_have_attribute("aria-label", re.compile("from 5 Jan 2026, 01:30.*(59|60|61) points"))
    expect(page.get_by_role("button", name="Back to live")).to_be_visible()
    page.keyboard.press("+")  # the chart has the focus by now
    expect(frame).to_have_attribute("aria-label", re.compile("(29|30|31) points"))
    page.keyboard.press("ArrowLeft")
    expect(frame).to_have_attribute("aria-label", re.compile("from 5 Jan 2026, 01:3[89].*(29|30|31) points"))
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(left + 0.95 * width, middle, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(frame).to_have_attribute("aria-label", re.compile("from 5 Jan 2026, 01:3[1-4]"))
    page.mouse.wheel(0, 200)
    expect(frame).not_to_have_attribute("aria-label", re.compile("from 5 Jan 2026, 01:3[1-4]"))
    page.mouse.dblclick(left + 0.5 * width, middle)
    expect(frame).to_have_attribute("aria-label", re.compile("120 points"))


def test_time_range(pages: Open, url: str) -> None:
    page = pages(at(url, "room 06"))
    frame = page.get_by_role("group", name="Chart of room 06")
    with page.expect_request(re.compile(r"/history\?from=1767574740&")):  # an hour before 2026-01-05T01:59Z
        page.get_by_role("button", name="1 h", exact=True).click()
    expect(frame).to_have_attribute("aria-label", re.compile("61 points"))
    page.get_by_role("button", name="Custom").click()
    page.get_by_label("From, Europe/Berlin").fill("2026-01-05T01:10:00")
    page.get_by_label("To, Europe/Berlin").fill("2026-01-05T01:20:00")
    page.get_by_role("button", name="Show").click()
    expect(frame).to_have_attribute(
        "aria-label", re.compile("from 5 Jan 2026, 01:10:00 to 5 Jan 2026, 01:20:00, 11 points")
    )


def test_rows_that_came_at_once_without_times_are_numbered(pages: Open, url: str) -> None:
    with closing(Client(url, stream="house")) as client:
        client.step([{"series": "untimed", "x": [0.1 * n, 0.0], "y": 0.1 * n} for n in range(40)])
    page = pages(at(url, "untimed"))
    expect(page.get_by_label("Axis")).to_have_value("row")
    frame = page.get_by_role("group", name="Chart of untimed")
    frame.focus()
    page.keyboard.press("+")
    expect(frame).to_have_attribute("aria-label", re.compile("(19|20|21) points"))
    page.get_by_label("Axis").select_option("at")
    expect(frame).to_have_attribute("aria-label", re.compile("40 points"))


def test_series_is_live(pages: Open, url: str) -> None:
    page = pages(at(url, "room 08"))
    last = page.get_by_role("region", name="Newest first").locator("tbody tr").first
    expect(last.locator("td").first).to_have_text("119")
    with closing(Client(url, stream="house")) as client:
        client.step(row("room 08", ROWS))
        expect(last.locator("td").first).to_have_text("120")
        expect(last.locator("td").nth(2)).to_have_text("–")
        client.observe({"series": "room 08", "y": 0.5})
        expect(last.locator("td").nth(2)).to_have_text(re.compile("^0.5"))
    expect(page.locator(".readout")).to_contain_text("row 120")
    # Figures are fetched, not followed.
    expect(page.locator(".figures div", has_text="Rows")).to_contain_text("121")


@pytest.mark.parametrize("name", NAMES[:3])
def test_names_are_text_whatever_they_hold(pages: Open, url: str, name: str) -> None:
    page = pages(url)
    page.get_by_label("Search series").fill(name)
    expect(page.locator(".list .name a")).to_have_text([name])
    page.locator(".list .name a").click()
    expect(page.locator("h1")).to_have_text(name)
    expect(page.locator(".plot canvas")).to_have_count(2)
    assert page.locator("main img").count() == 0
    assert name in page.title()


def test_keys_alone_lead_to_a_series(pages: Open, url: str) -> None:
    page = pages(url)
    expect(page.locator(".list .name a")).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("room 1")
    expect(page.locator(".list .name a")).to_have_count(10)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == names_on(page)[1]
    line = page.locator(".line", has=page.locator("a:focus"))
    assert line.evaluate("(line) => getComputedStyle(line).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".plot canvas")).to_have_count(2)
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent"))
    assert {"house", "24 h", "Custom", "Zoom in", "CSV", "Newest first"} <= reached
    assert any(one.startswith("Chart of room 1") for one in reached)


@pytest.mark.parametrize("place", ["#/", "#/s/house/room%2007", "#/models", "#/health", "docs"])
def test_fits_a_phone(pages: Open, url: str, place: str) -> None:
    options = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    page = pages(f"{url}/{place}", **options)
    expect(page.locator("h1")).to_be_visible()
    page.wait_for_load_state("networkidle") if place == "docs" else page.wait_for_timeout(200)
    assert wide(page) <= 0


def test_dark_as_the_system_wants_and_as_the_button_says(pages: Open, url: str) -> None:
    page = pages(at(url, "room 09"), color_scheme="dark")
    light = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((part) => part > 128)"
    expect(page.locator(".plot canvas")).to_have_count(2)
    assert not page.evaluate(light)
    dark_ink = inked(page, "--truth")
    assert dark_ink > 20
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate(light)
    assert inked(page, "--truth") > 20  # the chart was drawn anew in the other colours
    page.reload()
    assert page.evaluate(light)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(light)


def test_lost_connection_is_said_and_mended(pages: Open, url: str) -> None:
    page = pages(f"{url}/login", quiet=False)
    page.route(re.compile(r"/live\?"), lambda route: route.abort())
    page.goto(at(url))
    expect(page.locator("#connection")).to_have_text("Connection lost, trying again …")
    expect(page.locator(".list .name a")).to_have_count(50)
    page.unroute_all()
    expect(page.locator("#connection")).to_have_text("live")


def test_health_and_api_pages(pages: Open, url: str) -> None:
    page = pages(f"{url}/#/health")
    expect(page.get_by_role("heading", name="Stream house")).to_be_visible()
    expect(page.locator(".facts div", has_text="Uptime")).to_contain_text(" s")
    page.get_by_role("link", name="API").click()
    page.locator("summary", has_text="/v1/streams/{stream}/step").click()
    expect(page.locator("details[open]")).to_contain_text("Answers")


def test_what_is_not_there_is_said(pages: Open, url: str) -> None:
    page = pages(at(url, "nobody"), quiet=False)
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.get_by_role("link", name="To the list of series").click()
    expect(page.locator(".list .name a")).to_have_count(50)


def test_login_and_what_each_scope_may_do(pages: Open, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    tokens = Tokens(folder / "tokens.json")
    reader, owner = tokens.make("reader", "read"), tokens.make("owner", "admin")
    with served(folder, model) as url:
        page = pages(f"{url}/#/models", quiet=False)
        page.wait_for_url("**/login#/models")
        page.get_by_label("Token").fill("varnn_wrong_one")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("wrong, revoked or expired")
        page.get_by_label("Token").fill(reader)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Stream house")).to_be_visible()
        expect(page.get_by_text("read only", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Upload")).to_have_count(0)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")

        page.get_by_label("Token").fill(owner)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="Models").click()
        page.get_by_label("Model file", exact=True).set_input_files(model)
        page.get_by_label("Name of the model").fill("other")
        page.get_by_role("button", name="Upload").click()
        expect(page.get_by_text("other is here now.")).to_be_visible()
        page.get_by_role("button", name="Add as challenger").click()
        expect(page.get_by_text("other challenges house on house")).to_be_visible()
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Promote other").click()
        expect(page.locator("tr", has_text="champion").first).to_contain_text("house")
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Promote other").click()
        expect(page.get_by_text("other is the champion of house now.")).to_be_visible()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Retire house").click()
        expect(page.get_by_role("button", name="Retire house")).to_have_count(0)
        request = urllib.request.Request(
            f"{url}/v1/streams/house", headers={"Authorization": f"Bearer {owner}"}
        )
        with urllib.request.urlopen(request) as answer:
            assert b'"champion":"other","challengers":[]' in answer.read()
