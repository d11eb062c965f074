"""The linear part as fitted: a seasonal ridge ARX that the network starts from, and corrects.

`varnn.step.linear` has its equation. What it leaves, y_t - linear_t, is the network's target; the last label
and the step from it to the linear prediction are two more inputs of the network. Its regressors are those of
the linear part that keeps adapting, too (`varnn.model.experts`). How many labels, inputs and seasons to look
back on, and how strong the ridge is, is chosen on validation rows (`varnn.model._linear_fit`).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.data.panel import Panel
from varnn.step.linear import SEASONAL, THEN

ADDED_INPUTS = ("last label", "linear step")


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
    >>> from varnn.model._linear_fit import fit_linear, linear_predictions
    >>> walk = Panel.from_arrays(None, np.cumsum(np.random.default_rng(0).normal(size=500)))
    >>> part = fit_linear(walk, None)
    >>> predictions = linear_predictions(part, walk)
    >>> bool(np.abs(predictions[1:] - walk.target[:-1]).mean() < 0.4)    # close to persistence
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
        return 1 + len(self.of_changes) + THEN if len(self.periods) else None


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
