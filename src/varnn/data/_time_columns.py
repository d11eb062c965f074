"""A column of any kind, or several of them -> the time of each row, and in words how it was read.

Texts are read by `varnn.data._time_formats`. Numbers are seconds (or thousandths, millionths, billionths of
them) since 1970 by their size, or dates written as numbers (202401310500); small ones count rows.
Times with an offset or a zone become UTC.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from varnn.data._columns import first_empty, is_text
from varnn.data._time_formats import (
    Integers,
    Times,
    assembled,
    look_like_times,
    look_like_times_of_day,
    parse,
)
from varnn.data.grouping import Coded
from varnn.errors import ConfigError, DataError, RowError

_ROWS_AT_ONCE = 1 << 16
_LOOKED_AT = 50  # rows that tell what a column holds
# Since 1970, from 1973 to 2602: seconds, and what is smaller, do not overlap.
_EPOCHS = {"s": ("seconds", 1e8, 2e10), "ms": ("milliseconds", 1e11, 2e13)}
_EPOCHS |= {"us": ("microseconds", 1e14, 2e16), "ns": ("nanoseconds", 1e17, 2e19)}
_EPOCH_WORDS = {words: unit for unit, (words, _, _) in _EPOCHS.items()}
_CALENDAR_DIGITS = (6, 8, 10, 12, 14)  # of 202401, 20240131, 2024013117 and so on
_PARTS: dict[str, tuple[str, ...]] = {
    "year": ("year", "yr", "yyyy"),
    "month": ("month", "mon", "mnth", "mo"),
    "day": ("day", "mday", "dom", "dd"),
    "hour": ("hour", "hr", "hh", "h"),
    "minute": ("minute", "min", "mi"),
    "second": ("second", "sec", "ss"),
}

Columns = dict[str, nw.Series[Any]]


class RowTimes(NamedTuple):
    """The time of each row, and in words how it was read, where that is worth saying."""

    values: npt.NDArray[Any]  # datetime64, or plain numbers
    how: str = ""


def row_times(
    columns: Columns,
    names: Sequence[str],
    *,
    form: str | None = None,
    zone: str | None = None,
    series: Coded | None = None,
) -> RowTimes:
    """Read the time of each row.

    Parameters
    ----------
    columns : Columns
        A table.
    names : sequence of str
        The column with the times; or several whose cells stand for one time together, such as a date and an
        hour, or year, month, day and hour.
    form : str or None, default=None
        How to read texts or numbers; None finds it out. See `varnn.data._time_formats.parse`; for numbers
        "seconds" (or "milliseconds", ...) since 1970.
    zone : str or None, default=None
        Where the clock hung whose times these are, such as "Europe/Berlin"; they then become UTC.
    series : Coded or None, default=None
        Which series each row is of; None: there is one.

    Examples
    --------
    >>> import polars
    >>> from varnn.data.tables import columns_of
    >>> frame = polars.DataFrame({"Date": ["10/03/2004", "13/03/2004"], "hr": [5, 24]})
    >>> found = row_times(columns_of(frame), ["Date", "hr"])
    >>> found.values.astype(str).tolist(), found.how
    (['2004-03-10T05:00:00', '2004-03-14T00:00:00'], 'day/month/year')
    """
    for name in names:
        if (row := first_empty(columns[name])) is not None:
            raise RowError(
                f"time column {name!r} must have a value in every row; {{where}} is empty. Drop these rows, "
                "or leave `time` out if the rows are in order.",
                row=row,
            )
    found = _one(columns[names[0]], names[0], form) if len(names) == 1 else _joined(columns, names, form)
    return found if zone is None else _localised(found, zone, names, series)


def _one(column: nw.Series[Any], name: str, form: str | None) -> RowTimes:
    if isinstance(column.dtype, nw.Datetime):
        if column.dtype.time_zone is None:
            return RowTimes(np.asarray(column.to_numpy()))
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return RowTimes(np.asarray(column.to_numpy()), "UTC, brought from the zone they name")
    if column.dtype == nw.Date:
        return RowTimes(np.asarray(column.to_list(), dtype="datetime64[s]"))
    if column.dtype in (nw.Time, nw.Duration):
        raise DataError(
            f"time column {name!r} must hold dates; it holds {column.dtype} only. Name the column with the "
            f"date, too: time=['date', {name!r}] (--time \"date,{name}\" in the command)."
        )
    if column.dtype.is_numeric():
        return _of_numbers(np.asarray(column.to_numpy()), name, form)
    if not is_text(column):
        raise DataError(
            f"time column {name!r} must hold dates or numbers; it holds {column.dtype}. Convert it."
        )
    if form in _EPOCH_WORDS or _holds_digits(column):
        numbers = np.asarray(column.cast(nw.String).to_list(), dtype=np.float64)
        return _of_numbers(numbers, name, form)
    return RowTimes(*parse(_Texts([column]), name, form))


def _holds_digits(column: nw.Series[Any]) -> bool:
    """Tell whether texts are numbers since 1970, as quotes in a file make them."""
    first = str(column[0]).strip()
    return first.isdigit() and len(first) in (10, 13, 16, 19) and _calendar(np.array([int(first)])) is None


class _Texts:
    """The cells of one or several columns as texts, some at a time; those of a row with a space between."""

    def __init__(self, columns: Sequence[nw.Series[Any]]) -> None:
        self.columns = columns

    def __iter__(self) -> Iterator[list[str]]:
        for begin in range(0, len(self.columns[0]), _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            cells = [_texts(column[rows]) for column in self.columns]
            yield cells[0] if len(cells) == 1 else [" ".join(row) for row in zip(*cells, strict=True)]


def _texts(column: nw.Series[Any]) -> list[str]:
    if is_text(column) and column.dtype != nw.Object:
        return [str(cell).strip() for cell in column.cast(nw.String).to_numpy()]
    return [_text(cell) for cell in column.to_list()]


def _text(cell: object) -> str:
    if isinstance(cell, datetime):
        return str(cell) if cell.time() != datetime.min.time() else str(cell.date())
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _joined(columns: Columns, names: Sequence[str], form: str | None) -> RowTimes:
    """Read a time that several columns hold together."""
    roles = [part_of_time(name) for name in names]
    if roles[0] == "year":
        if roles != [*_PARTS][: len(names)]:
            raise DataError(
                f"columns that are a time together must be year, month, day, hour, ... in this order; got "
                f"{list(names)}. Name them so, or join them before."
            )
        return RowTimes(_of_parts({part: columns[name] for part, name in zip(_PARTS, names, strict=False)}))
    wide = [columns[names[0]], *(_as_clock(columns[name], name) for name in names[1:])]
    return RowTimes(*parse(_Texts(wide), ", ".join(names), form))


def part_of_time(name: str) -> str | None:
    """Tell which part of a time a column holds, by its name.

    Examples
    --------
    >>> part_of_time("Hour"), part_of_time("load")
    ('hour', None)
    """
    return next((part for part, words in _PARTS.items() if name.strip().lower() in words), None)


def _of_parts(parts: Columns) -> Times:
    """Make times of columns with years, months and so on."""
    numbers: dict[str, Integers] = {}
    for role, column in parts.items():
        if not column.dtype.is_numeric():
            raise DataError(
                f"the {role}s of a time must be numbers; column {column.name!r} holds {column.dtype}."
            )
        numbers[role] = np.asarray(column.to_numpy()).astype(np.int64)
    count, none = len(numbers["year"]), np.zeros(len(numbers["year"]), np.int64)
    clock = np.stack([numbers.get(one, none) for one in ("hour", "minute", "second")] + [none], axis=1)
    one = np.ones(count, np.int64)
    day = numbers.get("day", one)
    values, valid = assembled(numbers["year"], numbers.get("month", one), day, clock)
    valid &= numbers["year"] >= 1000
    if not valid.all():
        row = int(np.argmin(valid))
        held = ", ".join(str(part[row]) for part in numbers.values())
        together = [one.name for one in parts.values()]
        raise RowError(
            f"columns {together} must be a time together; {{where}} holds {held}. Correct the cells.", row=row
        )
    return values


def _as_clock(column: nw.Series[Any], name: str) -> nw.Series[Any]:
    """Bring a column beside a date into a form that reads as a time of day: 1330 becomes 13:30."""
    if not column.dtype.is_numeric():
        return column
    numbers = np.asarray(column.to_numpy())
    if numbers.max() <= 24:
        return column
    hours, minutes = numbers // 100, numbers % 100
    texts = [f"{int(hour)}:{int(minute):02d}" for hour, minute in zip(hours, minutes, strict=True)]
    return nw.new_series(name, texts, nw.String, backend=column.implementation)


def _of_numbers(values: npt.NDArray[Any], name: str, form: str | None) -> RowTimes:
    unit = form and _EPOCH_WORDS.get(form)
    if form is not None and unit is None:
        texts = [str(int(one)) for one in values]
        return RowTimes(*parse([texts], name, form))
    if unit is None:
        written = _calendar(values)
        if written is not None:
            return RowTimes(written, "dates written as numbers")
        unit = epoch_unit(values)
    if unit is None:
        return RowTimes(values)
    whole = values.astype(np.int64)
    times = whole.astype(f"datetime64[{unit}]")
    if values.dtype.kind == "f" and (values != whole).any():
        fraction = (values - whole) * 1e6 if unit == "s" else 0
        times = times.astype("datetime64[us]") + np.asarray(np.round(fraction)).astype(np.int64)
    return RowTimes(times, f"{_EPOCHS[unit][0]} since 1970, UTC")


def epoch_unit(values: npt.NDArray[Any]) -> Literal["s", "ms", "us", "ns"] | None:
    """Tell the unit of numbers since 1970 by their size; None where they are no such numbers.

    Examples
    --------
    >>> epoch_unit(np.array([1_700_000_000, 1_700_003_600])), epoch_unit(np.array([1, 2, 3]))
    ('s', None)
    """
    low, high = float(values.min()), float(values.max())
    for unit, (_, least, most) in _EPOCHS.items():
        if least <= low and high < most:
            return unit  # type: ignore[return-value]  # the keys are these four
    return None


def _calendar(values: npt.NDArray[Any]) -> Times | None:
    """Read dates written as numbers, such as 20240131 or 202401311700; None where they are none."""
    # Not all at once: of a long column, each array made on the way is felt.
    if not values.min() > 0 or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return None
    whole = values.astype(np.int64)
    digits = len(str(int(whole.max())))
    if digits not in _CALENDAR_DIGITS or len(str(int(whole.min()))) != digits:
        return None
    fields = []
    for _ in range((digits - 4) // 2):
        whole, field = np.divmod(whole, 100)
        fields.append(field)
    none = np.zeros_like(whole)
    day = [none + 1] if digits == 6 else []
    parts = [*fields[::-1], *day, none, none, none, none][:6]  # month, day, hour, minute, second, microsecond
    times, valid = assembled(whole, parts[0], parts[1], np.stack(parts[2:], axis=1))
    valid &= (whole >= 1900) & (whole < 2200)
    return times if valid.all() else None


def is_calendar(values: npt.NDArray[Any]) -> bool:
    """Tell whether numbers are dates written as numbers.

    Examples
    --------
    >>> is_calendar(np.array([20240131, 20240201])), is_calendar(np.array([20240131, 20240199]))
    (True, False)
    """
    return _calendar(values) is not None


def holds_dates(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds dates, of their own kind or as texts; by its first cells.

    Examples
    --------
    >>> import polars
    >>> texts = polars.DataFrame({"when": ["1/1/2017 0:00"], "what": ["rain"]})
    >>> frame = nw.from_native(texts, eager_only=True)
    >>> holds_dates(frame["when"]), holds_dates(frame["what"])
    (True, False)
    """
    if isinstance(column.dtype, nw.Datetime | nw.Date):
        return True
    return is_text(column) and look_like_times(_first_cells(column))


def holds_times_of_day(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds times of a day without a date."""
    return column.dtype == nw.Time or (is_text(column) and look_like_times_of_day(_first_cells(column)))


def _first_cells(column: nw.Series[Any]) -> list[str]:
    return [str(cell) for cell in column[:_LOOKED_AT].to_list() if cell is not None and str(cell).strip()]


def _localised(found: RowTimes, zone: str, names: Sequence[str], series: Coded | None) -> RowTimes:
    """Take times as those of a clock on a wall, and make them UTC.

    An hour that comes twice, when summer time ends, is the earlier one until times go back.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if found.values.dtype.kind != "M" or "UTC" in found.how:
        raise ConfigError(
            f"time_zone is for times that do not say their own; column {', '.join(names)!r} holds "
            f"{found.how or 'numbers'}. Leave time_zone out."
        )
    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"time_zone must name a zone such as 'Europe/Berlin'; got {zone!r}. (Where the system knows no "
            "zones at all, pip install tzdata.)"
        ) from None
    values = found.values
    days = values.astype("datetime64[D]")
    unique, inverse = np.unique(days, return_inverse=True)
    midnights = [datetime(1970, 1, 1) + timedelta(days=int(day)) for day in unique.astype(np.int64)]
    offsets = np.array([_ahead(one, place) for one in midnights])
    after = np.array([_ahead(one + timedelta(days=1), place) for one in midnights])
    ahead = offsets[inverse]
    before: dict[int, datetime] = {}  # the last such time of each series
    for row in np.flatnonzero((offsets != after)[inverse]):  # days on which the clock is changed
        local = values[row].astype("datetime64[us]").item()
        twice = _ahead(local, place) != _ahead(local, place, fold=1)
        code = 0 if series is None else int(series.codes[row])
        previous = before.get(code, datetime.min)
        fold = int(twice and (local <= previous or previous.fold == 1))
        ahead[row] = _ahead(local, place, fold=fold)
        before[code] = local.replace(fold=fold)
    how = f"{found.how}, " if found.how else ""
    return RowTimes(values - ahead.astype("timedelta64[s]"), f"{how}{zone}, now UTC")


def _ahead(local: datetime, place: Any, fold: int = 0) -> int:
    """Seconds a zone is ahead of UTC."""
    ahead = local.replace(tzinfo=place, fold=fold).utcoffset()
    return 0 if ahead is None else round(ahead.total_seconds())
