"""A model and a table -> tables of predictions, some rows at a time: ten million rows take little memory.

Where the table mixes the rows of its series, they are all predicted before the first is written.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn.cli._table import Table
from varnn.data.grouping import RowNumbers, row_numbers
from varnn.model.intervals import Interval, bound_name
from varnn.model.prediction import predict_rows
from varnn.streaming.closed_loop import continue_from_training

if TYPE_CHECKING:
    from varnn.estimator.regressor import VARNNRegressor

Columns = dict[str, Any]
_ROWS_AT_ONCE = 1 << 16


def pieces(
    model: "VARNNRegressor", table: Table, levels: Sequence[float], resume: bool | None = None
) -> Iterator[Columns]:
    """Predict a table; give the columns to write, part by part, in the order of its rows."""
    panel = table.panel
    # Which row of the panel each row of the table is, where they are not the same.
    places = None if panel.is_in_caller_order else panel.in_caller_order(row_numbers(len(panel)))
    for rows, found in _predicted(model, table, levels, places, resume):
        columns: Columns = {name: plain(column[rows].to_arrow()) for name, column in table.kept.items()}
        if table.labelled:
            columns[panel.target_name] = panel.target[rows if places is None else places[rows]]
        yield {**columns, **named(found, levels)}


def plain(column: Any) -> Any:
    """Spell out texts that are numbers of a list."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _predicted(
    model: "VARNNRegressor",
    table: Table,
    levels: Sequence[float],
    places: RowNumbers | None,
    resume: bool | None,
) -> Iterator[tuple[slice, Interval]]:
    """Rows of the table, and what is predicted for them."""
    panel, fitted = table.panel, model.fitted_
    if not table.in_closed_loop and places is None:
        wanted = np.array(levels) if levels else None
        yield from predict_rows(fitted, panel, wanted, resume=resume, max_rows=_ROWS_AT_ONCE)
        return
    if levels:
        found = model.predict(panel, interval=levels, resume=resume)  # refuses a table without a label
    elif table.in_closed_loop:
        found = Interval(continue_from_training(fitted, panel), None, None)
    else:
        found = Interval(model.predict(panel, resume=resume), None, None)
    for begin in range(0, len(panel), _ROWS_AT_ONCE):
        rows = slice(begin, min(begin + _ROWS_AT_ONCE, len(panel)))
        here = rows if places is None else places[rows]
        yield rows, Interval(*(None if one is None else one[here] for one in found))


def named(found: Interval, levels: Sequence[float]) -> dict[str, npt.NDArray[Any]]:
    """Name the columns of a prediction."""
    named = {"prediction": found.prediction}
    for index, level in enumerate(levels):
        named[bound_name("lower", level)] = found.lower[:, index]
        named[bound_name("upper", level)] = found.upper[:, index]
    return named
