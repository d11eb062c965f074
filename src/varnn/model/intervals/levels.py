"""Levels of intervals: the grid of quantiles they are read from, and their names in tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.errors import ConfigError
from varnn.step.intervals import TAUS as TAUS

LEVELS = np.array([0.2, 0.5, 0.8, 0.9, 0.95, 0.99])  # that `TAUS` are the bounds of
HIGHEST_LEVEL = 0.99


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
