"""Panel -> windows as row numbers; nothing is copied, and no other module slices time.

A window is known by its last row: it covers rows ``end - length + 1 .. end``, all of one series.
One int32 per window is therefore all that training keeps.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError

Rows = npt.NDArray[np.signedinteger[Any]]


def window_ends(panel: Panel, length: int, *, stride: int = 1) -> Rows:
    """List the last row of every full window whose last target is known, and counts.

    Parameters
    ----------
    panel : Panel
        The rows; windows never cross a series, nor (a part of a split being a panel) a split.
    length : int
        Rows in a window: ``length - 1`` labelled ones, and the one that is predicted.
    stride : int, default=1
        Rows between the starts of consecutive windows, counted within each series.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [1.0, 2.0, 3.0, None, 5.0, 6.0], series=list("aaaaab"))
    >>> window_ends(panel, 3).tolist()
    [2, 4]
    """
    for name, value in (("window", length), ("stride", stride)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1; got {value}.")
    ends, counted = _every(panel, length - 1, stride), panel.counted
    return ends if counted.all() else ends[counted[ends]]  # as they are: they may be ten million


def training_ends(panel: Panel, length: int) -> Rows:
    """List windows to train on, each with a known last target; every series must be long enough for one."""
    short = [
        f"{name!r} ({rows})" for name, rows in zip(panel.ids, panel.lengths, strict=True) if rows < length
    ]
    if short:
        raise DataError(
            f"every series needs at least window = {length} rows to train on, of n_samples = {len(panel)} "
            f"in all; too short: {', '.join(short[:5])}{', ...' if len(short) > 5 else ''}. "
            "Lower `window`, lower `validation_fraction`, or leave these series out."
        )
    ends = window_ends(panel, length)
    if len(ends) == 0:
        raise DataError(
            f"no window of {length} rows ends in a known target: the labels that are there all lie in the "
            f"first {length - 1} rows of their series. Lower `window`."
        )
    return ends


def loss_window_ends(panel: Panel, length: int, loss_rows: int, offset: int) -> Rows:
    """List windows whose last ``loss_rows`` rows together cover every row with a full window once.

    Parameters
    ----------
    panel, length : Panel, int
        As for :func:`window_ends`.
    loss_rows : int
        Rows of a window that are learned from, and rows from one window to the next.
    offset : int
        0 .. loss rows - 1: how far the windows are shifted. Training draws one for each epoch, so that each
        row is seen with contexts of all lengths from ``length - loss_rows`` on.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, np.arange(10.0))
    >>> loss_window_ends(panel, length=4, loss_rows=2, offset=0).tolist()
    [3, 5, 7, 9]
    >>> loss_window_ends(panel, length=4, loss_rows=2, offset=1).tolist()
    [4, 6, 8]
    """
    ends = _every(panel, length - 1 + offset % loss_rows, loss_rows)
    counted = panel.counted
    if counted.all():
        return ends
    known = np.concatenate([[0], np.cumsum(counted)])
    return ends[known[ends + 1] > known[ends + 1 - loss_rows]]


def _every(panel: Panel, first: int, step: int) -> Rows:
    """List the rows at places first, first + step, ... of each series."""
    kind = np.int32 if len(panel) < np.iinfo(np.int32).max else np.int64
    series = zip(panel.starts[:-1], panel.starts[1:], strict=True)
    return np.concatenate(
        [np.empty(0, kind), *(np.arange(begin + first, end, step, dtype=kind) for begin, end in series)]
    )


def rows_of(ends: Rows, length: int) -> Rows:
    """Spell out the rows of windows, oldest first: (n_windows,) -> (n_windows, length).

    Examples
    --------
    >>> rows_of(np.array([4, 9]), 3).tolist()
    [[2, 3, 4], [7, 8, 9]]
    """
    return ends[:, None] + np.arange(1 - length, 1, dtype=ends.dtype)
