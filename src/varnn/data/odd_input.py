"""Frames and arrays that are nearly what they should be -> plain ones, or words that say what to do.

Names of columns that are no text, cells that hold more than a number or a word, and arrays with a mask are
all met here, so that nothing after it has to know them.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data.rules import shown
from varnn.errors import DataError

_PLAIN = {str, float, bool, type(None)}  # kinds of cells that need no second look
_LARGEST_WHOLE = 1 << 63


def plain_frame(frame: Any) -> Any:
    """The table, whose columns have texts as names and plain cells; refuse one that cannot be made so.

    Examples
    --------
    >>> import pandas
    >>> list(plain_frame(pandas.DataFrame({0: [1.0], 1: [2.0]})))
    ['0', '1']
    """
    if isinstance(frame, dict | list | tuple | str | bytes | np.ndarray) or frame is None:
        raise DataError(
            f"a table must be a frame (pandas, polars, pyarrow, DuckDB, ...); got {type(frame).__name__}. "
            "Make one of it, for example with pandas.DataFrame(...), or use Panel.from_arrays."
        )
    if not is_pandas(frame):
        return frame
    names = [_name(one, index) for index, one in enumerate(frame.columns)]
    twice = [one for one, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"each column needs a name of its own; the table has {twice[:5]} twice. Rename them.")
    plain = frame.set_axis(names, axis=1) if names != list(frame.columns) else frame
    for name in names:
        if plain[name].dtype == object and (cells := _plain_cells(plain[name].tolist())) is not None:
            column = type(plain[name])(cells, index=plain.index, dtype=object, name=name)
            plain = plain.assign(**{name: column})
    return plain


def column_name(role: str, name: Any, columns: Iterable[str]) -> str | None:
    """Name of a column as text: a column that is called 2 is found by 2, and none by its place.

    Examples
    --------
    >>> column_name("target", 2, ["1", "2"])
    '2'
    """
    if name is None or isinstance(name, str):
        return name
    if str(name) in columns:
        return str(name)
    by_place = f" Its place may be meant: give list(frame.columns)[{name}]." if isinstance(name, int) else ""
    raise DataError(f"{role} must be the name of a column; no column is called {shown(name)}.{by_place}")


def unmasked(values: Any) -> Any:
    """Take what is masked in an array as missing (NaN); leave other things as they are.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([1, -999, 3], -999)).tolist()
    [1.0, nan, 3.0]
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    try:
        return np.ma.filled(values.astype(np.float64), np.nan)
    except (TypeError, ValueError):
        raise DataError(f"an array with a mask must hold numbers; it holds {values.dtype}.") from None


def series_names(series: Any) -> npt.NDArray[Any]:
    """Read which series each row is of; every row must say so.

    Examples
    --------
    >>> series_names(["a", "b"]).tolist()
    ['a', 'b']
    """
    masked = isinstance(series, np.ma.MaskedArray) and bool(np.ma.getmaskarray(series).any())
    try:
        named = np.asarray(series)
    except ValueError:
        raise DataError("`series` must hold one name per row; it holds lists of several lengths.") from None
    missing = masked
    if named.dtype.kind in "fO" and named.ndim == 1:
        missing = missing or any(one is None or one != one for one in named.tolist())
    if missing:
        raise DataError(
            "`series` must hold a name for every row; some have none. Drop these rows, or name them."
        )
    if named.dtype == object and set(map(type, named.ravel().tolist())) != {str}:
        return np.array([str(one) for one in named.ravel().tolist()], dtype=object).reshape(named.shape)
    return named


def is_pandas(frame: Any) -> bool:
    """Tell a frame of pandas, which has an index and may have any names."""
    return type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns")


def _name(name: Any, index: int) -> str:
    if isinstance(name, tuple):
        raise DataError(
            f"columns must have plain names; column {index} has several levels: {shown(name)}. Join them, "
            "for example with frame.columns = ['_'.join(map(str, one)) for one in frame.columns]."
        )
    if name is None or name != name or isinstance(name, bytes):
        raise DataError(f"each column needs a name; that of column {index} is {shown(name)}. Rename it.")
    return str(name)


def _plain_cells(cells: list[Any]) -> list[Any] | None:
    """Make cells plain; None if they are."""
    if set(map(type, cells)) <= _PLAIN:
        return None
    return [_plain(cell) for cell in cells]


def _plain(cell: Any) -> Any:
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else float(cell)
    if isinstance(cell, int) and abs(cell) >= _LARGEST_WHOLE:
        try:
            return float(cell)
        except OverflowError:
            return np.inf  # which is refused, with its place
    if isinstance(cell, list | tuple | dict | set | frozenset | bytes | complex | np.ndarray):
        return str(cell)
    return cell
