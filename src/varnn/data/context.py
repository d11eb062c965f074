"""Panel, and rows that came before it -> one panel in which each series begins with what it follows."""

from dataclasses import replace

import numpy as np

from varnn._types import BoolArray, IntArray
from varnn.data.panel import Panel
from varnn.data.sampling import sampling_step

_SLACK = 1.5  # steps: rows that begin so soon after the ones before follow them


def preceded(panel: Panel, earlier: Panel, rows: int, *, told: bool = False) -> tuple[Panel, BoolArray]:
    """Put the last rows of an earlier panel before those of the same series that follow them.

    A series follows if its first time comes at most a step and a half after the last one before it; of rows
    that were cut from one table, if it goes on where the earlier ones end.

    Parameters
    ----------
    panel, earlier : Panel
        With the same inputs.
    rows : int
        How many of the earlier rows, at most.
    told : bool, default=False
        Whether the caller says that they follow: then every series that is in both does.

    Returns
    -------
    panel, own
        The rows together, and which of them are the panel's own: (N,).

    Examples
    --------
    >>> from varnn.data.preparation import split_in_time
    >>> training, test = split_in_time(Panel.from_arrays(None, [1.0, 2.0, 3.0, 4.0]), 0.5, 0.5)
    >>> joined, own = preceded(test, training, 1)
    >>> joined.target.tolist(), own.tolist()
    ([2.0, 3.0, 4.0], [False, True, True])
    """
    before = rows_followed(panel, earlier, rows, told=told)
    if not before.any():
        return panel, np.ones(len(panel), dtype=bool)
    lengths = panel.lengths + before
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    own = np.ones(starts[-1], dtype=bool)
    taken = []
    for index, count in enumerate(before):
        own[starts[index] : starts[index] + count] = False
        if count:
            end = earlier.starts[earlier.ids.index(panel.ids[index]) + 1]
            taken.append(np.arange(end - count, end))
    old = np.concatenate(taken)
    inputs = np.empty((len(own), panel.n_inputs), np.result_type(panel.inputs, earlier.inputs))
    target = np.empty(len(own), np.result_type(panel.target, earlier.target))
    inputs[own], inputs[~own] = panel.inputs, earlier.inputs[old]
    target[own], target[~own] = panel.target, earlier.target[old]
    time = None
    if panel.time is not None and earlier.time is not None:
        time = np.empty(len(own), np.result_type(panel.time, earlier.time))
        time[own], time[~own] = panel.time, earlier.time[old]
    elif panel.time is not None:  # the earlier rows have none: then nothing is known of when they were
        return panel, np.ones(len(panel), dtype=bool)
    weights = None
    if panel.weights is not None:
        weights = np.ones(len(own))
        weights[own] = panel.weights
    joined = replace(panel, inputs=inputs, target=target, time=time, starts=starts, weights=weights)
    return replace(joined, rows=np.arange(len(own))), own


def own_rows(panel: Panel, own: BoolArray) -> Panel:
    """Leave out again what :func:`preceded` put before a panel's rows."""
    if own.all():
        return panel
    before = np.add.reduceat(~own, panel.starts[:-1]) if len(panel) else np.zeros(0, np.int64)
    return panel.ranges(panel.starts[:-1] + before, panel.starts[1:])


def rows_followed(panel: Panel, earlier: Panel, rows: int, *, told: bool = False) -> IntArray:
    """How many earlier rows :func:`preceded` puts before each series: (S,)."""
    counts = np.zeros(panel.n_series, np.int64)
    where = {name: index for index, name in enumerate(earlier.ids)}
    step = None
    if panel.time is not None and earlier.time is not None and len(earlier):
        step = sampling_step(earlier.time, earlier.starts)
    for index, name in enumerate(panel.ids):
        other = where.get(name)
        if other is None:
            continue
        first, last = int(panel.starts[index]), int(earlier.starts[other + 1]) - 1
        follows = told or int(panel.rows[first]) == int(earlier.rows[last]) + 1
        if not told and step is not None and panel.time is not None and earlier.time is not None:
            apart = panel.time[first] - earlier.time[last]
            follows = bool(0 * step < apart <= _SLACK * step)
        if follows:
            counts[index] = min(rows, int(earlier.lengths[other]))
    return counts
