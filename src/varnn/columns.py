"""One table column of any kind -> one NumPy array of numbers, times or names.

Tables come through narwhals, so pandas, polars and pyarrow columns look the same here. Text is read
as numbers only when every cell can be: a column that is almost a number column is an error that
names the first bad cell, never a column that silently disappears.
"""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from varnn.errors import DataError
from varnn.grouping import Coded

FloatArray = npt.NDArray[np.floating[Any]]

_ROWS_AT_ONCE = 1 << 20
_BLANK = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


def numbers(column: nw.Series[Any], name: str) -> FloatArray:
    """Read a column as float32 (when it is float32) or float64, NaN where it is missing."""
    if holds_numbers(column):
        wanted = nw.Float32 if column.dtype == nw.Float32 else nw.Float64
        kind = np.float32 if wanted is nw.Float32 else np.float64
        return np.asarray(column.cast(wanted).to_numpy(), dtype=kind)
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not is_text(column):
        raise DataError(
            f"column {name!r} must hold numbers; it holds {column.dtype}. "
            "Convert it, or leave it out with `inputs`."
        )
    return _parsed(_Cells.of(column), name)


def holds_numbers(column: nw.Series[Any]) -> bool:
    """Tell whether a column is of a kind that holds nothing but numbers."""
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean)


def is_nearly_numeric(column: nw.Series[Any]) -> bool:
    """Tell whether a text column was most likely meant as numbers (over half of it parses)."""
    if not is_text(column):
        return False
    cells = _Cells.of(column)
    counts = cells.counts()
    filled = sum(count for cell, count in zip(cells.distinct, counts, strict=True) if not _is_blank(cell))
    parsed = sum(
        count for cell, count in zip(cells.distinct, counts, strict=True) if _number(cell) is not None
    )
    return bool(2 * parsed > filled)


def times(column: nw.Series[Any], name: str) -> npt.NDArray[Any]:
    """Read a column as datetime64 (UTC, without zone) or as plain numbers; no cell may be empty."""
    _refuse_empty_cells(column, "time", name, "leave `time` out if the rows are in order")
    if column.dtype.is_numeric():
        return np.asarray(column.to_numpy())
    if isinstance(column.dtype, nw.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    try:
        if isinstance(column.dtype, nw.Datetime):
            return np.asarray(column.to_numpy())
        return np.asarray(column.to_list(), dtype="datetime64[us]")
    except (TypeError, ValueError):
        raise DataError(
            f"time column {name!r} must hold dates such as '2016-01-11 17:00:00', or numbers; "
            f"it starts with {column.to_list()[:3]}. Convert it before, for example with pandas.to_datetime."
        ) from None


def coded(column: nw.Series[Any], name: str) -> Coded:
    """Read a column as the series that each row is of; no cell may be empty."""
    _refuse_empty_cells(column, "series", name, "give them a name")
    cells, found = _Cells.of(column), list[int]()
    for begin in range(0, len(cells.indices), _ROWS_AT_ONCE):  # all at once they would be sorted
        fresh, first = np.unique(cells.indices[begin : begin + _ROWS_AT_ONCE], return_index=True)
        seen = set(found)
        found += [int(one) for one in fresh[np.argsort(first)] if one not in seen]
    numbers = np.zeros(len(cells.distinct), np.int32)
    numbers[found] = np.arange(len(found))
    return Coded(tuple(str(cells.distinct[index]) for index in found), numbers[cells.indices])


class _Cells(NamedTuple):
    """The cells of a column: each value once, and which of them each row holds; -1 is none."""

    distinct: list[object]
    indices: npt.NDArray[Any]

    @classmethod
    def of(cls, column: nw.Series[Any]) -> "_Cells":
        try:
            import pyarrow

            arrow = column.to_arrow()
        except (ImportError, TypeError, ValueError):  # no Arrow here, or a column of mixed things
            texts: dict[str, int] = {}
            cells = (None if cell is None or cell != cell else str(cell) for cell in column.to_list())
            indices = [-1 if one is None else texts.setdefault(one, len(texts)) for one in cells]
            return cls([*texts], np.array(indices, np.int32))
        if not pyarrow.types.is_dictionary(arrow.type):
            arrow = arrow.dictionary_encode()
        numbers = arrow.indices.cast(pyarrow.int32()).fill_null(-1)
        return cls(arrow.dictionary.to_pylist(), numbers.to_numpy(zero_copy_only=False))

    def counts(self) -> npt.NDArray[np.intp]:
        """Count how often each value is there."""
        counts = np.zeros(len(self.distinct) + 1, np.intp)
        for begin in range(0, len(self.indices), _ROWS_AT_ONCE):
            counts += np.bincount(self.indices[begin : begin + _ROWS_AT_ONCE] + 1, minlength=len(counts))
        return counts[1:]


def _refuse_empty_cells(column: nw.Series[Any], role: str, name: str, otherwise: str) -> None:
    empty = np.asarray(column.is_null().to_numpy())
    if is_text(column) and "" in column.unique().to_list():  # CSV has no other way to leave text out
        empty = empty | np.asarray((column.cast(nw.String) == "").fill_null(False).to_numpy())
    if empty.any():
        raise DataError(
            f"{role} column {name!r} must have a value in every row; row {int(np.argmax(empty))} is empty. "
            f"Drop these rows, or {otherwise}."
        )


def is_text(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds words."""
    return column.dtype in (nw.String, nw.Object, nw.Categorical) or isinstance(column.dtype, nw.Enum)


def _is_blank(cell: object) -> bool:
    return cell is None or cell != cell or str(cell).strip().lower() in _BLANK


def _number(cell: object) -> float | None:
    try:
        return float(str(cell))
    except ValueError:
        return None


def _parsed(cells: _Cells, name: str) -> FloatArray:
    parsed = [None if _is_blank(cell) else _number(cell) for cell in cells.distinct]
    words = [one is None and not _is_blank(cell) for one, cell in zip(parsed, cells.distinct, strict=True)]
    wrong = np.array([*words, False])[cells.indices]
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"column {name!r} must hold numbers; row {row} holds {cells.distinct[cells.indices[row]]!r}. "
            "Correct the cell, or leave the column out with `inputs`."
        )
    values = np.array([*parsed, None], np.float64)  # the last stands for no cell at all
    return np.asarray(values[cells.indices])
