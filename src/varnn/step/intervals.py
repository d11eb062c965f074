"""Prediction intervals, row by row: a scale for each row, times tracked quantiles of error / scale.

::

    scale   s_t = m_t exp(w' [log(1 + u_t), log(1 + recent |errors|), 1])    how large an error to expect
    bounds  prediction + s_t q(tau)                                 q: quantiles of error / scale
    track   q(tau) <- q(tau) + rate (tau - [error <= s_t q(tau)])   after each label

`varnn.model.intervals.error_scale` says what these are and how they are learned.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import elementwise, part
from varnn.step.layout import RECENT_SIZES, SMALLEST_SIZE, StepModel, StepState
from varnn.step.operations import copy_rows, mark_known, products, running_maximum, split_product

TAUS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
PROBITS = np.array([NormalDist().inv_cdf(float(tau)) for tau in TAUS])
TRACKING_RATE = 0.05  # in units of the scale
RECENT_WEIGHTS = np.array([0.2, 0.02, 1.0])  # of the last |error| in its running means: fast, slow, itself
INFLATION_RATE = 0.01  # of the last |error| / scale in m
MAX_RATIO = 10.0  # times the expected size, at which errors are clipped
MAX_EXPONENT = 10.0  # of a scale, either way


@elementwise
def _scale(exponent: DoubleArray, constant: float, unit: float) -> DoubleArray:
    """Return the scale of a row before inflation."""
    return unit * np.exp(np.minimum(np.maximum(exponent + constant, -MAX_EXPONENT), MAX_EXPONENT))


@part
def expect_scale(model: StepModel, state: StepState) -> None:
    """Compute how large an error to expect of the open row, before inflation."""
    n_series, width = state.log_sizes.shape
    hidden, weights = width - RECENT_SIZES, model.scale_weights
    copy_rows(state.hidden[0, :n_series], state.log_sizes[:, :hidden])
    copy_rows(state.recent_sizes, state.log_sizes[:, hidden:])
    np.log1p(state.log_sizes, state.log_sizes)
    products(state.log_sizes, weights[:width], state.expected_scale)
    _scale(state.expected_scale, weights[width], model.scale_unit, state.expected_scale)


@lru_cache(maxsize=64)
def level_weights(levels: tuple[float, ...]) -> DoubleArray:
    """Return how the bounds of intervals mix the tracked quantiles: (T, 2 L), lower bounds first.

    Between two quantiles of the grid, bounds lie on a line through normal quantiles.

    Examples
    --------
    >>> (PROBITS @ level_weights((0.5, 0.7))).round(3).tolist()
    [-0.674, -1.036, 0.674, 1.036]
    """
    taus = [(1 - level) / 2 for level in levels] + [(1 + level) / 2 for level in levels]
    weights = np.zeros((len(TAUS), len(taus)))
    for column, probit in enumerate(NormalDist().inv_cdf(tau) for tau in taus):
        right = min(max(int(np.searchsorted(PROBITS, probit)), 1), len(TAUS) - 1)
        share = (probit - PROBITS[right - 1]) / (PROBITS[right] - PROBITS[right - 1])
        weights[right - 1, column], weights[right, column] = 1 - share, share
    return weights  # left writeable: numba would compile everything again for a read-only array


@elementwise
def _below(reach: DoubleArray, scale: DoubleArray, inflation: DoubleArray) -> DoubleArray:
    """Return how far a lower bound lies below the prediction, at least 0."""
    return np.minimum(reach * (scale * inflation), 0.0)


@elementwise
def _above(reach: DoubleArray, scale: DoubleArray, inflation: DoubleArray) -> DoubleArray:
    """Return how far an upper bound lies above the prediction, at least 0."""
    return np.maximum(reach * (scale * inflation), 0.0)


@part
def bounds(state: StepState, levels: DoubleArray, lower: DoubleArray, upper: DoubleArray) -> None:
    """Write how far intervals reach below and above the prediction: (n, L) each.

    ``levels`` is what `level_weights` returns. An interval never excludes its own prediction, although the
    median of errors may lie off it.
    """
    split_product(state.quantiles, levels, lower, upper)
    _below(lower, state.scale_column, state.inflation_column, lower)
    _above(upper, state.scale_column, state.inflation_column, upper)


@elementwise
def _quantile(
    quantile: DoubleArray,
    tau: DoubleArray,
    error: DoubleArray,
    scale: DoubleArray,
    inflation: DoubleArray,
    known: DoubleArray,
) -> DoubleArray:
    """Return a tracked quantile after a row."""
    return quantile + TRACKING_RATE * known * (tau - (error <= quantile * (scale * inflation)))


@elementwise
def _inflation(
    inflation: DoubleArray, error: DoubleArray, scale: DoubleArray, known: DoubleArray
) -> DoubleArray:
    """Return m after a row."""
    ratio = np.minimum(np.abs(error) / scale, MAX_RATIO * inflation)
    return inflation + INFLATION_RATE * known * (ratio - inflation)


@elementwise
def _recent_size(
    mean: DoubleArray,
    weight: DoubleArray,
    error: DoubleArray,
    largest: float,
    unit: float,
    known: DoubleArray,
) -> DoubleArray:
    """Return a running mean of sizes after a row."""
    size = np.minimum(np.abs(error), largest) / (SMALLEST_SIZE * unit)
    return mean + weight * known * (size - mean)


@part
def track(model: StepModel, state: StepState, errors: DoubleArray) -> None:
    """Update quantiles, running means of sizes and inflation with errors (n,); NaN changes nothing."""
    mark_known(errors, state.known, state.clean)
    error, known, scale = state.clean_column, state.known_column, state.scale_column
    _quantile(state.quantiles, TAUS, error, scale, state.inflation_column, known, state.quantiles)
    running_maximum(state.quantiles)  # quantiles never cross
    sizes, unit = state.recent_sizes, model.scale_unit
    _recent_size(sizes, RECENT_WEIGHTS, error, model.largest_error, unit, known, sizes)
    _inflation(state.inflation, state.clean, state.expected_scale, state.known, state.inflation)
