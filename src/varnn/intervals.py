"""How sure a prediction is: intervals whose width follows the network's state and the latest errors.

Three things make an interval around a prediction, each with its own job ::

    scale   s_t = m_t exp(w' [u_t, log of recent |errors|, 1])      how large an error to expect now
    bounds  prediction + s_t q(tau)                                 q: quantiles of error / scale
    track   q(tau) <- q(tau) + rate (tau - [error <= s_t q(tau)])   after each label

The scale is a ridge regression of the size of the errors on the hidden layer the prediction was read
from, so that it knows what the memory knows, and on running means of their size; m_t is a running mean
of how much larger they are than it says, which is quick to follow a change the training rows never saw.
The quantiles start as they are on validation rows. Tracking them (the online gradient of the quantile
loss, which is what adaptive conformal prediction does) keeps the share of labels below each one at tau
whatever happens to the errors: the sum of tau - [..] is bounded by q over rate, so that coverage can be
wrong for a while, not for good. Lower and upper quantiles are tracked apart, as errors are skew.

Shapes: n series in step, K hidden units, T quantiles, L levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.errors import ConfigError

Doubles = npt.NDArray[np.float64]

TAUS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
HIGHEST_LEVEL = 0.99
_PROBITS = np.array([NormalDist().inv_cdf(float(tau)) for tau in TAUS])
_RATE = 0.03  # of tracking, in units of the scale
_FAST, _SLOW = 0.8, 0.98  # how much running means of |error| keep a row
_LEVEL = 0.985  # and that of |error| / scale, in which
_LARGEST = 5.0  # one error counts as no more than this
_LEAST = 0.05  # added to sizes before their logarithm, in units of the usual size
_RIDGE = 1e-3
_RECENT = 3  # regressors besides the hidden layer and the constant


class Interval(NamedTuple):
    """A prediction and its bounds.

    ``lower`` and ``upper`` have the shape of ``prediction`` for one level, and one more axis, of levels,
    for several.
    """

    prediction: Any
    lower: Any
    upper: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread:
    """What is known about errors after fitting.

    Parameters
    ----------
    weights
        Of [hidden layer, recent sizes, 1]: (K + 4,).
    unit
        Usual size of an error: its median on validation rows.
    quantiles
        Of error / scale on validation rows, at `TAUS`: (T,).
    """

    weights: Doubles
    unit: float
    quantiles: Doubles

    @classmethod
    def of(
        cls,
        hidden: npt.NDArray[Any],
        errors: Doubles,
        starts: npt.NDArray[np.int64],
        later_hidden: npt.NDArray[Any],
        later_errors: Doubles,
        later_starts: npt.NDArray[np.int64],
    ) -> "Spread":
        """Learn scales from training rows, and quantiles from later ones: hidden (N, K), errors (N,)."""
        sizes = np.abs(later_errors)
        unit = float(np.nanmedian(sizes)) or float(np.nanmean(sizes)) or 1.0
        known = ~np.isnan(errors)
        regressors = np.column_stack([hidden, _recent_sizes(errors / unit, starts), np.ones(len(errors))])
        regressors = regressors[known].astype(np.float64)
        wanted = np.log(np.abs(errors[known]) / unit + _LEAST)
        moments = regressors.T @ regressors / len(wanted)
        moments[np.diag_indices_from(moments)] += _RIDGE * np.trace(moments) / len(moments)
        weights = np.linalg.solve(moments, regressors.T @ wanted / len(wanted))
        blank = cls(weights=weights, unit=unit, quantiles=np.zeros(len(TAUS)))
        scales = blank.scales(later_hidden, _recent_sizes(later_errors / unit, later_starts))
        ratios = later_errors / scales / _levels(later_errors / scales, later_starts)
        return cls(weights=weights, unit=unit, quantiles=np.quantile(ratios[~np.isnan(ratios)], TAUS))

    def scales(self, hidden: npt.NDArray[Any], recent: Doubles) -> Doubles:
        """Give scales in the target's units: hidden (n, K), logarithms of recent sizes (n, 3) -> (n,)."""
        width = hidden.shape[1]
        exponent = hidden @ self.weights[:width] + recent @ self.weights[width:-1] + self.weights[-1]
        return np.asarray(self.unit * np.exp(np.clip(exponent, -10, 10)))


class Tracker:
    """The quantiles of n series in step, as labels arrive."""

    def __init__(self, spread: Spread, n_series: int) -> None:
        self.spread = spread
        self.quantiles = np.tile(spread.quantiles, (n_series, 1))  # (n, T)
        self.sizes = np.ones((n_series, _RECENT))  # fast and slow mean, and the last: in usual sizes
        self.levels = np.ones(n_series)  # m
        self._expected = np.full(n_series, spread.unit)  # scales before m
        self._scales = self._expected

    def expect(self, hidden: npt.NDArray[Any]) -> None:
        """Take in the hidden layers (n, K) the coming predictions are read from."""
        self._expected = self.spread.scales(hidden, np.log(self.sizes + _LEAST))
        self._scales = self._expected * self.levels

    def bounds(self, levels: Doubles) -> tuple[Doubles, Doubles]:
        """Give how far below and above the predictions the intervals reach: (n, L) each."""
        below, above = (_at(self.quantiles, tau) for tau in ((1 - levels) / 2, (1 + levels) / 2))
        # The median may lie off the prediction; an interval never leaves its own prediction out.
        scales = self._scales[:, None]
        return np.minimum(below * scales, 0), np.maximum(above * scales, 0)

    def observe(self, errors: npt.NDArray[Any]) -> None:
        """Take in the errors (n,) of these predictions; NaN leaves its series as it is."""
        known = ~np.isnan(errors)
        if not known.any():
            return
        errors = np.where(known, errors, 0)
        hit = errors[:, None] <= self._scales[:, None] * self.quantiles
        self.quantiles += (_RATE * known)[:, None] * (TAUS - hit)
        np.maximum.accumulate(self.quantiles, axis=1, out=self.quantiles)  # quantiles never cross
        size = np.abs(errors) / self.spread.unit
        news = np.column_stack([size, size, size])
        keep = np.where(known[:, None], [_FAST, _SLOW, 0.0], 1.0)
        self.sizes += (1 - keep) * (news - self.sizes)
        excess = np.minimum(np.abs(errors) / self._expected, _LARGEST * self.levels)
        self.levels += (1 - _LEVEL) * known * (excess - self.levels)

    def state(self) -> Doubles:
        """Give all that later intervals depend on: (n, T + 4)."""
        return np.column_stack([self.quantiles, self.sizes, self.levels])

    def restore(self, state: Doubles) -> None:
        """Take over what :meth:`state` gave."""
        self.quantiles[...] = state[:, : len(TAUS)]
        self.sizes[...] = state[:, len(TAUS) : -1]
        self.levels[...] = state[:, -1]


def follow(
    tracker: Tracker,
    hidden: npt.NDArray[Any],
    errors: Doubles,
    starts: npt.NDArray[np.int64],
    levels: Doubles,
) -> tuple[Doubles, Doubles]:
    """Give the bounds of every row of series side by side: hidden (N, K), errors (N,) -> (N, L) each."""
    lengths = np.diff(starts)
    below, above = np.empty((len(errors), len(levels))), np.empty((len(errors), len(levels)))
    for place in range(int(lengths.max(initial=0))):
        running = lengths > place
        rows = starts[:-1][running] + place
        layers = np.zeros((len(lengths), hidden.shape[1]))
        layers[running] = hidden[rows]
        tracker.expect(layers)
        low, high = tracker.bounds(levels)
        below[rows], above[rows] = low[running], high[running]
        seen = np.full(len(lengths), np.nan)
        seen[running] = errors[rows]
        tracker.observe(seen)
    return below, above


def known_spread(spread: Spread | None) -> Spread:
    """Give what a model knows about its errors, or say that it knows nothing."""
    if spread is None:
        raise ConfigError(
            "this model knows nothing of how large its errors are: it was fitted with intervals=False "
            "or without validation rows. Fit it again with both."
        )
    return spread


def check_levels(interval: float | Sequence[float]) -> Doubles:
    """Read levels of intervals; refuse what is none.

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


def _at(quantiles: Doubles, taus: Doubles) -> Doubles:
    """Read quantiles (n, T) at other probabilities, by straight lines between normal quantiles: (n, L)."""
    right, share = _between(tuple(taus))
    left = quantiles[:, right - 1]
    return np.asarray(left + share * (quantiles[:, right] - left))


@lru_cache(maxsize=64)
def _between(taus: tuple[float, ...]) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Give where probabilities lie between those tracked: the next one, and how far towards it."""
    probits = np.array([NormalDist().inv_cdf(tau) for tau in taus])
    right = np.clip(np.searchsorted(_PROBITS, probits), 1, len(_PROBITS) - 1)
    return right, (probits - _PROBITS[right - 1]) / (_PROBITS[right] - _PROBITS[right - 1])


def _recent_sizes(errors: Doubles, starts: npt.NDArray[np.int64]) -> Doubles:
    """Give logarithms of what `Tracker.sizes` would be before each row, in usual sizes: (N, 3)."""
    recent = np.empty((len(errors), _RECENT))
    keep = np.array([_FAST, _SLOW, 0.0])
    for first, last in pairwise(starts):
        sizes = np.ones(_RECENT)
        for row in range(first, last):
            recent[row] = sizes
            if not np.isnan(errors[row]):
                sizes = keep * sizes + (1 - keep) * abs(errors[row])
    return np.log(recent + _LEAST)


def _levels(ratios: Doubles, starts: npt.NDArray[np.int64]) -> Doubles:
    """Give what `Tracker.levels` would be before each row, from errors over expected scales: (N,)."""
    levels = np.empty(len(ratios))
    for first, last in pairwise(starts):
        level = 1.0
        for row in range(first, last):
            levels[row] = level
            if not np.isnan(ratios[row]):
                level += (1 - _LEVEL) * (min(abs(ratios[row]), _LARGEST * level) - level)
    return levels
