"""A model and a table -> tables of predictions, some rows at a time where that gives the same numbers.

A model that sees nothing but its window predicts ten million rows in little memory: each part is
predicted by itself, with the rows before it as context. A linear part, an adapting readout or an
interval depend on all rows before, and get them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn.cli.table import Table
from varnn.closed_loop import continue_from_training
from varnn.intervals import bound_name
from varnn.panel import Panel
from varnn.preparation import fill_gaps

if TYPE_CHECKING:
    from varnn.regressor import VARNNRegressor

Columns = dict[str, Any]
_ROWS_AT_ONCE = 1 << 16


def pieces(model: "VARNNRegressor", table: Table, levels: Sequence[float]) -> Iterator[Columns]:
    """Predict a table; give the columns to write, part by part, in the order of its rows."""
    panel = table.panel
    if table.labelled and not levels and _sees_its_window_only(model, panel):
        yield from _part_by_part(model, table)
        return
    bounds = {}
    if levels:
        prediction, lower, upper = model.predict(panel, interval=levels)
        for index, level in enumerate(levels):
            bounds[bound_name("lower", level)] = lower[:, index]
            bounds[bound_name("upper", level)] = upper[:, index]
    else:
        prediction = model.predict(panel) if table.labelled else continue_from_training(model.fitted_, panel)
    found = {"prediction": prediction, **bounds}
    rows = slice(0, len(panel))
    yield _columns(table, rows, {name: panel.in_caller_order(values) for name, values in found.items()})


def _sees_its_window_only(model: "VARNNRegressor", panel: Panel) -> bool:
    fitted = model.fitted_
    recipe = fitted.recipe
    return (
        panel.n_series == 1
        and fitted.adaptation is None
        and recipe.takes_rows_as_they_are
        and recipe.fill != "interpolate"  # which looks ahead
    )


def _part_by_part(model: "VARNNRegressor", table: Table) -> Iterator[Columns]:
    panel, recipe = table.panel, model.fitted_.recipe
    context = model.fitted_.window - 1
    last_known = recipe.lead  # (D,): what a gap at the start of a part is filled with
    for begin in range(0, len(panel), _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, len(panel))
        lead = min(begin, context)
        part = panel.ranges(np.array([begin - lead]), np.array([end]))
        part = fill_gaps(part, recipe.fill, last_known)
        last_known = part.inputs[max(len(part) - context - 1, 0)]  # the row before the next part
        yield _columns(table, slice(begin, end), {"prediction": model.predict(part)[lead:]})


def _columns(table: Table, rows: slice, found: dict[str, npt.NDArray[Any]]) -> Columns:
    """Put time, series and labels of some rows of the table beside what was found for them."""
    beside: Columns = {name: column[rows].to_arrow() for name, column in table.kept.items()}
    if table.labelled:
        target = table.panel.target
        in_order = target if table.panel.n_series == 1 else table.panel.in_caller_order(target)
        beside[table.panel.target_name] = in_order[rows]
    return {**beside, **found}
