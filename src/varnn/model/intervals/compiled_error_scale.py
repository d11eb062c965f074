"""A scale for each row and tracked quantiles, compiled; needs numba (``varnn[fast]``).

What `varnn.model.intervals.error_scale.ScaleTracker` does, one series and one row at a time. The state of a
series is its T quantiles, three running means of sizes in units of the least, and m: (T + 4,).
"""

import math
from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.model.intervals._size_regression import BOUND, LARGEST, LEAST
from varnn.model.intervals.error_scale import INFLATION_RATE, NEWS, RATE, ScaleTracker
from varnn.model.intervals.levels import TAUS, quantile_bounds
from varnn.network.compiled_code import in_one_layout
from varnn.network.jit import Scalar, exact_kernel, kernel

_TAUS, _NEWS = tuple(TAUS.tolist()), tuple(NEWS.tolist())
_COUNT = len(_TAUS)


def follow_compiled(
    tracker: ScaleTracker, hidden: FloatArray, errors: DoubleArray, starts: IntArray, levels: DoubleArray
) -> tuple[DoubleArray, DoubleArray]:
    """Go through all rows of a panel as :meth:`ScaleTracker.follow` does."""
    how, state = tracker.error_scale, tracker.state()
    quantiles, scales = np.empty((len(errors), _COUNT)), np.empty(len(errors))
    known: Any = [in_one_layout(one) for one in (hidden, errors, starts, how.weights)]
    found: Any = [how.unit, how.largest, state, quantiles, scales]
    tracked_rows(*known, *found)
    tracker.restore(state)
    return quantile_bounds(quantiles, levels, scales)


@kernel
def told_by(hidden: FloatArray, weights: DoubleArray) -> Scalar:
    """What a hidden layer (K,) says of the logarithm of the scale; weights are (K + 4,)."""
    total = weights[-1]
    for unit in range(len(hidden)):
        if hidden[unit] != 0:
            total += weights[unit] * math.log1p(hidden[unit])
    return total


@kernel
def expected_scale(told: Scalar, state: DoubleArray, weights: DoubleArray, unit: Scalar) -> Scalar:
    """Compute the scale of a row before m."""
    exponent, first = told, len(weights) - 1 - len(_NEWS)
    for place in range(len(_NEWS)):
        exponent += weights[first + place] * math.log1p(state[_COUNT + place])
    return unit * math.exp(min(max(exponent, -BOUND), BOUND))


@exact_kernel
def track(error: Scalar, expected: Scalar, unit: Scalar, largest: Scalar, state: DoubleArray) -> None:
    """Take in the error of a row; NaN changes nothing.

    Sums keep their order: after a wild error they lose digits, and would lose others in another.
    """
    if error != error:
        return
    scale, before = expected * state[-1], -np.inf
    for place in range(_COUNT):
        hit = 1.0 if error <= scale * state[place] else 0.0
        state[place] = max(state[place] + RATE * (_TAUS[place] - hit), before)  # quantiles never cross
        before = state[place]
    size = abs(error)
    recent = min(size, largest) / (LEAST * unit)
    for place in range(len(_NEWS)):
        state[_COUNT + place] += _NEWS[place] * (recent - state[_COUNT + place])
    state[-1] += INFLATION_RATE * (min(size / expected, LARGEST * state[-1]) - state[-1])


@kernel
def tracked_rows(
    hidden: FloatArray,
    errors: DoubleArray,
    starts: IntArray,
    weights: DoubleArray,
    unit: Scalar,
    largest: Scalar,
    state: DoubleArray,
    quantiles: DoubleArray,
    scales: DoubleArray,
) -> None:
    """Go through the rows of all series.

    Parameters
    ----------
    hidden, errors, starts : arrays of shape (N, K), (N,) and (series + 1,)
        Hidden layers, errors with NaN where labels are missing, and where series begin.
    weights, unit, largest : array of shape (K + 4,), float, float
        Of the error scale.
    state : array of shape (series, T + 4)
        States, which are changed.
    quantiles, scales : arrays of shape (N, T) and (N,)
        What is filled in: as they are before each row.
    """
    for series in range(len(state)):
        for row in range(starts[series], starts[series + 1]):
            expected = expected_scale(told_by(hidden[row], weights), state[series], weights, unit)
            quantiles[row] = state[series, :_COUNT]
            scales[row] = expected * state[series, -1]
            track(errors[row], expected, unit, largest, state[series])
