"""A table given to ``fit`` or ``predict`` -> a panel, each column taken by its name.

``fit(frame, "load")`` names the labels, ``fit(frame)`` leaves a long frame to say what is what, and a model
that was fitted so finds its columns again. What comes beside the table, one value per row (labels, times,
series), stands beside its columns. A table of inputs alone is left to the way of arrays, which is
scikit-learn's: None is given for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from varnn.data.array_times import array_times
from varnn.data.arrow_streams import is_table
from varnn.data.categories import source_columns
from varnn.data.odd_input import is_pandas, series_names
from varnn.data.panel import Panel, from_columns
from varnn.data.rules import shown
from varnn.errors import DataError, RowError
from varnn.model.fitted import Fitted

FEW_NAMES = 7  # a time has six parts, from years to seconds: more are times of rows


def held(X: Any) -> Any:
    """Rows that can be looked at more than once: a lazy table is computed, a stream is read."""
    if not is_table(X) or is_pandas(X):
        return X
    from varnn.data.tables import collected

    return collected(X).to_native()


def reading_for(
    fitted: Fitted, columns: Any, *, target: str | None, time: Any = None, series: str | None = None
) -> Any:
    """How a table is read for a fitted model: its inputs by name, time and series as they were in the fit."""
    from varnn.data.tables import Reading

    times = Reading(target=None, time=fitted.time_name).times_in(columns)
    if time is None and times and set(times) <= set(columns):
        time = times
    if series is None and fitted.series_name in columns:
        series = fitted.series_name
    # Rows that repeat a time would be left out, and each row is to have its prediction.
    used = ("missing",) if time is None else ("missing", "time_format", "time_zone", "sort")
    before = {name: one for name, one in fitted.training.reading.items() if name in used}
    return Reading(
        target=target,
        time=time,
        series=series,
        inputs=source_columns(fitted.input_names, fitted.categories),
        categories=fitted.categories,
        **before,
    )


def panel_by_name(
    X: Any, y: Any, series: Any, time: Any, *, labels: Any, fitted: Fitted | None
) -> Panel | None:
    """Read a table by name, if anything says so; None otherwise.

    Parameters
    ----------
    X, y, series, time : object
        As users give them: beside a table, each of the latter may be the name of a column (the time several),
        or hold one value per row.
    labels : callable
        Reads labels of so many rows: ``labels(y, n_rows)``.
    fitted : Fitted or None
        The model to predict with; None in a fit.
    """
    if not is_table(X):
        _refuse_names(y, series, time)
        return None
    from varnn.data.frames import backend_of, read_frame
    from varnn.data.long_frames import TARGET, TIME, as_long
    from varnn.data.tables import Reading, collected

    columns = [str(one) for one in X.columns] if is_pandas(X) else collected(X).columns
    named: dict[str, Any] = {
        "target": y if isinstance(y, str) else _known_target(columns, y, fitted),
        "time": time if _are_names(time, columns) else None,
        "series": series if isinstance(series, str) else None,
    }
    if fitted is None and y is None and {TIME, TARGET} <= {*columns, *_index_names(X)}:
        named["target"] = TARGET
    reading = Reading(**named) if fitted is None else reading_for(fitted, columns, **named)
    reading = as_long(reading, [*columns, *_index_names(X)])
    if reading.target is None and reading.time is None and reading.series is None:
        return None
    beside: dict[str, Any] = {}
    if y is not None and not isinstance(y, str):
        beside["target"] = labels(y, len(X))
    if time is not None and named["time"] is None:
        beside["time"] = array_times(time)
    if series is not None and named["series"] is None:
        beside["series"] = series_names(series)
    frame, added = _with_columns(X, columns, beside, name_of(y))
    read = {role: added.get(role, getattr(reading, role)) for role in ("target", "time", "series")}
    reading = replace(reading, target=read["target"], time=read["time"], series=read["series"])
    table, reading = read_frame(frame, reading)
    backend = backend_of(table)
    panel = from_columns(table, reading).logged()
    return replace(  # without names that only we gave
        panel,
        backend=backend,
        time_name=None if "time" in added else panel.time_name,
        series_name=None if "series" in added else panel.series_name,
    )


def coming_rows(fitted: Fitted, known: Sequence[str], inputs: Any) -> Any:
    """Read a table of coming inputs by the names of the fit; leave a panel or an array as it is."""
    inputs = held(inputs)
    if not is_table(inputs):
        return inputs
    from varnn.data.frames import read_frame
    from varnn.data.long_frames import as_long
    from varnn.data.tables import collected

    columns = collected(inputs).columns
    reading = as_long(reading_for(fitted, columns, target=None), columns)
    wanted = source_columns(known or fitted.input_names, fitted.categories)
    return from_columns(*read_frame(inputs, replace(reading, inputs=wanted))).logged()


def validation_of(validation: Any, y: Any, series: Any, time: Any) -> Any:
    """Read a table of validation rows as that of the training rows was; leave a panel as it is."""
    validation = held(validation)
    if not is_table(validation):
        return validation
    beside = [role for role, one in (("y", y), ("series", series), ("time", time)) if not _names(one)]
    if beside:
        raise DataError(
            f"validation rows in a table go with names of columns, and {beside[0]} holds one value per row. "
            "Name the column; or give validation as a Panel."
        )
    found = panel_by_name(validation, y, series, time, labels=None, fitted=None)
    if found is None:
        raise DataError("validation rows need labels: name their column, fit(frame, 'load', validation=...).")
    return found


def _names(one: Any) -> bool:
    return one is None or isinstance(one, str) or (isinstance(one, list | tuple) and len(one) < FEW_NAMES)


def name_of(y: Any) -> str | None:
    """Name of labels that are a column of some table."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name and not isinstance(y, np.ndarray) else None


def _known_target(columns: list[str], y: Any, fitted: Fitted | None) -> str | None:
    """The labels that a table brings itself, by the name they had in the fit."""
    if y is not None or fitted is None or fitted.target_name in fitted.input_names:
        return None
    return fitted.target_name if fitted.target_name in columns else None


def _index_names(X: Any) -> list[str]:
    return [one for one in X.index.names if isinstance(one, str)] if is_pandas(X) else []


def _are_names(time: Any, columns: list[str]) -> bool:
    """Tell names of columns from times of rows."""
    if isinstance(time, str):
        return True
    return isinstance(time, list | tuple) and bool(time) and all(one in columns for one in time)


def _with_columns(
    X: Any, columns: list[str], beside: dict[str, Any], target_name: str | None
) -> tuple[Any, dict[str, str]]:
    """Put what came beside a table into columns of its own; give their names by what they are."""
    names = {"target": target_name or "y", "time": "time", "series": "series"}
    added: dict[str, str] = {}
    for role, values in beside.items():
        name = names[role]
        while name in (*columns, *added.values()):
            name += "_"
        if np.shape(values) != (len(X),):
            raise DataError(
                f"`{role}` must hold one value per row, shape ({len(X)},); it has shape {np.shape(values)}."
            )
        added[role] = name
    if not added:
        return X, added
    if is_pandas(X):
        return X.assign(**{name: beside[role] for role, name in added.items()}), added
    import narwhals as nw

    table = nw.from_native(X, eager_only=True)
    new = [
        nw.new_series(name, beside[role], backend=table.implementation)
        if beside[role].dtype.kind not in "UO"
        else nw.new_series(name, beside[role].tolist(), nw.String, backend=table.implementation)
        for role, name in added.items()
    ]
    return table.with_columns(*new).to_native(), added


def _refuse_names(y: Any, series: Any, time: Any) -> None:
    """Refuse names of columns where there are none."""
    for role, one in (("y", y), ("series", series), ("time", time)):
        if isinstance(one, str):
            raise DataError(
                f"{role} may be the name of a column where X is a table; X is none, and {role} is "
                f"{shown(one)}. Give a frame, or one value per row."
            )


def with_index(X: Any, y: Any, series: Any, time: Any) -> tuple[Any, Any, Any, Any]:
    """Take times, and series, from the index of inputs or of labels, where nobody gave any."""
    if time is not None:
        return X, y, series, array_times(time)
    for rows in (X, y):
        if hasattr(rows, "index") and not isinstance(rows, list | tuple):
            from varnn.data.indexes import index_of

            found = index_of(rows)
            if found.doubt:
                raise DataError(found.doubt)
            if found.time is not None:
                named = None if found.series is None else found.levels[found.series]
                given = series if series is not None or named is None else series_names(named)
                return X, y, given, array_times(found.levels[found.time])
    return X, y, series, None


def said_of_times(error: RowError) -> str:
    """What to do about times out of order, where ``Panel.from_frame`` is not what was called."""
    if "time must increase" not in str(error):
        return ""
    return (
        " (These are arguments of Panel.from_frame, which makes a panel to fit. frame.sort_values(...) puts "
        "rows in order as well; where the time is the index, frame.sort_index() does, and "
        "frame.reset_index(drop=True) leaves it out. train_test_split(..., shuffle=False) keeps the order.)"
    )
