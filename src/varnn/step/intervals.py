"""Prediction intervals, row by row: a scale for each row, times tracked quantiles of error / scale ::

    scale   s_t = m_t exp(w' [log(1 + u_t), log(1 + recent |errors|), 1])    how large an error to expect
    bounds  prediction + s_t q(tau)                                 q: quantiles of error / scale
    track   q(tau) <- q(tau) + rate (tau - [error <= s_t q(tau)])   after each label

`varnn.model.intervals.error_scale` says what these are and how they are learned.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import exact_kernel, kernel
from varnn.step.layout import RECENT_SIZES, SMALLEST_SIZE, StepModel, StepState
from varnn.step.operations import copy_rows, fill_missing, running_maximum

TAUS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
PROBITS = np.array([NormalDist().inv_cdf(float(tau)) for tau in TAUS])
TRACKING_RATE = 0.05  # in units of the scale
RECENT_WEIGHTS = np.array([0.2, 0.02, 1.0])  # of the last |error| in its running means: fast, slow, itself
INFLATION_RATE = 0.01  # of the last |error| / scale in m
MAX_RATIO = 10.0  # an error counts as no more than so many times what was expected
MAX_EXPONENT = 10.0  # of a scale, either way


@kernel
def expect_scale(model: StepModel, state: StepState) -> None:
    """Compute how large an error to expect of the open row, before inflation."""
    n_series, width = state.log_sizes.shape
    copy_rows(state.hidden[0, :n_series], state.log_sizes)
    np.log1p(state.log_sizes, state.log_sizes)
    expected, weights = state.expected_scale, model.scale_weights
    np.dot(state.log_sizes, weights[:width], expected)
    np.add(expected, np.dot(np.log1p(state.recent_sizes), weights[width : width + RECENT_SIZES]), expected)
    np.add(expected, weights[width + RECENT_SIZES], expected)
    np.maximum(expected, -MAX_EXPONENT, expected)
    np.minimum(expected, MAX_EXPONENT, expected)
    np.exp(expected, expected)
    np.multiply(expected, model.scale_unit, expected)


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


@kernel
def bounds(state: StepState, levels: DoubleArray, lower: DoubleArray, upper: DoubleArray) -> None:
    """Write how far intervals reach below and above the prediction: (n, L) each.

    ``levels`` is what `level_weights` returns. An interval never excludes its own prediction, although the
    median of errors may lie off it.
    """
    n_series, n_levels = lower.shape
    reach = np.empty((n_series, 2 * n_levels))
    np.dot(state.quantiles, levels, reach)
    np.multiply(reach, (state.expected_scale * state.inflation).reshape(n_series, 1), reach)
    np.minimum(reach[:, :n_levels], 0.0, lower)
    np.maximum(reach[:, n_levels:], 0.0, upper)


@exact_kernel
def track(model: StepModel, state: StepState, errors: DoubleArray) -> None:
    """Update quantiles, running means of sizes and inflation with errors (n,); NaN changes nothing."""
    n_series, n_quantiles = state.quantiles.shape
    known = (errors == errors).reshape(n_series, 1)
    clean, sizes, ratio = np.empty((n_series, 1)), np.empty((n_series, 1)), np.empty((n_series, 1))
    fill_missing(errors, 0.0, clean[:, 0])
    inflation = state.inflation.reshape(n_series, 1)
    expected = state.expected_scale.reshape(n_series, 1)
    below = clean <= state.quantiles * (expected * inflation)
    step = np.empty((n_series, n_quantiles))
    np.subtract(TAUS, below, step)
    np.multiply(step, TRACKING_RATE * known, step)
    np.add(state.quantiles, step, state.quantiles)
    running_maximum(state.quantiles)  # quantiles never cross
    np.abs(clean, sizes)
    np.divide(sizes, expected, ratio)
    np.minimum(ratio, MAX_RATIO * inflation, ratio)
    np.subtract(ratio, inflation, ratio)
    np.multiply(ratio, INFLATION_RATE * known, ratio)
    np.add(inflation, ratio, inflation)
    np.minimum(sizes, model.largest_error, sizes)
    np.divide(sizes, SMALLEST_SIZE * model.scale_unit, sizes)
    news = sizes - state.recent_sizes
    np.multiply(news, RECENT_WEIGHTS * known, news)
    np.add(state.recent_sizes, news, state.recent_sizes)
