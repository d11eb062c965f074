"""Charts of every kind of page in a real browser: zoomed, read, picked, by keys, on a phone and on paper."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn.report.chart import ChartSeries, Mark, TimeChart
from varnn.report.page import Report

# What a chart shows: the ends of its axis, read off its labels, are not in the document, but the readout is.
SHOWN = """figure => ({ when: figure.querySelector('.when').textContent,
  values: [...figure.querySelectorAll('.readout .key b')].map(one => one.textContent),
  pressed: [...figure.querySelectorAll('.tools [aria-pressed=true]')].map(one => one.textContent) })"""
PIXELS = """figure => figure.querySelector('canvas').toDataURL()"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Give a page with two series of 3,000 hours, a band, a mark, a view and a gap."""
    report = Report("A sample", "", "Two series.")
    report.add_chart(
        "Over time",
        TimeChart([one_series("north", 0), one_series("south", 1)], unit="load", errors=True),
        "Truth and predictions of two series.",
    )
    report.write(tmp_path / "sample.html")
    return tmp_path / "sample.html"


def one_series(name: str, seed: int, rows: int = 3000) -> ChartSeries:
    generator = np.random.default_rng(seed)
    truth = 50 + 20 * np.sin(np.arange(rows) / 4) + generator.normal(size=rows)
    truth[200] = 140.0  # a peak that no thinning may lose
    truth[1500:1520] = np.nan
    said = truth + generator.normal(size=rows)
    places = np.datetime64("2026-01-01T00") + np.arange(rows)
    return ChartSeries(
        places=places,
        truth=truth,
        lines={"model": said, "other": said + 1},
        bands={"90 % interval": (said - 2, said + 2)},
        marks=[Mark("level shift", places[990], places[1000])],
        views={"the hardest week": (places[916], places[1083])},
        name=name,
    )


def opened(browser: Any, path: Path, **settings: Any) -> Any:
    tab = browser.new_page(**{"viewport": {"width": 1000, "height": 900}, **settings})
    tab.faults = []
    tab.on("console", lambda said: tab.faults.append(said.text))
    tab.on("pageerror", lambda error: tab.faults.append(str(error)))
    tab.goto(path.as_uri())
    tab.wait_for_function("() => [...document.querySelectorAll('.chart')].every(one => one.matches('.live'))")
    return tab


def figures(tab: Any) -> list[Any]:
    return list(tab.locator("figure.chart").all())


# Every kind of page


def test_charts_of_every_kind_zoom_pan_and_come_back(browser: Any, page: Path) -> None:
    tab = opened(browser, page)
    for chart in figures(tab):
        chart.scroll_into_view_if_needed()
        chart.locator(".tools button").first.click()  # all rows
        whole = chart.evaluate(PIXELS)
        box = chart.locator(".u-over").first.bounding_box()
        tab.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=4)
        tab.mouse.up()
        tab.mouse.move(1, 1)
        zoomed = chart.evaluate(PIXELS)
        assert zoomed != whole
        assert "changed" in chart.get_attribute("class")
        chart.locator(".frame").focus()
        tab.keyboard.press("ArrowRight")
        assert chart.evaluate(PIXELS) != zoomed
        tab.keyboard.press("+")
        assert chart.evaluate(PIXELS) not in (whole, zoomed)
        tab.keyboard.press("0")
        assert chart.evaluate(PIXELS) == whole
        assert chart.evaluate(SHOWN)["pressed"][:1] == [chart.locator(".tools button").first.inner_text()]
    assert tab.faults == []
    tab.close()


def test_charts_of_every_kind_say_what_is_under_the_cursor(browser: Any, page: Path) -> None:
    tab = opened(browser, page)
    for chart in figures(tab):
        chart.scroll_into_view_if_needed()
        box = chart.locator(".u-over").first.bounding_box()
        read = []
        for share in (0.2, 0.7):
            tab.mouse.move(box["x"] + share * box["width"], box["y"] + 40)
            read.append(chart.evaluate(SHOWN))
        assert read[0]["when"] != read[1]["when"]
        assert read[0]["values"] and all(one["values"] for one in read)
    assert tab.faults == []
    tab.close()


def test_charts_of_every_kind_have_a_still_picture_without_script(browser: Any, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    charts = figures(tab)
    for chart in charts:
        picture = chart.locator(".still svg")
        assert picture.is_visible() and picture.locator("path").count() > 3
    assert tab.locator("table, .facts").first.is_visible()
    context.close()


# What one chart does


def test_the_first_view_is_shown_first_and_all_rows_by_a_button(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    first = chart.evaluate(SHOWN)
    assert (first["pressed"], first["when"]) == (["the hardest week"], "2026-02-15 03:00")
    tab.get_by_role("button", name="All").click()
    assert chart.evaluate(SHOWN)["when"] == "2026-05-05 23:00"
    tab.close()


def test_hover_says_truth_prediction_and_bounds_of_the_row(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    box = chart.locator(".u-over").first.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    read = chart.evaluate(SHOWN)
    shown = np.datetime64(read["when"].replace(" ", "T"), "h")
    row = int(shown.astype(np.int64) - np.datetime64("2026-01-01T00", "h").astype(np.int64))
    assert abs(row - (916 + 1083) / 2) <= 1
    data = one_series("north", 0)
    lower, upper = data.bands["90 % interval"]
    assert data.truth is not None
    wanted = [data.truth[row], data.lines["model"][row], data.lines["other"][row]]
    assert read["values"][:3] == [f"{value:.3f}" for value in wanted]
    assert read["values"][3] == f"{lower[row]:.3f} to {upper[row]:.3f}"
    tab.close()


def test_an_event_is_named_with_its_dates_where_the_cursor_meets_it(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    box = chart.locator(".u-over").first.bounding_box()
    tab.mouse.move(box["x"] + box["width"] * (1000 - 916) / (1083 - 916), box["y"] + 50)
    said = "level shift, noticed 2026-02-11 16:00, begun 2026-02-11 06:00"
    assert chart.locator(".event").inner_text() == said
    assert tab.locator(".marks li").first.inner_text() == (
        "north: level shift, 2026-02-11 16:00, begun 2026-02-11 06:00"
    )
    tab.close()


def test_a_series_is_picked(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    before = chart.evaluate(SHOWN), chart.evaluate(PIXELS)
    tab.locator("select").select_option("south")
    after = chart.evaluate(SHOWN), chart.evaluate(PIXELS)
    assert before[1] != after[1] and before[0]["values"] != after[0]["values"]
    tab.locator("select").select_option("north")
    assert chart.evaluate(PIXELS) == before[1]
    assert tab.faults == []
    tab.close()


def test_the_wheel_zooms_a_chart_that_was_touched_and_scrolls_past_others(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample, viewport={"width": 1000, "height": 500})
    chart = tab.locator("figure.chart")
    box = chart.locator(".u-over").first.bounding_box()
    at = (box["x"] + 300, box["y"] + 40)
    tab.mouse.move(*at)
    before = chart.evaluate(PIXELS)
    tab.mouse.wheel(0, 60)
    tab.wait_for_timeout(200)
    assert tab.evaluate("scrollY") > 0
    assert not chart.evaluate("one => one.classList.contains('changed')")
    tab.evaluate("scrollTo(0, 0)")
    tab.mouse.click(*at)
    tab.mouse.wheel(0, -200)
    tab.wait_for_timeout(200)
    assert tab.evaluate("scrollY") == 0
    assert chart.evaluate(PIXELS) != before
    tab.mouse.dblclick(*at)
    assert chart.evaluate(SHOWN)["pressed"] == ["All"]
    tab.close()


def test_keys_read_row_by_row_and_the_focus_is_seen(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    chart.locator(".frame").focus()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Shift+Tab")
    assert chart.locator(".frame").evaluate("one => one.matches(':focus-visible')")
    assert chart.locator(".frame").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    read = []
    for _ in range(3):
        tab.keyboard.press("Shift+ArrowRight")
        read.append(chart.evaluate(SHOWN)["when"])
    hours = np.diff(np.array([one.replace(" ", "T") for one in read], dtype="M8[h]")).astype(int)
    assert hours.tolist() == [1, 1]
    assert read[-1] in chart.locator("[role=status]").inner_text()
    tab.close()


def test_a_finger_pans_and_two_zoom(browser: Any, sample: Path) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 360, "height": 800})
    tab = context.new_page()
    tab.goto(sample.as_uri())
    tab.wait_for_selector(".chart.live")
    chart = tab.locator("figure.chart")
    before = chart.evaluate(PIXELS)
    session = context.new_cdp_session(tab)
    box = chart.locator(".u-over").first.bounding_box()

    def touch(kind: str, *places: float) -> None:
        points = [{"x": box["x"] + place, "y": box["y"] + 60, "id": at} for at, place in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 150)
    for place in (140, 120, 90):
        touch("touchMove", place)
    touch("touchEnd")
    panned = chart.evaluate(PIXELS)
    assert panned != before
    touch("touchStart", 100, 140)
    for apart in (10, 30, 60):
        touch("touchMove", 100 - apart, 140 + apart)
    touch("touchEnd")
    assert chart.evaluate(PIXELS) != panned
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    context.close()


def test_a_line_is_hidden_by_its_name(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample)
    chart = tab.locator("figure.chart")
    before = chart.evaluate(PIXELS)
    tab.get_by_role("button", name="other").click()
    assert chart.evaluate(PIXELS) != before
    assert tab.get_by_role("button", name="other").get_attribute("aria-pressed") == "false"
    tab.get_by_role("button", name="other").click()
    assert chart.evaluate(PIXELS) == before
    tab.close()


def test_truth_lies_on_top(browser: Any, tmp_path: Path) -> None:
    """A prediction that is truth itself would cover it, were it drawn later or wider."""
    values = np.zeros(50)
    rows = ChartSeries(places=np.arange(50), truth=values, lines={"model": values})
    report = Report("On top", "", "")
    report.add_chart("Chart", TimeChart([rows]), "Truth and the same once more.")
    report.write(tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html", color_scheme="light")
    darkest = tab.evaluate(
        """() => { const canvas = document.querySelector('canvas');
        const { width, height } = canvas;
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
        const column = Math.round(width / 2);
        let dark = 255;
        for (let row = 0; row < height - 60; row += 1) {
          const at = 4 * (row * width + column);
          if (data[at + 3] > 200) dark = Math.min(dark, data[at + 2]);
        }
        return dark; }"""
    )
    assert darkest < 80  # blue is 214 in the prediction, 44 in the ink of truth
    tab.close()


def test_no_line_goes_across_a_month_without_rows(browser: Any, tmp_path: Path) -> None:
    """In an overview, whose rows are thinned; the gap is the middle tenth of the axis."""
    hours = np.arange(5000) + np.where(np.arange(5000) >= 2500, 556, 0)
    rows = ChartSeries(places=np.datetime64("2022-03-20T10", "h") + hours, truth=np.zeros(5000))
    report = Report("A gap", "", "")
    report.add_chart("Chart", TimeChart([rows]), "A month is missing.")
    report.write(tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html", color_scheme="light")
    inked = tab.evaluate(
        """() => { const canvas = document.querySelector('canvas');
        const { width, height } = canvas;
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
        const inked = (share) => {
          const box = document.querySelector('.u-over');
          const column = Math.round((box.offsetLeft + share * box.offsetWidth) * width / canvas.offsetWidth);
          for (let row = 0; row < height - 60; row += 1) {
            const at = 4 * (row * width + column);
            if (data[at + 3] > 20 && data[at + 2] < 180) return true; // faint, but ink
          }
          return false;
        };
        return [0.3, 0.44, 0.48, 0.5, 0.52, 0.56, 0.7].map(inked); }"""
    )
    assert inked == [True, True, False, False, False, True, True]
    tab.close()


def test_paper_has_the_still_picture_or_what_the_reader_chose(browser: Any, sample: Path) -> None:
    tab = opened(browser, sample, color_scheme="dark")
    chart = tab.locator("figure.chart")
    tab.emulate_media(media="print", color_scheme="dark")
    assert chart.locator(".still svg").is_visible() and not chart.locator("canvas").first.is_visible()
    tab.emulate_media(media="screen", color_scheme="dark")
    tab.get_by_role("button", name="All").click()
    dark = chart.evaluate(PIXELS)
    tab.emulate_media(media="print", color_scheme="dark")
    assert chart.locator("canvas").first.is_visible() and not chart.locator(".still svg").is_visible()
    assert (
        chart.locator(".on-paper").inner_text().strip() == "north:"
        and not chart.locator("select").is_visible()
    )
    tab.emulate_media(media="screen", color_scheme="dark")
    assert not chart.locator(".on-paper").is_visible()
    tab.evaluate("window.inks = []; addEventListener('beforeprint', () => setTimeout(() => 0))")
    tab.evaluate(
        "addEventListener('beforeprint', () => inks.push("
        "getComputedStyle(document.documentElement).getPropertyValue('--truth').trim()))"
    )
    assert tab.pdf(format="A4").startswith(b"%PDF")
    assert tab.evaluate("inks") == ["#16202c"]  # the ink of paper, though the screen is dark
    assert chart.evaluate(PIXELS) == dark
    tab.close()


def test_no_peak_is_lost_in_an_overview(browser: Any, tmp_path: Path) -> None:
    truth = np.random.default_rng(0).normal(size=60_000)
    truth[31_234] = 80.0
    report = Report("A peak", "", "")
    rows = ChartSeries(places=np.arange(60_000), truth=truth, lines={"model": np.zeros(60_000)})
    report.add_chart("Chart", TimeChart([rows]), "One peak.")
    report.write(tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    box = tab.locator(".u-over").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 31_234 / 59_999, box["y"] + 30)
    near = set()
    for shift in range(-6, 7):
        tab.mouse.move(box["x"] + box["width"] * 31_234 / 59_999 + shift, box["y"] + 30)
        near.add(tab.locator("figure.chart").evaluate(SHOWN)["values"][0])
    assert any(float(one.replace(",", "").replace("−", "-")) == 80.0 for one in near), near
    tab.close()


def test_no_large_error_is_lost_in_an_overview(browser: Any, tmp_path: Path) -> None:
    """Neither truth nor prediction is extreme where they differ most."""
    truth = np.tile([0.0, 100.0], 30_000)
    said = truth.copy()
    said[31_235] = 40.0
    report = Report("An error", "", "")
    rows = ChartSeries(places=np.arange(60_000), truth=truth, lines={"model": said})
    report.add_chart("Chart", TimeChart([rows], errors=True), "One error.")
    report.write(tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    box = tab.locator(".u-over").first.bounding_box()
    near = set()
    for shift in np.arange(-7, 7, 0.5):
        tab.mouse.move(box["x"] + box["width"] * 31_235 / 59_999 + shift, box["y"] + 30)
        near.add(tuple(tab.locator("figure.chart").evaluate(SHOWN)["values"]))
    assert any(float(one[1]) == 40.0 for one in near), near
    tab.close()


def test_data_cannot_leave_their_element(browser: Any, tmp_path: Path) -> None:
    name = "</script><script>document.title = 'out'</script>"
    rows = [ChartSeries(places=np.arange(9), truth=np.arange(9.0), name=one) for one in (name, "b")]
    report = Report("Names", "", "")
    report.add_chart(name, TimeChart(rows, unit=name), name)
    report.write(tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    assert tab.title() == "Names"
    assert tab.locator("option").first.inner_text() == name
    assert json.loads(tab.locator("figure script").inner_text())["unit"] == name
    assert tab.faults == []
    tab.close()
