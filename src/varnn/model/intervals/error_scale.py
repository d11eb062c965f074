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
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.errors import ConfigError, DataError
from varnn.model.intervals._size_regression import fit_sizes
from varnn.model.intervals.calibrator import CalibrationRows, Calibrator, Tracker
from varnn.model.intervals.levels import TAUS
from varnn.model.runtime import interval_model
from varnn.step.intervals import (
    INFLATION_RATE,
    MAX_EXPONENT,
    MAX_RATIO,
    RECENT_WEIGHTS,
    bounds,
    expect_scale,
    level_weights,
    track,
)
from varnn.step.layout import SMALLEST_SIZE, Block

_LARGEST_TIMES = 2.0  # the largest error that was learned from: what is beyond counts as so much


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
        largest = _LARGEST_TIMES * float(np.fmax.reduce(np.abs(errors), initial=np.nanmax(sizes)))
        return cls(
            weights=np.concatenate([share * direction, others]),
            unit=unit,
            quantiles=quantiles,
            largest=largest or np.inf,
        )

    def tracker(self, n_series: int, levels: DoubleArray | None = None) -> "ScaleTracker":
        """Begin with n series in step; all levels are followed."""
        return ScaleTracker(self, n_series)

    def step_numbers(self) -> dict[str, Any]:
        """Return what `varnn.step.intervals` needs."""
        return {
            "quantiles": np.ascontiguousarray(self.quantiles, np.float64),
            "scale_weights": np.ascontiguousarray(self.weights, np.float64),
            "scale_unit": float(self.unit),
            "largest_error": float(self.largest),
        }

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
        exponent = np.clip(regressors @ self.weights[:-1] + self.weights[-1], -MAX_EXPONENT, MAX_EXPONENT)
        return np.asarray(np.exp(exponent) * self.unit)


class ScaleTracker(Tracker):
    """The intervals of n series in step, as `varnn.step.intervals` computes them."""

    def __init__(self, error_scale: ErrorScale, n_series: int) -> None:
        self._model = interval_model(error_scale.step_numbers())
        self._block = Block(self._model, n_series)

    def expect(self, features: npt.NDArray[Any]) -> None:
        """Take in the hidden layers (n, K) the coming predictions are read from."""
        self._block.state.hidden[0] = features
        expect_scale(self._model, self._block.state)

    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Return how far below and above the predictions the intervals reach: (n, L) each."""
        shape = (len(self._block.state.inflation), len(levels))
        below, above = np.empty(shape), np.empty(shape)
        bounds(self._block.state, level_weights(tuple(levels.tolist())), below, above)
        return below, above

    def observe(self, errors: DoubleArray) -> None:
        """Take in the errors (n,) of these predictions; NaN leaves its series as it is."""
        track(self._model, self._block.state, errors)

    def state(self) -> DoubleArray:
        """Return a copy of all that later intervals depend on: (n, T + 4)."""
        state = self._block.state
        return np.column_stack([state.quantiles, state.recent_sizes, state.inflation])

    def restore(self, state: DoubleArray) -> None:
        """Continue from what :meth:`state` returned."""
        own, fresh = self._block.state, self.state()
        quantiles, sizes = np.split(state, [len(TAUS)], axis=1)
        if state.shape != fresh.shape or (np.diff(quantiles) < 0).any() or (sizes < 0).any():
            raise DataError(
                f"the state of a tracker must hold {fresh.shape} numbers, quantiles that rise and sizes from "
                "0 on; it does not. Restore the snapshot from a copy."
            )
        own.quantiles[:], own.recent_sizes[:], own.inflation[:] = quantiles, sizes[:, :-1], sizes[:, -1]


def _regressors(hidden: npt.NDArray[Any], errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Gather what `ScaleTracker.expect` would see at each row, errors in usual sizes: (N, K + 3)."""
    return np.column_stack([np.log1p(hidden, dtype=np.float64), _recent_sizes(errors, starts)])


def _recent_sizes(errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Compute logarithms of the running means of |errors| before each row: (N, 3)."""
    first = np.ones(len(RECENT_WEIGHTS))
    means = [_running_sizes(np.abs(errors[begin:end]), first)[:-1] for begin, end in pairwise(starts)]
    return np.log1p(np.concatenate(means) / SMALLEST_SIZE)


def _running_sizes(sizes: DoubleArray, first: DoubleArray) -> DoubleArray:
    """Compute the running means of sizes before each row, and after the last: (N + 1, 3); NaN is left out."""
    fast, slow, last = first.tolist()
    faster, slower, at_once = RECENT_WEIGHTS.tolist()
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
            inflation += INFLATION_RATE * (min(ratio, MAX_RATIO * inflation) - inflation)
        inflations.append(inflation)
    return np.array(inflations)
