"""One time, as people and programs write it -> ``numpy.datetime64`` in UTC.

A time that says its zone is brought to UTC; one that does not is taken to be in UTC. Years may lie far from
ours: what is kept counts microseconds, or nanoseconds only where a time is finer than that.
"""

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from varnn.errors import DataError

_FAR = re.compile(r"[+-]?\d{4,12}-\d{2}-\d{2}T")
_MONTH = re.compile(r"\d{4}-\d{2}")
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds


# Microseconds in a tick of each unit, as a fraction; and how many are surely neither overflow nor NaT.
_TICKS = {
    np.dtype(f"datetime64[{unit}]"): fraction
    for unit, fraction in {
        "ns": (1, 1000),
        "us": (1, 1),
        "ms": (1000, 1),
        "s": (10**6, 1),
        "m": (60 * 10**6, 1),
        "h": (3600 * 10**6, 1),
        "D": (_DAY, 1),
    }.items()
}
_FAR_OFF = 1 << 62
_MICROSECONDS = np.dtype("datetime64[us]")


def timestamp(value: Any) -> np.datetime64:
    """Read a single time; refuse what is none.

    Parameters
    ----------
    value : object
        Text as ISO 8601 has it, with or without an offset; a ``datetime``, ``date``, ``numpy.datetime64`` or
        pandas ``Timestamp``.

    Examples
    --------
    >>> timestamp("2026-11-15T07:30+01:00"), timestamp("3000-01-01")
    (np.datetime64('2026-11-15T06:30:00.000000'), np.datetime64('3000-01-01T00:00:00.000000'))
    >>> timestamp("now")
    Traceback (most recent call last):
    ...
    varnn.errors.DataError: time must be a timestamp such as '2026-11-15T07:30' or a datetime; got 'now'.
    """
    found = None
    if type(value) is np.datetime64:  # in a third of the time, for nearly all of them
        over, under = _TICKS.get(value.dtype, (0, 1))
        ticks, rest = divmod(int(value.view(np.int64)) * over, under)
        if over and not rest and abs(ticks) < _FAR_OFF:
            return np.datetime64(ticks, "us")
    try:
        if isinstance(value, str):
            found = _of_text(value)
        elif isinstance(value, date):
            found = _of_date(value)
        elif isinstance(value, np.datetime64 | np.ndarray):
            found = _of_numpy(value)
            found = None if np.isnat(found) else found
    except (ValueError, OverflowError):
        pass
    if found is None:
        shown = repr(value)
        raise DataError(
            "time must be a timestamp such as '2026-11-15T07:30' or a datetime; "
            f"got {shown if len(shown) <= 60 else shown[:60] + '...'}."
        )
    return found


def seconds_since_1970(time: np.datetime64) -> float:
    """A timestamp as seconds.

    Examples
    --------
    >>> seconds_since_1970(timestamp("1970-01-02T00:00:00.500000001"))
    86400.5
    """
    if time.dtype != _MICROSECONDS:
        time = time.astype(_MICROSECONDS)
    return int(time.view(np.int64)) / 1e6


def read_back(text: str) -> np.datetime64:
    """Read what ``str`` made of a timestamp; DataError where it is none.

    Examples
    --------
    >>> read_back(str(np.datetime64("12026-01-01T00:00:00.000000")))
    np.datetime64('12026-01-01T00:00:00.000000')
    """
    try:
        return timestamp(text)
    except DataError:
        if not _FAR.match(text):
            raise
    try:  # years beyond 9999 are no dates of Python
        return _of_numpy(np.datetime64(text))
    except (ValueError, OverflowError):
        raise DataError(f"{text[:60]!r} is no time.") from None


@lru_cache(maxsize=1000)  # rows of many series have one time
def _of_text(text: str) -> np.datetime64 | None:
    if len(text) == 7 and _MONTH.fullmatch(text):
        text += "-01"
    if len(text) > 26 and text[19:20] == "." and text[20:].isdigit():  # finer than microseconds
        return _of_numpy(np.datetime64(text))
    return _of_date(datetime.fromisoformat(text))


def _of_date(value: date) -> np.datetime64 | None:
    if not isinstance(value, datetime):
        return np.datetime64(value, "us")
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    finer = 0
    if type(value) is not datetime or value.tzinfo is not None:
        if value != value:  # pandas' NaT is a datetime of a kind
            return None
        finer = getattr(value, "nanosecond", 0)  # pandas has it
        value = datetime(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
        )
    since = value - _EPOCH
    # NumPy makes a time of a number in a fraction of the time that it takes to make one of a datetime.
    found = np.datetime64(since.days * _DAY + since.seconds * 1_000_000 + since.microseconds, "us")
    if not finer:
        return found
    whole: np.datetime64 = found.astype("datetime64[ns]")
    return whole + np.timedelta64(finer, "ns")


def _of_numpy(value: Any) -> np.datetime64:
    """Timestamp in microseconds, or in nanoseconds where it is finer; ValueError where it is none."""
    if value.shape != () or value.dtype.kind != "M":
        raise ValueError
    one = np.datetime64(value[()])
    found: np.datetime64 = one.astype("datetime64[us]")
    unit, count = np.datetime_data(one.dtype)
    if unit in ("ns", "ps", "fs", "as"):
        finer: np.datetime64 = one.astype("datetime64[ns]")
        return found if found == one else finer
    if not np.isnat(one) and found.astype(one.dtype) != one:  # beyond what microseconds reach
        raise ValueError(f"{count} {unit}")
    return found
