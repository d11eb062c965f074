"""Times of rows beside arrays: any array, list, series or index of them -> ``datetime64``, or plain numbers.

Numbers stay what they are: those who count hours since a start would not want them read as a date.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data.rules import shown
from varnn.data.timestamps import timestamp
from varnn.errors import DataError


def array_times(values: Any) -> npt.NDArray[Any]:
    """Read times, one for each row; those that name their own zone become UTC.

    Examples
    --------
    >>> array_times(["1/2/2026 5:00", "13/2/2026 5:00"]).astype(str).tolist()
    ['2026-02-01T05:00:00', '2026-02-13T05:00:00']
    >>> array_times(range(3)).tolist()
    [0, 1, 2]
    """
    if hasattr(values, "to_timestamp"):  # periods of pandas: a series of them has it, too
        values = _begun(values)
    column = _column(values)
    if column is not None:
        from varnn.data._time_columns import row_times

        if not column.dtype.is_numeric():
            return row_times({"time": column}, ["time"]).values
        values = column.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError("`time` must hold one time per row; it holds lists of several lengths.") from None
    if array.dtype.kind in "iufM" or array.ndim != 1:
        return array
    return _of_cells(array.tolist())


def _begun(values: Any) -> Any:
    """Take a period as the time at which it begins; what else has times is left as it is."""
    if not str(values.dtype).startswith("period"):
        return values
    return values.to_timestamp() if not hasattr(values, "dt") else values.dt.to_timestamp()


def _column(values: Any) -> Any:
    """Take a column of any library, or an index of pandas; None of what is none."""
    if isinstance(values, np.ndarray | list | tuple | range):
        return None
    import narwhals as nw

    values = values.to_series() if hasattr(values, "to_series") and hasattr(values, "nlevels") else values
    column = nw.from_native(values, series_only=True, pass_through=True)
    return column if isinstance(column, nw.Series) else None


def _of_cells(cells: list[Any]) -> npt.NDArray[Any]:
    if any(one is None or one != one for one in cells):
        raise DataError(
            "`time` must hold a time for every row; some have none. Drop these rows, or leave `time` out."
        )
    if all(isinstance(one, str) for one in cells):
        from varnn.data._time_formats import parse

        return parse([cells], "time").values
    try:
        return np.array([timestamp(one) for one in cells])
    except DataError:
        raise DataError(
            f"`time` must hold dates, texts or numbers, one per row; it holds {shown(cells[0])}."
        ) from None
