"""A frame of any kind -> its columns, and how to read them: names of long frames and the index count, too."""

from __future__ import annotations

from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from varnn.data.indexes import Index, index_of, with_levels
from varnn.data.long_frames import as_long, long_target, reading_times
from varnn.data.odd_input import is_pandas
from varnn.data.tables import Columns, Reading, columns_of
from varnn.errors import DataError

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Target = str | None | EllipsisType  # of a frame: a column, none at all, or (...) that of a long frame


def read_frame(
    frame: IntoDataFrame, reading: Reading, *, find_target: bool = False
) -> tuple[Columns, Reading]:
    """Columns of a frame, and the reading with what the frame itself says of time and series.

    Parameters
    ----------
    frame : IntoDataFrame
        The frame, which is not changed.
    reading : Reading
        What the caller said.
    find_target : bool, default=False
        Whether the target is that of a long frame.

    Examples
    --------
    >>> import pandas
    >>> days = pandas.date_range("2026-01-01", periods=2, name="day")
    >>> frame = pandas.DataFrame({"load": [1.0, 2.0]}, index=days)
    >>> columns, reading = read_frame(frame, Reading(target="load"))
    >>> list(columns), reading.time
    (['load', 'day'], 'day')
    """
    rows: Any = frame
    index = index_of(rows) if is_pandas(rows) else Index({})
    if index.levels or index.doubt:
        reading = _by_index(reading, index, [str(one) for one in rows.columns])
        asked = [*reading_times(reading.time), reading.series]
        rows = with_levels(rows, index, [one for one in index.levels if one in asked])
    columns = columns_of(rows)
    if find_target:
        reading = replace(reading, target=long_target(columns))
    return columns, as_long(reading.named(columns), columns)


def backend_of(columns: Columns) -> str | None:
    """Kind of table that columns are of, where it is one that tables are given back in.

    Examples
    --------
    >>> import polars
    >>> backend_of(columns_of(polars.DataFrame({"load": [1.0]})))
    'polars'
    """
    kinds = {str(one.implementation.name).lower() for one in columns.values()}
    return next((one for one in ("pandas", "polars", "pyarrow") if one in kinds), None)


def _by_index(reading: Reading, index: Index, names: list[str]) -> Reading:
    """Take from the index what is not said, and what no column of a long frame says."""
    every = [*names, *(one for one in index.levels if one not in names)]
    told = as_long(reading.named(every), every)
    if told.time is None and index.doubt:
        raise DataError(index.doubt)
    by_index = told.time in (None, index.time)
    return replace(
        told,
        time=told.time or index.time,
        series=told.series or (index.series if by_index else None),
    )
