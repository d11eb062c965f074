"""One time in a stream: what is read as one, what is refused, and that it only goes on."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from varnn import Panel, Stream, VARNNRegressor, load
from varnn.data.timestamps import read_back, timestamp
from varnn.errors import DataError

NOON = np.datetime64("2026-11-15T12:00", "us")
SMALL: Any = {"epochs": 1, "hidden_size": 4, "ensemble": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def hourly() -> Panel:
    X = np.random.default_rng(0).normal(size=(120, 2))
    time = np.datetime64("2026-01-01T00", "h") + np.arange(120)
    return Panel.from_arrays(X, X[:, 0].cumsum(), time=time)


@pytest.fixture(scope="module")
def clock(hourly: Panel) -> VARNNRegressor:
    return VARNNRegressor(calendar=["day"], **SMALL).fit(hourly)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-15T12:00",
        "2026-11-15 12:00:00",
        "2026-11-15T12:00Z",
        "2026-11-15T13:00+01:00",
        "2026-11-15T06:30-05:30",
        datetime(2026, 11, 15, 12),
        datetime(2026, 11, 15, 12, tzinfo=UTC),
        datetime(2026, 11, 15, 14, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2026-11-15T12", "h"),
        np.datetime64("2026-11-15T12", "ns"),
        np.array("2026-11-15T12", dtype="datetime64[m]"),
        pd.Timestamp("2026-11-15T12"),
        pd.Timestamp("2026-11-15T13:00", tz="Europe/Berlin"),
    ],
    ids=repr,
)
def test_forms_of_one_time_are_the_same_moment(value: Any) -> None:
    found = timestamp(value)
    assert found == NOON
    assert found.dtype == NOON.dtype
    assert read_back(str(found)) == found


def test_dates_months_far_years_and_nanoseconds() -> None:
    assert timestamp(date(2026, 11, 15)) == timestamp("2026-11-15") == np.datetime64("2026-11-15", "us")
    assert timestamp("2026-11") == np.datetime64("2026-11-01", "us")
    assert str(timestamp("3000-01-01"))[:4] == "3000"
    far = np.datetime64("-20000-01-01", "D")
    assert timestamp(far) == far
    assert read_back(str(timestamp(far))) == far
    fine = pd.Timestamp("2026-11-15T12:00:00.000000001")
    assert timestamp(fine) - NOON == np.timedelta64(1, "ns")
    assert read_back(str(timestamp(fine))) == timestamp(fine)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "NaT",
            "",
            "now",
            "today",
            "yesterday",
            "2026",
            "5",
            "2026-13-01",
            "2026-11-15T25:00",
            "x" * 10_000,
        ),
        *(
            5,
            5.0,
            True,
            np.int64(5),
            [],
            {},
            ["2026-11-15"],
            pd.NaT,
            np.datetime64("NaT"),
            np.timedelta64(1, "h"),
        ),
        np.array(["2026-11-15"], dtype="datetime64[D]"),
        np.datetime64(2**62, "Y"),
        "0001-01-01T00:00+23:00",
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_moment_is_refused_in_one_short_sentence(value: Any, clock: VARNNRegressor) -> None:
    with pytest.raises(DataError, match="must be a timestamp such as") as refused:
        timestamp(value)
    assert len(str(refused.value)) < 200
    live = clock.stream()
    with pytest.raises(DataError, match="must be a timestamp such as"):
        live.predict([0.0, 0.0], time=value)


def test_a_model_without_a_clock_refuses_them_as_well() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    live = VARNNRegressor(**SMALL).fit(X, X[:, 0]).stream()
    with pytest.raises(DataError, match="must be a timestamp"):
        live.predict([0.0, 0.0], time="now")


def test_time_does_not_stand_still_nor_go_back(clock: VARNNRegressor) -> None:
    live = clock.stream()
    live.predict([0.0, 0.0], time="2026-02-01T10:00")
    live.predict([0.0, 0.0], time="2026-02-01T09:00")  # asking again, with another time, is fine
    live.observe(1.0)
    for again in (live, Stream.restore(clock, live.snapshot())):
        before = again.snapshot()
        for time in ("2026-02-01T09:00", "2026-02-01T08:59:59", "2026-02-01T10:00+02:00"):
            with pytest.raises(DataError, match="2026-02-01T09:00") as refused:
                again.predict([0.0, 0.0], time=time)
            assert str(timestamp(time)) in str(refused.value)
        assert again.snapshot() == before
        assert np.isfinite(again.predict([0.0, 0.0], time="2026-02-01T09:01"))


def test_a_pending_time_with_an_offset_survives_a_snapshot(clock: VARNNRegressor) -> None:
    live = clock.stream()
    there = timezone(timedelta(hours=5))
    live.predict([0.1, 0.2], time=datetime(2026, 2, 1, 10, tzinfo=there))
    assert Stream.restore(clock, live.snapshot()).observe(1.0) == live.observe(1.0)


def test_far_years_survive_saving_streaming_and_snapshots(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 1))
    time = np.datetime64("3000-01-01T00", "h") + np.arange(200)
    panel = Panel.from_arrays(X, X[:, 0].cumsum(), time=time)
    model = VARNNRegressor(horizon=3, **SMALL).fit(panel)
    model.save(tmp_path / "far.varnn")
    loaded = load(tmp_path / "far.varnn")
    expected = time[-1] + np.arange(1, 4)
    for one in (model, loaded):
        assert (one.forecast().time == expected).all()
    (tail,) = loaded.fitted_.last_rows.values()
    (before,) = model.fitted_.last_rows.values()
    assert tail.time is not None
    assert before.time is not None
    assert tail.time.dtype == before.time.dtype
    assert (tail.time == before.time).all()
    live = model.stream()
    for row in range(150, 200):
        live.predict(X[row], time=time[row])
        live.observe(panel.target[row])
    again = Stream.restore(model, live.snapshot())
    for stream in (live, again):
        assert (stream.forecast().time == expected).all()
