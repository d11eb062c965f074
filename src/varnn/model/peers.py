"""Leave-one-out means over the series of a panel: what the others do at the same time."""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray, IntArray
from varnn.data.panel import Panel
from varnn.errors import DataError

PEER_INPUTS = ("gap to peers", "change of peers")
PEER_RESIDUAL = "innovation of peers"


def refuse_alone(training: Panel) -> None:
    """Refuse ``peers=True`` for a series that has none."""
    if training.n_series < 2:
        raise DataError(
            "peers=True needs at least two series, as each sees what the others do; the training rows have "
            f"{training.n_series}. Name the series of the rows, or leave peers out."
        )


def time_index(panel: Panel) -> IntArray:
    """Count the times of a panel: (N,) numbers, one for all rows of a time (without times: of a place)."""
    if panel.time is None:
        return np.arange(len(panel)) - panel.first_rows
    # Not return_inverse of unique, which takes several times the memory.
    return np.searchsorted(np.unique(panel.time), panel.time)


def mean_of_others(panel: Panel, values: FloatArray, known: BoolArray) -> DoubleArray:
    """Average ``values`` over the other series' rows at the same time.

    Parameters
    ----------
    panel : Panel
    values : array of shape (N,)
    known : array of bool of shape (N,)
        Values that count.

    Returns
    -------
    array of shape (N,)
        NaN where no other is known.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [1.0, 2.0, 3.0, 5.0, 7.0], series=list("aabbc"))
    >>> mean_of_others(panel, panel.target, panel.target > 0).tolist()
    [5.0, 5.0, 4.0, 2.0, 2.0]
    """
    index = time_index(panel)
    used = np.where(known, values, 0.0)
    means, counts = (_totals(index, one)[index] - one for one in (used, known))
    with np.errstate(invalid="ignore", divide="ignore"):
        means /= counts
    means[counts == 0] = np.nan
    return means


def _totals(index: IntArray, values: npt.NDArray[Any]) -> DoubleArray:
    """Add up values of one time."""
    return np.asarray(np.bincount(index, weights=values), np.float64)


def peer_inputs(
    last: DoubleArray, has_label: DoubleArray, change: DoubleArray, residual: DoubleArray, largest: float
) -> DoubleArray:
    """Compute what series in step see of each other: gap to their labels, their change and innovation.

    Parameters
    ----------
    last, has_label, change, residual : arrays of shape (n,)
        Last labels, which of them are there, how they changed, and what the linear part left of them.
    largest : float
        Size of a residual beyond which it counts as missing.

    Returns
    -------
    array of shape (n, 3)
        Zero where no other series is known.
    """
    known, informed = has_label > 0, np.abs(residual) <= largest  # NaN is not
    columns = [
        np.where(known, mean_of_others_now(last, known) - last, np.nan),
        mean_of_others_now(change, known),
        mean_of_others_now(residual, informed),
    ]
    return np.asarray(np.nan_to_num(np.column_stack(columns)), np.float64)


def mean_of_others_now(values: DoubleArray, known: BoolArray) -> DoubleArray:
    """Average over the others as :func:`mean_of_others`, for series in step, one row each.

    Parameters
    ----------
    values, known : arrays of shape (n,)

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> mean_of_others_now(np.array([1.0, 3.0, 5.0]), np.array([True, True, False])).tolist()
    [3.0, 1.0, 2.0]
    """
    used = np.where(known, values, 0.0)
    sums, counts = used.sum() - used, known.sum() - known
    return np.asarray(np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0))
