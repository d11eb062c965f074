"""Simple forecasts of several rows, from before each row: what a forecaster has to beat.

Each gives (N, H): column k is about row t + k, from labels and inputs before row t alone. Where a label
is missing the last one known stands in.
"""

from collections.abc import Sequence

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.baselines._history import Preparation
from varnn.data.panel import Panel
from varnn.model.linear import last_labels


def persistence_ahead(panel: Panel, horizon: int) -> DoubleArray:
    """Naive forecast, persistence: all rows of the horizon will be as the last one.

    Parameters
    ----------
    panel : Panel
        The rows.
    horizon : int
        Steps ahead, H.

    Returns
    -------
    array of shape (N, H)
        NaN where there is no label before a row.

    Examples
    --------
    >>> persistence_ahead(Panel.from_arrays(None, [1.0, 2.0, 3.0]), 2)[1:].tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    return np.repeat(_last(panel)[:, None], horizon, axis=1)


def seasonal_ahead(panel: Panel, horizon: int, season: int) -> DoubleArray:
    """Seasonal persistence: rows will be as they were one season ago; the horizon is one season at most.

    In a series' first season that is not known: then as the last row.

    Parameters
    ----------
    panel : Panel
        The rows.
    horizon : int
        Steps ahead, H.
    season : int
        Rows of a season, at least H.

    Returns
    -------
    array of shape (N, H)
        NaN where there is no label before a row.

    Examples
    --------
    >>> seasonal_ahead(Panel.from_arrays(None, [1.0, 2.0, 3.0, 4.0]), 2, season=2)[2:].tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    forecasts = persistence_ahead(panel, horizon)
    labels = np.where(np.isnan(panel.target), forecasts[:, 0], panel.target)
    for index in range(horizon):
        earlier = np.arange(len(panel)) + index - season
        known = earlier >= panel.first_rows
        forecasts[known, index] = labels[earlier[known]]
    return forecasts


class IteratedARX:
    """Recursive ARX: a linear model of the last labels and inputs, fed with its own predictions.

    Coming inputs are not known: they are taken to stay as they were last.

    Parameters
    ----------
    lags : int, default 4
        Labels looked back on.
    inputs : bool, default True
        Whether inputs are looked at; without, it is an AR model.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, 0.5 ** np.arange(40.0))
    >>> IteratedARX(lags=1).fit(panel).forecasts(panel, 3)[1].round(3).tolist()
    [0.5, 0.25, 0.125]
    """

    def __init__(self, lags: int = 4, *, inputs: bool = True) -> None:
        self.lags, self.inputs = lags, inputs

    def fit(self, panel: Panel) -> "IteratedARX":
        """Fit by least squares to the rows that have all their labels."""
        self.preparation = Preparation.of(panel, np.float64)
        rows = self.preparation(panel).panel
        place = np.arange(len(rows)) - rows.first_rows
        columns = [rows.target[np.maximum(np.arange(len(rows)) - lag, 0)] for lag in range(1, self.lags + 1)]
        regressors = self._regressors(columns, rows.inputs)
        known = (place >= self.lags) & ~np.isnan(regressors).any(axis=1) & ~np.isnan(rows.target)
        self.weights = np.linalg.lstsq(regressors[known], rows.target[known], rcond=None)[0]
        return self

    def forecasts(self, panel: Panel, horizon: int) -> DoubleArray:
        """Forecast from before each row: (N, horizon)."""
        history = self.preparation(panel)
        rows, first = np.arange(len(panel)), panel.first_rows
        labels = np.asarray(history.known, dtype=np.float64)
        # Before a series' first row its first label would be the future: the training mean stands in.
        recent = [
            np.where(rows - lag >= first, labels[np.maximum(rows - lag, 0)], history.unknown)
            for lag in range(1, self.lags + 1)
        ]
        inputs = history.panel.inputs[np.maximum(rows - 1, first)]
        forecasts = np.empty((len(panel), horizon))
        for index in range(horizon):
            forecasts[:, index] = self._regressors(recent, inputs) @ self.weights
            recent = [forecasts[:, index], *recent[:-1]]
        return np.asarray(self.preparation.restore(forecasts), dtype=np.float64)

    def _regressors(self, labels: Sequence[FloatArray], inputs: FloatArray) -> DoubleArray:
        seen = [inputs] if self.inputs else []
        return np.column_stack([*labels, *seen, np.ones(len(labels[0]))])


def _last(panel: Panel) -> DoubleArray:
    """Last label before each row; before a series' first, NaN."""
    return last_labels(panel, np.nan)[0]
