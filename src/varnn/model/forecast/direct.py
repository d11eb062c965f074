"""The linear part of a forecast: one ridge regression for each step.

Row t + k is anchored at ::

    anchor_t,k = f_t + w_k' [what the network sees of row t, latest changes of the label, 1]

where f_t is the last label before row t; inputs known in the future add how they differ at row t + k from
row t. Each season of the network's linear part (`varnn.model.seasons`), of p rows, adds two seasonal lags ::

    g_r - f_t,  g_r - g_r-1        r = t + k - m p, with the smallest m for which that is before t

where g_r is the last label known up to row r: where the label was at this place of the latest season known,
and how it changed there. Where there is no such past yet they are 0.

As in `varnn.model.linear`, regressing the change and not the level makes ridge shrink towards persistence,
and regressors stay within the range they had in training: far from it, nothing is pulled further. Ridge, and
whether the table's inputs and the seasons are looked at, is chosen on validation rows for each step. Where
these are too few to choose on (see `varnn.model.intervals.few_errors`), all shorter steps have a say, and the
last label alone is a choice, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.data.panel import Panel
from varnn.model._ridge import Moments
from varnn.model.forecast.rows import columns_of, series_ends, targets_ahead
from varnn.model.intervals.few_errors import ENOUGH
from varnn.model.linear import last_labels
from varnn.model.pipeline import FeaturePipeline

Solution = tuple[DoubleArray, float]  # weights (F,) and constant

CHANGES = 24  # of the label, looked back on
SEASONAL_AHEAD = 2  # regressors of a season
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # penalty a training row, for regressors of unit variance
_NUMBERS = 1 << 23  # of regressors, that a regression learns from: those of the latest rows, and
_NUMBERS_AT_ONCE = 1 << 18  # that are in memory together: 2 MB


@dataclass(frozen=True, eq=False)
class HorizonFeatures:
    """Rows as the regressions see them.

    Parameters
    ----------
    panel : Panel
        The rows with their labels, in the target's units.
    seen : array
        What the network sees of each: (N, D).
    known : array of int
        Columns of ``seen`` that are known in the future.
    given : int
        Columns of ``seen`` that come from the table, the first ones.
    mean : float
        Of the training labels: stands in for a last label where there is none yet.
    periods : tuple of int, default ()
        Seasons, in rows.
    own : array of bool or None, default None
        Rows to learn from or to choose on: (N,); others are only looked back on. None is all.
    """

    panel: Panel
    seen: npt.NDArray[np.float32]
    known: IntArray
    given: int
    mean: float
    periods: tuple[int, ...] = ()
    own: BoolArray | None = None

    @classmethod
    def of(
        cls,
        panel: Panel,
        prepared: Panel,
        known: Sequence[str],
        pipeline: FeaturePipeline,
        *,
        mean: float,
        own: BoolArray | None = None,
    ) -> "HorizonFeatures":
        """Take rows, and what a pipeline made of them; it may have left the table's inputs out."""
        columns, given = np.empty(0, np.int64), 0
        if pipeline.use_inputs:
            columns, given = columns_of(panel, known), panel.n_inputs
        periods = () if pipeline.linear is None else pipeline.linear.form.periods
        return cls(panel, prepared.inputs, columns, given, mean, periods, own)

    @property
    def fixed(self) -> int:
        """Number of regressors that are the same for every step; they come first."""
        return int(self.seen.shape[1]) + CHANGES

    @property
    def width(self) -> int:
        """Number of regressors: the fixed ones, inputs known in the future, and seasons."""
        return self.fixed + len(self.known) + SEASONAL_AHEAD * len(self.periods)

    @property
    def of_inputs(self) -> BoolArray:
        """Mark the regressors that come from the table's inputs."""
        marked = np.zeros(self.width, dtype=bool)
        marked[: self.given] = True
        marked[self.fixed : self.fixed + len(self.known)] = True
        return marked

    @property
    def of_seasons(self) -> BoolArray:
        """Mark the regressors that come from seasons."""
        return np.arange(self.width) >= self.fixed + len(self.known)

    @property
    def of_labels(self) -> BoolArray:
        """Mark the regressors that are in the units of the label; the others are scaled."""
        marked = self.of_seasons
        marked[self.seen.shape[1] : self.fixed] = True
        return marked

    @property
    def largest(self) -> float:
        """Size of the largest label known."""
        return float(np.abs(self._known_labels).max(initial=0.0))

    @cached_property
    def movement(self) -> DoubleArray:
        """How much the label lately moved from row to row: (N,)."""
        every = np.arange(len(self.panel))
        return np.concatenate([np.abs(self.changes(rows)).mean(axis=1) for rows in self.chunks(every)])

    @cached_property
    def _labels(self) -> tuple[DoubleArray, DoubleArray, BoolArray]:
        return last_labels(self.panel, self.mean)

    @cached_property
    def _known_labels(self) -> DoubleArray:
        """The last label known up to each row, with its own: (N,)."""
        return np.where(np.isnan(self.panel.target), self._labels[0], self.panel.target)

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        return self.panel.first_rows, series_ends(self.panel)

    def last(self, rows: IntArray) -> DoubleArray:
        """Last label before some rows: (B,)."""
        return self._labels[0][rows]

    def changes(self, rows: IntArray) -> DoubleArray:
        """Latest changes of the label before some rows: (B, CHANGES)."""
        change = self._labels[1]
        earlier = rows[:, None] - np.arange(CHANGES)
        first = self._ends[0][rows][:, None]
        return np.asarray(np.where(earlier >= first, change[np.maximum(earlier, 0)], 0))

    def regressors(self, rows: IntArray) -> DoubleArray:
        """Gather the regressors of some rows; what depends on the step is left for `toward`."""
        blank = np.zeros((len(rows), self.width - self.fixed))
        return np.column_stack([self.seen[rows], self.changes(rows), blank])

    def toward(self, regressors: DoubleArray, rows: IntArray, step: int) -> DoubleArray:
        """Add what is known of the rows so far after these, and of such rows in past seasons; in place."""
        column = self.fixed
        if len(self.known):
            later = np.minimum(rows + step, self._ends[1][rows])[:, None]
            now = self.seen[rows[:, None], self.known]
            regressors[:, column : column + len(self.known)] = self.seen[later, self.known] - now
            column += len(self.known)
        for period in self.periods:
            past = rows + (step % period - period)  # at the same place of the latest season before
            there = past > self._ends[0][rows]
            past = np.where(there, past, 0)
            then = self._known_labels[past]
            regressors[:, column] = np.where(there, then - self.last(rows), 0)
            regressors[:, column + 1] = np.where(there, then - self._known_labels[past - 1], 0)
            column += SEASONAL_AHEAD
        return regressors

    def chunks(self, rows: IntArray) -> Iterator[IntArray]:
        """Cut rows into runs whose regressors fit into memory."""
        size = max(1, _NUMBERS_AT_ONCE // self.width)
        for begin in range(0, len(rows), size):
            yield rows[begin : begin + size]

    def latest(self) -> IntArray:
        """List the latest rows of each series with labels before them, as many as are enough."""
        share = max(1, _NUMBERS // self.width // self.panel.n_series)
        recent = np.arange(len(self.panel)) > self._ends[1] - share
        return self.own_rows[(recent & self._labels[2])[self.own_rows]]

    @property
    def own_rows(self) -> IntArray:
        """List the rows that are not only looked back on."""
        return np.arange(len(self.panel)) if self.own is None else np.flatnonzero(self.own)

    def changes_ahead(self, rows: IntArray, horizon: int) -> DoubleArray:
        """Targets of the rows after some rows, less the last label before them: (B, H - 1)."""
        return targets_ahead(self.panel, horizon, rows) - self.last(rows)[:, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class DirectPart:
    """The regressions, for H - 1 steps and F regressors.

    Parameters
    ----------
    weights, constants : array
        Of regressors within their range: (H - 1, F) and (H - 1,), in the target's units.
    low, high : array
        The range of each regressor in training: (F,).
    scales : array
        Usual size of what each regression leaves, on training rows: (H - 1,).
    mean : float
        Of the training labels.
    """

    mean: float
    weights: DoubleArray
    constants: DoubleArray
    low: DoubleArray
    high: DoubleArray
    scales: DoubleArray

    @classmethod
    def fit(cls, training: HorizonFeatures, validation: HorizonFeatures | None, horizon: int) -> "DirectPart":
        """Fit every candidate on the latest training rows, and keep each step's best on validation."""
        low, high = _range_of(training, horizon)
        moments = _moments(training, low, high, horizon)
        candidates = [_candidates(one, training.of_inputs, training.of_seasons) for one in moments]
        best = np.zeros(horizon - 1, dtype=np.int64)
        if validation is not None:
            best = _best(*_errors(validation, low, high, candidates))
        chosen = [listed[index] for listed, index in zip(candidates, best, strict=True)]
        return cls(
            mean=training.mean,
            weights=np.array([weights for weights, _ in chosen]).reshape(horizon - 1, training.width),
            constants=np.array([constant for _, constant in chosen]),
            low=low,
            high=high,
            scales=np.array(
                [_residual_deviation(one, weights) for one, (weights, _) in zip(moments, chosen, strict=True)]
            ),
        )

    def linear_predictions(self, features: HorizonFeatures, rows: IntArray) -> DoubleArray:
        """Linear predictions of the rows after some rows: (B, H - 1)."""
        linear_predictions = np.empty((len(rows), len(self.weights)))
        regressors, varying = features.regressors(rows).clip(self.low, self.high), slice(features.fixed, None)
        for step, (weights, constant) in enumerate(zip(self.weights, self.constants, strict=True), 1):
            some = features.toward(regressors, rows, step)[:, varying]
            some.clip(self.low[varying], self.high[varying], out=some)
            linear_predictions[:, step - 1] = regressors @ weights + constant
        return linear_predictions + features.last(rows)[:, None]


def _candidates(moments: Moments, *choices: BoolArray) -> list[Solution]:
    """Regress with each ridge, with and without each choice of regressors: weights (F,) and constant of each.

    The first is for where there is nothing to choose on; the last is persistence.
    """
    width, choices = len(choices[0]), tuple(one for one in choices if one.any())
    sets = [
        np.flatnonzero(~np.any([np.zeros(width, dtype=bool), *left_out], axis=0))
        for left_out in product(*((np.zeros(width, dtype=bool), one) for one in choices))
    ]
    persistence = (np.zeros(width), 0.0)
    if moments.rows < 2:
        return [persistence] * (len(sets) * len(RIDGES) + 1)
    found = []
    for columns in sets:
        for ridge in sorted(RIDGES, key=lambda one: one != RIDGES[1]):
            weights = np.zeros(width)
            _, weights[columns], constant = moments.solve(columns, ridge)
            found.append((weights, constant))
    return [*found, persistence]


def _residual_deviation(moments: Moments, weights: DoubleArray) -> float:
    """Standard deviation of what weights leave of the training rows; 1 if they leave nothing."""
    if not moments.rows:
        return 1.0
    signed, (covariance, _) = np.append(-weights, 1.0), moments.centred
    return float(max(signed @ covariance @ signed, 0.0)) ** 0.5 or 1.0


def _range_of(features: HorizonFeatures, horizon: int) -> tuple[DoubleArray, DoubleArray]:
    """Range of each regressor, of those that depend on the step over all steps."""
    low, high = np.full(features.width, np.inf), np.full(features.width, -np.inf)
    for x, _, _ in _rows_toward(features, horizon if features.width > features.fixed else 2):
        low, high = np.minimum(low, x.min(axis=0)), np.maximum(high, x.max(axis=0))
    nothing = low > high  # there was no row
    return np.where(nothing, 0, low), np.where(nothing, 0, high)


def _moments(features: HorizonFeatures, low: DoubleArray, high: DoubleArray, horizon: int) -> list[Moments]:
    """Sum up the training rows for each step of the horizon."""
    moments: list[Moments] = []
    for x, step, wanted in _rows_toward(features, horizon):
        within, known = x.clip(low, high), ~np.isnan(wanted)
        if len(moments) < step:
            moments.append(_about(within.mean(axis=0), features))
        moments[step - 1].add(within[known], wanted[known])
    blank = np.zeros(features.width)  # of no rows at all
    return moments or [_about(blank, features) for _ in range(horizon - 1)]


def _about(origin: DoubleArray, features: HorizonFeatures) -> Moments:
    """Moments of no rows yet; what may be rounding depends on the size of what a regressor is made of."""
    scaled, labels = 1e-9 * (1 + np.abs(origin)), 1e-12 * features.largest
    return Moments(origin, negligible=np.where(features.of_labels, labels, scaled))


def _errors(
    features: HorizonFeatures, low: DoubleArray, high: DoubleArray, candidates: list[Any]
) -> tuple[DoubleArray, IntArray]:
    """Squared error of each candidate at each step, (H - 1, C), and over how many rows."""
    sums, counts = np.zeros((len(candidates), len(candidates[0]))), np.zeros(len(candidates), np.int64)
    for x, step, wanted in _rows_toward(features, len(candidates) + 1):
        weights, constants = zip(*candidates[step - 1], strict=True)
        known = ~np.isnan(wanted)
        guesses = x.clip(low, high)[known] @ np.column_stack(weights) + np.array(constants)
        sums[step - 1] += np.square(wanted[known, None] - guesses).sum(axis=0)
        counts[step - 1] += known.sum()
    return sums, counts


def _best(sums: DoubleArray, counts: IntArray) -> IntArray:
    """Choose a candidate for each step: the best there, or up to there where that says little."""
    own = sums[:, :-1].argmin(axis=1)
    alone = np.maximum(sums[:, -1:], np.finfo(np.float64).tiny)  # what the last label alone leaves
    worth = counts / np.arange(2, len(counts) + 2)
    pooled = np.cumsum(sums / alone * worth[:, None], axis=0).argmin(axis=1)
    pooled[np.cumsum(counts) == 0] = sums.shape[1] - 1  # nothing to choose on: the last label alone
    return np.asarray(np.where(worth >= ENOUGH, own, pooled))


def _rows_toward(features: HorizonFeatures, horizon: int) -> Iterator[tuple[DoubleArray, int, DoubleArray]]:
    """Go through the latest rows: regressors (a buffer), step and wanted change, NaN where unknown."""
    for rows in features.chunks(features.latest()):
        regressors, wanted = features.regressors(rows), features.changes_ahead(rows, horizon)
        for step in range(1, horizon):
            yield features.toward(regressors, rows, step), step, wanted[:, step - 1]
