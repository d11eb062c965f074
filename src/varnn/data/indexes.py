"""The index of a pandas frame -> columns with the time and the series of each row, where it holds these.

An index of dates is the time of the rows; one of two levels is series and time, in either order. An index of
anything else only counts or names rows, and is left alone.
"""

from typing import Any, NamedTuple

import narwhals as nw

from varnn.data._time_columns import holds_dates

TIME_NAME, SERIES_NAME = "time", "series"  # of levels that have no name


class Index(NamedTuple):
    """What an index holds: the names of its levels, and which of them are time and series."""

    levels: dict[str, Any]
    time: str | None = None
    series: str | None = None
    doubt: str = ""  # why it cannot be told which they are


def index_of(rows: Any) -> Index:
    """Find out what the index of a pandas frame or series is; nothing, for other kinds of rows.

    Examples
    --------
    >>> import pandas
    >>> days = pandas.date_range("2026-01-01", periods=2, name="day")
    >>> index_of(pandas.DataFrame({"load": [1.0, 2.0]}, index=days)).time
    'day'
    >>> index_of(pandas.DataFrame({"load": [1.0, 2.0]})).time is None
    True
    """
    if type(rows).__module__.partition(".")[0] != "pandas" or not hasattr(rows, "index"):
        return Index({})
    index = rows.index
    if getattr(index, "nlevels", 1) == 1:
        name = _name(index, TIME_NAME)
        if _holds_times(index):
            return Index({name: _plain(index)}, time=name)
        return Index({name: index} if index.name is not None else {})
    every = [index.get_level_values(place) for place in range(index.nlevels)]
    dated = [_holds_times(one) for one in every]
    if not any(dated):
        dated[-1] = _is_numeric(every[-1])  # steps that are counted
    if len(every) != 2 or sum(dated) != 1:
        named = {one.name: _plain(one) for one in every if isinstance(one.name, str)}
        return Index(named, doubt=_not_understood(index))
    time, series = every if dated[0] else reversed(every)
    names = (_name(time, TIME_NAME), _name(series, SERIES_NAME))
    return Index(dict(zip(names, (_plain(time), series), strict=True)), *names)


def with_levels(frame: Any, index: Index, names: list[str]) -> Any:
    """Add levels of the index to a frame as columns, which is not changed by that."""
    missing = {name: index.levels[name] for name in names if name not in frame.columns}
    return frame.assign(**missing) if missing else frame


def _name(level: Any, otherwise: str) -> str:
    return level.name if isinstance(level.name, str) else otherwise


def _plain(level: Any) -> Any:
    """Take a period as the time at which it begins."""
    return level.to_timestamp() if _is_period(level) else level


def _holds_times(level: Any) -> bool:
    if _is_period(level) or getattr(level.dtype, "kind", "") == "M":
        return True
    if len(level) == 0 or _is_numeric(level):
        return False
    column = nw.from_native(level[:50].to_series(), series_only=True)
    return holds_dates(column)


def _is_period(level: Any) -> bool:
    return str(level.dtype).startswith("period")


def _is_numeric(level: Any) -> bool:
    return getattr(level.dtype, "kind", "") in ("i", "u", "f")


def _not_understood(index: Any) -> str:
    return (
        "an index of several levels must be the series and the time of each row, two levels of which one "
        f"holds dates; it holds {list(index.names)}. Make columns of it with frame.reset_index(), and name "
        "them: time=..., series=...."
    )
