"""Quantiles of forecast errors at each step, wider when labels move more: bands of forecasts.

An error at step k is taken in units of (how much the label moved lately) ** p_k, where p_k is 0, 1/2
or 1, whichever gives the sharper quantiles on validation rows, or the mean of these over the steps about as
far ahead: one step alone may choose by chance, and neighbours would have bands unlike each other.

As outcomes come in, intervals that hold too few of them are widened and those that hold too many are
narrowed, for each series, step and level apart: quantile tracking [1]_ of how often its reach an outcome is
away, a form of adaptive conformal inference [2]_ ::

    factor <- clip(factor + rate ([outcome outside] - (1 - level)), 1/2, 5)      once an outcome is known

Where nearly all errors have one sign, a band still reaches a little to the other side: a reach of nothing
stays nothing however much it is widened, and outcomes there would widen the far side alone, without end.

Where validation rows tell little about a step, its quantiles are mixed with those of Student's t
distribution; see `varnn.model.intervals.few_errors`.

Shapes: N rows of a panel, n series in step, H steps, T quantiles, L levels.

References
----------
.. [1] A. N. Angelopoulos, E. J. Candes and R. J. Tibshirani, "Conformal PID control for time series
   prediction", Advances in Neural Information Processing Systems 36, 2023.
.. [2] I. Gibbs and E. Candes, "Adaptive conformal inference under distribution shift", Advances in Neural
   Information Processing Systems 34, 2021.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.errors import ConfigError, DataError
from varnn.model.intervals.calibrator import CalibrationRows, Calibrator, Tracker, known_with
from varnn.model.intervals.few_errors import ENOUGH, FEWEST, size_of_errors, student_quantiles, warn_of_few
from varnn.model.intervals.levels import LEVELS, TAUS

POWERS = (0.0, 0.5, 1.0)
_LEAST = 0.1  # of the usual movement: a label that stood still may move again
_OTHER_SIDE = 0.2  # of the longer side, that a band reaches to the shorter at least
_RATE = 0.05  # of widening and narrowing
_NARROWEST, _WIDEST = 0.5, 5.0  # times as wide as on validation rows


@dataclass(frozen=True, eq=False, kw_only=True)
class HorizonBands(Calibrator):
    """Quantiles of forecast errors at each step, as learnt; see the module for the method.

    Parameters
    ----------
    usual : float
        Usual movement of the label from row to row: its mean on validation rows.
    powers : array of shape (H,)
        p of each step.
    quantiles : array of shape (H, T)
        Of errors in units of movement ** p, at `TAUS`.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> movement = generator.uniform(0.5, 2, size=1000)
    >>> errors = generator.normal(size=(1000, 2)) * movement[:, None] * [1, 3]
    >>> bands = HorizonBands.fit(CalibrationRows(movement[:, None], errors, np.array([0, 1000])))
    >>> lower, upper = bands.reach(np.array([0.5, 2.0]), np.array([0.9]))
    >>> lower.shape, bool(upper[1, 0, 0] > 1.5 * upper[0, 0, 0]), bool(upper[0, 1, 0] > upper[0, 0, 0])
    ((2, 2, 1), True, True)
    """

    usual: float
    powers: DoubleArray
    quantiles: DoubleArray

    @classmethod
    def fit(cls, validation: CalibrationRows, training: CalibrationRows | None = None) -> Self:
        """Learn from errors (N, H) and how much the label had moved, (N, 1); say where they are few.

        Parameters
        ----------
        validation : CalibrationRows
        training : None, default None
            Not looked at.
        """
        errors, movement = validation.errors, validation.features[:, 0]
        if errors.ndim != 2:
            raise ConfigError(
                f"HorizonBands learns errors of several steps, (N, H); got shape {errors.shape}. For one "
                "step use ErrorScale."
            )
        warn_of_few(errors)
        usual = float(movement.mean()) or 1.0
        worth = np.count_nonzero(~np.isnan(errors), axis=0) / np.arange(1, errors.shape[1] + 1)
        powers = _powers(errors, movement / usual, worth)
        quantiles, size = [], 0.0
        for step, (column, power) in enumerate(zip(errors.T, powers, strict=True), 1):
            known, count = ~np.isnan(column), float(worth[step - 1])
            own, before = column[known], size
            grown = size * (step / max(1, step - 1)) ** 0.5
            size = size_of_errors(own, count, grown if step > 1 else None)
            scale = _scales(movement[known], usual, power)
            found = np.quantile(own / scale, TAUS) if len(own) else np.zeros(len(TAUS))
            if count < ENOUGH:
                # Nobody knows more of what is further ahead: a few errors that are small say nothing else.
                size, trust = max(size, before), count / ENOUGH
                found = trust * found + (1 - trust) * size * student_quantiles(max(FEWEST, count))
            quantiles.append(found)
        return cls(usual=usual, powers=powers, quantiles=np.array(quantiles))

    def tracker(self, n_series: int, levels: DoubleArray | None = None) -> "BandsTracker":
        """Begin with n series in step, and follow these levels; None follows `LEVELS`."""
        return BandsTracker(self, n_series, LEVELS if levels is None else np.unique(levels))

    def reach(
        self, movement: DoubleArray, levels: DoubleArray, steps: slice = slice(None)
    ) -> tuple[DoubleArray, DoubleArray]:
        """Compute how far below and above a forecast its intervals reach, before any outcome.

        Parameters
        ----------
        movement : array of shape (n,) or (n, H)
            How much the label had moved before each forecast, or before that of each step.
        levels : array of shape (L,)
        steps : slice, default all
            Steps to look at.

        Returns
        -------
        below, above : arrays of shape (n, H, L)
        """
        moved = movement[:, None] if movement.ndim == 1 else movement
        scales = _scales(moved, self.usual, self.powers[steps])[:, :, None]  # (n, H, 1)
        low, high = (
            np.stack([np.interp((1 + sign * levels) / 2, TAUS, one) for one in self.quantiles[steps]])
            for sign in (-1, 1)
        )
        # An interval holds its forecast, whatever side past errors were on, and can be widened to both sides.
        below, above = np.minimum(scales * low, 0), np.maximum(scales * high, 0)
        return np.minimum(below, -_OTHER_SIDE * above), np.maximum(above, -_OTHER_SIDE * below)


class BandsTracker(Tracker):
    """Factors by which the bands of n series in step are wider than on validation rows, as outcomes come.

    Parameters
    ----------
    bands : HorizonBands
    n_series : int
    levels : array of shape (L,), rising
        Levels that are followed; factors of others lie on lines between theirs.
    """

    def __init__(self, bands: HorizonBands, n_series: int, levels: DoubleArray) -> None:
        horizon = len(bands.powers)
        self.bands, self.levels = bands, levels
        self._factors = np.ones((n_series, horizon, len(levels)))
        self._movement = np.full(n_series, bands.usual)
        # See `_past`: what it is made from, and the rows that have to be added to it.
        self._kept: tuple[DoubleArray, DoubleArray] | None = None
        self._followed: tuple[DoubleArray, DoubleArray, IntArray] | None = None

    def expect(self, features: npt.NDArray[Any]) -> None:
        """Take in how much the label of each series lately moved: (n, 1)."""
        self._movement = features[:, 0].copy()  # the caller may write into its own

    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Return how far below and above the forecasts their intervals reach: (n, H, L) each."""
        return self._widened(self._movement, self._factors, levels)

    def observe(self, errors: DoubleArray) -> None:
        """Take in the errors (n, H) of the forecasts of this row; column k is of the one made k rows ago."""
        movements, factors = self._past()
        for kept, now in ((movements, self._movement), (factors, self._factors)):
            kept[:, 1:] = kept[:, :-1].copy()
            kept[:, 0] = now
        steps = np.arange(errors.shape[1])
        beyond = _beyond(errors[:, :, None], *self.bands.reach(movements, self.levels))
        self._factors = self._changed(self._factors, beyond > factors[:, steps, steps], ~np.isnan(errors))

    def state(self) -> DoubleArray:
        """Return a copy of all that later intervals depend on: (n, H L + H + H H L)."""
        parts = (self._factors, *self._past())
        return np.concatenate([one.reshape(len(one), -1) for one in parts], axis=1)

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        n_series, horizon, levels = shape = self._factors.shape
        ends = np.cumsum([horizon * levels, horizon])
        factors, movements, then = np.split(state, ends, axis=1)
        within = (factors >= _NARROWEST) & (factors <= _WIDEST)
        if then.shape != (n_series, horizon * horizon * levels) or not within.all():
            raise DataError(
                f"the state of bands must hold {(n_series, horizon * (levels + 1 + horizon * levels))} "
                f"numbers, and factors from {_NARROWEST} to {_WIDEST}; it does not. Restore it from a copy."
            )
        self._factors, self._followed = factors.reshape(shape).copy(), None
        self._kept = movements.copy(), then.reshape(n_series, horizon, horizon, levels).copy()

    def follow(
        self, features: npt.NDArray[Any], errors: DoubleArray, starts: IntArray, levels: DoubleArray
    ) -> tuple[DoubleArray, DoubleArray]:
        """Go through all rows of a panel: movements (N, 1), errors (N, H) -> (N, H, L) each.

        How far outcomes are off, in units of their reach, is computed for all rows together; factors are
        followed row after row, of all series together.
        """
        if self._followed is not None:
            self._past()  # takes in the rows before
        movement, steps, lengths = features[:, 0], np.arange(errors.shape[1]), np.diff(starts)
        beyond, factors = (np.ones((*errors.shape, len(self.levels))) for _ in range(2))
        for step in steps:  # one after the other: of many rows all together are large
            reach = self.bands.reach(movement, self.levels, slice(step, step + 1))
            beyond[:, step] = _beyond(errors[:, step, None], *(one[:, 0] for one in reach))
        beyond, known = known_with(beyond, starts), ~np.isnan(known_with(errors, starts))
        order = np.argsort(-lengths, kind="stable")  # the longest first: those still running are the first
        running, first = self._factors[order], starts[:-1][order]
        for place in range(lengths.max(initial=0)):
            rows = first[: np.count_nonzero(lengths > place)] + place
            some = running[: len(rows)]
            factors[rows] = some
            origins = np.maximum(rows[:, None] - steps, 0)  # before its series: nothing of it is known
            missed = beyond[rows] > factors[origins, steps]
            some[...] = self._changed(some, missed, known[rows])
        del beyond  # which is large
        self._factors[order] = running
        self._followed = movement, factors, starts
        return self._widened(movement, factors, levels)

    def _past(self) -> tuple[DoubleArray, DoubleArray]:
        """Return what the forecasts of the last H rows were made with, the latest first.

        Movements (n, H), NaN before the first row, and factors (n, H, H, L). They are large, and only asked
        for where rows are observed one by one: so they are not made before.
        """
        n_series, horizon, levels = self._factors.shape
        if self._kept is None:
            self._kept = np.full((n_series, horizon), np.nan), np.ones((n_series, horizon, horizon, levels))
        if self._followed is not None:
            *values, starts = self._followed
            latest = np.arange(horizon)
            for series, (begin, end) in enumerate(pairwise(starts)):
                rows = end - 1 - latest[: end - begin]
                for kept, value in zip(self._kept, values, strict=True):
                    kept[series] = np.concatenate([value[rows], kept[series]])[:horizon]
            self._followed = None
        return self._kept

    def _changed(self, factors: DoubleArray, missed: BoolArray, known: BoolArray) -> DoubleArray:
        """Widen where an outcome was missed, narrow where it was held: (n, k, L), and known (n, k)."""
        change = _RATE * (missed - (1 - self.levels)) * known[..., None]
        return np.minimum(np.maximum(factors + change, _NARROWEST), _WIDEST)

    def _widened(
        self, movement: DoubleArray, factors: DoubleArray, levels: DoubleArray
    ) -> tuple[DoubleArray, DoubleArray]:
        """Multiply reaches by factors (n, H, levels followed): (n, H, L) each."""
        lower, upper = self.bands.reach(movement, levels)
        if not np.array_equal(levels, self.levels):
            each = np.eye(len(self.levels))
            factors = factors @ np.array([np.interp(levels, self.levels, one) for one in each])
        lower *= factors
        upper *= factors
        # A level that was widened beyond the next higher one takes that one along.
        order = np.argsort(levels)
        lower[..., order] = np.minimum.accumulate(lower[..., order], axis=2)
        upper[..., order] = np.maximum.accumulate(upper[..., order], axis=2)
        return lower, upper


def _beyond(errors: DoubleArray, lower: DoubleArray, upper: DoubleArray) -> DoubleArray:
    """Compute how often its reach each outcome is away: an interval holds up to 1."""
    return np.maximum(_over(errors, upper), _over(-errors, -lower))


def _over(step: DoubleArray, reach: DoubleArray) -> DoubleArray:
    """Divide; what is beyond a reach of nothing is infinitely far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(step / reach, nan=0.0, posinf=np.inf)


def _scales(movement: DoubleArray, usual: float, power: float | DoubleArray) -> DoubleArray:
    return np.asarray(np.maximum(movement / usual, _LEAST) ** power)


def _powers(errors: DoubleArray, movement: DoubleArray, worth: DoubleArray) -> DoubleArray:
    """Choose p of each step: errors (N, H), movements over the usual one (N,), separate errors (H,) -> (H,).

    Of steps with enough errors it is the mean of what is best at each step half to twice as far ahead. Steps
    of few errors take p of the last of these, less the fewer they are: how much a label moves today says
    little about a day far ahead.
    """
    enough = int(np.count_nonzero(np.cumprod(worth >= ENOUGH)))
    best = np.zeros(enough)
    for step, column in enumerate(errors.T[:enough]):
        known, losses = ~np.isnan(column), []
        for power in POWERS:
            scale = _scales(movement[known], 1.0, power)
            found = np.quantile(column[known] / scale, TAUS)
            losses.append(_pinball(column[known], scale[:, None] * found))
        best[step] = POWERS[int(np.argmin(losses))]
    powers = np.array([best[(step - 1) // 2 : 2 * step].mean() for step in range(1, enough + 1)])
    last = powers[-1] if enough else 0.0
    return np.concatenate([powers, last * np.minimum(worth[enough:] / ENOUGH, 1.0)])


def _pinball(errors: DoubleArray, quantiles: DoubleArray) -> float:
    """Compute the mean quantile loss of errors (N,) against quantiles (N, T)."""
    if len(errors) == 0:
        return 0.0
    beyond = errors[:, None] - quantiles
    return float(np.mean(np.maximum(TAUS * beyond, (TAUS - 1) * beyond)))
