"""Seasonal baselines: lags of a day and a week against a design matrix built by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from varnn import Panel, baselines
from varnn._types import DoubleArray
from varnn.baselines._history import Preparation
from varnn.baselines._regression import Regression
from varnn.data.preparation import split_in_time
from varnn.errors import ConfigError, DataError

START = np.datetime64("2026-01-01T00:00:00")  # a Thursday
NAMES = ("seasonal-arx", "seasonal-gbm")


def times(rows: int, minutes: int = 60) -> npt.NDArray[np.datetime64]:
    return START + np.arange(rows) * np.timedelta64(minutes, "m")


def stream(rows: int = 24 * 80, *, seed: int = 0, n_series: int = 1, missing: float = 0.0) -> Panel:
    """Hourly series with a day of no simple shape, a quiet weekend, one input and noise."""
    generator = np.random.default_rng(seed)
    time, series = times(rows), np.arange(rows)
    shape = generator.normal(size=24)
    load = shape[series % 24] * np.where((series // 24 + 3) % 7 >= 5, 0.3, 1.0)
    X = generator.normal(size=(n_series * rows, 1))
    y = np.tile(load, n_series) + 0.3 * X[:, 0] + 0.2 * generator.normal(size=n_series * rows)
    y[generator.random(len(y)) < missing] = np.nan
    names = np.repeat([f"s{index}" for index in range(n_series)], rows)
    return Panel.from_arrays(X, y, series=names, time=np.tile(time, n_series))


def make(name: str, **settings: Any) -> baselines.Baseline:
    if name == "seasonal-gbm":
        settings = {"rounds": 20, "library": "sklearn"} | settings
    return baselines.make(name, **settings)


def by_hand(panel: Panel, labels: list[int], weeks: bool) -> tuple[DoubleArray, list[int]]:
    """Regressors of every row whose lags are all there and known, in plain loops: their order is free."""
    assert panel.time is not None
    regressors, rows = [], []
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        for row in range(first, last):
            past = [panel.target[row - lag] if row - lag >= first else np.nan for lag in labels]
            if np.isnan([panel.target[row], *past]).any():
                continue
            hour = (panel.time[row] - START) / np.timedelta64(1, "h")
            day, weekday = 2 * np.pi * hour / 24, (int(hour) // 24 + 3) % 7
            week = 2 * np.pi * (hour + 72) / 168
            cycles = [np.sin(day), np.cos(day), np.sin(2 * day), np.cos(2 * day)]
            cycles += [np.sin(week), np.cos(week), float(weekday >= 5)] if weeks else []
            regressors.append([*past, *(panel.inputs[row - lag, 0] for lag in range(5)), *cycles])
            rows.append(row)
    return np.array(regressors), rows


LAGS = [*range(1, 26), 167, 168, 169]  # 24 rows, then a day and a week and their neighbours


@pytest.mark.parametrize(("n_series", "missing"), [(1, 0.0), (1, 0.01), (3, 0.005)])
def test_seasonal_arx_is_least_squares_on_these_lags_and_the_calendar(n_series: int, missing: float) -> None:
    panel = stream(n_series=n_series, missing=missing)
    regressors, rows = by_hand(panel, LAGS, weeks=True)
    expected = LinearRegression().fit(regressors, panel.target[rows]).predict(regressors)
    predictions = make("seasonal-arx").fit(panel).predict(panel)
    assert len(rows) > 800
    np.testing.assert_allclose(predictions[rows], expected, rtol=1e-7, atol=1e-9)


def test_a_week_is_in_the_calendar_only_where_it_came_often() -> None:
    panel = stream(24 * 40)  # five weeks: lags of a week, but no Fourier terms of it
    regressors, rows = by_hand(panel, LAGS, weeks=False)
    expected = LinearRegression().fit(regressors, panel.target[rows]).predict(regressors)
    predictions = make("seasonal-arx").fit(panel).predict(panel)
    np.testing.assert_allclose(predictions[rows], expected, rtol=1e-7, atol=1e-9)


def test_seasonal_boosting_is_boosting_on_the_same_regressors() -> None:
    panel = stream()
    model = make("seasonal-gbm").fit(panel)
    assert isinstance(model, Regression)
    history = Preparation.of(panel, np.float32)(panel)
    _, rows = by_hand(panel, LAGS, weeks=True)
    regressors = model.lags_.regressors(history, np.array(rows))
    mine, _ = by_hand(panel, LAGS, weeks=True)
    low, span = panel.target.min(), np.ptp(panel.target)
    np.testing.assert_allclose(regressors[:, : len(LAGS)] * span + low, mine[:, : len(LAGS)], atol=1e-5)
    np.testing.assert_allclose(regressors[:, -7:], mine[:, -7:], atol=1e-5)
    boosted = HistGradientBoostingRegressor(
        max_iter=20, learning_rate=0.05, early_stopping=False, random_state=2025
    ).fit(regressors, history.panel.target[rows])
    expected = boosted.predict(regressors) * span + low
    np.testing.assert_allclose(model.predict(panel)[rows], expected, rtol=1e-6)


def test_validation_chooses_the_number_of_trees() -> None:
    training, validation = split_in_time(stream(), 0.8, 0.2)
    model = make("seasonal-gbm", rounds=300, learning_rate=0.3).fit(training, validation=validation)
    assert isinstance(model, Regression)
    assert 1 < model.learner.model_.n_iter_ < 300  # type: ignore[attr-defined]  # a learner of scikit-learn, untyped


def test_a_season_is_worth_knowing() -> None:
    panel = stream()
    known, test = split_in_time(panel, 0.8, 0.2)
    scored = np.isin(panel.rows, test.rows)
    errors = {
        name: np.mean(np.square(baselines.make(name).fit(known).predict(panel) - panel.target)[scored])
        for name in ("arx-lr", "narx-gbm", *NAMES)
    }
    assert errors["seasonal-arx"] < 0.6 * errors["arx-lr"]
    assert errors["seasonal-gbm"] < 0.6 * errors["narx-gbm"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", [3, 30, 400, 1000])
def test_no_prediction_sees_its_own_label_or_a_later_one(name: str, row: int) -> None:
    panel = stream(24 * 50, missing=0.02)
    model = make(name).fit(panel)
    target, inputs = panel.target.copy(), panel.inputs.copy()
    target[row:] += 50
    inputs[row + 1 :] -= 50
    changed = model.predict(replace(panel, target=target, inputs=inputs))
    assert np.array_equal(model.predict(panel)[: row + 1], changed[: row + 1])
    assert (model.predict(panel)[row + 1 :] != changed[row + 1 :]).any()


@pytest.mark.parametrize(("lag", "seen"), [(1, True), (24, True), (26, False), (168, True), (170, False)])
def test_it_sees_a_day_and_a_week_ago_and_not_what_lies_between(lag: int, seen: bool) -> None:
    panel, row = stream(24 * 50), 1000
    model = make("seasonal-arx").fit(panel)
    target = panel.target.copy()
    target[row - lag] += 10
    moved = model.predict(replace(panel, target=target))[row] != model.predict(panel)[row]
    assert moved == seen


@pytest.mark.parametrize("name", NAMES)
def test_series_are_predicted_apart(name: str) -> None:
    panel = stream(24 * 40, n_series=2)
    model = make(name).fit(panel)
    target = panel.target.copy()
    target[: 24 * 40] += 100
    changed = model.predict(replace(panel, target=target))
    assert np.array_equal(model.predict(panel)[24 * 40 :], changed[24 * 40 :])


@pytest.mark.parametrize(("name", "plain"), [("seasonal-arx", "arx-lr"), ("seasonal-gbm", "narx-gbm")])
def test_without_times_the_last_labels_are_all_there_is(name: str, plain: str) -> None:
    panel = Panel.from_arrays(None, stream().target)
    settings: dict[str, Any] = {"rounds": 20, "library": "sklearn"} if name == "seasonal-gbm" else {}
    expected = baselines.make(plain, window=25, **settings).fit(panel).predict(panel)
    assert np.array_equal(make(name).fit(panel).predict(panel), expected)


@pytest.mark.parametrize(
    ("minutes", "rows", "seasonal"),
    [
        (60, 24 * 20, (25,)),  # not three weeks
        (60, 24 * 21, (25, 167, 168, 169)),
        (60, 24 * 2, ()),  # nor three days
        (10, 144 * 5, (143, 144, 145)),
        (7, 2000, (1439, 1440, 1441)[:0]),  # no whole number of rows makes a day, and a week is 1,440
        (7, 4320, (1439, 1440, 1441)),
        (24 * 60, 200, ()),  # a week of days is within the last 24
        (24 * 60 * 7, 200, ()),
    ],
)
def test_periods_are_whole_and_were_seen_three_times(
    minutes: int, rows: int, seasonal: tuple[int, ...]
) -> None:
    panel = Panel.from_arrays(None, np.random.default_rng(1).normal(size=rows), time=times(rows, minutes))
    model = make("seasonal-arx").fit(panel)
    assert isinstance(model, Regression)
    assert model.lags_.seasonal == seasonal
    assert np.isfinite(model.predict(panel)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [3, 12, 40, 170])
def test_short_series_have_fewer_lags_and_still_a_model(name: str, rows: int) -> None:
    panel = stream(rows, n_series=2)
    training, validation = split_in_time(panel, 0.8, 0.2)
    model = make(name).fit(training, validation=validation)
    assert np.isfinite(model.predict(panel)).all()
    assert np.isfinite(model.predict(stream(1))).all()


def test_validation_shorter_than_a_week_still_judges() -> None:
    training, validation, _ = split_in_time(stream(24 * 28), 0.8, 0.1, 0.1)
    model = make("seasonal-gbm", rounds=300, learning_rate=0.3).fit(training, validation=validation)
    assert isinstance(model, Regression)
    assert 168 in model.lags_.seasonal and len(validation) < 168
    assert model.learner.model_.n_iter_ < 300  # type: ignore[attr-defined]  # as above


def test_before_a_week_has_passed_the_oldest_label_stands_in() -> None:
    panel = stream(24 * 50)
    model = make("seasonal-arx").fit(panel)
    start = panel.between(0, 100)
    target = start.target.copy()
    predictions = model.predict(start)
    target[0] += 10  # which only what reaches beyond the start sees
    assert model.predict(replace(start, target=target))[99] != predictions[99]
    np.testing.assert_array_equal(predictions, model.predict(panel)[:100])
    assert np.mean(np.square(predictions - start.target)[30:]) < 1.2 * np.var(start.target)


def test_a_model_of_the_calendar_needs_times_to_predict() -> None:
    panel = stream()
    model = make("seasonal-arx").fit(panel)
    with pytest.raises(DataError, match="each row needs its time"):
        model.predict(replace(panel, time=None))


def test_a_window_of_one_row_is_refused() -> None:
    with pytest.raises(ConfigError, match="window must be at least 2"):
        make("seasonal-arx", window=1).fit(stream())
