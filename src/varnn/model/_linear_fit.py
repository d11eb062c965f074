"""Training and validation rows -> the linear part: its form and its coefficients.

All candidates share one matrix of moments of the training rows and one of the validation rows, so that
a candidate costs one small solve, whatever the number of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, DoubleArray
from varnn.data.chunks import chunks
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.model._ridge import Moments
from varnn.model.linear import Form, LinearPart
from varnn.model.rows import run_panel
from varnn.model.runtime import linear_model
from varnn.model.seasons import LONGEST, offered_periods
from varnn.step.linear import SEASONAL

LABEL_LAGS = (4, 24)  # changes of the label looked back on
INPUT_LAGS = (-1, 0, 1, 4)  # past rows of inputs looked back on: 0 is x_t alone, -1 not even that
RIDGES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # penalty a training row, for regressors of unit variance
DEFAULT = (24, 0, 1e-3)  # where there are no rows to choose on: changes, input lags, ridge
ENOUGH = 500  # validation rows to choose a form by; with fewer, one that is better by less than
CHANCE = 0.1  # this share, times how many are lacking, is not preferred to a simpler one
MOST_REGRESSORS = 512  # candidates with more are left out: they take long and overfit
BEYOND = 0.5  # of the range it was seen in, either way: how far outside an input is still taken as it is
_SEASONED = 0.5  # of the rows must have a season behind them, for seasons to be chosen on the rest


def fit_linear(training: Panel, validation: Panel | None, *, of_clock: Sequence[str] = ()) -> LinearPart:
    """Fit every candidate on training rows and keep the best on validation rows.

    Parameters
    ----------
    training, validation : Panel, Panel or None
        Panels with no missing inputs; labels may be missing. Without validation rows the default
        candidate is taken.
    of_clock : sequence of str, default=()
        Inputs that follow from the time of a row: their past ones are not looked back on.
    """
    layout = _Layout.of(training, of_clock)
    later = None
    if validation is not None:
        rows = _Rows.of(validation, after=training)
        seasons = (
            one for one in offered_periods(training) if _Rows.of(training).within(one) and rows.within(one)
        )
        layout = layout.with_periods(tuple(seasons))
        later = _moments(rows, layout)
    moments = _moments(_Rows.of(training), layout)
    forms, ridges = [layout.form(*DEFAULT[:2], periods=())], [DEFAULT[2]]
    if later is not None and later.rows > 0:
        # The simplest first: few seasons and inputs, few labels, a strong ridge.
        forms = [
            layout.form(labels, inputs, periods)
            for periods, inputs, labels in product(layout.seasons, layout.input_lags, LABEL_LAGS)
        ]
        ridges = list(reversed(RIDGES))
    largest = layout.largest
    parts = [moments.solve_each(largest.columns(form), ridges) for form in forms]
    best = 0
    if later is not None and len(forms) > 1:
        errors = np.array([later.errors(each) for each in parts]).ravel()
        # Of a few rows the best is best by chance: the simplest that is nearly as good is safer, as it
        # does not carry inputs beyond the range it has seen them in.
        slack = CHANCE * max(0.0, 1 - later.rows / ENOUGH)
        best = int(np.flatnonzero(errors <= errors.min() * (1 + slack))[0]) if slack else int(errors.argmin())
    seen = [training] if validation is None else [training, validation]
    form, ridge = forms[best // len(ridges)], ridges[best % len(ridges)]
    _, weights, constant = parts[best // len(ridges)][best % len(ridges)]
    return _with_bounds(replace(layout.part(form, weights, constant), ridge=ridge), *seen)


def linear_predictions(part: LinearPart, panel: Panel) -> DoubleArray:
    """Predict every row by a linear part, from labels before it and inputs up to it: (N,)."""
    predictions = np.empty(len(panel))
    for rows, taps in run_panel(linear_model(part), panel):
        predictions[rows] = taps.prediction[:, 0]
    return predictions


def refit_linear(part: LinearPart, training: Panel, *, of_clock: Sequence[str] = ()) -> LinearPart:
    """Fit the same form to other rows."""
    layout = _Layout.of(training, of_clock).with_periods(part.form.periods)
    _, weights, constant = _moments(_Rows.of(training), layout).solve(
        layout.largest.columns(part.form), part.ridge
    )
    return _with_bounds(replace(layout.part(part.form, weights, constant), ridge=part.ridge), training)


def _with_bounds(part: LinearPart, *panels: Panel) -> LinearPart:
    """Bound the inputs so that no row of these panels is touched."""
    rows = [one.inputs for one in panels if len(one)]
    low = np.min([np.minimum.reduce(one) for one in rows], axis=0).astype(np.float64)
    high = np.max([np.maximum.reduce(one) for one in rows], axis=0).astype(np.float64)
    beyond = BEYOND * (high - low)
    return replace(part, input_low=low - beyond, input_high=high + beyond)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Layout:
    """The columns of the largest candidate, and what is known of the training labels and inputs."""

    n_inputs: int
    mean: float  # of the target, as its range
    low: float
    high: float
    input_means: DoubleArray
    by_clock: BoolArray  # (D,): inputs that follow from the time of a row
    input_lags: tuple[int, ...]
    periods: tuple[int, ...] = ()

    @classmethod
    def of(cls, training: Panel, of_clock: Sequence[str] = ()) -> "_Layout":
        size = training.n_inputs
        parts = [one.panel for one in chunks(training)]
        known = sum(int(np.count_nonzero(~np.isnan(one.target))) for one in parts)
        lags = tuple(lag for lag in INPUT_LAGS if size * (lag + 1) + max(LABEL_LAGS) < MOST_REGRESSORS)
        return cls(
            n_inputs=size,
            mean=float(sum(np.nansum(one.target) for one in parts)) / known,
            low=float(np.fmin.reduce(training.target)),
            high=float(np.fmax.reduce(training.target)),
            input_means=training.inputs.mean(axis=0, dtype=np.float64),
            by_clock=np.isin(np.array(training.input_names, dtype=object), np.array(of_clock, dtype=object)),
            input_lags=lags if size else (-1,),
        )

    def with_periods(self, periods: tuple[int, ...]) -> "_Layout":
        return replace(self, periods=periods)

    @property
    def seasons(self) -> list[tuple[int, ...]]:
        """Every choice of seasons, the fewest first."""
        every = (combinations(self.periods, count) for count in range(len(self.periods) + 1))
        return list(chain.from_iterable(every))

    def form(self, changes: int, input_lags: int, periods: tuple[int, ...]) -> Form:
        """Describe a candidate."""
        lags = min(input_lags, max(self.input_lags))
        return Form(n_inputs=self.n_inputs, changes=changes, periods=periods, input_lags=lags)

    @property
    def largest(self) -> Form:
        """The candidate that holds all others."""
        return self.form(max(LABEL_LAGS), max(self.input_lags), self.periods)

    def moments(self) -> Moments:
        """Moments of no rows yet.

        Levels are taken from their means, so that moments are exact in double precision; a deviation that
        may be rounding, from the size of what a column is made of, is none. Nor is one of what the clock
        said in past rows: at even steps it is what it says now, turned, so that nothing but the few rows
        after a gap would tell their coefficients, and what these are at another gap is anybody's guess.
        """
        form = self.largest
        labels = 1 + form.changes + SEASONAL * len(form.periods)
        origin, size = np.zeros(form.width), np.full(form.width, abs(self.mean))
        origin[0] = self.mean
        if form.width > labels:
            origin[labels : labels + self.n_inputs] = self.input_means
            size[labels:] = np.tile(np.abs(self.input_means), form.input_lags + 1)
        negligible = 1e-12 * size
        negligible[labels + self.n_inputs :][np.tile(self.by_clock, max(form.input_lags, 0))] = np.inf
        return Moments(origin, negligible)

    def part(self, form: Form, weights: DoubleArray, constant: float) -> LinearPart:
        """Make a linear part of a solution: coefficients of past inputs as they come, not of differences."""
        labels = 1 + form.changes
        inputs = labels + SEASONAL * len(form.periods)
        of_inputs = weights[inputs:].reshape(form.input_lags + 1, self.n_inputs).copy()
        if len(of_inputs):
            of_inputs[0] -= of_inputs[1:].sum(axis=0)
        return LinearPart(
            mean=self.mean,
            low=self.low,
            high=self.high,
            constant=constant,
            of_last=float(weights[0]),
            of_changes=weights[1:labels].copy(),
            of_inputs=of_inputs,
            periods=np.array(form.periods, np.float64),
            of_seasons=weights[labels:inputs].reshape(-1, SEASONAL).copy(),
        )


class _Rows(NamedTuple):
    """Rows to sum up, with those before them that they look back on."""

    panel: Panel
    own: BoolArray  # (N,): which are to be summed up

    @classmethod
    def of(cls, panel: Panel, after: Panel | None = None) -> "_Rows":
        if after is None:
            return cls(panel, np.ones(len(panel), dtype=bool))
        return cls(*preceded(panel, after, LONGEST + SEASONAL))

    def within(self, period: int) -> bool:
        """Whether most rows have a season behind them."""
        behind = np.arange(len(self.panel)) - self.panel.first_rows
        return bool(np.mean(behind[self.own] >= period + 2) >= _SEASONED)


def _moments(rows: _Rows, layout: _Layout) -> Moments:
    """Sum up the rows with a label and a whole season behind them; others where there are none such."""
    for begun in dict.fromkeys((max((one + 2 for one in layout.periods), default=1), 1, 0)):
        found = _moments_of(rows, layout, begun=begun)
        if found.rows:
            break
    return found


def _moments_of(rows: _Rows, layout: _Layout, *, begun: int) -> Moments:
    """Sum up rows with a label; the first ``begun`` of a series have no past to learn from."""
    moments, form, panel = layout.moments(), layout.largest, rows.panel
    persistence = layout.part(form, np.zeros(form.width), 0.0)  # whose regressors are those of the candidates
    learned = panel.counted & rows.own & (np.arange(len(panel)) - panel.first_rows >= begun)
    for some, taps in run_panel(linear_model(persistence), panel, wanted=("regressors",)):
        here = learned[some]
        change = panel.target[some][here] - taps.prediction[here, 0]
        weights = None if panel.weights is None else panel.weights[some][here]
        moments.add(taps.regressors[here], change, weights)
    return moments
