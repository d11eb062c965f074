"""Columns of a table -> which of them is the time and which the series, where nobody said so.

The target is never guessed. Of a long frame (`varnn.data.long_frames`) the names tell. Else the time is the
first column with dates (a time of day or an hour beside it joined to it), else columns called year, month,
day and so on, else numbers that are seconds since 1970 or dates written as numbers. The series is looked for
only where times do not increase from row to row: it then is the first column of texts within which they do,
and whose values come one after another or at the same times. (The weather, told in two rows for one hour, is
none.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from varnn.data import _columns
from varnn.data._time_columns import (
    epoch_unit,
    holds_dates,
    holds_times_of_day,
    is_calendar,
    part_of_time,
    row_times,
)
from varnn.data.grouping import Coded
from varnn.data.long_frames import as_long
from varnn.data.tables import Columns, Reading
from varnn.errors import DataError, VarnnError

NONE = "none"  # said of a column: there is none, do not guess one
_ROWS_AT_ONCE = 1 << 20
_LOOKED_AT = 50  # rows that tell what a column holds
_TIME_WORDS = (
    *("time", "date", "timestamp", "datetime", "ts", "ds"),
    *("epoch", "unix", "when", "period", "month"),
)
_BESIDE = ("utc", "local", "start", "begin", "end", "ms", "ns", "s")  # words that may stand with these
_SHARED = 0.25  # of rows that repeat a time, from which on they are taken to be several series
_MOST_SERIES = 1000  # values of a whole-number column that may name series


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which columns are the time and the series of a row, and which of the two were guessed."""

    time: tuple[str, ...]
    series: str | None
    guessed: frozenset[str]
    candidates: tuple[str, ...] = ()  # within which times increase as well, and which are not guessed


def guessed_roles(table: Columns, reading: Reading) -> Roles:
    """Guess what is not given: a time or series of None; the word "none" stands for no column.

    Examples
    --------
    >>> import polars
    >>> from varnn.data.tables import columns_of
    >>> frame = polars.DataFrame({"Date": ["10/03/2004", "13/03/2004"], "Time": ["18.00.00", "19.00.00"]})
    >>> guessed_roles(columns_of(frame), Reading(target="load")).time
    ('Date', 'Time')
    """
    long = as_long(reading, table)
    guessed = {role for role in ("time", "series") if getattr(long, role) != getattr(reading, role)}
    reading = long
    taken = {reading.target, reading.series, *(reading.inputs or ())}
    free = [name for name in table if name not in taken]
    times = () if reading.time == NONE else tuple(reading.times_in(table))
    if reading.time is None:
        times = (
            _time(table, free)
            if reading.time_format is None
            else _in_format(table, free, reading.time_format)
        )
        guessed |= {"time"} if times else set()
    series, candidates = None if reading.series == NONE else reading.series, list[str]()
    asked = reading.duplicates != "error"  # then rows that repeat a time are no series
    if reading.series is None and not asked and times and all(one in table for one in times):
        others = [name for name in free if name not in times]
        series, candidates = _series(table, others, times, reading.time_format)
        guessed |= {"series"} if series is not None else set()
    return Roles(time=times, series=series, guessed=frozenset(guessed), candidates=tuple(candidates))


def _time(table: Columns, free: Sequence[str]) -> tuple[str, ...]:
    """Find the columns with the time."""
    dates = [name for name in free if holds_dates(table[name])]
    if dates:
        return (dates[0], *_rest_of_day(table, free, dates[0]))
    parts = {part: name for name in reversed(free) if (part := part_of_time(name)) is not None}
    if {"year", "month"} <= parts.keys() and _are_years(table[parts["year"]]):
        known = ("year", "month", "day", "hour", "minute", "second")
        present = [one in parts for one in known]
        return tuple(parts[one] for one in known[: present.index(False) if False in present else len(known)])
    numbers = [name for name in free if _is_time_in_numbers(table[name], name)]
    if not numbers:
        _refuse_unread_time(table, free)
        numbers = [name for name in free if is_called_time(name) and _counts_on(table[name])]
    return tuple(numbers[:1])


def _counts_on(column: nw.Series[Any]) -> bool:
    """Tell whether numbers grow from row to row, as hours since a start do."""
    if not column.dtype.is_numeric() or len(column) < 2 or column.null_count():
        return False
    numbers = np.asarray(column.to_numpy())
    return bool((numbers[1:] > numbers[:-1]).all())


def _refuse_unread_time(table: Columns, free: Sequence[str]) -> None:
    """Refuse to go on without times where a column is called so and cannot be read."""
    for name in free:
        if (
            is_called_time(name)
            and _columns.is_text(table[name])
            and not _columns.is_nearly_numeric(table[name])
        ):
            raise DataError(
                f"column {name!r} must hold dates that can be read, by its name; it begins with "
                f"{table[name][0]!r}. Say how to read it with --time-format, name another with --time, "
                "or take the rows as they come with --time none."
            )


def _in_format(table: Columns, free: Sequence[str], form: str) -> tuple[str, ...]:
    """Find the column that can be read in a format: one that is called a time before any other."""
    for name in sorted(free, key=lambda one: not is_called_time(one)):
        try:
            row_times({name: table[name][:_LOOKED_AT]}, [name], form=form)
        except VarnnError:
            continue
        return (name,)
    raise DataError(f"no column can be read as times in the format {form!r}. Name the column with --time.")


def _rest_of_day(table: Columns, free: Sequence[str], date: str) -> list[str]:
    """Find the time of day that belongs to a column of dates without one."""
    some = table[date][:1000].to_list()
    if any(":" in str(cell) and "00:00:00" not in str(cell) for cell in some):
        return []
    clock = [name for name in free if name != date and holds_times_of_day(table[name])]
    if clock:
        return clock[:1]
    repeats = table[date].n_unique() < len(table[date])
    hours = [name for name in free if part_of_time(name) == "hour" and _is_hour(table[name])]
    return hours[:1] if repeats else []


def _is_hour(column: nw.Series[Any]) -> bool:
    numbers = _whole_numbers(column)
    return numbers is not None and numbers.min() >= 0 and numbers.max() <= 24


def _are_years(column: nw.Series[Any]) -> bool:
    numbers = _whole_numbers(column)
    return numbers is not None and numbers.min() >= 1000 and numbers.max() < 3000


def _whole_numbers(column: nw.Series[Any]) -> npt.NDArray[Any] | None:
    """Cells of a column of whole numbers without gaps; None of any other."""
    if not column.dtype.is_numeric() or len(column) == 0 or column.null_count():
        return None
    numbers = np.asarray(column.to_numpy())
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return None
    return numbers


def _is_time_in_numbers(column: nw.Series[Any], name: str) -> bool:
    """Tell whether numbers are times: they look so, and are called so or run on without a step back."""
    if not column.dtype.is_numeric() or len(column) < 2 or column.null_count():
        return False
    numbers = np.asarray(column.to_numpy())
    if not np.isfinite(numbers).all() or (epoch_unit(numbers) is None and not is_calendar(numbers)):
        return False
    runs = bool((numbers[1:] > numbers[:-1]).all() or (numbers[1:] < numbers[:-1]).all())
    return is_called_time(name) or (runs and numbers.min() > 1e7)  # six digits may be anything


def is_called_time(name: str) -> bool:
    """Tell whether a column is a time by its name.

    Examples
    --------
    >>> is_called_time("Date Time"), is_called_time("runtime_hours"), is_called_time("load")
    (True, False, False)
    """
    words = name.lower().replace("-", "_").replace(" ", "_").split("_")
    return set(words) <= {*_TIME_WORDS, *_BESIDE} and not set(words).isdisjoint(_TIME_WORDS)


def _series(
    table: Columns, free: Sequence[str], times: Sequence[str], form: str | None
) -> tuple[str | None, list[str]]:
    """Find the column that tells series apart, where times do not increase over all rows; and others."""
    try:
        stamps = row_times(table, times, form=form).values
    except DataError:
        return None, []  # the panel says what is wrong with them
    if np.all(stamps[1:] > stamps[:-1]):
        return None, []
    candidates = []
    for name in free:
        names = _names(table[name], name)
        if names is None or not _increases(stamps, names):
            continue
        if _columns.is_text(table[name]) and _are_side_by_side(stamps, names):
            return name, []
        candidates.append(name)
    return None, candidates


def _names(column: nw.Series[Any], name: str) -> Coded | None:
    """Read a column as names of series, if it can be: texts, or a few whole numbers."""
    if _columns.is_text(column):
        return None if _columns.first_empty(column) is not None else _columns.coded(column, name)
    numbers = _whole_numbers(column)
    few = numbers is not None and len(np.unique(numbers[:_ROWS_AT_ONCE])) <= _MOST_SERIES
    return Coded.of(numbers) if numbers is not None and few else None


def _are_side_by_side(stamps: npt.NDArray[Any], series: Coded) -> bool:
    """Tell whether series come one after another, or many of their rows at times that others have, too."""
    changes = int((series.codes[1:] != series.codes[:-1]).sum())
    if changes == len(series.names) - 1:
        return True
    return len(stamps) - len(np.unique(stamps)) >= _SHARED * len(stamps)


def _increases(stamps: npt.NDArray[Any], series: Coded) -> bool:
    """Tell whether times increase within each series; series of a row each, as notes would make, are none."""
    if 2 * (len(stamps) - len(series.names)) < len(stamps) - 1:
        return False
    last, begun = np.empty(len(series.names), stamps.dtype), np.zeros(len(series.names), np.bool_)
    for begin in range(0, len(stamps), _ROWS_AT_ONCE):  # all at once they would be sorted
        codes, times = (one[begin : begin + _ROWS_AT_ONCE] for one in (series.codes, stamps))
        order = np.argsort(codes, kind="stable")
        codes, times = codes[order], times[order]
        same = codes[1:] == codes[:-1]
        first, final = np.append(True, ~same), np.append(~same, True)
        known = begun[codes[first]]
        on = np.append(times[1:][same] > times[:-1][same], (times[first] > last[codes[first]])[known])
        if not on.all():
            return False
        last[codes[final]], begun[codes[final]] = times[final], True
    return True
