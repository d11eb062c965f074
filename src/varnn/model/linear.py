"""The linear part: a seasonal ridge ARX that the network starts from, and corrects.

With f_t the last label known before row t, and the changes d_t = f_t - f_t-1, the prediction of row t is ::

    linear_t = f_t + a f_t + b_1 d_t + b_2 d_t-1 + ... + c_0 x_t + c_1 x_t-1 + ... + constant
                   + for each season of p rows:  s_1 (g_t-p - g_t-p-1) + s_2 (g_t-p-1 - g_t-p-2)
                                               + s_3 (g_t-p+1 - g_t-p) + s_4 (g_t-p - f_t)

where g_t is the last label known up to row t: how the label changed a season ago, just before and just
after, and where it was then. Regressing the change y_t - f_t, and not the level, makes ridge shrink towards
persistence: on a stream near a random walk that is the safe side. For a stream that leaves the range it was
trained in, the term a f_t stays at what it is at the edge of that range: the pull back grows no further. An
input further outside the range it was seen in than half of that range is taken as just that far, for the same
reason. What it leaves, y_t - linear_t, is the network's target; f_t and the step linear_t - f_t are two more
inputs to it. Its regressors are those of the linear part that goes on learning, too
(`varnn.model.experts`).

How many labels, inputs and seasons to look back on, and how strong the ridge is, is chosen on validation rows
(`varnn.model._linear_fit`).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, DoubleArray, FloatArray, IntArray
from varnn.data.panel import Panel
from varnn.model.outliers import bounded

ADDED_INPUTS = ("last label", "linear step")
SEASONAL = 4  # regressors of a season
_THEN = 3  # which of them is the level then, less the last one
_AROUND = 3  # labels around a season ago, beside the first
_DIFFERENCES = np.array(  # of these four: how the label changed then, just before and just after
    [[0.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
)
_ROWS_AT_ONCE = 8192


class LinearRows(NamedTuple):
    """What the linear part knows of some rows: n of them, F regressors."""

    predictions: DoubleArray  # (n,)
    last: DoubleArray  # (n,): the last label before each
    residuals: DoubleArray  # (n,): labels less the predictions
    regressors: DoubleArray | None = None  # (n, F); None unless asked for
    doubt: DoubleArray | float = 0.0  # (n,): what to add to a prediction while the last label is in doubt

    def after(self, rows: int) -> "LinearRows":
        """Leave out the first rows."""
        regressors = None if self.regressors is None else self.regressors[rows:]
        return LinearRows(self.predictions[rows:], self.last[rows:], self.residuals[rows:], regressors)


@dataclass(frozen=True, kw_only=True)
class Form:
    """How far a linear part looks back: the columns of its regressors.

    Parameters
    ----------
    n_inputs : int
        Inputs of a row, D.
    changes : int
        Changes of the label, L.
    periods : tuple of int
        Seasons, in rows.
    input_lags : int
        Past rows of inputs: 0 is the row itself, -1 not even that.
    """

    n_inputs: int
    changes: int
    periods: tuple[int, ...]
    input_lags: int

    @property
    def width(self) -> int:
        """Number of regressors: level, changes, seasons, inputs now, and how past ones differ from them."""
        return 1 + self.changes + SEASONAL * len(self.periods) + self.n_inputs * (self.input_lags + 1)

    @property
    def reach(self) -> int:
        """How many rows before it a row looks at, if the first of them has the last label known."""
        return max(1 + self.changes, self.input_lags, *(one + SEASONAL for one in self.periods))

    def columns(self, smaller: "Form") -> IntArray:
        """Find the columns of a smaller form in this one."""
        seasons = 1 + self.changes
        inputs = seasons + SEASONAL * len(self.periods)
        listed = [np.arange(1 + smaller.changes)]
        for period in smaller.periods:
            first = seasons + SEASONAL * self.periods.index(period)
            listed.append(np.arange(first, first + SEASONAL))
        listed.append(np.arange(inputs, inputs + smaller.n_inputs * (smaller.input_lags + 1)))
        return np.concatenate(listed)

    def sizes(self, regressors: DoubleArray) -> DoubleArray:
        """How large the labels or inputs are that each regressor is made of: (n, F) -> (F,)."""
        inputs = 1 + self.changes + SEASONAL * len(self.periods)
        largest = np.abs(regressors).max(axis=0, initial=0.0)
        now = largest[inputs : inputs + self.n_inputs]
        return np.concatenate([np.full(inputs, largest[0]), np.tile(now, self.input_lags + 1)])

    def regressors(
        self, panel: Panel, labels: "Labels", rows: IntArray, low: float, high: float
    ) -> DoubleArray:
        """Gather the regressors of some rows, of labels that range from ``low`` to ``high``: (B, F)."""
        first = panel.first_rows[rows]
        found = np.zeros((len(rows), self.width))
        found[:, 0] = labels.last[rows].clip(low, high)
        for lag in range(self.changes):
            earlier = rows - lag
            found[:, 1 + lag] = np.where(earlier >= first, labels.change[np.maximum(earlier, 0)], 0)
        column = 1 + self.changes
        for period in self.periods:
            there = rows - first >= period + 2
            past = np.where(there, rows - period, 0)
            then, before, earlier = (labels.known[np.maximum(past - apart, 0)] for apart in (0, 1, 2))
            after = labels.known[np.where(there, past + 1, 0)]
            past_labels = (then - before, before - earlier, after - then, then - labels.last[rows])
            for offset, values in enumerate(past_labels):
                found[:, column + offset] = np.where(there, values, 0).clip(low - high, high - low)
            column += SEASONAL
        if self.input_lags >= 0 and self.n_inputs:
            now = panel.inputs[rows]
            found[:, column : column + self.n_inputs] = now
            for lag in range(1, self.input_lags + 1):
                begin = column + lag * self.n_inputs
                found[:, begin : begin + self.n_inputs] = panel.inputs[np.maximum(rows - lag, first)] - now
        return found


class Labels(NamedTuple):
    """Labels of a panel as its rows see them: (N,) each."""

    last: DoubleArray  # the last one known before the row
    change: DoubleArray  # of that, from the row before
    known: DoubleArray  # the last one known up to the row, with its own

    @classmethod
    def of(cls, panel: Panel, mean: float, largest: float = np.inf) -> "Labels":
        """Take a panel's, and changes up to a size; before a series' first label ``mean`` stands in."""
        last, change, _ = last_labels(panel, mean)
        return cls(last, change.clip(-largest, largest), np.where(np.isnan(panel.target), last, panel.target))


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
    largest_change : float, default=1e100
        Size of a change of the label that larger ones count as: a shift of the level is no trend.
    periods, of_seasons : array
        Seasons in rows, (P,), and the coefficients s of each: (P, 4).

    Examples
    --------
    >>> from varnn.model._linear_fit import fit_linear
    >>> walk = Panel.from_arrays(None, np.cumsum(np.random.default_rng(0).normal(size=500)))
    >>> part = fit_linear(walk, None)
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
    largest_change: float = 1e100
    periods: DoubleArray = field(default_factory=lambda: np.empty(0))
    of_seasons: DoubleArray = field(default_factory=lambda: np.empty((0, SEASONAL)))

    @cached_property
    def form(self) -> Form:
        """How far it looks back."""
        return Form(
            n_inputs=self.of_inputs.shape[1],
            changes=len(self.of_changes),
            periods=tuple(int(one) for one in self.periods),
            input_lags=len(self.of_inputs) - 1,
        )

    @cached_property
    def weights(self) -> DoubleArray:
        """Coefficients of the regressors of its form: (F,)."""
        of_inputs = self.of_inputs.copy()
        if len(of_inputs):  # the first are those of the inputs now, past ones being taken from them
            of_inputs[0] = self.of_inputs.sum(axis=0)
        parts = ([self.of_last], self.of_changes, self.of_seasons.ravel(), of_inputs.ravel())
        return np.concatenate([np.asarray(one, np.float64) for one in parts])

    @property
    def reach(self) -> int:
        """How many rows before it a row's prediction needs, if the first of them has the last label known."""
        return self.form.reach

    @property
    def season(self) -> int | None:
        """Column of the regressors with the level a season ago, less the last one; None without seasons."""
        return 1 + len(self.of_changes) + _THEN if len(self.periods) else None

    def within_bounds(self, panel: Panel) -> Panel:
        """Take inputs far outside the range they were seen in as not so far."""
        if self.input_low is None or not len(self.of_inputs):
            return panel
        return replace(panel, inputs=bounded(panel.inputs, self.input_low, self.input_high))

    def rows(self, panel: Panel, *, regressors: bool = False) -> LinearRows:
        """Predict every row, from labels before it and inputs up to it; give the regressors if asked for."""
        labels, seen = Labels.of(panel, self.mean, self.largest_change), self.within_bounds(panel)
        predictions = labels.last + self.constant
        kept = np.empty((len(panel), self.form.width)) if regressors else None
        for begin in range(0, len(panel), _ROWS_AT_ONCE):
            some = np.arange(begin, min(begin + _ROWS_AT_ONCE, len(panel)))
            found = self.form.regressors(seen, labels, some, self.low, self.high)
            predictions[some] += found @ self.weights
            if kept is not None:
                kept[some] = found
        return LinearRows(predictions, labels.last, panel.target - predictions, kept)

    def predict(self, panel: Panel) -> DoubleArray:
        """Predict every row, from labels before it and inputs up to it: (N,)."""
        return self.rows(panel).predictions

    def split(self, panel: Panel, *, regressors: bool = False) -> tuple[Panel, LinearRows]:
        """Leave the network what the linear part does not explain.

        Returns
        -------
        panel
            The target less the linear predictions, missing where that is larger than any change could be;
            and two more inputs: last label and step.
        rows
            What has to be added to a prediction of that target, and what it was made from.
        """
        rows = self.rows(panel, regressors=regressors)
        residual = replace(
            panel,
            inputs=np.column_stack([panel.inputs, rows.last, rows.predictions - rows.last]),
            target=within(rows.residuals, self.largest_change),
            input_names=(*panel.input_names, *ADDED_INPUTS),
        )
        return residual, rows


class LinearStream:
    """The linear part of n series in step, one row at a time; it predicts as :class:`LinearPart` does."""

    def __init__(self, part: LinearPart, n_series: int) -> None:
        self.part, form = part, part.form
        self.rows = 0  # observed so far
        self.last = np.full(n_series, part.mean)
        self.known = np.zeros(n_series, dtype=bool)  # whether ``last`` is a label yet
        self.change = np.zeros(n_series)  # of the label
        self.changes = np.zeros((n_series, form.changes))  # up to a size, the latest first
        self._later, self._earlier = self.changes[:, 1:], self.changes[:, :-1]
        self.regressors = np.zeros((n_series, form.width))  # of the row last asked for
        lags = max(form.input_lags, 0)
        self._past = np.zeros((n_series, lags, form.n_inputs))  # inputs, the latest first
        self._now = np.zeros((n_series, 1, form.n_inputs))
        self._bounded = self._now[:, 0]
        # The label of row t is kept at place t modulo the places, until a season later. The first ones stand
        # once more behind the last, so that those around a season ago are one slice.
        self._places = max((one + 2 for one in form.periods), default=0)
        self._ring = np.full((n_series, self._places + _AROUND * (self._places > 0)), part.mean)
        self._all_known = False
        # Parts of the regressors, as a row takes as long as the calls to NumPy it makes.
        inputs = 1 + form.changes + SEASONAL * len(form.periods)  # column at which they begin
        found = self.regressors
        self._level, self._trend = found[:, 0], found[:, 1 : 1 + form.changes]
        starts = range(1 + form.changes, inputs, SEASONAL)
        self._seasons = [
            (period, found[:, begin : begin + SEASONAL])
            for period, begin in zip(form.periods, starts, strict=True)
        ]
        self._sees_inputs = form.input_lags >= 0 and form.n_inputs > 0
        self._inputs, self._inputs_apart = self._bounded, found[:, :0]
        if self._sees_inputs:
            self._inputs = found[:, inputs : inputs + form.n_inputs]
            self._inputs_apart = found[:, inputs + form.n_inputs :].reshape(self._past.shape)
        self._bounds = None
        if part.input_low is not None and part.input_high is not None:
            self._bounds = part.input_low[None], part.input_high[None]
        # Arrays of no axes are quicker to compare with than numbers.
        self._low, self._high, self._constant = (
            np.array(one) for one in (part.low, part.high, part.constant)
        )
        self._span, self._down = np.array(part.high - part.low), np.array(part.low - part.high)
        self._largest, self._fall = np.array(part.largest_change), np.array(-part.largest_change)

    def predict(self, inputs: FloatArray) -> DoubleArray:
        """Predict the rows with these inputs (n, D): (n,); may be asked any number of times."""
        last, rows = self.last, self.rows
        np.minimum(np.maximum(last, self._low), self._high, out=self._level)
        self._trend[...] = self.changes
        for period, found in self._seasons:
            if rows >= period + 2:
                self._season(period, found)
        if self._sees_inputs:
            now = self._bounded
            if self._bounds is None:
                now[...] = inputs
            else:
                np.minimum(np.maximum(inputs, self._bounds[0]), self._bounds[1], out=now)
            self._inputs[...] = now
            if rows:  # before a series begins its first row stands in
                np.subtract(self._past, self._now, out=self._inputs_apart)
        return np.asarray(last + self._constant + self.regressors.dot(self.part.weights))

    def _season(self, period: int, found: DoubleArray) -> None:
        """Find the regressors of one season: (n, 4)."""
        first = (self.rows - period - 2) % self._places
        around = self._ring[:, first : first + _AROUND + 1]
        values = around.dot(_DIFFERENCES)
        values[:, _THEN] = around[:, 2] - self.last
        np.minimum(np.maximum(values, self._down), self._span, out=found)

    def observe(self, labels: FloatArray) -> None:
        """Take in the labels (n,) of the rows last asked for; NaN is missing."""
        missing = np.isnan(labels)
        if self._all_known and not np.count_nonzero(missing):  # nearly always
            self.change, self.last = labels - self.last, labels.copy()
        else:
            there = ~missing
            self.change = np.where(there & self.known, labels - self.last, 0)
            self.last = np.where(there, labels, self.last)
            self.known |= there
            self._all_known = bool(self.known.all())
        if self.changes.size:
            self._later[...] = self._earlier
            np.minimum(np.maximum(self.change, self._fall), self._largest, out=self.changes[:, 0])
        if self._past.size:
            if self.rows:
                if self._past.shape[1] > 1:
                    self._past[:, 1:] = self._past[:, :-1]
                self._past[:, :1] = self._now
            else:
                self._past[...] = self._now
        if self._places:
            place = self.rows % self._places
            self._ring[:, place] = self.last
            if place < _AROUND:
                self._ring[:, place + self._places] = self.last
        self.rows += 1

    def state(self) -> DoubleArray:
        """All that later linear predictions depend on: (n, any); rows observed and knowing come first."""
        n_series = len(self.last)
        return np.column_stack(
            [
                np.full(n_series, float(self.rows)),
                self.known,
                self.last,
                self.change,
                self.changes,
                self._past.reshape(n_series, -1),
                self._ring[:, : self._places],
            ]
        )

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        n_series = len(self.last)
        ends = np.cumsum([1, 1, 1, 1, self.changes.shape[1], self._past[0].size])
        rows, known, last, change, changes, past, labels = np.split(state, ends, axis=1)
        self.rows, self.known, self.last = int(rows[0, 0]), known[:, 0].astype(bool), last[:, 0].copy()
        self.change, self.changes[...] = change[:, 0].copy(), changes
        self._past[...] = past.reshape(n_series, *self._past.shape[1:])
        self._ring[:, : self._places], self._ring[:, self._places :] = labels, labels[:, :_AROUND]
        self._all_known = bool(self.known.all())
        self.regressors[...] = 0  # those that are not there yet: it may have gone farther before


def within(residuals: DoubleArray, largest: float) -> DoubleArray:
    """What the network is told of residuals: those larger than any change could be are missing.

    Where none is, these are the residuals themselves, and no copy.
    """
    fine = np.abs(residuals) <= largest
    return residuals if np.count_nonzero(fine) == fine.size else np.where(fine, residuals, np.nan)


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
