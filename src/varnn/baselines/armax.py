"""Regression on the inputs with ARMA errors: the statistician's answer to a stream.

    y_t = x_t b + c + r_t        r_t = a_1 r_{t-1} + ... + e_t + m_1 e_{t-1} + ...

The full likelihood with many inputs takes minutes, fails on inputs that repeat each other, and knows
one series only. Here statsmodels fits the ARMA part to the residuals of the regression, and the
regression is solved again by least squares on rows whitened by that ARMA part (feasible generalised
least squares), in turn. All series share one model, so it also predicts series it has not seen.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.baselines._history import History, Preparation, fitted
from varnn.data.panel import Panel
from varnn.errors import ConfigError, require

PASSES = 3  # rounds of ARMA and regression; two more move the terms by less than 0.005
SHORTEST = 200  # rows of a series that tell enough about its dynamics
_SARIMAX = "statsmodels.tsa.statespace.sarimax"
GAP = 50  # missing rows between two series: what the filter remembers of the first fades out


@dataclass(kw_only=True, eq=False)
class RegressionARMA:
    """Regression with ARMA errors, by feasible generalised least squares.

    Parameters
    ----------
    order : (int, int), default (2, 1)
        Number of autoregressive and of moving-average terms.
    rows : int, default 20_000
        Training rows at most that the ARMA part is fitted on: the last ones of each series. The
        regression uses all rows.

    Attributes
    ----------
    coefficients_ : array of shape (D + 1,)
        Of the scaled inputs and, last, the constant.
    arma_ : array
        The autoregressive terms, then the moving-average terms.

    References
    ----------
    D. Cochrane and G. H. Orcutt, "Application of least squares regression to relationships containing
    auto-correlated error terms", Journal of the American Statistical Association 44 (1949), 32-61.

    G. E. P. Box and G. M. Jenkins, Time Series Analysis: Forecasting and Control, Holden-Day (1970).

    Examples
    --------
    >>> level = np.cumsum(np.random.default_rng(0).normal(size=300))
    >>> panel = Panel.from_arrays(None, level)
    >>> model = RegressionARMA(order=(1, 0)).fit(panel)
    >>> bool(model.arma_[0] > 0.9)
    True
    """

    order: tuple[int, int] = (2, 1)
    rows: int = 20_000
    preparation_: Preparation | None = field(default=None, init=False, repr=False)
    coefficients_: DoubleArray = field(init=False, repr=False)
    arma_: DoubleArray = field(init=False, repr=False)

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "RegressionARMA":
        """Fit both parts in turn; there is nothing for validation to decide."""
        if min(self.order) < 0 or max(self.order) < 1:
            raise ConfigError(f"order must be two counts, such as (2, 1), not both 0; got {self.order}.")
        if self.rows < SHORTEST:
            raise ConfigError(f"rows must be at least {SHORTEST}; got {self.rows}.")
        preparation = Preparation.of(panel, np.float64)
        history = preparation(panel)
        design, labels = _design(history), history.panel.target
        known = ~np.isnan(labels)
        self.coefficients_ = _least_squares(design[known], labels[known])
        self.arma_ = self._fitted_arma(history)
        for _ in range(PASSES):
            self.coefficients_ = self._generalised_least_squares(history, design)
            self.arma_ = self._fitted_arma(history)
        self.preparation_ = preparation
        return self

    def check_packages(self) -> None:
        """Say that statsmodels is needed, where it is not installed."""
        require(_SARIMAX, extra="baselines", purpose="the baseline 'armax'")

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead; a missing label is filtered as missing."""
        preparation = fitted(self.preparation_, self)
        history = preparation(panel)
        explained = _design(history) @ self.coefficients_
        residuals = history.panel.target - explained
        predictions = explained
        for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
            filtered = self._model(residuals[first:last]).filter([*self.arma_, 1.0])
            predictions[first:last] += filtered.filter_results.forecasts[0]
        return preparation.restore(predictions)

    def _fitted_arma(self, history: History) -> DoubleArray:
        """Fit the ARMA part to the last residuals of each series, by maximum likelihood."""
        panel = history.panel
        residuals = panel.target - _design(history) @ self.coefficients_
        share = max(self.rows // panel.n_series, SHORTEST)
        gap = np.full(GAP, np.nan)
        pieces = []
        for first, last in list(zip(panel.starts[:-1], panel.starts[1:], strict=True))[: self.rows // share]:
            pieces += [residuals[max(first, last - share) : last], gap]
        joined = np.concatenate(pieces[:-1])
        spread = np.nanstd(joined) if (~np.isnan(joined)).any() else 0.0
        if not spread > np.finfo(np.float32).eps:
            return np.zeros(sum(self.order))  # the inputs explain everything
        model = self._model(joined / spread, concentrate_scale=True)
        with warnings.catch_warnings():
            # statsmodels warns of the starting values it finds, which matter little, and of stopping
            # before full convergence, after which the parameters are still good ones.
            warnings.simplefilter("ignore")
            return np.asarray(model.fit(disp=0, cov_type="none").params)

    def _generalised_least_squares(self, history: History, design: DoubleArray) -> DoubleArray:
        """Solve the regression on rows whitened by the ARMA part, stretch by stretch of known labels."""
        forget = np.concatenate([[1.0], -self.arma_[: self.order[0]]])
        recall = np.concatenate([[1.0], self.arma_[self.order[0] :]])
        settling = max(self.order)  # the first rows of a stretch lack the past that whitens them
        both = np.column_stack([design, history.panel.target])
        from scipy.signal import lfilter  # late, as it takes a while; statsmodels brings it

        whitened = [
            lfilter(forget, recall, both[stretch], axis=0)[settling:]
            for stretch in _stretches(history.panel)
            if stretch.stop - stretch.start > settling
        ]
        if not whitened:
            return self.coefficients_
        rows = np.concatenate(whitened)
        return _least_squares(rows[:, :-1], rows[:, -1])

    def _model(self, residuals: FloatArray, **options: Any) -> Any:
        statespace = require(_SARIMAX, extra="baselines", purpose="the baseline 'armax'")
        return statespace.SARIMAX(residuals, order=(self.order[0], 0, self.order[1]), **options)


def _design(history: History) -> DoubleArray:
    """Scaled inputs and a constant, (N, D + 1)."""
    return np.column_stack([history.panel.inputs, np.ones(len(history.panel))])


def _least_squares(design: DoubleArray, labels: FloatArray) -> DoubleArray:
    return np.asarray(np.linalg.lstsq(design, labels, rcond=None)[0])


def _stretches(panel: Panel) -> Iterator[slice]:
    """List runs of rows of one series whose labels are all known."""
    known = ~np.isnan(panel.target)
    begins = known.copy()
    begins[1:] &= ~known[:-1]
    begins[panel.starts[:-1]] = known[panel.starts[:-1]]
    ends = np.append(begins[1:] | ~known[1:], True) & known
    for first, last in zip(np.flatnonzero(begins), np.flatnonzero(ends), strict=True):
        yield slice(int(first), int(last) + 1)
