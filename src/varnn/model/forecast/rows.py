"""Panel -> the same rows as they look before they come, and rows that have not come yet."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.odd_input import unmasked
from varnn.data.panel import Panel
from varnn.data.sampling import sampling_step
from varnn.errors import DataError


def inputs_known_before(panel: Panel, known: Sequence[str]) -> Panel:
    """Show each row the inputs of the row before it, but those known in the future as they are.

    The first row of a series has none before it, and keeps its own.

    Examples
    --------
    >>> panel = Panel.from_arrays([[1.0, 5.0], [2.0, 6.0]], [0.0, 0.0], input_names=["wind", "tariff"])
    >>> inputs_known_before(panel, ["tariff"]).inputs.tolist()
    [[1.0, 5.0], [1.0, 6.0]]
    """
    before = np.maximum(np.arange(len(panel)) - 1, panel.first_rows)
    inputs = panel.inputs[before]
    columns = columns_of(panel, known)
    inputs[:, columns] = panel.inputs[:, columns]
    return replace(panel, inputs=inputs)


def columns_of(panel: Panel, names: Sequence[str]) -> IntArray:
    """Find inputs by name."""
    missing = [name for name in names if name not in panel.input_names]
    if missing:
        raise DataError(
            f"known_inputs must name inputs of the data; {missing[:5]} are not among "
            f"{list(panel.input_names)[:10]}."
        )
    return np.array([panel.input_names.index(name) for name in names], dtype=np.int64)


def targets_ahead(panel: Panel, horizon: int, rows: IntArray | None = None) -> DoubleArray:
    """Gather the targets of the rows after each row.

    Parameters
    ----------
    panel : Panel
    horizon : int
    rows : array of int or None, default None
        Rows to look ahead from; None is all.

    Returns
    -------
    array of shape (N, horizon - 1)
        NaN beyond the end of a series.

    Examples
    --------
    >>> targets_ahead(Panel.from_arrays(None, [1.0, 2.0, 3.0]), 3).tolist()
    [[2.0, 3.0], [3.0, nan], [nan, nan]]
    """
    rows = np.arange(len(panel)) if rows is None else rows
    last = panel.starts[np.searchsorted(panel.starts, rows, side="right")] - 1
    targets = np.full((len(rows), horizon - 1), np.nan)
    for ahead in range(1, horizon):  # a column at a time: all row numbers together would be as large as this
        there = rows + ahead <= last
        targets[there, ahead - 1] = panel.target[rows[there] + ahead]
    return targets


def longest_horizon(training: Panel) -> int:
    """Find how far ahead training rows can teach to look: as many rows must look that far as it is far.

    Examples
    --------
    >>> longest_horizon(Panel.from_arrays(None, range(240)))
    120
    >>> longest_horizon(Panel.from_arrays(None, range(240), series=[row // 40 for row in range(240)]))
    34
    """
    lengths = training.lengths
    candidates = np.arange(1, int(lengths.max(initial=0)) + 1)
    ordered = np.sort(lengths)
    shorter = np.searchsorted(ordered, candidates)  # series that end before they look so far
    rows = np.append(np.cumsum(ordered[::-1])[::-1], 0)[shorter] - candidates * (len(ordered) - shorter)
    return int(np.count_nonzero(rows >= candidates)) or 1


def refuse_too_far(training: Panel, horizon: int, held_out: float = 0.0) -> None:
    """Refuse a horizon that the training rows cannot teach.

    Parameters
    ----------
    training : Panel
        The rows to learn from.
    horizon : int
        Rows ahead.
    held_out : float, default 0.0
        Share of all rows that is not among them, to say how many there have to be.
    """
    longest = longest_horizon(training)
    if horizon <= max(1, longest):
        return
    needed = 2 * horizon
    whole = f", which is {math.ceil(needed / (1 - held_out)):,} rows in all" if held_out else ""
    raise DataError(
        f"looking {horizon:,} rows ahead needs a series of {needed:,} rows to train on{whole}, or several "
        f"with {horizon:,} rows that look so far; the longest here has {int(training.lengths.max()):,}. The "
        f"longest horizon that these rows can teach is {longest:,}. Give more rows, or a shorter horizon."
    )


def series_ends(panel: Panel) -> IntArray:
    """Find, for each row, the last row of its series: (N,)."""
    return np.repeat(panel.starts[1:] - 1, panel.lengths)


def extended(panel: Panel, horizon: int, future: FloatArray | None, known: Sequence[str]) -> Panel:
    """Add ``horizon`` rows without labels to each series.

    Parameters
    ----------
    panel : Panel
        The rows so far; each series needs one.
    horizon : int
        Rows to add.
    future : array of shape (S, horizon, inputs in ``known``) or None
        What is known of them. Other inputs stay as they were last.
    known : sequence of str
        Names of the inputs that are known in the future.
    """
    ends, added = panel.starts[1:], np.arange(panel.n_series)[:, None] * horizon + np.arange(horizon)
    total = len(panel) + added.size
    starts = panel.starts + np.arange(panel.n_series + 1) * horizon
    new = (starts[1:, None] - horizon + np.arange(horizon)).ravel()
    old = np.ones(total, dtype=bool)
    old[new] = False
    held = np.repeat(ends - 1, horizon)
    inputs = np.empty((total, panel.n_inputs), panel.inputs.dtype)
    inputs[old], inputs[new] = panel.inputs, panel.inputs[held]
    if known and future is not None:
        inputs[np.ix_(new, columns_of(panel, known))] = future.reshape(len(new), -1)
    target = np.full(total, np.nan)
    target[old] = panel.target
    time = None
    if panel.time is not None:
        time = np.empty(total, panel.time.dtype)
        time[old], time[new] = panel.time, coming_times(panel, horizon).ravel()
    numbers = np.arange(total)
    return replace(panel, inputs=inputs, target=target, starts=starts, time=time, rows=numbers, texts=None)


def coming_inputs(inputs: Any, ids: Sequence[str], names: Sequence[str], steps: int) -> DoubleArray:
    """Read the inputs of rows that have not come yet; what is masked is missing.

    Parameters
    ----------
    inputs : Panel or array
        A panel with these series and inputs, or an array (H, D) for one series, (S, H, D) for several. Rows
        beyond ``steps`` are left out.
    ids, names : sequence of str
        Series and inputs, in the order to bring them into.
    steps : int
        Rows ahead.

    Returns
    -------
    array of shape (S, steps, D)

    Examples
    --------
    >>> coming = Panel.from_arrays([[1.0, 5.0], [2.0, 6.0]], None, input_names=["wind", "tariff"])
    >>> coming_inputs(coming, coming.ids, ["tariff", "wind"], 1).tolist()
    [[[5.0, 1.0]]]
    """
    if isinstance(inputs, Panel):
        return _by_series(inputs, ids, names, steps)
    try:
        values = np.asarray(unmasked(inputs), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "future inputs must be numbers, as many for each row; got others, or rows of several lengths."
        ) from None
    if values.ndim == 2:
        values = values[None]
    values = values[:, :steps] if values.ndim == 3 else values
    shape = (len(ids), steps, len(names))
    if values.shape != shape:
        raise DataError(
            f"future inputs must have shape {shape}: series, rows, {list(names)}; they have {values.shape}."
        )
    return values


def _by_series(panel: Panel, ids: Sequence[str], names: Sequence[str], steps: int) -> DoubleArray:
    """Take the first rows of each series."""
    if panel.texts is not None:
        panel = panel.with_inputs(names, "the future inputs")
    missing = [name for name in names if name not in panel.input_names]
    if missing:
        raise DataError(f"future inputs must hold {list(names)[:10]}; they lack {missing[:5]}.")
    columns = columns_of(panel, names)
    values = []
    for name in ids:
        index = panel.ids.index(name) if name in panel.ids else 0 if len(ids) == 1 == panel.n_series else -1
        if index < 0 or panel.lengths[index] < steps:
            raise DataError(f"future inputs must hold {steps} rows of series {name!r}.")
        first = int(panel.starts[index])
        values.append(panel.inputs[first : first + steps, columns])
    return np.array(values, dtype=np.float64)


def coming_times(panel: Panel, horizon: int) -> npt.NDArray[Any]:
    """Extrapolate times by the usual step of each series: (S, horizon), of the times' own kind.

    Examples
    --------
    >>> hours = np.array(["2026-11-15T07:00", "2026-11-15T08:00"], dtype="datetime64[m]")
    >>> coming_times(Panel.from_arrays(None, [1.0, 2.0], time=hours), 2).astype(str).tolist()
    [['2026-11-15T09:00', '2026-11-15T10:00']]
    """
    time = np.asarray(panel.time)
    of_all = sampling_step(time, panel.starts) if panel.lengths.min(initial=2) < 2 else None
    coming = []
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        # A series of one row has no step of its own: that of the others will do.
        step = sampling_step(time[first:last]) if last - first > 1 else of_all
        if step is None:
            raise DataError("the time from row to row must be known; the data are one row. Give more rows.")
        ahead = np.arange(1, horizon + 1)
        months = _months_apart(time[first:last])
        coming.append(
            time[last - 1] + step * ahead if months is None else _after(time[last - 1], months * ahead)
        )
    return np.array(coming).astype(time.dtype)


def _months_apart(time: npt.NDArray[Any]) -> int | None:
    """Tell how many months rows are apart, if all are at the same time of a month, so many apart."""
    if time.dtype.kind != "M" or len(time) < 3:
        return None
    months = time.astype("datetime64[M]")
    apart = np.unique(np.diff(months.astype(np.int64)))
    return int(apart[0]) if len(apart) == 1 and apart[0] > 0 and len(np.unique(time - months)) == 1 else None


def _after(last: Any, months: IntArray) -> npt.NDArray[Any]:
    """Add months to a time; the 31st of a month without one is its last day."""
    month = last.astype("datetime64[M]")
    begun = (month + months).astype(last.dtype)
    ends = (month + months + 1).astype("datetime64[D]") - np.timedelta64(1, "D")
    same = begun + (last - month)
    return np.asarray(np.minimum(same, ends.astype(last.dtype) + (last - last.astype("datetime64[D]"))))
