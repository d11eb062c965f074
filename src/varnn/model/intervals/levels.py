"""Levels of intervals and quantiles of errors: their grid, their names in tables, from one to the other."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray
from varnn.errors import ConfigError

TAUS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
LEVELS = np.array([0.2, 0.5, 0.8, 0.9, 0.95, 0.99])  # that `TAUS` are the bounds of
HIGHEST_LEVEL = 0.99
_ZERO = np.array(0.0)  # quicker to compare with than a number
_PROBITS = np.array([NormalDist().inv_cdf(float(tau)) for tau in TAUS])


class Interval(NamedTuple):
    """A prediction and its bounds.

    ``lower`` and ``upper`` have the shape of ``prediction`` for one level, and one more axis, of levels,
    for several.
    """

    prediction: Any
    lower: Any
    upper: Any


def check_levels(interval: float | Sequence[float] | FloatArray) -> DoubleArray:
    """Read levels of intervals; refuse what is none.

    Parameters
    ----------
    interval : float or sequence of float
        One level or several, above 0 and at most 0.99.

    Returns
    -------
    array of shape (L,)

    Examples
    --------
    >>> check_levels([0.5, 0.9]).tolist()
    [0.5, 0.9]
    >>> check_levels(90)
    Traceback (most recent call last):
    ...
    varnn.errors.ConfigError: interval must hold levels above 0 and at most 0.99, such as 0.9; got 90.
    """
    try:
        levels = np.atleast_1d(np.asarray(interval, dtype=np.float64))
    except (TypeError, ValueError):
        levels = np.array([np.nan])
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels <= HIGHEST_LEVEL)).all():
        raise ConfigError(
            f"interval must hold levels above 0 and at most {HIGHEST_LEVEL}, such as 0.9; got {interval!r}."
        )
    return levels


def bound_name(side: str, level: float) -> str:
    """Name the column of a table that holds a bound.

    Parameters
    ----------
    side : {"lower", "upper"}
    level : float

    Examples
    --------
    >>> bound_name("lower", 0.9), bound_name("upper", 0.975)
    ('lower_90', 'upper_97.5')
    """
    return f"{side}_{100 * level:g}"


def quantile_bounds(
    quantiles: DoubleArray, levels: DoubleArray, scales: float | DoubleArray = 1.0
) -> tuple[DoubleArray, DoubleArray]:
    """Read the bounds of central intervals off quantiles of errors.

    Between two quantiles of the grid they lie on a line through normal quantiles.

    Parameters
    ----------
    quantiles : array of shape (..., T)
        At `TAUS`; columns beyond T are not looked at.
    levels : array of shape (L,)
        Of the intervals.
    scales : float or array of shape (...), default 1.0
        What the quantiles are in units of.

    Returns
    -------
    below, above : arrays of shape (..., L)
        What to add to a prediction. No interval leaves its own prediction out.

    Examples
    --------
    >>> below, above = quantile_bounds(_PROBITS, np.array([0.5, 0.7]))
    >>> below.round(3).tolist(), above.round(3).tolist()
    ([-0.674, -1.036], [0.674, 1.036])
    """
    left, right, share = _places(tuple(levels.tolist()))
    start = quantiles.take(left, -1)
    reach = quantiles.take(right, -1)
    reach -= start
    reach *= share if reach.ndim > 1 else share[0]
    reach += start
    reach = reach * np.asarray(scales)[..., None]
    # The median may lie off the prediction; an interval never leaves its own prediction out.
    return np.minimum(reach[..., : len(levels)], _ZERO), np.maximum(reach[..., len(levels) :], _ZERO)


@lru_cache(maxsize=64)
def _places(levels: tuple[float, ...]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], DoubleArray]:
    """Find the quantiles before and after the bounds of levels, and how far between, as a row: (2 L,)."""
    right, share = between(levels)
    return right - 1, right, share[None]


@lru_cache(maxsize=64)
def between(levels: tuple[float, ...]) -> tuple[npt.NDArray[np.intp], DoubleArray]:
    """Find the bounds of levels between the quantiles of the grid, all lower ones first.

    The next quantile, and how far towards it: (2 L,) each.
    """
    taus = [(1 - level) / 2 for level in levels] + [(1 + level) / 2 for level in levels]
    probits = np.array([NormalDist().inv_cdf(tau) for tau in taus])
    right = np.clip(np.searchsorted(_PROBITS, probits), 1, len(_PROBITS) - 1)
    return right, (probits - _PROBITS[right - 1]) / (_PROBITS[right] - _PROBITS[right - 1])
