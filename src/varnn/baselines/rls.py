"""Recursive least squares on the ARX regressors: a linear model that goes on learning.

With a forgetting factor below 1 old rows fade, and in directions no recent row excites the
covariance would grow without bound until one odd row throws the coefficients away. Two rows are
therefore learned per step: the real one, and a made-up one that restates one coefficient of the
trained model, each in turn, with just the weight that forgetting took from the ridge. So the
covariance never exceeds 1 / ridge by much, and what the rows no longer say drifts back to what
the training rows said.
"""

from dataclasses import dataclass, field

import numpy as np

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.baselines._history import History, Preparation, fitted
from varnn.baselines._lagged import LagChoice, Lags, last_labels
from varnn.data.panel import Panel
from varnn.data.windows import Rows
from varnn.errors import ConfigError, require

ROWS_AT_ONCE = 8192  # training rows gathered together, to bound memory


@dataclass(kw_only=True, eq=False)
class RecursiveLeastSquares:
    """Recursive least squares with forgetting: a linear ARX whose coefficients follow the labels.

    Fitting solves ridge regression on the training rows. Each predicted series starts from that
    solution and learns from a row once it has been predicted; :meth:`predict` changes no model.
    A step costs the square of the number of regressors.

    Parameters
    ----------
    lags : {"correct", "as-published"}, default "correct"
        Regressors, as of ``arx-lr``.
    window : int, default 5
        Rows one prediction sees, itself included.
    forgetting : float, default 0.9995
        Weight that a row keeps after each later row, above 0 and at most 1. With 1 the coefficients
        are those of ridge regression on all rows seen so far.
    ridge : float, default 0.01
        Penalty on squared coefficients, in min-max units, and the bound on what is forgotten.

    References
    ----------
    R. L. Plackett, "Some theorems in least squares", Biometrika 37 (1950), 149-157.

    L. Ljung and T. Söderström, Theory and Practice of Recursive Identification, MIT Press (1983).

    Examples
    --------
    >>> drifting = Panel.from_arrays(None, np.sin(np.arange(60.0)))
    >>> model = RecursiveLeastSquares(window=3).fit(drifting)
    >>> bool(np.abs(model.predict(drifting) - drifting.target)[3:].max() < 0.01)
    True
    """

    lags: LagChoice = "correct"
    window: int = 5
    forgetting: float = 0.9995
    ridge: float = 1e-2
    preparation_: Preparation | None = field(default=None, init=False, repr=False)
    coefficients_: DoubleArray = field(init=False, repr=False)  # (F + 1,), the last one constant
    covariance_: DoubleArray = field(init=False, repr=False)  # (F + 1, F + 1)

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "RecursiveLeastSquares":
        """Solve the normal equations of the rows that have all their lags and a label."""
        if not 0 < self.forgetting <= 1:
            raise ConfigError(f"forgetting must be above 0 and at most 1; got {self.forgetting}.")
        if not self.ridge > 0:
            raise ConfigError(f"ridge must be above 0, to keep the covariance finite; got {self.ridge}.")
        self.check_packages()
        lags = Lags.of(self.lags, self.window)
        preparation = Preparation.of(panel, np.float64)
        history = preparation(panel)
        size = lags.n_columns(panel.n_inputs) + 1
        information, products = self.ridge * np.eye(size), np.zeros(size)
        rows = lags.training_rows(history)
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[begin : begin + ROWS_AT_ONCE]
            regressors = _with_constant(lags, history, some)
            information += regressors.T @ regressors
            products += regressors.T @ history.panel.target[some]
        from scipy import linalg  # late, as it takes a while to import

        factor = linalg.cho_factor(information)
        self.coefficients_ = linalg.cho_solve(factor, products)
        covariance = linalg.cho_solve(factor, np.eye(size))
        self.covariance_ = (covariance + covariance.T) / 2
        self.preparation_ = preparation
        return self

    def check_packages(self) -> None:
        """Say that SciPy is needed, where it is not installed."""
        require("scipy", extra="baselines", purpose="the baseline 'rls-arx'")

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead, and learn from each label once it is past."""
        preparation = fitted(self.preparation_, self)
        history = preparation(panel)
        lags = Lags.of(self.lags, self.window)
        learnable = lags.complete(history)
        predictions = np.empty(len(panel))
        for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
            rows = np.arange(first, last)
            predictions[first:last] = self._follow(
                _with_constant(lags, history, rows), history.panel.target[rows], learnable[rows]
            )
        return preparation.restore(np.where(lags.is_early(panel), last_labels(history), predictions))

    def _follow(self, regressors: DoubleArray, labels: FloatArray, learnable: BoolArray) -> DoubleArray:
        """Predict and learn row by row through one series; regressors (B, F + 1)."""
        trained, coefficients = self.coefficients_, self.coefficients_.copy()
        covariance = self.covariance_.copy()
        size, forgetting = len(trained), self.forgetting
        restated = size * (1 - forgetting) * self.ridge  # weight of the made-up row
        predictions = np.empty(len(labels))
        turn = 0
        for row, regressor in enumerate(regressors):
            predictions[row] = regressor @ coefficients
            if not learnable[row]:
                continue
            spread = covariance @ regressor
            certainty = forgetting + regressor @ spread
            coefficients += spread * ((labels[row] - predictions[row]) / certainty)
            _narrow(covariance, spread, 1 / certainty)
            if forgetting < 1:
                covariance /= forgetting
                spread = covariance[turn].copy()
                weight = restated / (1 + restated * spread[turn])
                coefficients += spread * ((trained[turn] - coefficients[turn]) * weight)
                _narrow(covariance, spread, weight)
                turn = (turn + 1) % size
        return predictions


def _narrow(covariance: DoubleArray, spread: DoubleArray, weight: float) -> None:
    """Take from the covariance, in place, what a row has told; it stays symmetric to the last bit."""
    spread *= np.sqrt(weight)
    covariance -= np.multiply.outer(spread, spread)


def _with_constant(lags: Lags, history: History, rows: Rows) -> DoubleArray:
    return np.column_stack([lags.regressors(history, rows), np.ones(len(rows))])
