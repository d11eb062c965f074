"""The linear part of one series, one row at a time, compiled; needs numba (``varnn[fast]``).

What `varnn.model.linear.LinearStream` does. The state of a series is that of its snapshot ::

    rows observed, whether a label is known, last label, its change,
    changes (L,), past inputs (lags x D,), labels of the longest season
"""

from typing import NamedTuple

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.model.linear import SEASONAL, LinearPart
from varnn.network.compiled_products import product_of
from varnn.network.jit import Scalar, kernel

_ROWS, _KNOWN, _LAST, _CHANGE, _CHANGES = range(5)


class LinearNumbers(NamedTuple):
    """A linear part, as the functions below take it."""

    sizes: IntArray  # (4,): changes, input lags (-1: inputs are unseen), inputs, labels kept
    periods: IntArray  # (P,)
    numbers: DoubleArray  # (4,): low, high, constant, largest change
    weights: DoubleArray  # (F,)
    bounds: DoubleArray  # (2, D): of the inputs

    @classmethod
    def of(cls, part: LinearPart) -> "LinearNumbers":
        """Take a linear part apart."""
        form = part.form
        bounds = np.stack([np.full(form.n_inputs, -np.inf), np.full(form.n_inputs, np.inf)])
        if part.input_low is not None and part.input_high is not None and len(part.of_inputs):
            bounds = np.stack([part.input_low, part.input_high]).astype(np.float64)
        kept = max((period + 2 for period in form.periods), default=0)
        return cls(
            sizes=np.array([form.changes, form.input_lags, form.n_inputs, kept]),
            periods=np.array(form.periods, np.int64),
            numbers=np.array([part.low, part.high, part.constant, part.largest_change]),
            weights=part.weights,
            bounds=bounds,
        )


@kernel
def predict_linear(
    inputs: DoubleArray,
    state: DoubleArray,
    sizes: IntArray,
    periods: IntArray,
    numbers: DoubleArray,
    weights: DoubleArray,
    bounds: DoubleArray,
    regressors: DoubleArray,
) -> Scalar:
    """Gather the regressors of a row with these inputs (D,), and predict it."""
    changes, lags, count, kept = sizes[0], sizes[1], sizes[2], sizes[3]
    low, high, constant = numbers[0], numbers[1], numbers[2]
    rows, last = int(state[_ROWS]), state[_LAST]
    regressors[0] = min(max(last, low), high)
    regressors[1 : 1 + changes] = state[_CHANGES : _CHANGES + changes]
    column, labels = 1 + changes, len(state) - kept
    for period in periods:
        if rows >= period + 2:
            then = state[labels + (rows - period) % kept]
            before = state[labels + (rows - period - 1) % kept]
            earlier = state[labels + (rows - period - 2) % kept]
            after = state[labels + (rows - period + 1) % kept]
            span = high - low
            regressors[column] = min(max(then - before, -span), span)
            regressors[column + 1] = min(max(before - earlier, -span), span)
            regressors[column + 2] = min(max(after - then, -span), span)
            regressors[column + 3] = min(max(then - last, -span), span)
        column += SEASONAL
    if lags >= 0:
        past = _CHANGES + changes
        for place in range(count):
            now = min(max(inputs[place], bounds[0, place]), bounds[1, place])
            regressors[column + place] = now
            for lag in range(lags if rows else 0):  # before a series begins its first row stands in
                earlier = state[past + lag * count + place]
                regressors[column + (1 + lag) * count + place] = earlier - now
    return last + constant + product_of(regressors, weights)


@kernel
def observe_linear(
    label: Scalar, state: DoubleArray, sizes: IntArray, numbers: DoubleArray, regressors: DoubleArray
) -> None:
    """Take in the label of the row predicted last; NaN is missing."""
    changes, lags, count, kept = sizes[0], sizes[1], sizes[2], sizes[3]
    largest, there = numbers[3], label == label
    change = label - state[_LAST] if there and state[_KNOWN] > 0 else 0.0
    state[_CHANGE] = change
    for place in range(changes - 1, 0, -1):
        state[_CHANGES + place] = state[_CHANGES + place - 1]
    if changes:
        state[_CHANGES] = min(max(change, -largest), largest)
    rows, past = int(state[_ROWS]), _CHANGES + changes
    if lags > 0:
        inputs = len(regressors) - (lags + 1) * count  # column at which those of now begin
        for lag in range(lags - 1, -1, -1):
            for place in range(count):
                now = regressors[inputs + place]
                if lag and rows:
                    now = state[past + (lag - 1) * count + place]
                state[past + lag * count + place] = now
    if there:
        state[_LAST], state[_KNOWN] = label, 1.0
    if kept:
        state[len(state) - kept + rows % kept] = state[_LAST]
    state[_ROWS] = rows + 1.0
