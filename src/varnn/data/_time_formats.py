"""Texts -> times: one format for a whole column, found in the column itself.

Which of ``1/2/2024`` is the day is decided by all cells together: a field above 12 is no month; if none is
(early in a month, say), the reading wins whose times run in order, or leave far fewer gaps. What even that
does not decide is asked for.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.errors import ConfigError, DataError, RowError

Times = npt.NDArray[np.datetime64]
Integers = npt.NDArray[np.int64]

FIRST_WORDS = {"day-first": "dmy", "month-first": "mdy", "year-first": "ymd"}
_IN_WORDS = {"dmy": "day/month/year", "mdy": "month/day/year", "ymd": "year/month/day"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LOOKED_AT = 50  # cells that tell whether a column holds times at all
_CENTURY = 69  # two-digit years from here on are of the last century, as POSIX has it

_CLOCK = (
    r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
)
_ZONE = r"\s*(?P<zone>Z|z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
_REST = rf"(?:(?:T|[\s,;_]+|:(?=\d\d:)){_CLOCK}{_ZONE})?\s*"
_WEEKDAY = r"\s*(?:(?:[Mm]on|[Tt]ue|[Ww]ed|[Tt]hu|[Ff]ri|[Ss]at|[Ss]un)[a-z]*\.?,?\s+)?"
_ORDINAL = r"(?:st|nd|rd|th)?"
_NUMERIC = re.compile(
    rf"{_WEEKDAY}(?P<a>\d{{1,4}})(?P<mark>[-/.])(?P<b>\d{{1,2}})(?P=mark)(?P<c>\d{{1,4}}){_REST}"
)
_FAMILIES = {  # and how they are read, where that is clear
    _NUMERIC: "",
    re.compile(
        rf"{_WEEKDAY}(?P<a>\d{{1,2}}){_ORDINAL}[-\s./]*(?P<b>[A-Za-z]{{3,9}})\.?[-\s./,]*"
        rf"(?P<c>\d{{4}}|\d{{2}}){_REST}"
    ): "day month year",
    re.compile(
        rf"{_WEEKDAY}(?P<b>[A-Za-z]{{3,9}})\.?\s+(?P<a>\d{{1,2}}){_ORDINAL},?\s+(?P<c>\d{{4}}){_REST}"
    ): "month day year",
    re.compile(r"\s*(?P<a>\d{4})[-/.](?P<b>\d{1,2})\s*"): "year/month",
    re.compile(
        r"\s*(?P<a>\d{4})(?P<b>\d{2})(?P<c>\d{2})"
        rf"(?:[T_\s]?(?P<hour>\d{{2}})(?::?(?P<minute>\d{{2}})(?::?(?P<second>\d{{2}}))?)?{_ZONE})?\s*"
    ): "yearmonthday",
}
_TIME_OF_DAY = re.compile(rf"\s*(?=\d{{1,2}}(?:[:.h]\d|\s*[AaPp])){_CLOCK}\s*")


class Read(NamedTuple):
    """Times, and in words how they were read."""

    values: Times
    how: str


def look_like_times(cells: Iterable[object]) -> bool:
    """Tell whether texts are dates, by the first of them.

    Examples
    --------
    >>> look_like_times(["31.12.2024 18:00", "1.1.2025 0:00"]), look_like_times(["12.5", "fine"])
    (True, False)
    """
    some = [str(cell) for cell, _ in zip(cells, range(_LOOKED_AT), strict=False)]
    family = next((found for cell in some if (found := _family(cell)) is not None), None)
    # Most of them: a cell that is none is then named, and the column not left out.
    return family is not None and 2 * sum(family.fullmatch(cell) is not None for cell in some) > len(some)


def look_like_times_of_day(cells: Iterable[object]) -> bool:
    """Tell whether texts are times of a day without a date, by the first of them.

    Examples
    --------
    >>> look_like_times_of_day(["18.00.00", "19.00.00"]), look_like_times_of_day(["18.5"])
    (True, False)
    """
    some = [str(cell) for cell, _ in zip(cells, range(_LOOKED_AT), strict=False)]
    # One mark may be a decimal point: 18.30 is a time only where others have two marks, or a colon.
    clear = any(":" in cell or cell.count(".") == 2 or cell.lower().endswith("m") for cell in some)
    return clear and all(_TIME_OF_DAY.fullmatch(cell) for cell in some)


def parse(texts: Iterable[Sequence[str]], name: str, form: str | None = None) -> Read:
    """Read texts, which come some at a time, as times.

    Parameters
    ----------
    texts : iterable of sequence of str
        The cells, none of them empty; gone through more than once.
    name : str
        What to call the column in messages.
    form : str or None, default=None
        "day-first", "month-first" or "year-first"; or codes of ``strptime`` such as "%d.%m.%Y %H:%M". None
        finds it out.

    Examples
    --------
    >>> found = parse([["10/03/2004 18.00.00", "13/03/2004 19.00.00"]], "Date")
    >>> found.values.astype(str).tolist(), found.how
    (['2004-03-10T18:00:00', '2004-03-13T19:00:00'], 'day/month/year')
    """
    if form is not None and "%" in form:
        return _by_codes(texts, name, form)
    if form is not None and form not in FIRST_WORDS:
        raise ConfigError(
            f"time_format must be one of {[*FIRST_WORDS]}, or codes such as '%d.%m.%Y %H:%M'; got {form!r}."
        )
    fields = _fields(texts, name)
    order = _order(fields, None if form is None else FIRST_WORDS[form], name)
    values, valid = _assembled(fields, order)
    if not valid.all():
        row = int(np.argmin(valid))
        raise RowError(
            f"time column {name!r} must hold dates, read as {_IN_WORDS[order]}; {{where}} holds "
            f"{fields.cell(row)!r}. Correct the cell, or say how to read the column with `time_format`.",
            row=row,
        )
    return Read(values, _FAMILIES[fields.family] or _IN_WORDS[order])


class _Fields(NamedTuple):
    """The numbers of each cell: three of the date, as they stand, and those of the time of day."""

    date: Integers  # (N, 3)
    clock: Integers  # (N, 4): hour, minute, second, microsecond
    offset: Integers  # (N,) minutes ahead of UTC
    digits: tuple[int, int]  # most digits of the first field of the date, and of the last
    is_fine: bool  # whether there are fractions of a second
    family: re.Pattern[str]
    cell: Callable[[int], str]


def _family(cell: str) -> re.Pattern[str] | None:
    return next((one for one in _FAMILIES if one.fullmatch(cell)), None)


def _fields(texts: Iterable[Sequence[str]], name: str) -> _Fields:
    """Take cells apart; all must look like the first."""
    seen = _Seen(name)
    numbers = [np.array([seen(cell) for cell in some], np.int32).reshape(-1, 2) for some in texts]
    if seen.family is None:
        raise DataError(f"time column {name!r} must hold dates; it has no row.")
    if len(seen.zoned) > 1:
        raise DataError(
            f"either all times of column {name!r} must say how far they are from UTC, or none; some do, some "
            "do not. Write them alike."
        )
    date, rest = np.concatenate(numbers).T
    clocks = np.array(seen.clocks, np.int64)
    return _Fields(
        date=np.array(seen.dates, np.int64)[date],
        clock=clocks[:, :4][rest],
        offset=clocks[:, 4][rest],
        digits=seen.digits,
        is_fine=seen.is_fine,
        family=seen.family,
        cell=lambda row: next(islice(chain.from_iterable(texts), row, None)),
    )


class _Seen:
    """Dates and times of day of a column, each taken apart once: a long column repeats them all the time."""

    def __init__(self, name: str) -> None:
        self.name, self.rows = name, 0
        self.family: re.Pattern[str] | None = None
        self.mark = " "
        self.dates: list[tuple[int, int, int]] = []
        self.clocks: list[tuple[int, int, int, int, int]] = []  # hour, minute, second, microsecond, offset
        self.digits, self.is_fine, self.zoned = (0, 0), False, set[bool]()
        self._of_date: dict[str, int] = {}
        self._of_rest: dict[str, int] = {}

    def __call__(self, cell: str) -> tuple[int, int]:
        """Number of a cell's date, and of its time of day."""
        date, mark, rest = cell.partition(self.mark)
        if not mark:
            rest = cell
        first, second = self._of_date.get(date), self._of_rest.get(rest)
        if first is None or second is None:
            first, second = self._add(cell, date, rest)
        self.rows += 1
        return first, second

    def _add(self, cell: str, date: str, rest: str) -> tuple[int, int]:
        if self.family is None:
            self.family = _family(cell)
            self.mark = "T" if "T" in cell and " " not in cell else " "
        match = None if self.family is None else self.family.fullmatch(cell)
        if match is None:
            raise RowError(
                f"time column {self.name!r} must hold dates such as '2016-01-11 17:00:00', all in one "
                f"format, or numbers; {{where}} holds {cell!r}. Correct the cell, or say how to read the "
                "column with `time_format`.",
                row=self.rows,
            )
        found = match.groupdict()
        first, month, last = found["a"], found["b"], found.get("c") or "1"
        self.dates.append((int(first), int(month) if month.isdigit() else _month(month), int(last)))
        self.clocks.append((*_clock(found), _offset(found.get("zone"))))
        self.zoned.add(found.get("zone") is not None)
        self.is_fine = self.is_fine or found.get("fraction") is not None
        self.digits = max(self.digits[0], len(first)), max(self.digits[1], len(last))
        # Some formats have the mark within the date, as January 31: of these, no part comes again.
        if rest != cell and match.start("hour") > len(date) >= max(match.end(one) for one in "abc"):
            self._of_date.setdefault(date, len(self.dates) - 1)
            self._of_rest.setdefault(rest, len(self.clocks) - 1)
        return len(self.dates) - 1, len(self.clocks) - 1


def _month(name: str) -> int:
    """Number of a month by its English name; 0 for any other word, which is no month."""
    return _MONTHS.index(name[:3].lower()) + 1 if name[:3].lower() in _MONTHS else 0


def _clock(found: dict[str, str | None]) -> tuple[int, int, int, int]:
    hour = int(found.get("hour") or 0)
    half = found.get("half")
    if half is not None and 1 <= hour <= 12:
        hour = hour % 12 + 12 * (half[0] in "pP")
    fraction = (found.get("fraction") or "").ljust(6, "0")[:6]
    return hour, int(found.get("minute") or 0), int(found.get("second") or 0), int(fraction or 0)


def _offset(zone: str | None) -> int:
    if zone is None or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (60 * int(digits[:2]) + int(digits[2:])) * (-1 if zone[0] == "-" else 1)


def _order(fields: _Fields, wanted: str | None, name: str) -> str:
    """Find out which field is the day, the month and the year."""
    if fields.family is not _NUMERIC:
        return "ymd" if _FAMILIES[fields.family].startswith("year") else "dmy"
    if wanted is not None:
        return wanted
    first, last = fields.digits
    orders = ("ymd",) if first > 2 else ("dmy", "mdy") if last > 2 else ("dmy", "mdy", "ymd")
    readings = {order: _assembled(fields, order) for order in orders}
    possible = {order: values for order, (values, valid) in readings.items() if valid.all()}
    if len(possible) > 1 and "ymd" in possible and fields.cell(0).count("-") < 2:
        del possible["ymd"]  # two-digit years come first with dashes only
    if not possible:  # say what is wrong with the reading that fits most cells
        return max(readings, key=lambda order: int(readings[order][1].sum()))
    if len(possible) == 1:
        return next(iter(possible))
    scores = {order: _plausibility(values) for order, values in possible.items()}
    best, second = sorted(scores, key=lambda order: scores[order], reverse=True)[:2]
    if scores[best][0] > scores[second][0] or scores[best][1] > 2 * scores[second][1]:
        return best
    words = {order: word for word, order in FIRST_WORDS.items()}
    raise DataError(
        f"the times of column {name!r} can be read in two ways: {fields.cell(0)!r} may be {_IN_WORDS[best]} "
        f"or {_IN_WORDS[second]}, and nothing in the column decides it. Say time_format={words[best]!r} or "
        f"{words[second]!r} (--time-format in the command)."
    )


def _plausibility(values: Times) -> tuple[bool, float]:
    """Tell whether times run in order, and how much of their span rows of the usual step would fill."""
    steps = np.diff(values).astype(np.int64)
    in_order = bool((steps >= 0).all() or (steps <= 0).all())
    apart = np.diff(np.unique(values)).astype(np.int64)
    if len(apart) == 0:
        return in_order, 1.0
    return in_order, float(np.median(apart) * len(apart) / apart.sum())


def _assembled(fields: _Fields, order: str) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Make times of fields in some order, and tell which of them are none."""
    place = {letter: index for index, letter in enumerate(order)}
    year, month, day = (fields.date[:, place[one]].astype(np.int64) for one in "ymd")
    if fields.digits[0 if order == "ymd" else 1] <= 2:
        year = year + np.where(year >= _CENTURY, 1900, 2000)
    return assembled(year, month, day, fields.clock, fields.offset, is_fine=fields.is_fine)


def assembled(
    year: Integers,
    month: Integers,
    day: Integers,
    clock: Integers,
    offset: Integers | int = 0,
    *,
    is_fine: bool = False,
) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Make times of numbers, and tell which of them the calendar knows; 24:00 is the next day's 0:00.

    Examples
    --------
    >>> times, valid = assembled(*np.array([[2024, 2024], [2, 2], [29, 30]]), np.array([[24, 0, 0, 0]] * 2))
    >>> str(times[0]), valid.tolist()
    ('2024-03-01T00:00:00', [True, False])
    """
    hour, minute, second, microsecond = clock.T
    valid = (month >= 1) & (month <= 12) & (year >= 1) & (day >= 1)
    midnight = (hour == 24) & (minute == 0) & (second == 0)
    valid &= ((hour < 24) | midnight) & (minute < 60) & (second < 61)
    months = (np.where(valid, year, 1970) - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (
        np.where(valid, month, 1) - 1
    )
    days = months.astype("datetime64[D]") + (np.where(valid, day, 1) - 1)
    valid &= days.astype("datetime64[M]") == months
    seconds = days.astype("datetime64[s]") + (3600 * hour + 60 * minute + second - 60 * np.asarray(offset))
    if is_fine:
        return seconds.astype("datetime64[us]") + microsecond, valid
    return seconds, valid


def _by_codes(texts: Iterable[Sequence[str]], name: str, codes: str) -> Read:
    """Read times by the codes of ``strptime``."""
    values: list[np.datetime64] = []
    for some in texts:
        for cell in some:
            try:
                timestamp = datetime.strptime(cell.strip(), codes)
            except ValueError:
                raise RowError(
                    f"time column {name!r} must hold times in the format {codes!r}; {{where}} holds "
                    f"{cell!r}. Correct the cell, or the format.",
                    row=len(values),
                ) from None
            ahead = timestamp.utcoffset()
            if ahead is not None:
                timestamp = timestamp.replace(tzinfo=None) - ahead
            values.append(np.datetime64(timestamp, "us"))
    return Read(np.array(values, dtype="datetime64[us]"), codes)
