"""Times in every form people write them, against pandas and the standard library."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from varnn import Panel
from varnn.data._sentinels import suspects
from varnn.data._time_columns import row_times
from varnn.data._time_formats import parse
from varnn.data.order import one_each, time_order
from varnn.data.tables import columns_of
from varnn.errors import DataError, RowError

FORMATS = [
    ("%Y-%m-%d %H:%M:%S", None),
    ("%Y/%m/%d %H:%M", None),
    ("%d/%m/%Y %H:%M", "day-first"),
    ("%m/%d/%Y %H:%M:%S", "month-first"),
    ("%m/%d/%Y %I:%M %p", "month-first"),
    ("%d.%m.%y %H:%M", "day-first"),
    ("%d-%b-%Y %H:%M", None),
    ("%B %d, %Y %H:%M", None),
    ("%a, %d %b %Y %H:%M:%S", None),
    ("%Y%m%d%H%M", None),
    ("%Y%m%dT%H%M%S", None),
    ("%d/%m/%Y %H.%M.%S", "day-first"),
    ("%d/%b/%Y:%H:%M:%S", None),
]


@pytest.mark.parametrize(("codes", "form"), FORMATS)
@given(start=st.datetimes(datetime(1971, 1, 1), datetime(2068, 1, 1)), minutes=st.integers(1, 60 * 24 * 40))
def test_texts_in_any_format_are_read_as_pandas_reads_them(
    codes: str, form: str | None, start: datetime, minutes: int
) -> None:
    start = start.replace(microsecond=0, second=0)
    times = [start + timedelta(minutes=minutes * row) for row in range(4) if start.year < 2060 or row == 0]
    texts = [one.strftime(codes) for one in times]
    found = parse([texts[:2], texts[2:]] if len(texts) > 2 else [texts], "when", form)
    expected = pd.to_datetime(texts, format=codes)
    np.testing.assert_array_equal(found.values, expected.to_numpy().astype(found.values.dtype))
    by_codes = parse([texts], "when", codes)
    np.testing.assert_array_equal(by_codes.values, expected.to_numpy().astype(by_codes.values.dtype))


@given(
    start=st.datetimes(datetime(2001, 1, 1), datetime(2060, 1, 1)),
    hours=st.sampled_from([1, 3, 24]),
    rows=st.integers(24 * 32, 24 * 40),
    first=st.sampled_from(["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"]),
)
def test_a_month_of_rows_tells_the_day_from_the_month(
    start: datetime, hours: int, rows: int, first: str
) -> None:
    start = start.replace(minute=0, second=0, microsecond=0)
    times = [start + timedelta(hours=hours * row) for row in range(rows)]
    found = parse([[one.strftime(first) for one in times]], "when")
    np.testing.assert_array_equal(found.values, np.array(times, dtype="datetime64[s]"))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2024-01-31T05:00:00Z"], "2024-01-31T05:00:00"),
        (["2024-01-31 05:00:00.25+01:00"], "2024-01-31T04:00:00.250000"),
        (["2024-01-31 05:00-0330"], "2024-01-31T08:30:00"),
        (["31.12.2024 24:00"], "2025-01-01T00:00:00"),
        (["2024-07"], "2024-07-01T00:00:00"),
        (["12/31/24"], "2024-12-31T00:00:00"),
        (["31/12/99"], "1999-12-31T00:00:00"),
        (["99-12-31"], "1999-12-31T00:00:00"),
        (["1.5.2024 7h30", "31.5.2024 7h30"], "2024-05-01T07:30:00"),
    ],
)
def test_single_forms(cells: list[str], expected: str) -> None:
    assert str(parse([cells], "when").values[0]) == expected


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["2024-02-30"], "row 0 holds '2024-02-30'"),
        (["2024-01-01", "soon"], "row 1 holds 'soon'"),
        (["2024-01-01 25:00"], "row 0 holds"),
        (["13/13/2024"], "row 0 holds '13/13/2024'"),
        (["12 Foo 2024"], "row 0 holds '12 Foo 2024'"),
        (["13/01/2024", "01/13/2024"], "holds"),
        (["2024-01-01 00:00+01:00", "2024-01-01 01:00"], "how far they are from UTC"),
        (["01/02/2024"], "may be"),
    ],
)
def test_what_is_no_time_is_named(cells: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message.replace("+", r"\+")):
        parse([cells], "when")


@pytest.mark.parametrize("form", ["dayfirst", ""])
def test_an_unknown_format_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match="time_format must be one of"):
        parse([["01/02/2024"]], "when", form)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(start=st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))
def test_numbers_since_1970_are_told_by_their_size(unit: str, start: datetime) -> None:
    times = np.array([start, start + timedelta(hours=1)], dtype=f"datetime64[{unit}]")
    frame = polars.DataFrame({"t": times.astype(np.int64)})
    found = row_times(columns_of(frame), ["t"])
    # A few moments written as numbers of seconds are dates written as numbers, too: 2024010112 is both.
    if "since 1970" in found.how:
        np.testing.assert_array_equal(found.values, times)


def test_small_numbers_count_rows() -> None:
    found = row_times(columns_of(polars.DataFrame({"t": [1, 2, 3]})), ["t"])
    assert found.values.tolist() == [1, 2, 3]
    assert found.how == ""


def test_a_number_can_be_said_to_be_seconds() -> None:
    found = row_times(columns_of(polars.DataFrame({"t": [0.5, 3600.5]})), ["t"], form="seconds")
    assert found.values.astype(str).tolist() == ["1970-01-01T00:00:00.500000", "1970-01-01T01:00:00.500000"]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"d": ["25.03.2024", "26.03.2024"], "t": ["18.00.00", "19.30.00"]}, ["d", "t"]),
        ({"d": ["2024-03-25", "2024-03-26"], "t": [1800, 1930]}, ["d", "t"]),
        (
            {"d": [datetime(2024, 3, 25).date(), datetime(2024, 3, 26).date()], "t": ["18:00", "19:30"]},
            ["d", "t"],
        ),
        ({"year": [2024, 2024], "month": [3, 3], "day": [25, 26], "hour": [18, 19], "minute": [0, 30]}, None),
    ],
)
def test_several_columns_are_one_time(columns: dict[str, list[object]], names: list[str] | None) -> None:
    found = row_times(columns_of(polars.DataFrame(columns)), names or list(columns))
    assert found.values.astype(str).tolist() == ["2024-03-25T18:00:00", "2024-03-26T19:30:00"]


def test_parts_in_another_order_or_out_of_range_are_refused() -> None:
    frame = polars.DataFrame({"year": [2024], "day": [1], "month": [13]})
    with pytest.raises(DataError, match="in this order"):
        row_times(columns_of(frame), ["year", "day", "month"])
    with pytest.raises(RowError, match="holds 2024, 13, 1"):
        row_times(columns_of(frame), ["year", "month", "day"])


@settings(deadline=None, max_examples=30)
@given(
    start=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    minutes=st.sampled_from([10, 30, 60]),
    series=st.integers(1, 2),
)
def test_local_times_become_the_moments_they_were(
    start: datetime, zone: str, minutes: int, series: int
) -> None:
    """Over a year and more of rows, through both changes of the clock, for one series and two at once."""
    assume(zone != "Australia/Lord_Howe" or minutes < 60)  # half an hour twice: an hourly row may be either
    begin = start.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    around = [begin.replace(year=begin.year, month=month, day=1) for month in (3, 10)]
    moments = [
        one + timedelta(minutes=minutes * row) for one in around for row in range(60 * 24 * 45 // minutes)
    ]
    local = [one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in moments for _ in range(series)]
    frame = pd.DataFrame({"t": local, "s": [str(row % series) for row in range(len(local))], "y": 0.0})
    panel = Panel.from_frame(frame, target="y", time="t", series="s", time_zone=zone)
    expected = np.array([one.replace(tzinfo=None) for one in moments], dtype="datetime64[s]")
    np.testing.assert_array_equal(np.asarray(panel.time).astype("datetime64[s]"), np.tile(expected, series))


@given(
    times=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    duplicates=st.sampled_from(["first", "last", "mean"]),
    data=st.data(),
)
def test_sorting_and_one_row_each_as_pandas_has_them(
    times: list[int], duplicates: str, data: st.DataObject
) -> None:
    series = data.draw(st.lists(st.sampled_from("ab"), min_size=len(times), max_size=len(times)))
    values = data.draw(
        st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=len(times), max_size=len(times))
    )
    frame = pd.DataFrame(
        {"s": series, "t": times, "x": np.arange(len(times)) / 4, "y": pd.array(values, "Float64")}
    )
    panel = Panel.from_frame(frame, target="y", time="t", series="s", sort=True, duplicates=duplicates)  # type: ignore[arg-type]  # one of three
    ordered = frame.assign(y=frame["y"].astype(float)).sort_values("t", kind="stable")
    ordered = pd.concat([ordered[ordered.s == name] for name in dict.fromkeys(series)])
    groups = ordered.groupby(["s", "t"], sort=False)
    expected = groups.mean() if duplicates == "mean" else ordered.set_index(["s", "t"])[["x", "y"]]
    if duplicates != "mean":
        expected = expected[~expected.index.duplicated(keep=duplicates)]  # type: ignore[arg-type]  # first or last
    np.testing.assert_allclose(panel.target, expected["y"].to_numpy(float))
    np.testing.assert_allclose(panel.inputs[:, 0], expected["x"].to_numpy(float))
    assert np.asarray(panel.time).tolist() == [time for _, time in expected.index]


def test_rows_in_order_are_left_as_they_are() -> None:
    assert time_order(np.arange(4), np.array([0, 2, 4])) is None
    values = {"inputs": np.empty((2, 0)), "target": np.zeros(2), "time": np.arange(2)}
    starts, order, dropped = one_each(values, np.array([0, 2]), np.arange(2), "mean")
    assert (starts.tolist(), order.tolist(), dropped) == ([0, 2], [0, 1], 0)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([-200.0] * 3 + [1.0, 2.0, 3.0, 2.0], [-200.0]),
        ([9999.0] * 3 + [1012.0, 1013.0, 1009.0, 1010.0], [9999.0]),
        ([0.0] * 3 + [5.0, 6.0, 7.0, 8.0], []),  # rain: none is no gap
        ([-200.0] * 2 + [1.0, 2.0, 3.0, 4.0], []),  # twice may be chance
        ([100.0] * 3 + [1.0, 2.0, 99.0, 50.0], []),  # a percentage at its end
        ([np.nan, 1.0, 1.0], []),
    ],
)
def test_numbers_that_stand_for_nothing(values: list[float], found: list[float]) -> None:
    assert [number for _, number, _ in suspects(np.array(values)[:, None], ["x"])] == found
