"""Which seasons are offered: those of the calendar where rows have times, else what the labels show."""

from dataclasses import replace

import numpy as np
import pytest

from varnn import Panel
from varnn._types import DoubleArray
from varnn.model.seasons import LONGEST, offered_periods

DAY, WEEK = 86_400, 604_800


def timed(step: int, rows: int, *, series: int = 1) -> Panel:
    """Make series of noise with a row every so many seconds."""
    time = np.datetime64("2026-01-01T00:00:00") + step * np.arange(rows).astype("timedelta64[s]")
    return Panel.from_arrays(
        None,
        np.random.default_rng(0).normal(size=rows * series),
        time=np.tile(time, series),
        series=np.repeat([f"s{index}" for index in range(series)], rows),
    )


@pytest.mark.parametrize(
    ("step", "rows", "periods"),
    [
        (600, 4 * 1008, (144, 1008)),
        (600, 3 * 1008, (144, 1008)),  # each comes three times
        (600, 3 * 1008 - 1, (144,)),
        (300, 10_000, (288, 2016)),
        (60, 10_000, (1440,)),  # a week of minutes is longer than a stream keeps labels
        (3600, 24 * 60, (24, 168)),
        (3600, 71, ()),
        (6 * 3600, 400, (4, 28)),
        (12 * 3600, 400, (14,)),  # two rows of a day are too few to be one
        (DAY, 365 * 2, (7,)),
        (DAY, 365 * 4, (7, 365)),
        (WEEK, 52 * 6, (52,)),
        (5 * 3600, 4000, ()),  # 4.8 rows of a day, 33.6 of a week
        (1, 100_000, ()),
    ],
)
def test_periods_of_the_calendar(step: int, rows: int, periods: tuple[int, ...]) -> None:
    assert offered_periods(timed(step, rows)) == periods


def test_months_have_a_year() -> None:
    months = np.arange("2000-01", "2012-01", dtype="datetime64[M]").astype("datetime64[s]")
    assert offered_periods(Panel.from_arrays(None, np.zeros(len(months)), time=months)) == (12,)


def test_several_series_count_by_the_longest_and_their_jumps_are_no_steps() -> None:
    assert offered_periods(timed(3600, 200, series=5)) == (24,)
    panel = timed(3600, 600, series=3)
    assert offered_periods(panel) == (24, 168)
    assert offered_periods(panel.between(0, 80)) == (24,)


def test_irregular_times_have_none() -> None:
    panel = timed(3600, 2000)
    draw = np.random.default_rng(1)
    time = np.asarray(panel.time)
    few, many = (time[draw.random(2000) > share] for share in (0.02, 0.2))
    assert offered_periods(Panel.from_arrays(None, np.zeros(len(few)), time=few)) == (24, 168)
    assert offered_periods(Panel.from_arrays(None, np.zeros(len(many)), time=many)) == ()
    jittered = time + (600 * draw.normal(size=2000)).astype("timedelta64[s]")
    assert offered_periods(Panel.from_arrays(None, np.zeros(2000), time=np.sort(jittered))) == ()


def shaped(rows: int, period: int, noise: float = 0.5) -> DoubleArray:
    """Repeat a shape of so many rows, with noise on it."""
    draw = np.random.default_rng(period)
    shape = draw.normal(size=period)
    return np.asarray(np.resize(shape, rows) + noise * draw.normal(size=rows))


@pytest.mark.parametrize("period", [4, 5, 12, 24, 31, 144])
def test_without_times_a_period_is_found_in_the_labels(period: int) -> None:
    found = offered_periods(Panel.from_arrays(None, shaped(20 * period, period)))
    assert found[0] == period
    assert found in ((period,), (period, 7 * period))


def test_a_smooth_wave_has_its_own_period_and_not_twice_that() -> None:
    wave = np.sin(2 * np.pi * np.arange(3000) / 48) + 0.05 * np.random.default_rng(2).normal(size=3000)
    assert offered_periods(Panel.from_arrays(None, wave))[0] in (47, 48, 49)


def test_a_week_of_days_is_found_where_it_is_one() -> None:
    day = np.tile(np.repeat([1.0, 1, 1, 1, 1, 0.2, 0.2], 24), 12) * np.tile(np.arange(24) > 7, 84)
    noise = 0.05 * np.random.default_rng(3).normal(size=len(day))
    assert offered_periods(Panel.from_arrays(None, day + noise)) == (24, 168)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rows", [60, 400, 5000])
def test_noise_and_walks_have_none(seed: int, rows: int) -> None:
    noise = np.random.default_rng(seed).normal(size=rows)
    for labels in (noise, np.cumsum(noise), np.zeros(rows)):
        assert offered_periods(Panel.from_arrays(None, labels)) == ()


def test_numbers_as_times_are_no_calendar() -> None:
    labels = shaped(600, 20)
    counted = Panel.from_arrays(None, labels, time=np.arange(600))
    assert offered_periods(counted) == offered_periods(Panel.from_arrays(None, labels))


def test_gaps_and_several_series_of_labels() -> None:
    labels = np.concatenate([shaped(500, 25), 3 + shaped(300, 25), shaped(2, 25)])
    labels[np.random.default_rng(4).random(len(labels)) < 0.1] = np.nan
    series = np.repeat(["a", "b", "c"], [500, 300, 2])
    panel = Panel.from_arrays(None, labels, series=series)
    assert offered_periods(panel)[0] == 25
    unknown = replace(panel, target=np.full(len(panel), np.nan))
    assert offered_periods(unknown) == ()


@pytest.mark.parametrize("rows", [1, 2, 5, 11])
def test_the_shortest_series(rows: int) -> None:
    assert offered_periods(Panel.from_arrays(None, np.arange(rows, dtype=float) % 4)) == ()
    assert offered_periods(timed(3600, rows)) == ()


def test_a_period_longer_than_a_stream_keeps_is_not_found() -> None:
    labels = shaped(4 * (LONGEST + 100), LONGEST + 100)
    assert offered_periods(Panel.from_arrays(None, labels)) == ()
