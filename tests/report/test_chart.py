"""Charts before any browser: what is packed comes back, sizes stay small, wrong input is refused in words."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from varnn import Panel
from varnn.errors import DataError
from varnn.report import inlined
from varnn.report._axis_ticks import number_ticks, time_ticks
from varnn.report._gaps import with_gaps
from varnn.report._packing import packed
from varnn.report._picture import picture
from varnn.report.chart import ChartSeries, Mark, TimeChart, chart_places
from varnn.report.page import Report
from varnn.report.thinning import thinned
from varnn.report.trace_charts import lines

LARGEST_PAGE = 1_500_000


def unpacked(told: dict[str, Any]) -> list[dict[str, npt.NDArray[np.float64]]]:
    """Take a packed chart apart as the browser does, one number after another."""
    data = iter(zlib.decompress(base64.b64decode(told["data"])))

    def column(rows: int) -> npt.NDArray[np.float64]:
        values, last = np.full(rows, np.nan), 0
        for row in range(rows):
            code, weight = 0, 1
            while True:
                byte = next(data)
                code += (byte & 127) * weight
                weight *= 128
                if byte < 128:
                    break
            if code:
                last += (code - 1) // 2 if code % 2 else -(code // 2)
                values[row] = last
        return values

    found = []
    for one in told["series"]:
        axis = np.cumsum(column(one["rows"]))
        columns = {name: column(one["rows"]) for name in one["columns"]}
        base = next((np.nan_to_num(columns[name]) for name in columns if name.startswith("line ")), 0)
        for name in columns:
            bound = name.startswith(("lower ", "upper "))
            columns[name] = (columns[name] + (base if bound else 0)) * 10.0 ** one["power"]
        found.append({"axis": axis, **columns})
    assert next(data, None) is None
    return found


def rows_of(rows: int, seed: int = 0) -> ChartSeries:
    """Give noisy rows with an interval: those of a model that is as good as one can be."""
    generator = np.random.default_rng(seed)
    truth = 300 + 100 * np.sin(np.arange(rows) / 24) + 30 * generator.normal(size=rows)
    said = truth + 20 * generator.normal(size=rows)
    wide = 40 + np.cumsum(generator.normal(size=rows)) / 100
    places = np.datetime64("2020-01-01T00:00") + 10 * np.arange(rows)
    return ChartSeries(
        places=places,
        truth=truth,
        lines={"VARNN": said, "linear ARX": truth + 25 * generator.normal(size=rows)},
        bands={"90 % interval": (said - wide, said + wide)},
        views={"the hardest week": (places[0], places[min(1000, rows - 1)])},
    )


def test_what_is_packed_comes_back() -> None:
    one = rows_of(500)
    assert one.truth is not None
    truth = one.truth.copy()
    truth[[0, 7, 8, 499]] = np.nan
    lines = {
        "a": np.where(np.arange(500) == 3, np.inf, truth),
        "huge": np.full(500, -1e30),
        "none": truth * np.nan,
    }
    uneven = np.datetime64("1969-12-31T23:59:59.5", "us") + np.cumsum(np.arange(500) % 7)
    bands = {"b": (truth - 30, np.where(np.arange(500) == 4, np.nan, one.truth + 3))}
    both = [
        ChartSeries(places=uneven, truth=truth, lines=lines, bands=bands, name="first"),
        ChartSeries(places=one.places, lines={"small": 1e-9 * one.truth}, name="second"),
    ]
    told, left_out = packed(TimeChart(both), most=100_000)
    first, second = unpacked(json.loads(json.dumps(told)))
    assert left_out == 0
    np.testing.assert_array_equal(first["axis"], uneven.astype(np.int64))
    np.testing.assert_array_equal(second["axis"], one.places.astype("M8[us]").astype(np.int64))
    spread = np.nanmax(truth) - np.nanmin(truth)
    np.testing.assert_allclose(first["truth"], truth, atol=spread / 5_000)
    assert np.isnan(first["line a"][3]) and np.isnan(first["line none"]).all()
    for bound, name in zip(bands["b"], ("lower b", "upper b"), strict=True):
        np.testing.assert_allclose(first[name], bound, atol=spread / 5_000)
    assert (first["line huge"] < -1e6).all()  # at the edge of what is drawn
    np.testing.assert_allclose(second["line small"], 1e-9 * one.truth, atol=1e-9 * spread / 5_000)


@pytest.mark.parametrize("series", [1, 40])
def test_a_hundred_thousand_rows_with_bands_make_a_small_page(tmp_path: Path, series: int) -> None:
    report = Report("A large one", "", "")
    chart = TimeChart([rows_of(100_000 // series, seed) for seed in range(series)], unit="Wh", errors=True)
    report.add_chart("Chart", chart, "All rows.")
    report.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < LARGEST_PAGE
    shown = re.search(r"This page holds ([\d,]+) of the 100,000 rows", report.html())
    assert shown is None
    report.add_chart("Another", chart, "All rows again.")  # for which there is little room left
    assert len(report.html()) < LARGEST_PAGE
    shown = re.search(r"All rows again. This page holds ([\d,]+) of the 100,000 rows", report.html())
    assert shown is not None and int(shown[1].replace(",", "")) > 3_000


def test_more_rows_than_there_is_room_for_are_thinned_and_the_page_says_so() -> None:
    one = rows_of(60_000)
    assert one.truth is not None
    one.truth[31_234] = 9_999.0
    told, left_out = packed(TimeChart([one]), most=60_000)
    (found,) = unpacked(told)
    assert len(str(told["data"])) <= 60_000
    assert len(found["truth"]) == 60_000 - left_out > 2_000
    assert found["truth"].max() == pytest.approx(9_999.0)
    assert found["axis"][[0, -1]].tolist() == one.places.astype("M8[us]").astype(np.int64)[[0, -1]].tolist()


def test_thinning_keeps_every_peak_of_every_column_and_both_ends() -> None:
    generator = np.random.default_rng(1)
    columns = [generator.normal(size=5000) for _ in range(2)]
    columns[0][100:400] = np.nan
    kept = thinned(columns, spans=50)
    assert {0, 4999} <= set(kept.tolist()) and len(kept) <= 4 * 50 + 2
    for values in columns:
        assert {int(np.nanargmin(values)), int(np.nanargmax(values))} <= set(kept.tolist())


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"truth": np.zeros(4)}, "need the length of its places, 3"),
        ({}, "needs rows, and truth or a line"),
        ({"lines": {str(one): np.zeros(3) for one in range(7)}}, "at most 6 lines"),
        ({"places": np.array([0, 2, 1]), "truth": np.zeros(3)}, "never decrease"),
        ({"places": np.array(["2026", "NaT", "2027"], dtype="M8[D]"), "truth": np.zeros(3)}, "needs a place"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        ChartSeries(**{"places": np.arange(3), **parts})


def test_a_chart_has_series_all_of_one_kind_of_axis() -> None:
    with pytest.raises(DataError, match="at least one series"):
        TimeChart([])
    with pytest.raises(DataError, match="some have, some have not"):
        TimeChart([rows_of(5), ChartSeries(places=np.arange(3), truth=np.zeros(3))])


def test_rows_stand_at_their_times_only_where_times_go_on() -> None:
    time = np.datetime64("2026-01-01T00") + np.array([5, 6, 0, 1, 2])
    panel = Panel.from_arrays(None, np.zeros(5), series=list("aabbb"), time=time)
    np.testing.assert_array_equal(chart_places(panel), time)
    assert chart_places(Panel.from_arrays(None, np.zeros(5), series=list("aabbb"))).tolist() == [
        0,
        1,
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
@pytest.mark.parametrize("timed", [True, False])
def test_a_still_picture_stays_within_its_frame(rows: int, timed: bool) -> None:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=rows)
    truth[rows // 2] = np.nan
    places = np.datetime64("2026-01-01T00") + np.arange(rows) if timed else np.arange(rows)
    one = ChartSeries(
        places=places,
        truth=truth,
        lines={"wild": np.full(rows, 1e30)},
        bands={"band": (truth - 1e9, truth + 1e9)},
        marks=[Mark("change", places[0], places[-1])],
        views={"some": (places[0], places[rows // 2])},
    )
    drawn = picture(TimeChart([one], unit="<kWh>", errors=True), "described")
    height = float(re.findall(r'viewBox="0 0 900 (\d+)"', drawn)[0])
    points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", " ".join(re.findall(r' d="([^"]*)"', drawn)))
    assert all(0 <= float(x) <= 900 and 0 <= float(y) <= height for x, y in points)
    assert "nan" not in drawn and "inf" not in drawn and "&lt;kWh&gt;" in drawn


def test_a_still_picture_of_shares_fills_its_frame() -> None:
    shares = np.random.default_rng(0).dirichlet([1, 2, 3], size=50)
    lines = {name: shares[:, at] for at, name in enumerate("abc")}
    drawn = picture(TimeChart([ChartSeries(places=np.arange(50), lines=lines)], stacked=True), "who")
    assert [name for name in re.findall(r'class="area (line-\d)"', drawn)] == ["line-1", "line-2", "line-3"]


@pytest.mark.parametrize(
    ("first", "last", "labels"),
    [
        (
            "2026-01-15T06",
            "2026-01-15T09",
            ["15 Jan 2026 06:00", "06:30", "07:00", "07:30", "08:00", "08:30"],
        ),
        ("2026-12-30", "2027-01-02", ["30 Dec 2026 00:00", "12:00", "31 Dec 00:00", "12:00", "1 Jan 00:00"]),
        ("2019-03-01", "2026-01-01", ["2020", "2021", "2022", "2023", "2024"]),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00", ["1 Jan 2026 00:00:00"]),
    ],
)
def test_dates_are_written_as_briefly_as_can_be(first: str, last: str, labels: list[str]) -> None:
    ends = np.array([first, last], dtype="M8[us]").astype(np.int64).astype(float)
    found = time_ticks(*ends)
    assert [label for _, label in found][: len(labels)] == labels
    assert all(ends[0] <= place <= ends[1] for place, _ in found) and len(found) <= 8


def test_zero_has_no_sign() -> None:
    assert (0.0, "0") in number_ticks(-0.4, 9.0) and "−0" not in dict(number_ticks(-0.4, 9.0)).values()


@pytest.mark.parametrize("ends", [(0.0, 1e-8), (-3e7, 8e7), (0.0, 0.0), (float("nan"), 1.0), (99.0, 101.0)])
def test_numbers_of_an_axis_are_few_and_inside(ends: tuple[float, float]) -> None:
    found = number_ticks(*ends)
    assert len(found) <= 6 and all(ends[0] <= value <= ends[1] for value, _ in found)
    assert len({label for _, label in found}) == len(found)
    assert bool(found) == (ends[1] > ends[0])


@pytest.mark.parametrize("rows", [200, 5_000])
def test_no_line_goes_across_a_day_without_rows(rows: int) -> None:
    """Where all rows are drawn, and where they are thinned; on the page and in its still picture."""
    hours = np.arange(rows) + np.where(np.arange(rows) >= rows // 2, 23, 0)
    places = np.datetime64("2022-03-20T10", "h") + hours
    truth = np.sin(np.arange(rows))
    one = ChartSeries(places=places, truth=truth, lines={"m": truth}, bands={"b": (truth - 1, truth + 1)})
    chart = with_gaps(TimeChart([one]))
    (broken,) = chart.series
    assert len(broken.places) == rows + 1 and np.isnan(broken.lines["m"]).sum() == 1
    assert np.flatnonzero(np.isnan(np.asarray(broken.truth))).tolist() == [rows // 2]
    drawn = re.findall(r'<path class="truth[^"]*" d="([^"]*)"', picture(chart, "rows"))
    assert [path.count("M") for path in drawn] == [2]
    few, left_out = packed(chart, 2_000)
    assert (left_out > 0) == (rows > 1_000)
    assert np.isnan(unpacked(few)[0]["truth"]).sum() == 1
    page = Report("A stream", "", "")
    page.add_chart("Over time", TimeChart([one]), "A day is missing.")
    assert page.parts[0][1].count('class="truth') > 0 and f'"rows":{rows + 1}' in page.parts[0][1]


def test_uneven_rows_and_weekends_are_no_gaps() -> None:
    days = np.datetime64("2022-03-21") + np.arange(70)
    uneven = np.datetime64("2022-03-21T00:00") + np.cumsum(
        np.random.default_rng(0).pareto(1, 500) * 60
    ).astype(int)
    for places in (days[np.is_busday(days)], uneven, np.arange(70) ** 2):
        chart = TimeChart([ChartSeries(places=places, truth=np.zeros(len(places)))])
        assert len(with_gaps(chart).series[0].places) == len(places)


def test_the_hardest_series_comes_first_with_its_own_marks() -> None:
    from varnn.monitoring.event import Event

    truth = np.concatenate([np.zeros(50), 9 * np.ones(50)])
    events = [Event("level shift", 0, 10, 5, 1.0), Event("level shift", 1, 60, 55, 1.0)]
    places = np.tile(np.datetime64("2026-01-01T00") + np.arange(50), 2)
    chart = lines(
        places, truth, {"m": np.zeros(100)}, starts=np.array([0, 50, 100]), names=["a", "b"], events=events
    )
    assert [one.name for one in chart.series] == ["b", "a"]
    assert [(mark.noticed, mark.began) for mark in chart.series[0].marks] == [(places[10], places[5])]


def test_the_script_is_all_modules_and_asks_nobody() -> None:
    script = inlined.script()
    for path in inlined.ASSETS.glob("*.js"):
        name = re.findall(
            r"^export (?:async )?(?:function|class|const) (\w+)", path.read_text(), re.MULTILINE
        )
        assert path.name.startswith("uPlot") or path.name == "start.js" or all(one in script for one in name)
    ours = script.partition("(() => {\n'use strict'")[2]
    assert not re.findall(
        r"\bfetch\(|XMLHttpRequest|innerHTML|\beval\(|https?://|^import |^export ", ours, re.M
    )
    assert "</script" not in script
