"""Who predicts: persistence, recursive least squares, and the default of varnn out of the box."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.online.protocol import Task, scored
from varnn._types import DoubleArray
from varnn.data.sampling import seconds_per_row
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation import metrics
from varnn.model.calendar import calendar_inputs

LEVEL = 0.9  # of the intervals that are judged
RIDGE = 1.0  # on standardised values: what one row says, against thousands


def persistence(task: Task) -> DoubleArray:
    """Each channel as it was in the row before: (T, C)."""
    values = task.rows.values
    return np.concatenate([np.zeros_like(values[:1]), values[:-1]])


def var_rls(task: Task) -> DoubleArray:
    """Recursive least squares without forgetting on the last four rows of all channels: (T, C)."""
    return recursive_least_squares(task.rows.values, (1, 2, 3, 4))


def daily_rls(task: Task) -> DoubleArray | None:
    """The same, with the rows around a day ago and the clock; None where rows have no time of day."""
    step = seconds_per_row(task.rows.times)
    if step is None or 86_400 % step or 86_400 // step < 6:
        return None
    day = 86_400 // step
    clock = calendar_inputs(task.rows.times, ("day", "week"))
    return recursive_least_squares(task.rows.values, (1, 2, 3, 4, day - 1, day, day + 1), clock)


def recursive_least_squares(
    values: DoubleArray, lags: Sequence[int], known: DoubleArray | None = None
) -> DoubleArray:
    """Predict all channels from their lags and what is known of a row, then learn the row: (T, C).

    Nothing is forgotten: the coefficients are those of ridge regression on all rows so far. One covariance
    serves all channels, as their regressors are the same. Rows before the longest lag are predicted as 0.

    References
    ----------
    R. L. Plackett, "Some theorems in least squares", Biometrika 37 (1950), 149-157.

    Examples
    --------
    >>> wave = np.sin(np.arange(300.0))[:, None]
    >>> bool(np.abs(recursive_least_squares(wave, (1, 2)) - wave)[250:].max() < 0.05)
    True
    """
    first = max(lags)
    columns = [values[first - lag : len(values) - lag] for lag in lags]
    columns.append(np.ones((len(values) - first, 1)))
    columns += [] if known is None else [known[first:]]
    regressors = np.concatenate(columns, axis=1)
    size = regressors.shape[1]
    covariance, coefficients = np.eye(size) / RIDGE, np.zeros((size, values.shape[1]))
    predictions = np.zeros_like(values)
    for row, regressor in enumerate(regressors, start=first):
        predictions[row] = regressor @ coefficients
        spread = covariance @ regressor
        certainty = 1 + regressor @ spread
        coefficients += np.multiply.outer(spread, (values[row] - predictions[row]) / certainty)
        covariance -= np.multiply.outer(spread, spread / certainty)
    return predictions


SIMPLE: dict[str, Callable[[Task], DoubleArray | None]] = {
    "persistence": persistence,
    "recursive least squares, VAR(4)": var_rls,
    "the same with daily lags and clock": daily_rls,
}
OURS = "varnn's default"


def simple_scores(task: Task, contender: str) -> dict[str, Any] | None:
    """Scores of a simple contender by channel; None where it does not apply."""
    began = time.perf_counter()
    predictions = SIMPLE[contender](task)
    if predictions is None:
        return None
    seconds = time.perf_counter() - began
    errors = task.errors(predictions)
    return {
        channel: {**scored(errors[:, at]), "seconds": seconds / errors.shape[1]}
        for at, channel in enumerate(task.rows.channels)
    }


def default_scores(task: Task, channel: str, seed: int, **settings: Any) -> dict[str, float]:
    """Fit the default to training and validation rows of one channel; predict those after in one pass."""
    panel = task.panel(channel)
    model = VARNNRegressor(random_state=seed, **settings)
    began = time.perf_counter()
    model.fit(panel.between(0, task.table.validation))
    seconds = time.perf_counter() - began
    test = panel.between(task.table.validation, len(panel))
    prediction, lower, upper = model.predict(test, interval=LEVEL, resume=True)
    truth = test.target
    return {
        **scored(prediction - truth),
        "coverage": metrics.coverage(truth, lower, upper),
        "interval_score": metrics.interval_score(truth, lower, upper, LEVEL),
        "seconds": seconds,
    }
