"""Times of rows -> how far apart rows usually are.

The usual step is the median of the steps from row to row within series, and one that occurs: of an even
number of steps, the larger of the two in the middle. Jumps from one series to the next are no steps.

Who asks means one of two things. A panel's step, or a series' own, is that of its rows, as they come one
after another: what is printed, what a day's rows are counted by, what coming times go on with. The step of
the times of all series together (`varnn.model.calendar.offered_cycles`) is that of the moments at which
any series has a row; it is asked for by sorting the times first.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import IntArray


def sampling_step(time: npt.NDArray[Any], starts: IntArray | None = None) -> Any:
    """Usual step from one row to the next, of the times' own kind; None where no row follows another.

    Parameters
    ----------
    time : array of shape (N,)
        Times of the rows, numbers or ``datetime64``, those of each series in order.
    starts : array of shape (S + 1,), optional
        Where each series begins, as a panel has it; one series if not given.

    Returns
    -------
    number, numpy.timedelta64 or None
        The median of the steps that go on in time.

    Examples
    --------
    >>> sampling_step(np.array([0.0, 10.0, 20.0, 35.0]))
    np.float64(10.0)
    >>> sampling_step(np.array([0, 2, 100, 102, 104]), starts=np.array([0, 2, 5]))
    np.int64(2)
    """
    steps = np.diff(time)
    onward = steps > np.zeros((), steps.dtype)
    if starts is not None:
        onward[starts[1:-1] - 1] = False  # from one series to the next
    steps = steps[onward]
    return np.sort(steps)[len(steps) // 2] if len(steps) else None


def seconds_per_row(time: npt.NDArray[Any] | None, starts: IntArray | None = None) -> int | None:
    """Usual step in whole seconds; None without times of a calendar, or where no row follows another.

    Parameters
    ----------
    time : array of shape (N,), optional
        Times of the rows; numbers are none of a calendar.
    starts : array of shape (S + 1,), optional
        Where each series begins; one series if not given.

    Examples
    --------
    >>> seconds_per_row(np.datetime64("2026-11-15T07") + np.arange(3)), seconds_per_row(np.arange(3))
    (3600, None)
    """
    if time is None or time.dtype.kind != "M":
        return None
    step = sampling_step(time.astype("datetime64[s]"), starts)
    return None if step is None else int(step.astype(np.int64))
