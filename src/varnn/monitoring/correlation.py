"""Correlation along rows: of a stream with itself, and with its inputs, at some lags.

Pairs never reach from one series into the next, and a pair with a missing value is left out: each
correlation is the mean product of the pairs there are, in units of the overall variance.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.monitoring._chi_squared import survival

Ints = npt.NDArray[np.integer[Any]]


def autocorrelation(values: npt.NDArray[Any], lags: Ints, starts: Ints) -> tuple[DoubleArray, DoubleArray]:
    """Autocorrelation at each lag, and the number of pairs it rests on.

    Parameters
    ----------
    values : array
        One value per row, NaN where missing.
    lags : Ints
        Rows between the two values of a pair, each at least 1.
    starts : Ints
        Row at which each series begins, and the number of rows at the end.

    Examples
    --------
    >>> values = np.tile([1.0, -1.0], 50)
    >>> autocorrelation(values, np.array([1, 2]), np.array([0, 100]))
    (array([-1.,  1.]), array([99., 98.]))
    """
    return _lagged_means(values, values, lags, starts)


def cross_correlation(
    values: npt.NDArray[Any], inputs: npt.NDArray[Any], lags: Ints, starts: Ints
) -> tuple[DoubleArray, DoubleArray]:
    """Correlation of each row's value with each input some rows before, and the pairs' numbers.

    Parameters
    ----------
    values, lags, starts : array, Ints, Ints
        As for :func:`autocorrelation`; a lag of 0 is the input of the same row.
    inputs : array
        One column per input, (n_rows, n_inputs), NaN where missing.

    Returns
    -------
    tuple of two arrays, (n_lags, n_inputs)

    Examples
    --------
    >>> inputs = np.random.default_rng(0).normal(size=(1000, 2))
    >>> values = np.roll(inputs[:, 1], 3)
    >>> cross_correlation(values, inputs, np.arange(4), np.array([0, 1000]))[0][3, 1].round(1)
    np.float64(1.0)
    """
    return _lagged_means(values, inputs, lags, starts)


def ljung_box(correlations: DoubleArray, pairs: DoubleArray, count: int) -> tuple[DoubleArray, DoubleArray]:
    """Test whether the autocorrelations at lags 1, 2, ... could be those of white noise.

    Parameters
    ----------
    correlations, pairs : array
        As :func:`autocorrelation` gives them, for lags 1, 2, ... in turn.
    count : int
        Number of known values.

    Returns
    -------
    tuple of two arrays
        Statistic and p value of the test on all lags up to each.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> statistic, p = ljung_box(*autocorrelation(noise, np.arange(1, 11), np.array([0, 500])), 500)
    >>> bool(p[-1] > 0.05)
    True
    """
    # The textbook's n (n + 2) sum r² / (n - k), with pairs counted and r a mean over pairs.
    statistic = (count + 2) / count * np.cumsum(pairs * correlations**2)
    return statistic, np.array([survival(one, lag) for lag, one in enumerate(statistic.tolist(), 1)])


def _lagged_means(
    later: npt.NDArray[Any], earlier: npt.NDArray[Any], lags: Ints, starts: Ints
) -> tuple[DoubleArray, DoubleArray]:
    """Mean product of standardised pairs at each lag: (L,), or (L, D) for columns ``earlier``."""
    value, value_known = _standardised(later)
    other, other_known = _standardised(earlier)
    complete = bool(other_known.all())
    position = np.arange(len(value)) - np.repeat(starts[:-1], np.diff(starts))
    means = np.zeros((len(lags), *other.shape[1:]))
    pairs = np.zeros_like(means)
    for index, lag in enumerate(lags):
        # The later values are moved to the rows of the earlier ones, so that columns need no copy.
        moved, known = np.zeros_like(value), np.zeros_like(value)
        inside = position[lag:] >= lag
        moved[: len(value) - lag] = value[lag:] * inside
        known[: len(value) - lag] = value_known[lag:] * inside
        pairs[index] = known.sum() if complete else known @ other_known
        means[index] = moved @ other / np.maximum(pairs[index], 1)
    return means, pairs


def _standardised(values: npt.NDArray[Any]) -> tuple[DoubleArray, DoubleArray]:
    """Bring known values to mean 0 and variance 1, missing ones to 0; also give 1 where they are known."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values, 0.0).astype(np.float64)
    centred -= centred.sum(axis=0) / count
    centred *= known
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    return centred / np.where(spread > 0, spread, 1.0), known.astype(np.float64)
