"""A scale for each row, times tracked quantiles: intervals of one-step predictions.

Three things make an interval around a prediction, each with its own job ::

    scale   s_t = m_t exp(w' [log(1 + u_t), log(1 + recent |errors|), 1])    how large an error to expect
    bounds  prediction + s_t q(tau)                                 q: quantiles of error / scale
    track   q(tau) <- q(tau) + rate (tau - [error <= s_t q(tau)])   after each label

The scale is a gamma regression [1]_ of the size of the errors on the hidden layer the prediction was read
from, so that it knows what the memory knows, and on exponentially weighted means of their size; m_t is such
a mean of how much larger they are than it says, which follows a change that the rows it was learnt from
never saw. The quantiles start as they are on validation rows. Tracking them (the online gradient of the
quantile loss: quantile tracking [2]_, a relative of adaptive conformal inference [3]_) keeps the share of
labels below each one at tau whatever happens to the errors: the sum of tau - [..] is bounded by q over rate,
so that coverage can be wrong for a while, not for good. Lower and upper quantiles are tracked apart, as
errors are skew.

Shapes: n series in step, K hidden units, T quantiles, L levels.

References
----------
.. [1] P. McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman and Hall, 1989.
.. [2] A. N. Angelopoulos, E. J. Candes and R. J. Tibshirani, "Conformal PID control for time series
   prediction", Advances in Neural Information Processing Systems 36, 2023.
.. [3] I. Gibbs and E. Candes, "Adaptive conformal inference under distribution shift", Advances in Neural
   Information Processing Systems 34, 2021.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.errors import ConfigError, DataError
from varnn.model.intervals._size_regression import BOUND, LARGEST, LEAST, fit_sizes
from varnn.model.intervals.calibrator import CalibrationRows, Calibrator, Tracker
from varnn.model.intervals.levels import TAUS, quantile_bounds

RATE = 0.05  # of tracking, in units of the scale
NEWS = np.array([0.2, 0.02, 1.0])  # weight of the last |error| in its running means: fast, slow, itself
INFLATION_RATE = 0.01  # and that of the last |error| / scale in m
_UP, _DOWN = RATE * TAUS[None], RATE * (TAUS[None] - 1)  # steps of quantiles that were too low, or not
_RATES = np.array([[*NEWS, INFLATION_RATE]])
_LARGEST = np.array(LARGEST)
_TIMES = 2.0  # the largest error that was learnt from: what is beyond counts as so much


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorScale(Calibrator):
    """Error scale and quantiles of one-step predictions, as learnt; see the module for the method.

    Parameters
    ----------
    weights : array of shape (K + 4,)
        Of the logarithms of [1 + hidden layer, 1 + recent sizes], and of 1.
    unit : float
        Usual size of an error: its median on validation rows.
    quantiles : array of shape (T,)
        Of error / scale on validation rows, at `TAUS`.
    largest : float, default inf
        Size of an error that larger ones count as in the running means: twice the largest that was learnt
        from, so that one wild label does not widen intervals for long. m_t follows errors that stay large.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=3000)
    >>> rows = CalibrationRows(np.ones((3000, 2)), errors, np.array([0, 3000]))
    >>> below, above = ErrorScale.fit(rows, rows).tracker(1).follow(*rows, np.array([0.9]))
    >>> covered = (below[:, 0] <= errors) & (errors <= above[:, 0])
    >>> bool(0.89 < covered.mean() < 0.91)
    True
    """

    weights: DoubleArray
    unit: float
    quantiles: DoubleArray
    largest: float = np.inf

    @classmethod
    def fit(cls, validation: CalibrationRows, training: CalibrationRows | None = None) -> Self:
        """Learn from hidden layers (N, K) and errors (N,).

        A network has seen the labels of its training rows, so its errors there are smaller than elsewhere
        and obey their own law. They are many, though: they say which hidden units go with large errors.
        By how much, and what recent errors tell beside them, is learnt from the validation rows.

        Parameters
        ----------
        validation : CalibrationRows
        training : CalibrationRows or None, default None
            None takes the validation rows for both.
        """
        later_hidden, later_errors, later_starts = validation
        hidden, errors, starts = training or validation
        if later_errors.ndim != 1:
            raise ConfigError(
                f"ErrorScale learns errors of one step, (N,); got shape {later_errors.shape}. For forecasts "
                "use HorizonBands."
            )
        sizes = np.abs(later_errors)
        unit = float(np.nanmedian(sizes)) or float(np.nanmean(sizes)) or 1.0
        width = hidden.shape[1]
        direction = fit_sizes(_regressors(hidden, errors / unit, starts), errors / unit)[:width]
        # Of later rows, which may be many, one number stands for the whole hidden layer.
        told = np.log1p(later_hidden) @ direction.astype(later_hidden.dtype)
        later = np.column_stack([told, _recent_sizes(later_errors / unit, later_starts)])
        # Few rows may show by chance that small errors follow large ones. Such a scale would narrow after
        # each error and widen while all is well, so that no weight may be below zero.
        share, *others = fit_sizes(later, later_errors / unit, none_below_zero=True)
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

    def tracker(self, n_series: int, levels: DoubleArray | None = None) -> "ScaleTracker":
        """Begin with n series in step; all levels are followed."""
        return ScaleTracker(self, n_series)

    def refitted(self, before: CalibrationRows, after: CalibrationRows) -> Self:
        """Carry the error scale over to another network, from what both show on training rows.

        Its hidden units are others, so which of them go with large errors is learnt anew; all that was
        learnt from later rows stays.
        """
        old, new = (
            fit_sizes(_regressors(hidden, errors / self.unit, starts), errors / self.unit)[: hidden.shape[1]]
            for hidden, errors, starts in (before, after)
        )
        size = float(old @ old)
        share = float(self.weights[: len(old)] @ old) / size if size else 0.0
        return replace(self, weights=np.concatenate([share * new, self.weights[len(old) :]]))

    def arrays(self) -> dict[str, DoubleArray]:
        """Return all that was learnt as named arrays; in files from before ``largest`` there is none."""
        numbers = {"weights": self.weights, "quantiles": self.quantiles, "unit": np.array([self.unit])}
        return numbers | ({"largest": np.array([self.largest])} if np.isfinite(self.largest) else {})

    def scales(self, regressors: DoubleArray) -> DoubleArray:
        """Compute scales in the target's units, before m: logarithms (n, K + 3) -> (n,)."""
        slopes, constant, unit = self._numbers
        exponent = regressors.dot(slopes) + constant
        if not exponent.dot(exponent) <= BOUND * BOUND:  # the sum of squares tells that none is beyond
            np.minimum(np.maximum(exponent, -BOUND, out=exponent), BOUND, out=exponent)
        return np.asarray(np.exp(exponent) * unit)

    @cached_property
    def _numbers(self) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """Weights, that of 1, and the unit: a row takes as long as the calls to NumPy it makes."""
        return self.weights[:-1], np.array(self.weights[-1]), np.array(self.unit)


class ScaleTracker(Tracker):
    """Quantiles, running means of sizes and m of n series in step, as labels arrive."""

    def __init__(self, error_scale: ErrorScale, n_series: int) -> None:
        self.error_scale = error_scale
        width = len(error_scale.weights) - len(NEWS) - 1
        # Quantiles; running means of sizes, in units of the least; m.
        start = np.concatenate([error_scale.quantiles, np.full(len(NEWS), 1 / LEAST), [1.0]])
        self._state = np.tile(start, (n_series, 1))
        self._regressors = np.zeros((n_series, width + len(NEWS)))
        self._expected = np.full(n_series, error_scale.unit)  # scales before m
        self._scales = self._expected
        # Parts of these, as a row takes as long as the calls to NumPy it makes.
        self._hidden, self._recent = self._regressors[:, :width], self._regressors[:, width:]
        self._means, self._inflation = self._state[:, len(TAUS) : -1], self._state[:, -1]
        self._least, self._largest = np.array(LEAST * error_scale.unit), np.array(error_scale.largest)

    def expect(self, features: npt.NDArray[Any]) -> None:
        """Take in the hidden layers (n, K) the coming predictions are read from."""
        self._hidden[...], self._recent[...] = features, self._means
        np.log1p(self._regressors, out=self._regressors)
        self._expected = self.error_scale.scales(self._regressors)
        self._scales = self._expected * self._inflation

    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Return how far below and above the predictions the intervals reach: (n, L) each."""
        return quantile_bounds(self._state, levels, self._scales)

    def observe(self, errors: DoubleArray) -> None:
        """Take in the errors (n,) of these predictions; NaN leaves its series as it is."""
        missing = np.isnan(errors)
        if not np.count_nonzero(missing):
            self._learn(self._state, errors, self._expected, self._scales)
        elif not missing.all():
            known = ~missing
            some = self._state[known]
            self._learn(some, errors[known], self._expected[known], self._scales[known])
            self._state[known] = some

    def state(self) -> DoubleArray:
        """Return a copy of all that later intervals depend on: (n, T + 4)."""
        return self._state.copy()

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        quantiles, sizes = np.split(state, [len(TAUS)], axis=1)
        if state.shape != self._state.shape or (np.diff(quantiles) < 0).any() or (sizes < 0).any():
            raise DataError(
                f"the state of a tracker ('tracker' in a snapshot) must hold {self._state.shape} numbers, "
                "quantiles that rise and sizes from 0 on; it does not. Restore the snapshot from a copy."
            )
        self._state[...] = state

    def follow(
        self, features: npt.NDArray[Any], errors: DoubleArray, starts: IntArray, levels: DoubleArray
    ) -> tuple[DoubleArray, DoubleArray]:
        """Go through all rows of a panel: hidden layers (N, K), errors (N,) -> (N, L) each.

        Scales depend on errors alone, so that only the quantiles are left to be followed from row to row.
        """
        state, error_scale, sizes = self.state(), self.error_scale, np.abs(errors)
        told, scales = np.log1p(features, dtype=np.float64), np.empty(len(errors))
        for one, (begin, end) in zip(state, pairwise(starts), strict=True):
            rows = slice(begin, end)
            bounded = np.minimum(sizes[rows], error_scale.largest)
            recent = _running_sizes(bounded / (LEAST * error_scale.unit), one[len(TAUS) : -1])
            expected = error_scale.scales(np.column_stack([told[rows], np.log1p(recent[:-1])]))
            inflation = _running_inflation(sizes[rows] / expected, one[-1])
            scales[rows] = expected * inflation[:-1]
            one[len(TAUS) :] = *recent[-1], inflation[-1]
        course = _course(state[:, : len(TAUS)], errors, scales, starts)
        self.restore(state)
        return quantile_bounds(course, levels, scales)

    def _learn(
        self, state: DoubleArray, errors: DoubleArray, expected: DoubleArray, scales: DoubleArray
    ) -> None:
        """Learn from the errors of some series, whose state is changed in place."""
        quantiles, tail = state[:, : len(TAUS)], state[:, len(TAUS) :]
        quantiles += np.where(errors[:, None] <= scales[:, None] * quantiles, _DOWN, _UP)
        np.maximum.accumulate(quantiles, axis=1, out=quantiles)  # quantiles never cross
        sizes = np.abs(errors)
        news = np.empty(tail.shape)  # what the running means and m go towards
        news[:, :-1] = (np.minimum(sizes, self._largest) / self._least)[:, None]
        np.minimum(sizes / expected, tail[:, -1] * _LARGEST, out=news[:, -1])
        news -= tail
        news *= _RATES
        tail += news


def _course(
    quantiles: DoubleArray, errors: DoubleArray, scales: DoubleArray, starts: IntArray
) -> DoubleArray:
    """Return the quantiles before each row, (N, T); leave those after the last in ``quantiles``, (S, T).

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
        some += RATE * (TAUS - (errors[begin:end] <= scales[begin:end] * some)) * known[begin:end]
        np.maximum.accumulate(some, axis=1, out=some)  # they never cross
    quantiles[...] = running[ranks]
    course[order] = ordered
    return course


def _regressors(hidden: npt.NDArray[Any], errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Gather what `ScaleTracker.expect` would see at each row, errors in usual sizes: (N, K + 3)."""
    return np.column_stack([np.log1p(hidden, dtype=np.float64), _recent_sizes(errors, starts)])


def _recent_sizes(errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Compute logarithms of the running means of |errors| before each row: (N, 3)."""
    first = np.ones(len(NEWS))
    means = [_running_sizes(np.abs(errors[begin:end]), first)[:-1] for begin, end in pairwise(starts)]
    return np.log1p(np.concatenate(means) / LEAST)


def _running_sizes(sizes: DoubleArray, first: DoubleArray) -> DoubleArray:
    """Compute the running means of sizes before each row, and after the last: (N + 1, 3); NaN is left out."""
    fast, slow, last = first.tolist()
    faster, slower, at_once = NEWS.tolist()
    means = [(fast, slow, last)]
    for size in sizes.tolist():
        if size == size:
            fast += faster * (size - fast)
            slow += slower * (size - slow)
            last += at_once * (size - last)
        means.append((fast, slow, last))
    return np.array(means)


def _levels(ratios: DoubleArray, starts: IntArray) -> DoubleArray:
    """Compute what m would be before each row, from errors over expected scales: (N,)."""
    courses = [_running_inflation(np.abs(ratios[begin:end]), 1.0)[:-1] for begin, end in pairwise(starts)]
    return np.concatenate(courses)


def _running_inflation(ratios: DoubleArray, inflation: float) -> DoubleArray:
    """Compute m before each row, and after the last, from sizes over expected scales: (N + 1,)."""
    inflations = [inflation]
    for ratio in ratios.tolist():
        if ratio == ratio:
            inflation += INFLATION_RATE * (min(ratio, LARGEST * inflation) - inflation)
        inflations.append(inflation)
    return np.array(inflations)
