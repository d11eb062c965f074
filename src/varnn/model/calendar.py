"""Fourier terms of the day and the week: time of a row -> inputs that come back with each.

Sines and cosines of the cycle, and of half a day, as in harmonic regression [1]_, and whether it is the
weekend. Only cycles that a year of data repeats often are offered. A day of the year is none of them: a
stream of a year or two has seen each once, so it would mark the row, not the season.

References
----------
.. [1] R. J. Hyndman and G. Athanasopoulos, "Forecasting: Principles and Practice", 3rd edition, OTexts, 2021.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn.data.sampling import seconds_per_row
from varnn.errors import DataError

Cycle = Literal["day", "week"]
CYCLES: tuple[str, ...] = get_args(Cycle)
_SECONDS = {"day": 86_400, "week": 604_800}
_MONDAY = 3 * 86_400  # the epoch was a Thursday
_MICROSECONDS = np.dtype("datetime64[us]")


def calendar_names(cycles: Sequence[Cycle]) -> tuple[str, ...]:
    """Name the inputs of some cycles.

    Parameters
    ----------
    cycles : sequence of {"day", "week"}

    Examples
    --------
    >>> calendar_names(["day"])
    ('day sin', 'day cos', 'half day sin', 'half day cos')
    """
    names = {
        "day": ("day sin", "day cos", "half day sin", "half day cos"),
        "week": ("week sin", "week cos", "weekend"),
    }
    return tuple(name for cycle in cycles for name in names[cycle])


def calendar_inputs(time: npt.NDArray[Any] | None, cycles: Sequence[Cycle]) -> npt.NDArray[np.float64]:
    """Compute the Fourier terms of some cycles.

    Parameters
    ----------
    time : array of datetime64 of shape (N,)
        None, or other numbers, are refused.
    cycles : sequence of {"day", "week"}

    Returns
    -------
    array of shape (N, C)
        In the order of :func:`calendar_names`.

    Examples
    --------
    >>> time = np.array(["2026-11-14T06:00", "2026-11-16T12:00"], dtype="datetime64[m]")
    >>> calendar_inputs(time, ["day", "week"])[:, [0, 1, -1]].round().astype(int).tolist()
    [[1, 0, 1], [0, -1, 0]]
    """
    if not has_times(time):
        raise DataError(
            "this model sees the time of day or week, so each row needs its time; the rows have none. "
            "Give `time`, as when it was fitted."
        )
    seconds = np.asarray(time).astype("datetime64[s]").astype(np.int64)
    columns: list[npt.NDArray[np.float64]] = []
    for cycle in cycles:
        angle = 2 * np.pi * ((seconds + _MONDAY) % _SECONDS[cycle]) / _SECONDS[cycle]
        columns += [np.sin(angle), np.cos(angle)]
        if cycle == "day":
            columns += [np.sin(2 * angle), np.cos(2 * angle)]
        else:
            columns.append((angle >= 2 * np.pi * 5 / 7).astype(np.float64))
    return np.column_stack(columns) if columns else np.empty((len(seconds), 0))


def calendar_of(time: np.datetime64 | None, cycles: tuple[Cycle, ...]) -> npt.NDArray[np.float64]:
    """Compute the Fourier terms of one time.

    Times of the week come again, so that what the calendar says of them is kept: (C,), not to be written to.

    Examples
    --------
    >>> calendar_of(np.datetime64("2026-11-14T06:00"), ("day",)).round().astype(int).tolist()
    [1, 0, 0, -1]
    """
    if time is None:
        return _calendar_at(None, cycles)
    if time.dtype != _MICROSECONDS:
        time = time.astype(_MICROSECONDS)
    return _calendar_at(int(time.view(np.int64)) // 1_000_000 % _SECONDS["week"], cycles)


@lru_cache(maxsize=4096)
def _calendar_at(seconds: int | None, cycles: tuple[Cycle, ...]) -> npt.NDArray[np.float64]:
    """What the calendar says of a second of the week."""
    time = None if seconds is None else np.array([seconds], dtype="datetime64[s]")
    return np.asarray(calendar_inputs(time, cycles)[0])


def has_times(time: npt.NDArray[Any] | None) -> bool:
    """Tell whether these are times of a calendar, and not mere numbers.

    Examples
    --------
    >>> has_times(np.arange(3)), has_times(np.array(["2026-11-15"], dtype="datetime64[D]"))
    (False, True)
    """
    return time is not None and np.issubdtype(np.asarray(time).dtype, np.datetime64)


def offered_cycles(time: npt.NDArray[Any] | None) -> tuple[Cycle, ...]:
    """List the cycles that rows pass through at least ten times, in several steps each.

    Examples
    --------
    >>> hourly = np.datetime64("2026-01-01T00") + np.arange(24 * 30)
    >>> offered_cycles(hourly), offered_cycles(hourly[::24])
    (('day',), ())
    """
    if time is None or not has_times(time):
        return ()
    times = np.sort(time.astype("datetime64[s]"))  # of all series together
    step = seconds_per_row(times)
    if step is None:
        return ()
    span = int((times[-1] - times[0]).astype(np.int64))
    cycles: tuple[Cycle, ...] = ("day", "week")
    return tuple(one for one in cycles if 4 * step <= _SECONDS[one] and span >= 10 * _SECONDS[one])
