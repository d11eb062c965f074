"""One answer to how far apart rows are, whoever asks: the median step within series, and one that occurs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varnn import Panel
from varnn.data.sampling import sampling_step, seconds_per_row
from varnn.data.understood import _step
from varnn.errors import DataError
from varnn.evaluation.backtesting import _rows_of_a_day
from varnn.model.calendar import offered_cycles
from varnn.model.forecast.rows import coming_times
from varnn.monitoring.diagnostics import diagnose

NEW_YEAR = np.datetime64("2026-01-01T00:00:00")


def panel_of(*steps: list[int]) -> Panel:
    """Make a panel whose series have these steps, in seconds, and all begin at the same time."""
    times = [NEW_YEAR + np.cumsum([0, *one]).astype("timedelta64[s]") for one in steps]
    names = np.repeat([f"{number:03}" for number in range(len(times))], [len(one) for one in times])
    rows = int(sum(len(one) for one in times))
    return Panel.from_arrays(None, np.arange(rows, dtype=float), time=np.concatenate(times), series=names)


@given(st.lists(st.lists(st.integers(1, 90_000), min_size=1, max_size=30), min_size=1, max_size=4))
def test_the_step_is_the_median_within_series(steps: list[list[int]]) -> None:
    panel = panel_of(*steps)
    every = sorted(step for one in steps for step in one)
    assert seconds_per_row(panel.time, panel.starts) == every[len(every) // 2]
    if len(every) % 2:
        assert seconds_per_row(panel.time, panel.starts) == int(np.median(every))
    for index, one in enumerate(steps):
        own = np.asarray(panel.time)[panel.starts[index] : panel.starts[index + 1]]
        assert sampling_step(own) == np.timedelta64(sorted(one)[len(one) // 2], "s")


def test_jumps_from_one_series_to_the_next_are_no_steps() -> None:
    time = np.array([0, 1, 1000, 1001, 2000, 2001])
    assert sampling_step(time, np.array([0, 2, 4, 6])) == 1
    assert sampling_step(time[::2]) == 1000
    assert sampling_step(np.array([5, 3]), np.array([0, 1, 2])) is None
    assert sampling_step(np.array([5])) is None
    assert sampling_step(np.empty(0)) is None


@pytest.mark.parametrize("seconds", [1, 600, 3600, 21_600, 86_400])
def test_all_who_ask_are_told_the_same(seconds: int) -> None:
    rows = 12 * 86_400 // min(seconds, 3600) if seconds >= 3600 else 300
    panel = panel_of([seconds] * rows, [seconds] * (rows - 3))
    assert seconds_per_row(panel.time, panel.starts) == seconds
    assert _rows_of_a_day(panel) == 86_400 // seconds
    assert diagnose(np.random.default_rng(0).normal(size=len(panel)), panel).seconds_per_row == seconds
    assert coming_times(panel, 2)[1, 1] == NEW_YEAR + (rows - 3 + 2) * np.timedelta64(seconds, "s")
    long_enough = rows * seconds >= 10 * 86_400
    assert ("day" in offered_cycles(panel.time)) == (long_enough and seconds <= 21_600)
    units = {1: "1 s", 600: "10 min", 3600: "1 h", 21_600: "6 h", 86_400: "1 d"}
    assert _step(panel) == f"every {units[seconds]}"


def test_uneven_rows_numbers_and_single_rows() -> None:
    panel = panel_of([60, 60, 600, 60], [60])
    assert _step(panel) == "about every 1 min, uneven"
    numbers = Panel.from_arrays(None, [1.0, 2.0, 3.0], time=np.array([0.0, 0.5, 1.0]))
    assert _step(numbers) == "every 0.5"
    assert seconds_per_row(numbers.time) is None
    assert _rows_of_a_day(numbers) is None
    assert coming_times(numbers, 1).tolist() == [[1.5]]
    single = Panel.from_arrays(None, [1.0], time=np.array([NEW_YEAR]))
    assert _step(single) is None
    assert _rows_of_a_day(single) is None
    assert offered_cycles(single.time) == ()
    with pytest.raises(DataError, match="the data are one row"):
        coming_times(single, 1)
    beside = panel_of([], [600, 600])  # a series of one row goes on with the step of the others
    assert coming_times(beside, 1)[0, 0] == NEW_YEAR + np.timedelta64(600, "s")


def test_cycles_look_at_the_moments_of_all_series_together() -> None:
    """Two series of one row in eight hours, four hours apart: a day has six moments, and is offered."""
    hours = np.arange(0, 24 * 12, 8)
    time = np.concatenate([NEW_YEAR + one.astype("timedelta64[h]") for one in (hours, hours + 4)])
    starts = np.array([0, len(hours), 2 * len(hours)])
    assert seconds_per_row(time, starts) == 8 * 3600
    assert offered_cycles(time[: starts[1]]) == ()
    assert offered_cycles(time) == ("day",)
