"""Many rows -> the few that a picture needs: no peak is lost."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt


def thinned(columns: Sequence[npt.NDArray[Any]], spans: int) -> npt.NDArray[np.int64]:
    """Choose rows to draw: all, or of each of so many spans those where a column is lowest and highest.

    A gap stays one: the first row of each stretch without any value is drawn, unless there are too many.

    Parameters
    ----------
    columns : sequence of array
        Of one length; NaN where missing.
    spans : int
        Into how many spans rows are cut. Twice as many rows, or fewer, are left as they are.

    Examples
    --------
    >>> thinned([np.array([0.0, 5.0, 1.0, 2.0, -3.0, 1.0, 0.0, 0.0])], spans=2).tolist()
    [0, 1, 4, 5, 7]
    """
    count = len(columns[0])
    if count <= 2 * spans:
        return np.arange(count)
    edges = np.linspace(0, count, spans + 1).astype(np.int64)
    kept = [np.array([0, count - 1])]  # both ends of the axis stay where they are
    for values in columns:
        missing = np.isnan(values)
        lowest, highest = (np.where(missing, filling, values) for filling in (np.inf, -np.inf))
        bounds = list(pairwise(edges))
        kept.append(np.array([first + np.argmin(lowest[first:last]) for first, last in bounds]))
        kept.append(np.array([first + np.argmax(highest[first:last]) for first, last in bounds]))
    empty = np.logical_and.reduce([np.isnan(values) for values in columns])
    gaps = np.flatnonzero(empty[1:] & ~empty[:-1]) + 1
    if len(gaps) <= spans:
        kept.append(gaps)
    return np.unique(np.concatenate(kept))
