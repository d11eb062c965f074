"""How sure a prediction is: intervals whose width follows the network's state and the latest errors.

Three things make an interval around a prediction, each with its own job ::

    scale   s_t = m_t exp(w' [log(1 + u_t), log(1 + recent |errors|), 1])    how large an error to expect
    bounds  prediction + s_t q(tau)                                 q: quantiles of error / scale
    track   q(tau) <- q(tau) + rate (tau - [error <= s_t q(tau)])   after each label

The scale is a regression of the size of the errors on the hidden layer the prediction was read from, so
that it knows what the memory knows, and on running means of their size; m_t is a running mean of how much
larger they are than it says, which follows a change that the rows it was learnt from never saw.
The quantiles start as they are on validation rows. Tracking them (the online gradient of the quantile
loss, which is what adaptive conformal prediction does) keeps the share of labels below each one at tau
whatever happens to the errors: the sum of tau - [..] is bounded by q over rate, so that coverage can be
wrong for a while, not for good. Lower and upper quantiles are tracked apart, as errors are skew.

Shapes: n series in step, K hidden units, T quantiles, L levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.errors import ConfigError

Seen = tuple[npt.NDArray[Any], DoubleArray, IntArray]  # hidden (N, K), errors (N,), starts

TAUS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
HIGHEST_LEVEL = 0.99
_PROBITS = np.array([NormalDist().inv_cdf(float(tau)) for tau in TAUS])
_RATE = 0.05  # of tracking, in units of the scale
_NEWS = np.array([0.2, 0.02, 1.0])  # weight of the last |error| in its running means: fast, slow, itself
_LEVEL_NEWS = 0.01  # and that of the last |error| / scale in m, where
_LARGEST = 10.0  # one error counts as no more than so many times what was expected
_TIMES = 2.0  # the largest error that was learnt from: what is beyond counts as so much
_LEAST = 0.05  # of the usual size: errors below it are all alike
_RIDGE = 0.1  # on regressors of unit variance
_STEPS = 20  # of Fisher scoring, which is at rest after about ten
_BOUND = 10.0  # of the logarithm of a scale, either way


class Interval(NamedTuple):
    """A prediction and its bounds.

    ``lower`` and ``upper`` have the shape of ``prediction`` for one level, and one more axis, of levels,
    for several.
    """

    prediction: Any
    lower: Any
    upper: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorScale:
    """What is known about errors after fitting.

    Parameters
    ----------
    weights
        Of the logarithms of [1 + hidden layer, 1 + recent sizes], and of 1: (K + 4,).
    unit
        Usual size of an error: its median on validation rows.
    quantiles
        Of error / scale on validation rows, at `TAUS`: (T,).
    largest
        Size of an error that larger ones count as in the running means: twice the largest that was learnt
        from, so that one wild label does not widen intervals for long. m_t follows errors that stay large.
    """

    weights: DoubleArray
    unit: float
    quantiles: DoubleArray
    largest: float = np.inf

    @classmethod
    def of(
        cls,
        hidden: npt.NDArray[Any],
        errors: DoubleArray,
        starts: IntArray,
        later_hidden: npt.NDArray[Any],
        later_errors: DoubleArray,
        later_starts: IntArray,
    ) -> "ErrorScale":
        """Learn from training rows and later ones: hidden (N, K), errors (N,).

        A network has seen the labels of its training rows, so its errors there are smaller than elsewhere
        and obey their own law. They are many, though: they say which hidden units go with large errors.
        By how much, and what recent errors tell beside them, is learnt from the later rows.
        """
        sizes = np.abs(later_errors)
        unit = float(np.nanmedian(sizes)) or float(np.nanmean(sizes)) or 1.0
        width = hidden.shape[1]
        direction = _fit_sizes(_regressors(hidden, errors / unit, starts), errors / unit)[:width]
        # Of later rows, which may be many, one number stands for the whole hidden layer.
        told = np.log1p(later_hidden) @ direction.astype(later_hidden.dtype)
        later = np.column_stack([told, _recent_sizes(later_errors / unit, later_starts)])
        # Few rows may show by chance that small errors follow large ones. Such a scale would narrow after
        # each error and widen while all is well, so that no weight may be below zero.
        share, *others = _fit_sizes(later, later_errors / unit, none_below_zero=True)
        scales = cls(weights=np.array([share, *others]), unit=unit, quantiles=TAUS).scales(later)
        ratios = later_errors / scales
        ratios /= _levels(ratios, later_starts)
        quantiles = np.quantile(ratios[~np.isnan(ratios)], TAUS)
        largest = _TIMES * float(np.fmax.reduce(np.abs(errors), initial=np.nanmax(sizes)))
        return cls(
            weights=np.concatenate([share * direction, others]),
            unit=unit,
            quantiles=quantiles,
            largest=largest or np.inf,
        )

    def moved(self, before: Seen, after: Seen) -> "ErrorScale":
        """Carry the error scale over to another network, from what both show on training rows.

        Its hidden units are others, so which of them go with large errors is learnt anew; all that was
        learnt from later rows stays.
        """
        old, new = (
            _fit_sizes(_regressors(hidden, errors / self.unit, starts), errors / self.unit)[: hidden.shape[1]]
            for hidden, errors, starts in (before, after)
        )
        size = float(old @ old)
        share = float(self.weights[: len(old)] @ old) / size if size else 0.0
        return replace(self, weights=np.concatenate([share * new, self.weights[len(old) :]]))

    def scales(self, regressors: DoubleArray) -> DoubleArray:
        """Give scales in the target's units, before m: logarithms (n, K + 3) -> (n,)."""
        exponent = regressors @ self.weights[:-1] + self.weights[-1]
        return np.asarray(self.unit * np.exp(np.minimum(np.maximum(exponent, -_BOUND), _BOUND)))


class Tracker:
    """The quantiles of n series in step, as labels arrive."""

    def __init__(self, error_scale: ErrorScale, n_series: int) -> None:
        self.error_scale = error_scale
        width = len(error_scale.weights) - len(_NEWS) - 1
        # Quantiles; running means of sizes, in units of the least; m.
        start = np.concatenate([error_scale.quantiles, np.full(len(_NEWS), 1 / _LEAST), [1.0]])
        self._state = np.tile(start, (n_series, 1))
        self._regressors = np.zeros((n_series, width + len(_NEWS)))
        self._expected = np.full(n_series, error_scale.unit)  # scales before m
        self._scales = self._expected
        self._width = width

    def expect(self, hidden: npt.NDArray[Any]) -> None:
        """Take in the hidden layers (n, K) the coming predictions are read from."""
        self._regressors[:, : self._width] = hidden
        self._regressors[:, self._width :] = self._state[:, len(TAUS) : -1]
        np.log1p(self._regressors, out=self._regressors)
        self._expected = self.error_scale.scales(self._regressors)
        self._scales = self._expected * self._state[:, -1]

    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Give how far below and above the predictions the intervals reach: (n, L) each."""
        return _reaches(self._state, self._scales, levels)

    def observe(self, errors: npt.NDArray[Any]) -> None:
        """Take in the errors (n,) of these predictions; NaN leaves its series as it is."""
        known = ~np.isnan(errors)
        if known.all():
            self._learn(slice(None), errors)
        elif known.any():
            self._learn(known, errors[known])

    def state(self) -> DoubleArray:
        """Give all that later intervals depend on: (n, T + 4)."""
        return self._state.copy()

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        self._state[...] = state

    def _learn(self, rows: Any, errors: DoubleArray) -> None:
        """Learn from the errors of some series."""
        state, expected = self._state[rows], self._expected[rows]
        quantiles, means, level = state[:, : len(TAUS)], state[:, len(TAUS) : -1], state[:, -1]
        hit = errors[:, None] <= self._scales[rows, None] * quantiles
        quantiles += _RATE * (TAUS - hit)
        np.maximum.accumulate(quantiles, axis=1, out=quantiles)  # quantiles never cross
        sizes = np.abs(errors)
        recent = np.minimum(sizes, self.error_scale.largest) / (_LEAST * self.error_scale.unit)
        means += _NEWS * (recent[:, None] - means)
        level += _LEVEL_NEWS * (np.minimum(sizes / expected, _LARGEST * level) - level)
        self._state[rows] = state


def follow(
    tracker: Tracker,
    hidden: npt.NDArray[Any],
    errors: DoubleArray,
    starts: IntArray,
    levels: DoubleArray,
) -> tuple[DoubleArray, DoubleArray]:
    """Give how far the intervals of every row reach: hidden (N, K), errors (N,) -> (N, L) each.

    Gives what `expect`, `bounds` and `observe` of the tracker would, row after row of each series. Scales
    depend on errors alone, so that only the quantiles are left to be followed from row to row.
    """
    state, error_scale, sizes = tracker.state(), tracker.error_scale, np.abs(errors)
    told, scales = np.log1p(hidden, dtype=np.float64), np.empty(len(errors))
    for one, (begin, end) in zip(state, pairwise(starts), strict=True):
        rows = slice(begin, end)
        bounded = np.minimum(sizes[rows], error_scale.largest)
        recent = _running_sizes(bounded / (_LEAST * error_scale.unit), one[len(TAUS) : -1])
        expected = error_scale.scales(np.column_stack([told[rows], np.log1p(recent[:-1])]))
        level = _running_level(sizes[rows] / expected, one[-1])
        scales[rows] = expected * level[:-1]
        one[len(TAUS) :] = *recent[-1], level[-1]
    course = _course(state[:, : len(TAUS)], errors, scales, starts)
    tracker.restore(state)
    return _reaches(course, scales, levels)


def _course(
    quantiles: DoubleArray, errors: DoubleArray, scales: DoubleArray, starts: IntArray
) -> DoubleArray:
    """Give the quantiles before each row, (N, T), and leave those after the last in ``quantiles``, (S, T).

    All series are tracked together, the longest first: those that are still running are the first ones.
    """
    lengths = np.diff(starts)
    ranks = np.argsort(np.argsort(-lengths, kind="stable"))
    place = np.arange(len(errors)) - np.repeat(starts[:-1], lengths)
    order = np.lexsort([np.repeat(ranks, lengths), place])
    ends = np.cumsum(np.bincount(place, minlength=1))
    running = quantiles[np.argsort(ranks)]
    ordered, course = np.empty((len(errors), len(TAUS))), np.empty((len(errors), len(TAUS)))
    errors, scales, known = errors[order, None], scales[order, None], ~np.isnan(errors[order, None])
    for begin, end in pairwise([0, *ends]):
        some = running[: end - begin]
        ordered[begin:end] = some
        some += _RATE * (TAUS - (errors[begin:end] <= scales[begin:end] * some)) * known[begin:end]
        np.maximum.accumulate(some, axis=1, out=some)  # they never cross
    quantiles[...] = running[ranks]
    course[order] = ordered
    return course


def _reaches(
    quantiles: DoubleArray, scales: DoubleArray, levels: DoubleArray
) -> tuple[DoubleArray, DoubleArray]:
    """Give how far below and above predictions intervals reach: (n, T or more), (n,) -> (n, L) each."""
    right, share = _between(tuple(levels))
    left = quantiles[:, right - 1]
    reach = (left + share * (quantiles[:, right] - left)) * scales[:, None]
    # The median may lie off the prediction; an interval never leaves its own prediction out.
    return np.minimum(reach[:, : len(levels)], 0), np.maximum(reach[:, len(levels) :], 0)


def known_error_scale(error_scale: ErrorScale | None) -> ErrorScale:
    """Give what a model knows about its errors, or say that it knows nothing."""
    if error_scale is None:
        raise ConfigError(
            "this model knows nothing of how large its errors are: it was fitted with intervals=False "
            "or without validation rows. Fit it again with both."
        )
    return error_scale


def bound_name(side: str, level: float) -> str:
    """Name the column of a table that holds a bound.

    Examples
    --------
    >>> bound_name("lower", 0.9), bound_name("upper", 0.975)
    ('lower_90', 'upper_97.5')
    """
    return f"{side}_{100 * level:g}"


def check_levels(interval: float | Sequence[float] | FloatArray) -> DoubleArray:
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


@lru_cache(maxsize=64)
def _between(levels: tuple[float, ...]) -> tuple[npt.NDArray[np.intp], DoubleArray]:
    """Give where the bounds of levels lie between the quantiles tracked, all lower ones first.

    The next quantile, and how far towards it on a line through normal quantiles: (2 L,) each.
    """
    taus = [(1 - level) / 2 for level in levels] + [(1 + level) / 2 for level in levels]
    probits = np.array([NormalDist().inv_cdf(tau) for tau in taus])
    right = np.clip(np.searchsorted(_PROBITS, probits), 1, len(_PROBITS) - 1)
    return right, (probits - _PROBITS[right - 1]) / (_PROBITS[right] - _PROBITS[right - 1])


def _regressors(hidden: npt.NDArray[Any], errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Give what `Tracker.expect` would see at each row, errors being in usual sizes: (N, K + 3)."""
    return np.column_stack([np.log1p(hidden, dtype=np.float64), _recent_sizes(errors, starts)])


def _recent_sizes(errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Give logarithms of the running means of |errors| before each row: (N, 3)."""
    first = np.ones(len(_NEWS))
    means = [_running_sizes(np.abs(errors[begin:end]), first)[:-1] for begin, end in pairwise(starts)]
    return np.log1p(np.concatenate(means) / _LEAST)


def _running_sizes(sizes: DoubleArray, first: DoubleArray) -> DoubleArray:
    """Give the running means of sizes before each row, and after the last: (N + 1, 3); NaN is left out."""
    fast, slow, last = first.tolist()
    faster, slower, at_once = _NEWS.tolist()
    means = [(fast, slow, last)]
    for size in sizes.tolist():
        if size == size:
            fast += faster * (size - fast)
            slow += slower * (size - slow)
            last += at_once * (size - last)
        means.append((fast, slow, last))
    return np.array(means)


def _fit_sizes(regressors: DoubleArray, errors: DoubleArray, *, none_below_zero: bool = False) -> DoubleArray:
    """Regress |errors| on exp(w' [regressors, 1]): (N, R), (N,) -> (R + 1,).

    Sizes are taken as gamma distributed: for these, Fisher scoring solves the same small system at each
    step. Regressing their logarithms would be one step, but mind the smallest errors most. Regressors whose
    weight would be below zero are left out one after another, where none may be.
    """
    weights = _fit_gamma(regressors, errors)
    kept = np.ones(len(weights), np.bool_)
    while none_below_zero and (weights[:-1] < 0).any():
        kept[np.argmin(weights[:-1])] = False
        weights = np.zeros(len(weights))
        weights[kept] = _fit_gamma(regressors[:, kept[:-1]], errors)
    return weights


def _fit_gamma(regressors: DoubleArray, errors: DoubleArray) -> DoubleArray:
    known = ~np.isnan(errors)
    sizes, standard = np.abs(errors[known]) + _LEAST, regressors[known]
    centre, deviation = standard.mean(axis=0), standard.std(axis=0)
    deviation[deviation <= 1e-6 * deviation.max(initial=0)] = np.inf  # a unit that is never on gets no weight
    standard -= centre
    standard /= deviation
    moments = standard.T @ standard / len(sizes) + _RIDGE * np.eye(len(centre))
    weights, constant = np.zeros(len(centre)), np.log(sizes.mean())
    for _ in range(_STEPS):
        exponent = np.clip(standard @ weights + constant, -_BOUND, _BOUND)
        excess = np.minimum(sizes / np.exp(exponent), _LARGEST) - 1
        weights += np.linalg.solve(moments, standard.T @ excess / len(sizes) - _RIDGE * weights)
        constant += np.log1p(excess.mean())
    weights /= deviation
    return np.append(weights, constant - centre @ weights)


def _levels(ratios: DoubleArray, starts: IntArray) -> DoubleArray:
    """Give what m would be before each row, from errors over expected scales: (N,)."""
    courses = [_running_level(np.abs(ratios[begin:end]), 1.0)[:-1] for begin, end in pairwise(starts)]
    return np.concatenate(courses)


def _running_level(ratios: DoubleArray, level: float) -> DoubleArray:
    """Give m before each row, and after the last, from sizes over expected scales: (N + 1,)."""
    levels = [level]
    for ratio in ratios.tolist():
        if ratio == ratio:
            level += _LEVEL_NEWS * (min(ratio, _LARGEST * level) - level)
        levels.append(level)
    return np.array(levels)
