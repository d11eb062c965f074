"""The two baselines that carry a state from row to row, against batch solutions: rls-arx and armax."""

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from sklearn.linear_model import Ridge

from varnn import Panel, baselines
from varnn._types import DoubleArray
from varnn.baselines._history import Preparation
from varnn.baselines._lagged import Lags
from varnn.baselines.armax import RegressionARMA
from varnn.baselines.rls import RecursiveLeastSquares
from varnn.errors import MissingExtraError


def stream(rows: int = 120, *, seed: int = 0) -> Panel:
    """Two series of unequal length, that follow inputs old and new and drift."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 2))
    y = X[:, 0] + 0.5 * np.roll(X[:, 1], 2) + np.cumsum(generator.normal(size=rows)) / 3
    return Panel.from_arrays(X, y, series=["a"] * (rows // 3) + ["b"] * (rows - rows // 3))


def _scaled_arx(panel: Panel, like: Panel) -> tuple[DoubleArray, npt.NDArray[Any]]:
    """Give every row's ARX regressors with a constant, and its label, in min-max units of ``like``."""
    history = Preparation.of(like, np.float64)(panel)
    regressors = Lags.of().regressors(history, np.arange(len(panel)))
    return np.column_stack([regressors, np.ones(len(panel))]), history.panel.target


def test_without_forgetting_recursion_is_ridge_regression_on_all_rows_so_far() -> None:
    training, test = stream(seed=1), stream(60, seed=2)
    model = RecursiveLeastSquares(forgetting=1.0, ridge=0.1).fit(training)
    predictions = model.predict(test)
    past, past_labels = _scaled_arx(training, training)
    new, new_labels = _scaled_arx(test, training)
    full = [row for row in range(len(training)) if row - training.first_rows[row] >= 4]
    scale, offset = np.ptp(training.target), training.target.min()
    for first, last in zip(test.starts[:-1], test.starts[1:], strict=True):
        for row in range(first + 4, last):
            seen = range(first + 4, row)  # rows of this series alone, and with a full window
            X = np.concatenate([past[full], new[seen]])
            y = np.concatenate([past_labels[full], new_labels[seen]])
            batch = Ridge(alpha=0.1, fit_intercept=False).fit(X, y)
            expected = batch.predict(new[row : row + 1])[0] * scale + offset
            assert predictions[row] == pytest.approx(expected, abs=1e-7)


def test_with_forgetting_recursion_solves_the_faded_normal_equations() -> None:
    training, test = stream(seed=1), stream(300, seed=2)
    forgetting, ridge = 0.97, 0.1
    model = RecursiveLeastSquares(forgetting=forgetting, ridge=ridge).fit(training)
    past, past_labels = _scaled_arx(training, training)
    new, new_labels = _scaled_arx(test, training)
    full = [row for row in range(len(training)) if row - training.first_rows[row] >= 4]
    size = past.shape[1]
    trained_information = past[full].T @ past[full] + ridge * np.eye(size)
    trained_moment = past[full].T @ past_labels[full]
    trained = np.linalg.solve(trained_information, trained_moment)
    scale, offset = np.ptp(training.target), training.target.min()
    predictions = model.predict(test)
    for first, last in zip(test.starts[:-1], test.starts[1:], strict=True):
        information, moment = trained_information.copy(), trained_moment.copy()
        for step, row in enumerate(range(first + 4, last)):
            expected = new[row] @ np.linalg.solve(information, moment) * scale + offset
            assert predictions[row] == pytest.approx(expected, abs=1e-7)
            information = forgetting * information + np.outer(new[row], new[row])
            moment = forgetting * moment + new[row] * new_labels[row]
            turn, weight = step % size, size * (1 - forgetting) * ridge
            information[turn, turn] += weight
            moment[turn] += weight * trained[turn]


def test_recursion_survives_a_long_time_with_nothing_new() -> None:
    """Plain forgetting winds its covariance up here by 0.9 ** -3000, which is infinite."""
    training = stream(seed=1)
    generator = np.random.default_rng(3)
    quiet, loud = np.zeros((3000, 2)), generator.normal(size=(50, 2))
    X = np.concatenate([quiet, loud])
    panel = Panel.from_arrays(X, np.concatenate([np.zeros(3000), loud[:, 0]]))
    predictions = RecursiveLeastSquares(forgetting=0.9).fit(training).predict(panel)
    assert np.abs(predictions).max() < 20


def test_recursion_follows_a_change() -> None:
    generator = np.random.default_rng(4)
    X = generator.normal(size=(2000, 2))
    training = Panel.from_arrays(X, X[:, 0] + 0.1 * generator.normal(size=2000))
    after = replace(training, target=-training.target)
    errors = {
        name: np.abs(baselines.make(name).fit(training).predict(after) - after.target)[-200:].mean()
        for name in ("arx-lr", "rls-arx")
    }
    assert errors["rls-arx"] < 0.5 * errors["arx-lr"]


def _arma_stream(rows: int, seed: int) -> Panel:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 2)).cumsum(axis=0) / 10
    shocks = generator.normal(size=rows)
    errors = np.zeros(rows)
    for row in range(2, rows):
        errors[row] = 0.6 * errors[row - 1] + 0.2 * errors[row - 2] + shocks[row] + 0.4 * shocks[row - 1]
    return Panel.from_arrays(X, 3 * X[:, 0] - 2 * X[:, 1] + 7 + errors)


def test_armax_comes_close_to_full_maximum_likelihood() -> None:
    panel = _arma_stream(2000, seed=6)
    model = RegressionARMA().fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of starting values
        exact = sm.tsa.SARIMAX(panel.target, panel.inputs, order=(2, 0, 1), trend="c").fit(disp=0)
    np.testing.assert_allclose(model.arma_, [0.6, 0.2, 0.4], atol=0.15)
    ours, theirs = model.predict(panel), exact.predict()
    assert np.std(ours[5:] - theirs[5:]) < 0.02  # shocks have standard deviation 1
    assert np.std((panel.target - ours)[5:]) == pytest.approx(1, abs=0.05)


def test_armax_reads_series_apart() -> None:
    """Two copies of one series, far apart in level: only a filter that restarts predicts both alike."""
    one = _arma_stream(800, seed=7)
    both = Panel.from_arrays(
        np.tile(one.inputs, (2, 1)), np.tile(one.target, 2), series=["a"] * 800 + ["b"] * 800
    )
    alone, joint = RegressionARMA().fit(one), RegressionARMA().fit(both)
    np.testing.assert_allclose(alone.arma_, joint.arma_, atol=0.02)
    predictions = joint.predict(both)
    assert np.array_equal(predictions[:800], predictions[800:])


def test_armax_without_statsmodels_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.statespace.sarimax", None)
    with pytest.raises(MissingExtraError, match="statsmodels"):
        baselines.make("armax").fit(stream())
