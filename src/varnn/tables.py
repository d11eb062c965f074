"""A table's columns by name -> numbers, times and names of series: what is what, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from varnn import columns, memory
from varnn.columns import FloatArray
from varnn.errors import DataError, nearest
from varnn.grouping import Coded
from varnn.odd_input import plain_frame

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Columns = dict[str, nw.Series[Any]]


def columns_of(frame: IntoDataFrame) -> Columns:
    """Give the columns of a pandas, polars or pyarrow table by name."""
    try:
        table = nw.from_native(plain_frame(frame), eager_only=True)
    except TypeError:
        raise DataError(
            f"a table must be a pandas, polars or pyarrow one, in memory; got {type(frame).__name__}."
        ) from None
    return {name: table[name] for name in table.columns}


class Gathered(NamedTuple):
    """What a table holds, by its use."""

    values: dict[str, Any]  # inputs (N, D), target (N,), and time (N,) or None
    series: Coded | None
    input_names: tuple[str, ...]
    target_name: str
    ignored: tuple[str, ...]  # columns that hold no numbers


def gathered(
    table: Columns,
    *,
    target: str | None,
    time: str | None,
    series: str | None,
    inputs: Sequence[str] | None,
) -> Gathered:
    """Read columns by name as what they are for; those with numbers are taken out of the mapping."""
    names = list(table)
    n_rows = len(next(iter(table.values()), ()))
    if n_rows == 0:
        raise DataError("a panel needs at least one row; the table has columns but no rows.")
    for role, column in (("target", target), ("time", time), ("series", series)):
        if column is not None and column not in table:
            raise DataError(f"{role} column {column!r} is not in the table. {nearest(column, names)}")
    ignored: list[str] = []
    if inputs is None:
        chosen = [one for one in names if one not in {target, time, series}]
        ignored = [one for one in chosen if _is_words(table[one])]
        chosen = [one for one in chosen if one not in ignored]
    else:
        chosen = list(dict.fromkeys(inputs))
        for column in chosen:
            if column not in table:
                raise DataError(f"input column {column!r} is not in the table. {nearest(column, names)}")
            if column == target:
                raise DataError(
                    f"the target {target!r} cannot also be an input: it is not known when its "
                    "own row is predicted. Take it out of `inputs`."
                )
    groups = None if series is None else columns.coded(table[series], series)
    values: dict[str, Any] = {"time": None if time is None else columns.times(table[time], time)}
    values["target"] = (
        np.full(n_rows, np.nan) if target is None else columns.numbers(table.pop(target), target)
    )
    values["inputs"] = _side_by_side([columns.numbers(table.pop(one), one) for one in chosen], n_rows)
    memory.release()  # of the columns
    return Gathered(
        values,
        series=groups,
        input_names=tuple(chosen),
        target_name="y" if target is None else target,
        ignored=tuple(ignored),
    )


def _side_by_side(wide: list[FloatArray], n_rows: int) -> FloatArray:
    if not wide:
        return np.empty((n_rows, 0))
    return wide[0][:, None] if len(wide) == 1 else np.column_stack(wide)


def _is_words(column: Any) -> bool:
    """Tell whether an unnamed column is text to leave out (and not a number column with a bad cell)."""
    if columns.holds_numbers(column):  # quicker than to read them twice
        return False
    try:
        columns.numbers(column, column.name)
    except DataError:
        if columns.is_nearly_numeric(column):
            raise
        return True
    return False
