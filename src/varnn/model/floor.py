"""Targets that cannot be negative: counts, loads, concentrations. Predictions and forecasts stop at zero.

Whether a target is such a one is taken from its labels. A mistake costs little: the first label below zero
lifts the floor of its series.
"""

import numpy as np

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.panel import Panel
from varnn.step.floor import find_floor

_SKEWED = 3.0  # times as far from the median to the largest label as to the smallest


def is_never_negative(labels: FloatArray) -> bool:
    """Tell whether labels look like those of a target that cannot be negative.

    None is negative, and one is zero, or all are whole numbers, or they crowd at the lower end.

    Examples
    --------
    >>> is_never_negative(np.array([3.0, 0.0, 7.5])), is_never_negative(np.array([4.5, 21.0, 20.0, 35.5]))
    (True, False)
    """
    known = labels[~np.isnan(labels)]
    if not len(known) or known.min() < 0:
        return False
    low, middle, high = known.min(), np.median(known), known.max()
    whole = bool((known == np.floor(known)).all())
    return bool(low == 0 or whole or high - middle > _SKEWED * (middle - low))


def floored(values: DoubleArray, free: BoolArray) -> DoubleArray:
    """Stop values at zero, but where they are free to go below.

    Examples
    --------
    >>> floored(np.array([-1.0, -2.0, 3.0]), np.array([False, True, False])).tolist()
    [0.0, -2.0, 3.0]
    """
    floor = np.empty(np.shape(free))
    find_floor(np.asarray(free, np.float64), floor)
    return np.maximum(values, floor)


def lifted_at_end(panel: Panel) -> BoolArray:
    """Tell, for each series, whether it has had a label below zero: (S,).

    Examples
    --------
    >>> lifted_at_end(Panel.from_arrays(None, [1.0, None, 2.0, -1.0], series=list("aabb"))).tolist()
    [False, True]
    """
    return np.fmin.reduceat(panel.target, panel.starts[:-1]) < 0


def lifted(panel: Panel) -> BoolArray:
    """Tell, for each row, whether its series has had a label below zero before it: (N,).

    Examples
    --------
    >>> lifted(Panel.from_arrays(None, [1.0, -1.0, 2.0])).tolist()
    [False, False, True]
    """
    below = np.nan_to_num(panel.target) < 0
    if not below.any():
        return below
    count = np.concatenate([[0], np.cumsum(below)])  # before each row
    return np.asarray(count[:-1] > count[panel.first_rows])
