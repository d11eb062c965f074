"""The linear part: a ridge ARX that the network starts from, and corrects.

With f_t the last label known before row t, and the changes d_t = f_t - f_t-1, the prediction of row t is ::

    linear_t = f_t + a f_t + b_1 d_t + b_2 d_t-1 + ... + c_0 x_t + c_1 x_t-1 + ... + constant

Regressing the change y_t - f_t, and not the level, makes ridge shrink towards persistence: on a stream
near a random walk that is the safe side. For a stream that leaves the range it was trained in, the term
a f_t stays at what it is at the edge of that range: the pull back grows no further. An input further
outside the range it was seen in than half of that range is taken as just that far, for the same reason.
What it leaves, y_t - linear_t, is the network's target; f_t and the step linear_t - f_t are two
more inputs to it.

How many labels and inputs to look back on, and how strong the ridge is, is chosen on validation rows.
All candidates share one matrix of moments of the training rows and one of the validation rows, so that
a candidate costs one small solve, whatever the number of rows.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from varnn._types import BoolArray, DoubleArray, FloatArray, IntArray
from varnn.data.chunks import carried_chunks, chunks
from varnn.data.panel import Panel
from varnn.model._ridge import Moments
from varnn.model.outliers import bounded

LABEL_LAGS = (4, 24)  # changes of the label looked back on
INPUT_LAGS = (-1, 0, 1, 4)  # past rows of inputs looked back on: 0 is x_t alone, -1 not even that
RIDGES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # penalty a training row, for regressors of unit variance
DEFAULT = (24, 0, 1e-3)  # where there are no rows to choose on
ENOUGH = 500  # validation rows to choose a form by; with fewer, one that is better by less than
CHANCE = 0.1  # this share, times how many are lacking, is not preferred to a simpler one
MOST_REGRESSORS = 512  # candidates with more are left out: they take long and overfit
BEYOND = 0.5  # of the range it was seen in, either way: how far outside an input is still taken as it is
ADDED_INPUTS = ("last label", "linear step")
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearPart:
    """A fitted linear part, in the units of its panel.

    Parameters
    ----------
    mean, low, high : float
        Mean and range of the training labels; the mean stands in for f before a series' first label.
    constant, of_last : float
        The constant, and the coefficient a of the last label.
    of_changes : array
        Coefficients b of the last changes of the label, the latest first: (L,).
    of_inputs : array
        Coefficients c of the inputs now, one row ago, ...: (lags + 1, D), without rows if inputs are unseen.
    ridge : float, default=0.0
        The penalty it was fitted with.
    input_low, input_high : array or None, default=None
        Bounds of the inputs: (D,); None in files from before there were any.

    Examples
    --------
    >>> walk = Panel.from_arrays(None, np.cumsum(np.random.default_rng(0).normal(size=500)))
    >>> part = LinearPart.fit(walk, None)
    >>> bool(np.abs(part.predict(walk)[1:] - walk.target[:-1]).mean() < 0.4)    # close to persistence
    True
    """

    mean: float
    low: float
    high: float
    constant: float
    of_last: float
    of_changes: DoubleArray
    of_inputs: DoubleArray
    ridge: float = 0.0
    input_low: DoubleArray | None = None
    input_high: DoubleArray | None = None

    @classmethod
    def fit(cls, training: Panel, validation: Panel | None) -> "LinearPart":
        """Fit every candidate on training rows and keep the best on validation rows.

        Parameters
        ----------
        training, validation : Panel, Panel or None
            Panels with no missing inputs; labels may be missing. Without validation rows the default
            candidate is taken.
        """
        layout = _Layout.of(training)
        moments = _moments(training, layout)
        later = None if validation is None else _moments(validation, layout)
        forms = [DEFAULT]
        if later is not None and later.rows > 0:
            # The simplest first: few inputs, few labels, a strong ridge.
            forms = [
                (labels, inputs, ridge)
                for inputs, labels, ridge in product(layout.input_lags, LABEL_LAGS, reversed(RIDGES))
            ]
        parts = [moments.solve(layout.columns(labels, inputs), ridge) for labels, inputs, ridge in forms]
        best = 0
        if later is not None and len(parts) > 1:
            errors = np.array([later.error(*one) for one in parts])
            # Of a few rows the best is best by chance: the simplest that is nearly as good is safer, as it
            # does not carry inputs beyond the range it has seen them in.
            slack = CHANCE * max(0.0, 1 - later.rows / ENOUGH)
            best = (
                int(np.flatnonzero(errors <= errors.min() * (1 + slack))[0])
                if slack
                else int(errors.argmin())
            )
        seen = [training] if validation is None else [training, validation]
        found = replace(layout.fold(*parts[best]), ridge=forms[best][2])
        return found._with_bounds(*seen)

    def refitted(self, training: Panel) -> "LinearPart":
        """Fit the same form to other rows."""
        layout = _Layout.of(training)
        columns = layout.columns(len(self.of_changes), len(self.of_inputs) - 1)
        found = layout.fold(*_moments(training, layout).solve(columns, self.ridge))
        return replace(found, ridge=self.ridge)._with_bounds(training)

    def _with_bounds(self, *panels: Panel) -> "LinearPart":
        """Bound the inputs so that no row of these panels is touched."""
        rows = [one.inputs for one in panels if len(one)]
        low = np.min([np.minimum.reduce(one) for one in rows], axis=0).astype(np.float64)
        high = np.max([np.maximum.reduce(one) for one in rows], axis=0).astype(np.float64)
        beyond = BEYOND * (high - low)
        return replace(self, input_low=low - beyond, input_high=high + beyond)

    @property
    def reach(self) -> int:
        """How many rows before it a row's prediction needs, if the first of them has the last label known."""
        return max(1 + len(self.of_changes), len(self.of_inputs) - 1)

    def predict(self, panel: Panel) -> DoubleArray:
        """Predict every row, from labels before it and inputs up to it: (N,)."""
        last, change, _ = last_labels(panel, self.mean)
        linear_predictions = last + self.of_last * last.clip(self.low, self.high) + self.constant
        rows = np.arange(len(panel))
        for lag, weight in enumerate(self.of_changes):
            earlier = rows - lag
            linear_predictions += (
                np.where(earlier >= panel.first_rows, change[np.maximum(earlier, 0)], 0) * weight
            )
        projected = bounded(panel.inputs, self.input_low, self.input_high) @ self.of_inputs.T
        for lag, column in enumerate(projected.T):
            linear_predictions += column[np.maximum(rows - lag, panel.first_rows)]
        return np.asarray(linear_predictions)

    def split(self, panel: Panel) -> tuple[Panel, DoubleArray]:
        """Leave the network what the linear part does not explain.

        Returns
        -------
        panel
            The target less the linear predictions, and two more inputs: last label and step.
        linear_predictions
            What has to be added to a prediction of that target.
        """
        linear_predictions = self.predict(panel)
        last, _, _ = last_labels(panel, self.mean)
        residual = replace(
            panel,
            inputs=np.column_stack([panel.inputs, last, linear_predictions - last]),
            target=panel.target - linear_predictions,
            input_names=(*panel.input_names, *ADDED_INPUTS),
        )
        return residual, linear_predictions


class LinearStream:
    """The linear part of n series in step, one row at a time: the linear predictions of :class:`LinearPart`.

    What past rows add to coming linear predictions is kept summed up (``ahead``, the next row's first), so
    that a step costs the same however far the linear part looks back.
    """

    def __init__(self, part: LinearPart, n_series: int) -> None:
        self.part = part
        lags = max(len(part.of_changes), len(part.of_inputs) - 1)
        self.last = np.full(n_series, part.mean)
        self.known = np.zeros(n_series, dtype=bool)  # whether ``last`` is a label yet
        self.change = np.zeros(n_series)
        self.ahead = np.zeros((n_series, lags + 1))
        self.started = False
        self._changes = np.zeros(lags)
        self._changes[: len(part.of_changes)] = part.of_changes
        self._projected = np.zeros((n_series, len(part.of_inputs)))
        self._of_inputs = np.ascontiguousarray(part.of_inputs.T)

    def predict(self, inputs: FloatArray) -> DoubleArray:
        """Predict the rows with these inputs (n, D): (n,); may be asked any number of times."""
        part, last = self.part, self.last
        prediction = last + part.of_last * last.clip(part.low, part.high) + part.constant + self.ahead[:, 0]
        if len(part.of_inputs):
            np.dot(bounded(inputs, part.input_low, part.input_high), self._of_inputs, out=self._projected)
            # Before a series begins its first row stands in for the inputs.
            prediction += self._projected[:, 0] if self.started else self._projected.sum(axis=1)
        return np.asarray(prediction)

    def observe(self, labels: FloatArray) -> None:
        """Take in the labels (n,) of the rows last asked for; NaN is missing."""
        part, ahead, there = self.part, self.ahead, ~np.isnan(labels)
        self.change = np.where(there & self.known, labels - self.last, 0)
        ahead[:, :-1] = ahead[:, 1:]
        ahead[:, -1] = 0
        ahead[:, :-1] += self.change[:, None] * self._changes
        lags = len(part.of_inputs) - 1
        if lags > 0:
            ahead[:, :lags] += self._projected[:, 1:]
            if not self.started:  # the first row also stands in for those before it
                later = self._projected[:, :0:-1].cumsum(axis=1)[:, ::-1]  # sums over lags above 0, 1, ..
                ahead[:, : lags - 1] += later[:, 1:]
        self.started = True
        self.last = np.where(there, labels, self.last)
        self.known |= there

    def state(self) -> DoubleArray:
        """All that later linear predictions depend on: (n, 4 + lags)."""
        started = np.full(len(self.last), float(self.started))
        return np.column_stack([started, self.known, self.last, self.change, self.ahead])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        self.started = bool(state[0, 0])
        self.known = state[:, 1].astype(bool)
        self.last, self.change = state[:, 2].copy(), state[:, 3].copy()
        self.ahead[...] = state[:, 4:]


@dataclass(frozen=True, eq=False)
class _Layout:
    """The columns of the largest candidate: f, changes, inputs, and how past inputs differ from them.

    Level columns are taken as differences from their mean, so that moments are exact in double precision.
    """

    n_inputs: int
    mean: float  # of the target, as its range
    low: float
    high: float
    input_means: DoubleArray
    input_lags: tuple[int, ...]

    @classmethod
    def of(cls, training: Panel) -> "_Layout":
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
            input_lags=lags if size else (-1,),
        )

    @property
    def negligible(self) -> DoubleArray:
        """Deviation of each column that may be rounding, from the size of what it is made of."""
        labels = np.full(1 + max(LABEL_LAGS), abs(self.mean))
        inputs = np.tile(np.abs(self.input_means), max(self.input_lags) + 1)
        return 1e-12 * np.concatenate([labels, inputs])

    def columns(self, labels: int, inputs: int) -> IntArray:
        """List a candidate's columns."""
        first = 1 + max(LABEL_LAGS)
        n_inputs = self.n_inputs * (min(inputs, max(self.input_lags)) + 1)
        return np.concatenate([np.arange(1 + labels), np.arange(first, first + n_inputs)])

    def regressors(self, panel: Panel, last: DoubleArray, change: DoubleArray, rows: IntArray) -> DoubleArray:
        """Gather the columns of some rows: (B, F)."""
        first = panel.first_rows[rows]
        columns = [last[rows].clip(self.low, self.high) - self.mean]
        for lag in range(max(LABEL_LAGS)):
            columns.append(np.where(rows - lag >= first, change[np.maximum(rows - lag, 0)], 0))
        if max(self.input_lags) >= 0:
            now = panel.inputs[rows].astype(np.float64)
            columns.extend((now - self.input_means).T)
            for lag in range(1, max(self.input_lags) + 1):
                columns.extend((panel.inputs[np.maximum(rows - lag, first)] - now).T)
        return np.column_stack(columns)

    def fold(self, columns: IntArray, weights: DoubleArray, constant: float) -> LinearPart:
        """Undo differences and means: coefficients of labels and inputs as they come."""
        first = 1 + max(LABEL_LAGS)
        every = np.zeros(first + self.n_inputs * (max(self.input_lags) + 1))
        every[columns] = weights
        seen = int(columns[-1]) + 1 - first  # columns of inputs in use, without gaps
        of_inputs = every[first : first + max(seen, 0)].reshape(-1, self.n_inputs or 1)
        of_inputs = of_inputs.reshape(len(of_inputs) if self.n_inputs else 0, self.n_inputs)
        if len(of_inputs):
            constant -= float(of_inputs[0] @ self.input_means)
            of_inputs[0] -= of_inputs[1:].sum(axis=0)
        return LinearPart(
            mean=self.mean,
            low=self.low,
            high=self.high,
            constant=constant - float(every[0]) * self.mean,
            of_last=float(every[0]),
            of_changes=every[1:first][: np.count_nonzero(columns < first) - 1],
            of_inputs=of_inputs,
        )


def _moments(panel: Panel, layout: _Layout) -> Moments:
    """Sum up the rows with a label; the first row of a series only where there are no others."""
    found = _moments_of(panel, layout, first_rows=False)
    return found if found.rows else _moments_of(panel, layout, first_rows=True)  # they will have to do


def _moments_of(panel: Panel, layout: _Layout, *, first_rows: bool) -> Moments:
    """Sum up rows with a label; first rows of a series have no past to learn from, and may be left out."""
    moments = Moments(np.zeros(len(layout.negligible)), layout.negligible)
    for one in carried_chunks(panel, context=max(1 + max(LABEL_LAGS), *layout.input_lags)):
        here = one.panel
        last, change, _ = last_labels(here, layout.mean)
        learnt = ~np.isnan(here.target)
        learnt[: one.context] = False
        if not first_rows:
            learnt[here.starts[:-1]] = False
        rows = np.flatnonzero(learnt)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[begin : begin + _ROWS_AT_ONCE]
            moments.add(layout.regressors(here, last, change, some), here.target[some] - last[some])
    return moments


def last_labels(panel: Panel, mean: float) -> tuple[DoubleArray, DoubleArray, BoolArray]:
    """Last label known before each row, how it changed, and whether there is one: (N,) each.

    Before a series' first label ``mean`` stands in.

    Examples
    --------
    >>> last, change, known = last_labels(Panel.from_arrays(None, [1.0, 3.0, None, 4.0]), mean=2.0)
    >>> last.tolist(), change.tolist(), known.tolist()
    ([2.0, 1.0, 3.0, 3.0], [0.0, 0.0, 2.0, 0.0], [False, True, True, True])
    """
    rows, first = np.arange(len(panel)), panel.first_rows
    latest = np.maximum.accumulate(np.where(np.isnan(panel.target), -1, rows))
    latest = np.concatenate([[-1], latest[:-1]])  # known before the row, not at it
    known = latest >= first
    last = np.where(known, panel.target[np.maximum(latest, 0)], mean).astype(np.float64)
    both = known & np.concatenate([[False], known[:-1]]) & (rows > first)
    change = np.where(both, np.diff(last, prepend=0.0), 0.0)
    return last, change, known
