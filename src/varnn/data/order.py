"""Rows in any order -> rows in the order of time, one for each time of a series; or why they are not.

Nothing is put in order or merged unless asked for: rows that run backwards or repeat a time are most often
a sign of something else (several series, a clock set back, a join gone wrong), and the message says which.
"""

from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, IntArray
from varnn.data import allocator
from varnn.data.grouping import RowNumbers
from varnn.errors import DataError, RowError, check_choice

Duplicates = Literal["error", "first", "last", "mean"]
DUPLICATES: tuple[str, ...] = get_args(Duplicates)

_SUNDAY = 3  # of days since 1970, which began on a Thursday, modulo 7
_CHANGING_MONTHS = (3, 4, 10, 11)  # in which summer time ends, north or south
_LATE = 4  # o'clock until which it does


def time_order(time: npt.NDArray[Any], starts: IntArray) -> RowNumbers | None:
    """The rows of each series in the order of time, ties as they came; None where they are in it.

    Examples
    --------
    >>> time_order(np.array([3, 1, 2, 1]), np.array([0, 3, 4])).tolist()
    [1, 2, 0, 3]
    """
    if not _steps_wrong(time, starts, strict=False).any():
        return None
    series = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.lexsort((time, series))


def reorder(values: dict[str, Any], rows: RowNumbers) -> None:
    """Bring rows into another order."""
    for name in values:
        values[name] = None if values[name] is None else values[name][rows]
        allocator.release()  # of what it was before


def one_each(
    values: dict[str, Any], starts: IntArray, order: RowNumbers, duplicates: Duplicates
) -> tuple[IntArray, RowNumbers, int]:
    """Keep one row for each time of a series, in place; rows must be in the order of time.

    Parameters
    ----------
    values : dict
        Inputs (N, D), target (N,) and time (N,); they are replaced where rows go.
    starts : array of int
        Where each series begins.
    order : array of int
        The row of the caller's table that each row is.
    duplicates : Duplicates
        Which row to keep: the first, the last, or the mean of all numbers that are known.

    Returns
    -------
    starts, order, dropped
        The same for what is left, and how many rows went.

    Examples
    --------
    >>> target, time = np.array([1.0, 3.0, 5.0]), np.array([7, 7, 8])
    >>> values = {"inputs": np.empty((3, 0)), "target": target, "time": time}
    >>> starts, order, dropped = one_each(values, np.array([0, 3]), np.arange(3), "mean")
    >>> values["target"].tolist(), starts.tolist(), dropped
    ([2.0, 5.0], [0, 2], 1)
    """
    check_choice("duplicates", duplicates, DUPLICATES)
    time = values["time"]
    again = np.zeros(len(time), np.bool_)
    again[1:] = time[1:] == time[:-1]
    again[starts[:-1]] = False
    if duplicates == "error" or not again.any():
        return starts, order, 0
    first = np.flatnonzero(~again)
    kept = np.append(first[1:], len(time)) - 1 if duplicates == "last" else first
    for name in ("inputs", "target"):
        numbers = values[name]
        values[name] = _means(numbers, first) if duplicates == "mean" else numbers[kept]
    if "codes" in values:  # of texts there is no mean: that of the first row is taken
        values["codes"] = values["codes"][kept]
    values["time"] = time[kept]
    return np.searchsorted(first, starts).astype(np.int64), order[kept], int(again.sum())


def _means(numbers: npt.NDArray[Any], first: RowNumbers) -> npt.NDArray[Any]:
    """Mean of the known numbers of each run of rows; NaN where none is known."""
    known = ~np.isnan(numbers)
    counts = np.add.reduceat(known, first, axis=0, dtype=np.int64)
    sums = np.add.reduceat(np.where(known, numbers, 0), first, axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(numbers.dtype)


def refuse_unordered(
    time: npt.NDArray[Any], starts: IntArray, ids: tuple[str, ...], order: RowNumbers, candidates: str = ""
) -> None:
    """Refuse times that do not increase within each series, and say what may be behind it.

    ``candidates`` names columns that may tell series apart.
    """
    wrong = _steps_wrong(time, starts, strict=True)
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong) + 1  # that are not after the one before
    row = int(rows[0])
    again = time[rows] == time[rows - 1]
    series = ids[int(np.searchsorted(starts, row, side="right")) - 1]
    within = f"in series {series!r}, " if len(ids) > 1 else ""
    kind = "repeats" if again[0] else "goes back to"
    what = (
        f"the time must increase within each series; {within}{{where}} {kind} {time[row]} "
        f"after {time[row - 1]}."
    )
    named = candidates or ", or, if these are several series, name their column: `series` (--series)"
    message = f"{what} {_cause(time, starts, rows, again, named)}"
    raise RowError(message, row=int(order[row]))


def _cause(
    time: npt.NDArray[Any], starts: IntArray, rows: npt.NDArray[Any], again: BoolArray, named: str
) -> str:
    """Say what is most likely wrong, and what to do."""
    steps = len(time) - len(starts) + 1
    if len(rows) == steps > 1 and not again.any():
        return "All rows run from the latest to the earliest: sort=True (--sort) puts them in order."
    if _is_clock_change(time, rows):
        return (
            "This looks like the hour that comes twice when summer time ends: say whose clock it is, for "
            "example time_zone='Europe/Berlin' (--time-zone)."
        )
    if again.all():
        return (
            f"{len(rows):,} of {len(time):,} rows have the time of the row before: say which of them to keep "
            f"with duplicates='first', 'last' or 'mean' (--duplicates){named}."
        )
    repeats = len(time) - sum(len(np.unique(time[begin:end])) for begin, end in pairwise(starts))
    twice = " and duplicates='first', 'last' or 'mean' (--duplicates)" if repeats else ""
    return (
        f"{len(rows):,} of {steps:,} steps do not go forward: sort=True (--sort){twice} would put rows "
        f"in order{named}."
    )


def _is_clock_change(time: npt.NDArray[Any], rows: npt.NDArray[Any]) -> bool:
    """Tell whether times fail to increase on Sunday nights of spring or autumn alone, once in half a year."""
    if time.dtype.kind != "M":
        return False
    days = time[rows].astype("datetime64[D]")
    months = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
    hours = (time[rows] - days).astype("timedelta64[h]").astype(np.int64)
    in_season = np.isin(months, _CHANGING_MONTHS) & (days.astype(np.int64) % 7 == _SUNDAY) & (hours < _LATE)
    years = len(np.unique(days.astype("datetime64[Y]")))
    return bool(in_season.all()) and len(np.unique(days)) <= years


def _steps_wrong(time: npt.NDArray[Any], starts: IntArray, *, strict: bool) -> BoolArray:
    """Tell for each step from row to row whether it goes back, or (strict) stays; (N - 1,)."""
    try:
        wrong: BoolArray = time[1:] <= time[:-1] if strict else time[1:] < time[:-1]
    except TypeError:
        raise DataError(f"times must be dates or numbers; they are {time.dtype}.") from None
    wrong[starts[1:-1] - 1] = False  # the step from one series to the next may go back
    return wrong
