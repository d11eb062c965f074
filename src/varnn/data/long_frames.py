"""Long frames, as Nixtla's libraries and Prophet have them: ``unique_id``, ``ds`` and ``y`` say what is what.

``ds`` is the time and ``unique_id`` the series of a row, ``y`` what is predicted. A name alone may mean
something else elsewhere (a day's partition is called ``ds``, a row's key ``unique_id``): two of the three
together do not.
"""

from collections.abc import Iterable
from dataclasses import replace

from varnn.data.tables import Reading
from varnn.errors import DataError, nearest

SERIES, TIME, TARGET = "unique_id", "ds", "y"


def long_target(names: Iterable[str]) -> str:
    """Find what is predicted where nobody said so: only a long frame tells.

    Examples
    --------
    >>> long_target(["unique_id", "ds", "y", "price"])
    'y'
    """
    names = list(names)
    if {TIME, TARGET} <= set(names):
        return TARGET
    raise DataError(
        f"the column to predict must be named: only long frames, with columns {TIME!r} and {TARGET!r}, tell "
        f"it by themselves. {nearest(TARGET, names)} Give one of them as target=..."
    )


def as_long(reading: Reading, names: Iterable[str]) -> Reading:
    """Take time and series of a long frame from its own columns, where nothing else is said.

    Examples
    --------
    >>> found = as_long(Reading(target="y"), ["unique_id", "ds", "y"])
    >>> found.time, found.series
    ('ds', 'unique_id')
    >>> as_long(Reading(target="load"), ["ds", "load"]).time is None
    True
    """
    free = set(names) - {reading.target, *(reading.inputs or ())}
    time = reading.time
    if TIME in free and time is None and (SERIES in free or reading.target == TARGET):
        time = TIME
    series = reading.series
    if SERIES in free and series is None and TIME in reading_times(time):
        series = SERIES
    return replace(reading, time=time, series=series)


def reading_times(time: str | Iterable[str] | None) -> list[str]:
    """List the columns of a time."""
    return [] if time is None else [time] if isinstance(time, str) else list(time)
